//! The introduction of a process with many roles: the exchange of hellos with the other processes before it claims.
//!
//! It sends one hello for all of its roles, in partition 0, which every such process reads. It claims nothing before its first hello was
//! read back and the other processes have had time to object. If two processes map a role to different partitions, both would lead that
//! role. So the process whose first hello is later in the log does not stand for election.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use core::time::Duration;

use crate::action::RolesAction as Action;
use crate::hello::Hello;
use crate::mapping::{Differs, Mapping};
use crate::note::{MOST_REPORTED, Note};
use crate::precedence::{ANSWERS, HELLO_AFTER_LEAD, HELLO_HOLDS, HELLO_INTERVAL};
use crate::record::{MemberId, Offset};
use crate::time::{Time, millis};

/// A first hello that was not read back is sent again after this time.
const SAID_AGAIN: Duration = Duration::from_secs(2);

/// A process that no longer stands for a role says so after this time, once for all roles that it leaves meanwhile. The
/// others claim such a role after [`PATIENCE`](crate::timings::PATIENCE) at the earliest.
const HELLO_AFTER_LEAVING: Duration = Duration::from_millis(100);

/// The stage of the introduction.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Stage {
    /// It waits for the others' hellos.
    #[default]
    Begun,
    /// The process was refused. One that had stood may still be stopping its jobs.
    Refused { had_stood: bool },
    /// The process may claim vacancies.
    Stands,
    /// It waits for a candidate that maps a role to another partition, and may have gone; this was reported.
    Waits,
}

/// The introduction of one process: the others' mappings, and when it sends hellos.
#[derive(Clone, Debug, Default)]
pub(crate) struct Introduction {
    /// The process's hello. `joined` is the offset of the first one, once it was read back.
    pub(crate) hello: Hello,
    /// Until when the last of the undecided roles may claim nothing.
    undecided_until: Option<Time>,
    /// The end of the log when this process began to read, and the time then. The writer of an earlier hello may have gone since.
    history: Option<(Offset, Time)>,
    /// R0: the topic may carry an election.
    is_fit: bool,
    next_hello: Option<Time>,
    /// The time by which every living process has answered the first hello.
    answered_by: Option<Time>,
    /// Candidates that map a role to another partition, and may have gone.
    doubted: BTreeMap<MemberId, Differs>,
    /// By when the jobs of such candidates that have died since the reading began are gone.
    dead_until: Option<Time>,
    /// How a candidate that stood before this process began to read had a role in another partition, unless a later one has warned of that.
    moved: Option<Differs>,
    /// The lists of roles, as typed, that were reported because each lacks a role of this process, and has another.
    reported: BTreeSet<Option<Box<str>>>,
    stage: Stage,
    actions: VecDeque<Action>,
}

impl Introduction {
    /// The introduction of a process that has read nothing yet.
    pub(crate) fn new(hello: Hello) -> Self {
        Self { hello, ..Self::default() }
    }

    /// The process's mapping of roles to partitions.
    pub(crate) fn mapping(&self) -> Mapping {
        self.hello.mapping()
    }

