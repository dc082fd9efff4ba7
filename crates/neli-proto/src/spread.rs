//! Which roles this process is to hold, where several processes share many: who claims a vacancy first, and what is handed over so that
//! everybody holds a fair share.
//!
//! One object for all elections of a process. It is told who holds which role, as the roles' journals say, and who is there, as hellos
//! say; it gives each role's extra claim delay and, one at a time, the role to hand over. All processes read the same journals and
//! compute the same shares, each for itself; where they know different things for a moment, a role is led by the second best of them,
//! and never by two: that is the journal's matter. It does not know the jobs, and does not know whether a claim takes effect.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::precedence::{HELLO_HOLDS, HELLO_INTERVAL, Standing};
use crate::record::{MemberId, Why};
use crate::time::Time;
use kept::Kept;
use members::{Member, Members};

pub(crate) use members::goes_for_good;

pub use crate::timings::PATIENCE;

mod hand_over;
mod kept;
mod members;
mod plan;
mod share;

/// Whom the group has chosen in place of a leader knows that after so long.
pub const ASSIGNMENT_TAKES: Duration = Duration::from_millis(1_500);

/// And so much longer for each role that it holds more than the one that holds the fewest.
pub(crate) const DELAY_PER_ROLE: Duration = Duration::from_millis(50);

/// No more roles than these count for the delay.
const ROLES_COUNTED: u32 = 20;

/// By so much a hello may be late.
const LATE_HELLO: Duration = Duration::from_secs(5);

/// A role that nobody has led for so long may not be led at all: it counts for nobody's share, and nobody's turn is waited for.
const VACANCY_COUNTS: Duration = Duration::from_secs(10);

/// What the spread of one process's roles is made of.
#[derive(Clone, Debug)]
pub struct Settings {
    /// This process: the same id in all of its roles.
    pub member: MemberId,
    /// How many roles there are; they are numbered from 0.
    pub roles: usize,
    /// What says who is to hold a role.
    pub by: By,
    /// `--spread`: whether roles are handed over.
    pub is_on: bool,
    /// `--max-roles`: how many this process holds at most.
    pub max_roles: Option<u32>,
}

/// What says who is to hold a role.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum By {
    /// The group: whoever its partition is assigned to.
    Assignment,
    /// How many roles each candidate holds.
    Count,
}

/// Who holds a role, as its journal and this process's candidate say.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Holding {
    /// This process's claim is under way.
    Claiming,
    /// This process stands for it no more.
    Done,
    /// This process's term of it ends: its job is stopped, or its release is on its way.
    Ending,
    /// Another leads it, as far as the records say; or did, and is silent.
    Held {
        /// Who.
        by: MemberId,
    },
    /// This process leads it.
    Leading,
    /// What was read does not tell.
    Unknown,
    /// Nobody leads it.
    Vacant {
        /// For whom its last leader stood down.
        successor: Option<MemberId>,
    },
}

impl Holding {
    /// Whether it counts among the roles that this process holds.
    const fn is_own(&self) -> bool {
        matches!(self, Self::Claiming | Self::Ending | Self::Leading)
    }
}

/// Things to do.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    /// From now on so much is added to the claim delay in this role. Nothing is to be claimed before the first of these.
    Delay {
        /// The role.
        role: usize,
        /// How much; none when it is not to be claimed at all.
        extra: Option<Duration>,
    },
    /// This process is to stand down in this role.
    HandOver {
        /// The role.
        role: usize,
        /// For whom; none for the one to which the group has assigned it.
        to: Option<MemberId>,
    },
}

/// The spread of one process's roles.
#[derive(Clone, Debug)]
pub struct Spread {
    member: MemberId,
    by: By,
    is_on: bool,
    max_roles: Option<u32>,
    roles: Vec<Role>,
    members: Members,
    /// Those that were there at the last plan.
    candidates: Vec<MemberId>,
    /// The role that is being handed over.
    pending: Option<HandedOver>,
    /// Nothing is handed over before.
    not_before: Time,
    /// When a role was last taken or released.
    changed_at: Time,
    /// The same, without what this process hands over.
    changed_otherwise_at: Time,
    /// How many roles this process has taken.
    taken: u64,
    /// The last input's time.
    now: Time,
    is_planned: bool,
    actions: VecDeque<Action>,
}

