//! What a process decides that stands in many elections, beside the node of each: how it makes itself known to the others, and which roles it is
//! to hold.
//!
//! It ties `Introduction` and [`Spread`] together for whoever owns the nodes. Neither begins before it is known how many partitions the topic
//! has, and nothing is claimed before the introduction says that this process may stand.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use crate::candidate::{self, Elector};
use crate::introduction::{self, Introduction, Whose};
use crate::mapping::Mapping;
use crate::node::{Event, Node};
use crate::precedence::Standing;
use crate::process_hello::ProcessHello;
use crate::record::{Body, Hello, MemberId, Offset, Record, Why};
use crate::spread::{self, By, Holding, Spread};
use crate::time::Time;
use crate::timings::Patience;

/// What the elections of a process have in common.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What the process's hello says, but for what becomes known later: who it is, the roles as typed, and how many it leads at most.
    pub hello: ProcessHello,
    /// How many roles there are; they are numbered from 0.
    pub roles: usize,
    /// Who claims a vacant lead first.
    pub elector: Elector,
    /// `--spread`: whether roles are handed over.
    pub are_spread: bool,
}

/// Things to do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Action {
    /// Say hello for all roles.
    Hello(Box<ProcessHello>),
    /// Go: another maps a role elsewhere.
    Refuse {
        /// Which role, and who: one line.
        error: Box<str>,
    },
    /// For the log: the roles are spread as without a group, which could not assign each candidate a fair share.
    SpreadWithoutGroup {
        /// How many partitions the topic has.
        partitions: u32,
    },
    /// For the log: another candidate of this group stands for other roles.
    Stranger {
        /// Who, and for which: one line.
        warning: Box<str>,
    },
    /// Tell a role's node.
    Tell {
        /// The role.
        role: usize,
        /// What.
        event: Event,
    },
    /// For the log: nothing is claimed before `until`, unless the other is known to have gone.
    Wait {
        /// Why: one line about another that maps a role elsewhere, and may have gone.
        why: Box<str>,
        /// Until then.
        until: Time,
    },
}

/// A release that was read.
struct ReadRelease {
    term: Offset,
    by: MemberId,
    why: Box<str>,
    successor: Option<MemberId>,
}

impl ReadRelease {
    /// The one that was read, if this is a release.
    fn of(event: &candidate::Event) -> Option<Self> {
        let candidate::Event::Read { record: Some(record), .. } = event else { return None };
        let Record { member: Some(by), body: Body::Release { term, why, successor, .. }, .. } = record else {
            return None;
        };
        let why = why.clone().unwrap_or_default();
        Some(Self { term: *term, by: by.clone(), why, successor: successor.clone() })
    }
}

/// How the roles of a process are spread, and how it makes itself known.
#[derive(Clone, Debug)]
pub struct ManyRoles {
    settings: Settings,
    /// R0: the topic may carry an election.
    is_fit: bool,
    known: Option<Known>,
    actions: VecDeque<Action>,
}

/// What there is once it is known how many partitions the topic has.
#[derive(Clone, Debug)]
struct Known {
    introduction: Introduction,
    spread: Spread,
    by: By,
    /// Where the first hello stands that was read, and the last.
    hellos: Option<(Offset, Offset)>,
    /// Vacancies may be claimed.
    stands: bool,
    /// When the spread wants to be called again.
    spread_due: Option<Time>,
}

impl ManyRoles {
    /// Of a process that has read nothing yet.
    #[must_use]
    pub const fn new(settings: Settings) -> Self {
        Self { settings, is_fit: false, known: None, actions: VecDeque::new() }
    }