    /// The next action.
    #[must_use]
    pub(crate) fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), unless something happens before.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        if self.is_refused() {
            return None;
        }
        let stands = self.answered_by.filter(|_| self.stage != Stage::Stands);
        let doubts_end = self.doubts_end().filter(|_| self.stage == Stage::Waits && !self.doubted.is_empty());
        let stands = stands.map(|answered| answered.max(doubts_end.unwrap_or(answered)));
        [self.next_hello, stands].into_iter().flatten().min()
    }

    /// Performs what is due. Early calls do nothing.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        if self.is_refused() {
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
                self.actions.push_back(Action::Note(Note::MappingInDoubt { why: Box::new(why.clone()), until }));
            }
        } else {
            self.stage = Stage::Stands;
            self.actions.extend(self.moved.take().map(|moved| Action::Note(Note::RolesDiffer(Box::new(moved)))));
            // From this hello on, the other processes count this one among the candidates.
            self.say_hello(now);
        }
    }

    /// Notes that the reading of partition 0 begins; its log ended at `end`.
    pub(crate) fn listens(&mut self, now: Time, end: Offset) {
        self.history.get_or_insert((end, now));
        self.introduce(now);
    }

    /// R0: the topic may carry an election.
    pub(crate) fn topic_judged(&mut self, now: Time) {
        self.is_fit = true;
        self.introduce(now);
    }

    /// Handles a cut of the history of partition 0: the offsets of earlier hellos are meaningless now.
    pub(crate) fn history_cut(&mut self) {
        (self.history, self.hello.joined, self.next_hello, self.is_fit) = (None, None, None, false);
        // The answers to a hello that is gone do not count. A process that stands already is not asked to wait.
        self.answered_by.take_if(|_| self.stage != Stage::Stands);
    }

    /// Handles a hello that was read in partition 0.
    pub(crate) fn received(&mut self, now: Time, offset: Offset, hello: &Hello) {
        if hello.member == self.hello.member {
            return self.came_back(now, offset);
        }
        let name = hello.name.as_deref().unwrap_or("a candidate without a name");
        let (own, theirs) = (self.mapping(), hello.mapping());
        match own.refusal(&theirs, name).filter(|_| !hello.leaves) {
            None => drop(self.doubted.remove(&hello.member)),
            Some(refusal) => self.conflicting_hello_received(now, offset, hello, refusal),
        }
        if hello.takes_roles() && self.is_history(offset) {
            let warning = own.warning_if_a_role_has_moved(&theirs, name);
            // A later candidate has warned of it, unless it does not have all these roles.
            if warning.is_some() || self.moved.as_ref().is_some_and(|moved| moved.concerns_roles_of(&theirs)) {
                self.moved = warning;
            }
        }
        // A hello from before this process began to read may be of a candidate that has gone. A living candidate sends another one.
        if !hello.leaves
            && !self.is_history(offset)
            && let Some(warning) = own.warning_if_each_lacks_a_role(&theirs, name)
        {
            self.hello_of_other_roles_received(now, hello, warning);
        }
        if hello.asks.as_ref() == Some(&self.hello.member) {
            self.answer(now);
        }
        self.handle_timeout(now);
    }

    /// Whether the process may claim vacancies: its first hello was read back, and no other candidate has objected in time.
    pub(crate) fn stands(&self) -> bool {
        self.stage == Stage::Stands
    }

    /// The process's hello, if it has sent any.
    pub(crate) fn said(&self) -> Option<&Hello> {
        Some(&self.hello).filter(|hello| hello.joined.is_some())
    }

    /// Sends a hello again: this process has released a role, or has lost it to another candidate's claim after a silence, and stays.
    /// Without a hello, the others assume that it has left.
    pub(crate) fn lead_ended(&mut self, now: Time) {
        self.say_hello_by(now + HELLO_AFTER_LEAD);
    }

    /// Sends a hello soon, because this process no longer stands for a role. The others must know this before they claim the role or
    /// hand it over.
    pub(crate) fn role_left(&mut self, now: Time, role: u32) {
        if !self.hello.left.contains(role) {
            self.hello.left.insert(role);
            self.say_hello_by(now + HELLO_AFTER_LEAVING);
        }
    }

    /// Notes that a role may not be claimed before `until`, because its records do not show who leads. The hello contains the longest such
    /// time, since it is one for all roles. It is only displayed, and only for a role without a leader.
    pub(crate) fn undecided(&mut self, now: Time, until: Time) {
        if self.undecided_until.is_none_or(|known| known <= now) {
            self.say_hello_by(now + HELLO_AFTER_LEAD);
        }
        self.undecided_until = self.undecided_until.max(Some(until));
    }

    /// Notes whether the group takes this process, and says so to the others, who only display it.
    pub(crate) fn group_refuses(&mut self, now: Time, words: Option<&str>) {
        if self.hello.group_refuses.as_deref() != words {
            self.hello.group_refuses = words.map(Box::from);
            self.answer(now);
        }
    }

    /// Answers a question with a hello, unless the first one was not read back yet, or the process was refused.
    pub(crate) fn answer(&mut self, now: Time) {
        if self.hello.joined.is_some() && !self.is_refused() {
            self.say_hello(now);
        }
    }

    fn is_refused(&self) -> bool {
        matches!(self.stage, Stage::Refused { .. })
    }

    /// Whether a hello at this offset was there before this process began to read: its writer may have gone since.
    pub(crate) fn is_history(&self, offset: Offset) -> bool {
        self.history.is_some_and(|(end, _)| offset < end)
    }

    fn conflicting_hello_received(&mut self, now: Time, offset: Offset, hello: &Hello, refusal: Differs) {
        if hello.roles.is_none() && self.is_history(offset) {
            // It looks for no role in another partition, so nothing has to wait until it is known whether it has gone.
            return;
        }
        if self.hello.joined.is_some_and(|own| own < hello.joined.unwrap_or(offset)) {
            // With this hello the other process learns at once of the earlier one.
            self.say_hello(now);
        } else if self.stage != Stage::Stands && hello.stands_for_no_role() {
            // It was written for a dead process, one of whose guards may still have to end a job.
            self.dead_until = Some(now + HELLO_HOLDS);
            self.doubted.insert(hello.member.clone(), refusal);
        } else if self.is_history(offset) {
            self.doubted.insert(hello.member.clone(), refusal);
        } else if !self.is_refused() {
            self.stage = Stage::Refused { had_stood: self.stage == Stage::Stands };
            self.actions.push_back(Action::Refuse(refusal));
        }
    }

    fn hello_of_other_roles_received(&mut self, now: Time, hello: &Hello, warning: Differs) {
        let is_new = hello.roles.is_some() && hello.joined.is_none();
        if is_new && self.hello.joined.is_some() {
            // So both processes report it, and an operator sees it in the log of each.
            self.say_hello(now);
        }
        if self.reported.len() < MOST_REPORTED && self.reported.insert(hello.roles.clone()) {
            self.actions.push_back(Action::Note(Note::RolesDiffer(Box::new(warning))));
        }
    }

    fn came_back(&mut self, now: Time, offset: Offset) {
        if self.hello.joined.is_none() {
            self.hello.joined = Some(offset);
            self.answered_by.get_or_insert(now + ANSWERS);
            self.next_hello = Some(now + HELLO_INTERVAL);
        }
    }

    /// The time by which a living candidate has repeated its hello, and no job of a dead one is left.
    fn doubts_end(&self) -> Option<Time> {
        self.history.map(|(_, began)| began + HELLO_HOLDS).max(self.dead_until)
    }

    fn introduce(&mut self, now: Time) {
        if self.is_fit && self.history.is_some() && self.next_hello.is_none() {
            self.say_hello(now);
        }
    }

    /// Moves the next hello to this time, unless it is due before, or none is due yet.
    fn say_hello_by(&mut self, by: Time) {
        self.next_hello = self.next_hello.map(|due| due.min(by));
    }

    fn say_hello(&mut self, now: Time) {
        self.ask(now, None);
    }

    /// Sends a hello that asks a candidate for one. A refused process that never stood says nothing more: its mapping would refuse others beside those
    /// that stand.
    pub(crate) fn ask(&mut self, now: Time, asks: Option<MemberId>) {
        if self.stage == (Stage::Refused { had_stood: false }) {
            return;
        }
        self.next_hello = Some(now + if self.hello.joined.is_some() { HELLO_INTERVAL } else { SAID_AGAIN });
        let waits = self.undecided_until.map(|until| until.since(now)).filter(|left| !left.is_zero());
        let hello = Hello { asks, waits_ms: waits.map(millis), ..self.hello.clone() };
        self.actions.push_back(Action::Hello(Box::new(hello)));
    }
}

#[cfg(test)]
mod tests;