/// What is known of one role.
#[derive(Clone, Debug)]
struct Role {
    holding: Holding,
    /// Since when it has been held so.
    since: Time,
    /// Who led it last without a release.
    unreleased: Option<MemberId>,
    /// Who else led it last.
    last_other: Option<MemberId>,
    /// Who is to claim it when it is vacant.
    successor: Option<MemberId>,
    /// Who has given it up, and claims it only when nobody else has for long.
    given_up_by: Option<MemberId>,
    /// Which of the roles that this process has taken it is.
    taken: u64,
    standing: Standing,
    standing_since: Time,
    /// It is vacant since the group has taken its partition from its leader, and gives it to another.
    is_handed_on: bool,
    /// Whether it is kept from the one that the group has chosen.
    kept: Kept,
    /// What was last told of its claim delay.
    told: Told,
}

/// What was last told of a role's claim delay.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Told {
    Nothing,
    Extra(Option<Duration>),
}

/// A role that is being handed over.
#[derive(Clone, Debug)]
struct HandedOver {
    role: usize,
    to: Option<MemberId>,
}

impl Spread {
    /// That of a process that knows of nobody else.
    #[must_use]
    pub fn new(now: Time, settings: Settings) -> Self {
        let Settings { member, roles, by, is_on, max_roles } = settings;
        let role = Role {
            holding: Holding::Unknown,
            since: now,
            unreleased: None,
            last_other: None,
            successor: None,
            given_up_by: None,
            taken: 0,
            standing: Standing::Unknown,
            standing_since: now,
            is_handed_on: false,
            kept: Kept::not(now),
            told: Told::Nothing,
        };
        Self {
            members: Members::of_one(Member::new(member.clone(), None, max_roles)),
            member,
            by,
            is_on,
            max_roles,
            roles: alloc::vec![role; roles],
            candidates: Vec::new(),
            pending: None,
            not_before: now,
            changed_at: now,
            changed_otherwise_at: now,
            taken: 0,
            now,
            is_planned: false,
            actions: VecDeque::new(),
        }
    }

    /// What to do next, after everything that was told.
    #[must_use]
    pub fn poll_action(&mut self) -> Option<Action> {
        if !self.is_planned {
            self.plan();
        }
        self.actions.pop_front()
    }

