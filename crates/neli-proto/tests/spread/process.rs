//! One process: its spread, and its state in each role, with the part of a candidate that precedence needs.

use std::time::Duration;

use neli_proto::hello::Hello;
use neli_proto::precedence::{Assignment, RANDOM_DELAY};
use neli_proto::record::MemberId;
use neli_proto::spread::{Holding, PATIENCE, Spread};
use neli_proto::time::Time;
use neli_proto::timings::Elector;

/// The state of a process in one role.
#[derive(Clone, Debug)]
pub(crate) struct RoleState {
    /// How many entries of the role's journal it has read.
    pub(crate) read: usize,
    /// The leader according to what it has read; `None` if the role is vacant.
    pub(crate) leader: Option<MemberId>,
    /// The successor that the last release named.
    pub(crate) successor: Option<MemberId>,
    /// Whether the last release was written for a dead supervisor.
    pub(crate) leader_died: bool,
    /// The reason why this process ends its lead, if it does.
    pub(crate) why: &'static str,
    /// The group's information about its partition.
    pub(crate) standing: Assignment,
    /// The time since which it may claim, apart from its claim delay.
    pub(crate) open_since: Option<Time>,
    pub(crate) own: Own,
    /// Its current extra claim delay.
    pub(crate) extra: Option<Duration>,
    /// The time until which it leaves the role to others after a handover.
    pub(crate) cools_off: Option<Time>,
}

/// The process's own part in the role.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Own {
    Nothing,
    Claiming,
    Leading,
    Ending,
    /// It does not stand for the role any more.
    Done,
}

/// One process.
pub(crate) struct Process {
    pub(crate) member: MemberId,
    pub(crate) name: Option<&'static str>,
    pub(crate) spread: Spread,
    pub(crate) role_states: Vec<RoleState>,
    pub(crate) max_roles: Option<u32>,
    pub(crate) elector: Elector,
    /// Whether it says hello but never claims.
    pub(crate) is_broken: bool,
    /// Its timeout.
    pub(crate) alarm: Option<Time>,
    /// Whether it was stopped.
    pub(crate) is_leaving: bool,
    /// Whether its last hello was lost.
    pub(crate) lost_last_hello: bool,
}

impl Process {
    pub(crate) fn new(member: MemberId, roles: usize, elector: Elector, max_roles: Option<u32>) -> Self {
        let hello = Hello { max_roles, ..Hello::new(member.clone(), None) };
        let state = RoleState {
            read: 0,
            leader: None,
            successor: None,
            leader_died: false,
            why: "stopped",
            standing: Assignment::Unknown,
            open_since: None,
            own: Own::Nothing,
            extra: None,
            cools_off: None,
        };
        Self {
            spread: Spread::new(&hello, roles, true),
            role_states: vec![state; roles],
            member,
            name: None,
            max_roles,
            elector,
            is_broken: false,
            alarm: None,
            is_leaving: false,
            lost_last_hello: false,
        }
    }

    pub(crate) fn holding(&self, role: usize) -> Holding {
        let state = &self.role_states[role];
        match (state.own, &state.leader) {
            (Own::Claiming, _) => Holding::Claiming,
            (Own::Done, _) => Holding::Done,
            (Own::Leading, _) => Holding::Leading,
            (Own::Ending, _) => Holding::Ending,
            (Own::Nothing, Some(leader)) => Holding::Held { by: leader.clone() },
            (Own::Nothing, None) => Holding::Vacant { successor: state.successor.clone() },
        }
    }

    /// The number of roles that it holds or claims, according to what it has read.
    pub(crate) fn count(&self) -> usize {
        self.role_states.iter().filter(|state| !matches!(state.own, Own::Done | Own::Nothing)).count()
    }

    /// The time at which it may claim apart from its claim delay, the fixed part of that delay, and the range of the random part.
    pub(crate) fn may_claim(&self, role: usize) -> Option<(Time, Duration, Duration)> {
        let state = &self.role_states[role];
        let is_free = state.own == Own::Nothing && state.cools_off.is_none() && !self.is_leaving && !self.is_broken;
        let since = state.open_since.filter(|_| is_free)?;
        let spread = match &state.successor {
            None => state.extra?,
            Some(successor) if *successor == self.member => state.extra.map(|_| Duration::ZERO)?,
            Some(_) => state.extra?.max(PATIENCE),
        };
        let is_named = state.successor.as_ref() == Some(&self.member);
        let is_after_another = state.standing == Assignment::Own && !spread.is_zero();
        let standing = if is_after_another { Assignment::Elsewhere } else { state.standing };
        let (fixed, random) = match (self.elector, standing) {
            _ if is_named => (Duration::ZERO, Duration::ZERO),
            (Elector::Log, _) | (Elector::Group(_), Assignment::Own) => (Duration::ZERO, Duration::ZERO),
            (Elector::Group(None), Assignment::Elsewhere) => (PATIENCE, Duration::ZERO),
            (Elector::Group(None), Assignment::Unknown) => return None,
            (Elector::Group(Some(patience)), Assignment::Elsewhere) if !state.leader_died => (patience, Duration::ZERO),
            (Elector::Group(Some(_)), Assignment::Elsewhere | Assignment::Unknown) => (Duration::ZERO, RANDOM_DELAY),
        };
        Some((since, fixed + spread, random))
    }
}
