//! How a process with many roles makes itself known to the others, and learns of them before it claims anything.
//!
//! It says one hello for all of its roles, in partition 0, which each such process reads. It claims nothing before its first hello was read
//! back, and those that are there have had the time to answer one that maps a role elsewhere. Of two that map a role to different partitions,
//! both of which would lead it, the one whose first hello stands later does not stand.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use core::time::Duration;

use crate::mapping::Mapping;
use crate::precedence::{HELLO_AFTER_RELEASE, HELLO_HOLDS, HELLO_INTERVAL};
use crate::process_hello::ProcessHello;
use crate::record::{MemberId, Offset};
use crate::time::Time;

/// Those that are there answer a first hello at once where they have to; nothing is claimed for so long after it.
const ANSWERS: Duration = Duration::from_millis(500);

/// A first hello that was not read back is said again after so long.
const SAID_AGAIN: Duration = Duration::from_secs(2);

/// Those of so many other lists of roles are told of.
const MOST_STRANGERS: usize = 16;

/// Things to do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Action {
    /// Say hello.
    Hello {
        /// Where the first one stands, once it was read back.
        joined: Option<Offset>,
    },
    /// Go: another maps a role elsewhere.
    Refuse {
        /// Which role, and who: one line.
        error: Box<str>,
    },
    /// From now on vacancies may be claimed. Said once.
    Stand,
    /// For the log: another candidate of this group stands for other roles. Said once for the same roles.
    Stranger {
        /// Who, and for which: one line.
        warning: Box<str>,
    },
    /// For the log: nothing is claimed before `until`, unless the other is known to have gone.
    Wait {
        /// Why: one line about another that maps a role elsewhere, and may have gone.
        why: Box<str>,
        /// Until then.
        until: Time,
    },
}

/// Whose a hello is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Whose {
    /// Another's.
    Another,
    /// Another's from before this process listened: it may have gone since.
    AnotherBefore,
    /// This process's.
    Own,
}

/// How far it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    /// The others are learnt of.
    Begun,
    /// It is refused.
    Refused,
    /// Vacancies may be claimed.
    Stands,
    /// Somebody who may have gone is waited for, and that was said.
    Waits,
}

/// What one process knows of the others' mappings, and when it says hello.
#[derive(Clone, Debug)]
pub(crate) struct Introduction {
    member: MemberId,
    mapping: Mapping,
    /// Where the log ended when listening began, and when that was: who said hello before may have gone since.
    history: Option<(Offset, Time)>,
    /// R0: the topic may carry an election.
    is_fit: bool,
    next_hello: Option<Time>,
    /// Where the first own hello stands, once it was read back.
    joined: Option<Offset>,
    /// By then whoever is there has answered it.
    answered_by: Option<Time>,
    /// Those that map a role elsewhere, and may have gone.
    doubted: BTreeMap<MemberId, Box<str>>,
    /// The roles of those that share none with this process, as typed, that were told of.
    strangers: BTreeSet<Option<Box<str>>>,
    stage: Stage,
    actions: VecDeque<Action>,
}

impl Introduction {
    /// That of a process that has read nothing yet.
    #[must_use]
    pub(crate) const fn new(member: MemberId, mapping: Mapping) -> Self {
        Self {
            member,
            mapping,
            history: None,
            is_fit: false,
            next_hello: None,
            joined: None,
            answered_by: None,
            doubted: BTreeMap::new(),
            strangers: BTreeSet::new(),
            stage: Stage::Begun,
            actions: VecDeque::new(),
        }
    }