    /// Whether something was told since there was nothing more to do.
    #[must_use]
    pub(crate) fn has_news(&self) -> bool {
        !self.is_planned || !self.actions.is_empty()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), unless something happens before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        let now = self.now;
        let members = self.members.all().iter().filter_map(|member| member.changes_at(now));
        let vacancies = self.roles.iter().filter_map(Role::stops_counting_at).filter(|at| *at > now);
        members.chain(vacancies).chain(self.hand_over_due()).min()
    }

    /// Does what is due by now. Early calls do nothing.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.poll_timeout().is_some_and(|due| now >= due) {
            self.is_planned = false;
        }
        self.now = now;
    }

    /// Another candidate said hello, in whichever role.
    pub fn heard(&mut self, now: Time, member: &MemberId, max_roles: Option<u32>) {
        if *member != self.member {
            self.members.known(member).heard(now, max_roles);
            self.changed(now);
        }
    }

    /// Another candidate said hello before this process listened. It says so again within the hello's interval, if it is there.
    pub fn may_be_there(&mut self, now: Time, member: &MemberId, max_roles: Option<u32>) {
        if *member != self.member {
            let age = HELLO_HOLDS.saturating_sub(HELLO_INTERVAL + LATE_HELLO);
            self.members.known(member).heard(now - age, max_roles);
            self.changed(now);
        }
    }

    /// A release took effect in a role, of this process's or another's.
    pub fn released(&mut self, now: Time, role: usize, member: &MemberId, why: &str) {
        let (is_own, why) = (*member == self.member, Why::parse(why));
        if let Some(role) = self.roles.get_mut(role) {
            role.is_handed_on = why == Some(Why::Revoked);
            role.given_up_by = why.is_some_and(Why::lets_another_lead).then(|| member.clone());
            if !is_own {
                role.kept.released(now, why);
            }
        }
        if !is_own {
            self.members.known(member).released(now, why);
        }
        self.changed(now);
    }

    /// Another candidate has said that it goes for good.
    pub fn left(&mut self, now: Time, member: &MemberId) {
        if *member != self.member {
            self.members.known(member).released(now, Some(Why::Stopped));
            self.changed(now);
        }
    }

    /// The group has changed this process's standing in a role.
    pub fn stand(&mut self, now: Time, role: usize, standing: Standing) {
        if let Some(role) = self.roles.get_mut(role).filter(|role| role.standing != standing) {
            role.standing = standing;
            role.standing_since = now;
            self.changed(now);
        }
    }

    /// Who holds a role now. To be told after each input of that role's node; most change nothing.
    pub fn observe(&mut self, now: Time, number: usize, holding: Holding) {
        let Some(role) = self.roles.get_mut(number).filter(|role| role.holding != holding) else { return };
        let silent = role.becomes(now, holding);
        if role.holding == Holding::Leading {
            self.taken += 1;
            role.taken = self.taken;
            if role.standing != Standing::Assigned {
                role.kept.taken(now, silent.is_some());
            }
        }
        if let Some(member) = silent.and_then(|silent| self.members.by_id(&silent)) {
            member.went_silent();
        }
        // Whom another hands a role to is there, even where its hello was lost on the way to here.
        if let Holding::Vacant { successor: Some(successor) } = &self.roles[number].holding
            && *successor != self.member
        {
            self.members.known(successor).named(now);
        }
        if self.pending.as_ref().is_none_or(|pending| pending.role != number) {
            self.changed_otherwise_at = now;
        }
        self.hand_over_seen(now, number);
        self.changed_at = now;
        self.changed(now);
    }

    fn changed(&mut self, now: Time) {
        self.now = now;
        self.is_planned = false;
    }
}

impl Role {
    /// Takes note of who holds it now. Gives the leader that is replaced without a release, if there is one.
    fn becomes(&mut self, now: Time, holding: Holding) -> Option<MemberId> {
        let mut silent = None;
        if !matches!(holding, Holding::Vacant { .. }) {
            (self.is_handed_on, self.given_up_by) = (false, None);
        }
        match &holding {
            Holding::Held { by } => {
                silent = self.unreleased.replace(by.clone()).filter(|before| before != by);
                self.last_other = Some(by.clone());
            }
            Holding::Leading => silent = self.unreleased.take(),
            Holding::Vacant { successor } => {
                self.unreleased = None;
                if successor.is_some() {
                    self.successor.clone_from(successor);
                }
            }
            // Nobody claims what another leads before that one has been silent for its lease.
            Holding::Claiming => silent.clone_from(&self.unreleased),
            Holding::Done | Holding::Ending | Holding::Unknown => {}
        }
        self.holding = holding;
        self.since = now;
        silent
    }

    /// Who leads it by its journal, where it is another than this process.
    const fn leader(&self) -> Option<&MemberId> {
        match &self.holding {
            Holding::Held { by } => Some(by),
            Holding::Claiming
            | Holding::Done
            | Holding::Ending
            | Holding::Leading
            | Holding::Unknown
            | Holding::Vacant { .. } => None,
        }
    }

    /// Whether somebody will lead it shortly, if it is vacant.
    fn counts(&self, now: Time) -> bool {
        match self.holding {
            Holding::Done => false,
            Holding::Vacant { .. } => now.since(self.since) < VACANCY_COUNTS,
            Holding::Claiming | Holding::Ending | Holding::Held { .. } | Holding::Leading | Holding::Unknown => true,
        }
    }

    /// When it counts for nobody's share any more, if it stays as it is.
    fn stops_counting_at(&self) -> Option<Time> {
        matches!(self.holding, Holding::Vacant { .. }).then(|| self.since + VACANCY_COUNTS)
    }
}