    /// What to do next. To be asked until there is nothing more: what a node does with what it is told may change what another is to be told.
    #[must_use]
    pub fn poll_action(&mut self) -> Option<Action> {
        if let Some(action) = self.actions.pop_front() {
            return Some(action);
        }
        while let Some(action) = self.known.as_mut()?.introduction.poll_action() {
            match action {
                introduction::Action::Hello { joined } => return Some(Action::Hello(Box::new(self.hello(joined)))),
                introduction::Action::Refuse { error } => return Some(Action::Refuse { error }),
                introduction::Action::Stand => self.known.as_mut()?.stands = true,
                introduction::Action::Stranger { warning } => return Some(Action::Stranger { warning }),
                introduction::Action::Wait { why, until } => return Some(Action::Wait { why, until }),
            }
        }
        let (role, event) = match self.known.as_mut()?.poll_spread()? {
            spread::Action::Delay { role, extra } => (role, Event::SpreadBy(extra)),
            spread::Action::HandOver { role, to } => (role, Event::HandOver { to }),
        };
        Some(Action::Tell { role, event })
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), unless something happens before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        let known = self.known.as_ref()?;
        [known.introduction.poll_timeout(), known.spread_due].into_iter().flatten().min()
    }

    /// Does what is due by now. Early calls do nothing.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.poll_timeout().is_none_or(|due| now < due) {
            return;
        }
        if let Some(known) = &mut self.known {
            known.introduction.handle_timeout(now);
            // Before this process stands, too: what is planned then is planned by this time.
            known.spread.handle_timeout(now);
        }
    }

    /// Whether the process is a member of the group: where its assignments can't give each the same number of roles, they are spread
    /// by how many each holds.
    #[must_use]
    pub fn uses_group(&self) -> bool {
        self.known.as_ref().is_none_or(|known| known.by == By::Assignment)
    }

    /// The last hello, where the process has said any: nothing is led by it any more, and nothing will be.
    #[must_use]
    pub fn goodbye(&self) -> Option<ProcessHello> {
        let joined = self.known.as_ref()?.introduction.joined()?;
        Some(ProcessHello { leaves: true, ..self.hello(Some(joined)) })
    }

    // ---- what has happened --------------------------------------------------------------------------------------------

    /// Where a role's log ends was answered: by then it is known how many partitions the topic has.
    pub fn listens(&mut self, now: Time, role: usize, end: Offset, partitions: u32) {
        self.begin(now, partitions);
        if let Some(known) = self.known.as_mut().filter(|_| role == 0) {
            known.introduction.listens(now, end);
        }
    }

    /// R0 is satisfied, for a role.
    pub fn topic_judged(&mut self, now: Time, role: usize) {
        if role == 0 {
            // Often that is known before where the log ends.
            self.is_fit = true;
            self.known.iter_mut().for_each(|known| known.introduction.topic_judged(now));
        }
    }

    /// The history of a role's partition was cut.
    pub fn history_cut(&mut self, role: usize) {
        for known in self.known.iter_mut().filter(|_| role == 0) {
            known.introduction.history_cut();
            known.hellos = None;
        }
    }

    /// The group has changed this process's standing in a role.
    pub fn stand(&mut self, now: Time, role: usize, standing: Standing) {
        self.known.iter_mut().for_each(|known| known.spread.stand(now, role, standing));
    }

    /// A hello was read in partition 0. Gives what each node is to be told of it.
    pub fn heard(&mut self, now: Time, offset: Offset, value: &[u8]) -> Option<Event> {
        let (known, hello) = self.known.as_mut().zip(ProcessHello::parse(value))?;
        if known.has_read(offset) {
            return None;
        }
        let whose = known.introduction.heard(now, offset, &hello);
        let (takes_roles, shares_role) = (hello.takes_roles(), known.introduction.shares_role(&hello));
        let ProcessHello { member, name, roles, max_roles, leaves, .. } = hello;
        // A candidate without `--roles` stands in one election at most, which may be none of these, and one of other roles in none of them:
        // they are given nothing.
        let max_roles = if roles.is_some() && shares_role { max_roles } else { Some(0) };
        match whose {
            Whose::Own => return None,
            _ if leaves => {
                known.spread.left(now, &member);
                return None;
            }
            _ if !takes_roles => {}
            Whose::Another => known.spread.heard(now, &member, max_roles),
            Whose::AnotherBefore => known.spread.may_be_there(now, &member, max_roles),
        }
        let heard = Hello { member, group_member: None, name, priority: 0, overlaps: false, leaves: false };
        Some(Event::Election(candidate::Event::Heard(heard)))
    }

    /// Who holds a role now. To be told after each input of that role's node; most change nothing.
    pub fn observe(&mut self, now: Time, role: usize, holding: Holding) {
        if let Some(known) = &mut self.known {
            known.spread.observe(now, role, holding);
        }
    }

    /// Something has happened in a role's election: tells its node.
    pub fn tell(&mut self, now: Time, role: usize, node: &mut Node, event: candidate::Event) {
        // Without a spread a role is kept that the group gives to another.
        let is_kept = event == candidate::Event::Revoked && !self.settings.are_spread;
        let event = if is_kept { candidate::Event::StandingChanged(Standing::Elsewhere) } else { event };
        let release = ReadRelease::of(&event);
        node.handle(now, Event::Election(event));
        if let Some((release, known)) = release.zip(self.known.as_mut())
            && node.released_term() == Some(release.term)
        {
            let ReadRelease { by, why, successor, .. } = release;
            // The node may have claimed already what is vacant since.
            known.spread.observe(now, role, Holding::Vacant { successor });
            known.spread.released(now, role, &by, &why);
            if by == self.settings.hello.member && !Why::parse(&why).is_some_and(spread::goes_for_good) {
                known.introduction.released(now);
            }
        }
        self.observe(now, role, node.holding());
    }

    fn begin(&mut self, now: Time, partitions: u32) {
        if self.known.is_some() {
            return;
        }
        let Settings { hello, roles, elector, are_spread } = &mut self.settings;
        let are_as_many = usize::try_from(partitions).is_ok_and(|partitions| partitions == *roles);
        let by = match elector {
            Elector::Group(Patience::Never) => By::Assignment,
            Elector::Group(Patience::For(_)) if are_as_many => By::Assignment,
            Elector::Group(Patience::For(_)) => {
                self.actions.push_back(Action::SpreadWithoutGroup { partitions });
                By::Count
            }
            Elector::Log => By::Count,
        };
        hello.partitions = Some(partitions);
        let typed = hello.roles.as_deref().unwrap_or_default();
        let mut introduction = Introduction::new(hello.member.clone(), Mapping::new(typed, partitions));
        if self.is_fit {
            introduction.topic_judged(now);
        }
        let (member, max_roles) = (hello.member.clone(), hello.max_roles);
        let spread = Spread::new(now, spread::Settings { member, roles: *roles, by, is_on: *are_spread, max_roles });
        self.known = Some(Known { introduction, spread, by, hellos: None, stands: false, spread_due: None });
    }

    fn hello(&self, joined: Option<Offset>) -> ProcessHello {
        ProcessHello { joined, ..self.settings.hello.clone() }
    }
}

impl Known {
    /// Whether a hello was read before: a reader that starts anew reads again what it has read, and whoever said it may have gone since.
    fn has_read(&mut self, offset: Offset) -> bool {
        let (first, last) = self.hellos.unwrap_or((offset, offset));
        let was_read = self.hellos.is_some() && (first..=last).contains(&offset);
        self.hellos = Some((first, last.max(offset)));
        was_read
    }

    /// What to do next for the spread. Nothing is claimed before this process may stand.
    fn poll_spread(&mut self) -> Option<spread::Action> {
        if !self.stands || !self.spread.has_news() {
            return None;
        }
        let action = self.spread.poll_action();
        // With the last action, too: nobody asks again before there is news.
        if !self.spread.has_news() {
            self.spread_due = self.spread.poll_timeout();
        }
        action
    }
}