    /// What to do next.
    #[must_use]
    pub(crate) fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), unless something happens before.
    #[must_use]
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        if self.stage == Stage::Refused {
            return None;
        }
        let stands = self.answered_by.filter(|_| self.stage != Stage::Stands);
        let doubts_end = if self.doubted.is_empty() { None } else { self.doubts_end() };
        let stands = stands.map(|answered| answered.max(doubts_end.unwrap_or(answered)));
        [self.next_hello, stands].into_iter().flatten().min()
    }

    /// Does what is due by now. Early calls do nothing.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        if self.stage == Stage::Refused {
            return;
        }
        if self.next_hello.is_some_and(|due| now >= due) {
            self.say_hello(now);
        }
        if self.doubts_end().is_some_and(|end| now >= end) {
            self.doubted.clear();
        }
        if self.stage == Stage::Stands || self.answered_by.is_none_or(|by| now < by) {
            return;
        }
        if let Some((why, until)) = self.doubted.values().next().zip(self.doubts_end()) {
            if self.stage == Stage::Begun {
                self.stage = Stage::Waits;
                self.actions.push_back(Action::Wait { why: why.clone(), until });
            }
        } else {
            self.stage = Stage::Stands;
            self.actions.push_back(Action::Stand);
            // From this one on the others count on it.
            self.say_hello(now);
        }
    }

    /// Partition 0 is read, whose log ended there when that began.
    pub(crate) fn listens(&mut self, now: Time, end: Offset) {
        self.history.get_or_insert((end, now));
        self.introduce(now);
    }

    /// R0: the topic may carry an election.
    pub(crate) fn topic_judged(&mut self, now: Time) {
        self.is_fit = true;
        self.introduce(now);
    }

    /// The history of partition 0 was cut: where a hello stood tells nothing any more.
    pub(crate) fn history_cut(&mut self) {
        (self.history, self.joined, self.next_hello, self.is_fit) = (None, None, None, false);
    }

    /// A hello was read in partition 0.
    pub(crate) fn heard(&mut self, now: Time, offset: Offset, hello: &ProcessHello) -> Whose {
        if hello.member == self.member {
            self.came_back(now, offset);
            return Whose::Own;
        }
        let name = hello.name.as_deref().unwrap_or("a candidate without a name");
        match self.mapping.refusal(&hello.mapping(), name).filter(|_| !hello.leaves) {
            None => drop(self.doubted.remove(&hello.member)),
            Some(refusal) => self.heard_conflict(now, offset, hello, refusal.into()),
        }
        // One from before may be of somebody who has gone: whoever has not says another.
        if !hello.leaves
            && !self.is_history(offset)
            && let Some(warning) = self.mapping.stranger(&hello.mapping(), name)
        {
            self.heard_stranger(now, hello, warning.into());
        }
        self.handle_timeout(now);
        if self.is_history(offset) { Whose::AnotherBefore } else { Whose::Another }
    }

    /// Whether somebody stands for one of this process's roles.
    #[must_use]
    pub(crate) fn shares_role(&self, hello: &ProcessHello) -> bool {
        self.mapping.shares_role(&hello.mapping())
    }

    /// This process has released a role, and stays: the others' nodes take whoever releases for gone.
    pub(crate) fn released(&mut self, now: Time) {
        self.next_hello = self.next_hello.map(|due| due.min(now + HELLO_AFTER_RELEASE));
    }

    /// Where the first own hello stands, once it was read back.
    #[must_use]
    pub(crate) const fn joined(&self) -> Option<Offset> {
        self.joined
    }

    fn is_history(&self, offset: Offset) -> bool {
        self.history.is_some_and(|(end, _)| offset < end)
    }

    fn heard_conflict(&mut self, now: Time, offset: Offset, hello: &ProcessHello, refusal: Box<str>) {
        let is_later = self.joined.is_some_and(|own| own < hello.joined.unwrap_or(offset));
        if is_later {
            // It is told at once of whom it has to know.
            self.say_hello(now);
        } else if self.is_history(offset) {
            self.doubted.insert(hello.member.clone(), refusal);
        } else if self.stage != Stage::Refused {
            self.stage = Stage::Refused;
            self.actions.push_back(Action::Refuse { error: refusal });
        }
    }

    fn heard_stranger(&mut self, now: Time, hello: &ProcessHello, warning: Box<str>) {
        let is_new = hello.roles.is_some() && hello.joined.is_none();
        if is_new && self.joined.is_some() {
            // So that it can say so at its start, too, where somebody looks.
            self.say_hello(now);
        }
        if self.strangers.len() < MOST_STRANGERS && self.strangers.insert(hello.roles.clone()) {
            self.actions.push_back(Action::Stranger { warning });
        }
    }

    fn came_back(&mut self, now: Time, offset: Offset) {
        if self.joined.is_none() {
            self.joined = Some(offset);
            self.answered_by.get_or_insert(now + ANSWERS);
            self.next_hello = Some(now + HELLO_INTERVAL);
        }
    }

    /// Whoever was doubted has said hello by then if it is there.
    fn doubts_end(&self) -> Option<Time> {
        self.history.map(|(_, began)| began + HELLO_HOLDS)
    }

    fn introduce(&mut self, now: Time) {
        if self.is_fit && self.history.is_some() && self.next_hello.is_none() && self.stage != Stage::Refused {
            self.say_hello(now);
        }
    }

    fn say_hello(&mut self, now: Time) {
        self.next_hello = Some(now + if self.joined.is_some() { HELLO_INTERVAL } else { SAID_AGAIN });
        self.actions.push_back(Action::Hello { joined: self.joined });
    }
}

#[cfg(test)]
mod tests;
