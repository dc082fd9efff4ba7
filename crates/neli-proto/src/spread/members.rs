//! The candidates that can take roles: those that are alive according to their hellos and their leads.

use alloc::vec::Vec;
use core::time::Duration;

use crate::precedence::{HELLO_HOLDS, HELLO_INTERVAL};
use crate::record::{MemberId, Why};
use crate::time::Time;

/// How long a candidate that did not take a role or could not run it gets no other role. Doubled for each time in a row.
const SHORTEST_BAR: Duration = Duration::from_secs(60);

/// The longest such exclusion.
const LONGEST_BAR: Duration = Duration::from_secs(60 * 60);

/// A leader whose last hello is older than this gets no other role. This is longer than for other candidates, because a hello from before
/// the reading counts as old, and the next one may be lost.
const LEADER_GETS_ROLES: Duration = HELLO_HOLDS.saturating_add(HELLO_INTERVAL);

/// A candidate: this process or another.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) id: MemberId,
    /// When its last hello was read; `None` if it is only known by its lead.
    received: Option<Time>,
    absence: Absence,
    /// `--priority`.
    pub(super) priority: u16,
    /// The most roles that it takes.
    pub(super) max_roles: Option<u32>,
    /// How often in a row it has not taken a role.
    not_taken: u32,
    /// How often in a row its job was unhealthy or failed too often, and when that row ends unless it happens again.
    unfit: u32,
    unfit_until: Time,
    /// The number of roles for which it stands, and this process does not.
    pub(super) other_roles: u32,
    /// Whether it is no member of the group, because it has `--elect log`, or more roles than partitions.
    pub(super) is_outside_group: bool,
    /// Until when it gets no role.
    barred_until: Option<Time>,
}

/// Whether a candidate has gone, and whether it can return with the same member id.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Absence {
    /// It is alive.
    None,
    /// Another candidate leads its former role without a release, or its process is suspended. Its next hello ends this state.
    UntilHello,
    /// Its process has ended or is about to end.
    ForGood,
}

impl Member {
    pub(super) const fn new(id: MemberId, received: Option<Time>, max_roles: Option<u32>) -> Self {
        Self {
            id,
            received,
            absence: Absence::None,
            priority: 0,
            max_roles,
            not_taken: 0,
            unfit: 0,
            unfit_until: Time::ZERO,
            other_roles: 0,
            is_outside_group: false,
            barred_until: None,
        }
    }

    /// Whether it takes part while it holds `held` roles. A leader is alive even if its hellos are missing.
    pub(super) fn is_there(&self, now: Time, held: u32) -> bool {
        self.absence == Absence::None && (held > 0 || self.is_heard_within(now, HELLO_HOLDS))
    }

    fn is_heard_within(&self, now: Time, span: Duration) -> bool {
        self.received.is_some_and(|at| now.since(at) < span)
    }

    /// Whether it can be forgotten without a loss of data.
    fn is_forgettable(&self, now: Time) -> bool {
        let is_old = self.received.is_none_or(|at| now.since(at) >= HELLO_HOLDS);
        is_old && self.barred_until.is_none_or(|until| now >= until)
    }

    /// The most roles that it may have while it holds `held`. It keeps them even if it gets no more. A leader that says no hello gets no
    /// more: its limit is not known, or it has died, and nobody has room for its roles.
    pub(super) fn most(&self, now: Time, held: u32, is_own: bool) -> u32 {
        let is_barred = self.barred_until.is_some_and(|until| now < until);
        let gets_more = !is_barred && (is_own || self.is_heard_within(now, LEADER_GETS_ROLES));
        if gets_more { self.max_roles.unwrap_or(u32::MAX).max(held) } else { held }
    }

    /// Whether no hello of this other candidate was read, so that it is only known by its leads.
    pub(super) const fn has_said_nothing(&self) -> bool {
        self.received.is_none()
    }

    /// Notes its hello.
    pub(super) fn hello_received(&mut self, now: Time, max_roles: Option<u32>) {
        self.received = Some(now);
        self.max_roles = max_roles;
        if self.absence == Absence::UntilHello {
            self.absence = Absence::None;
        }
    }

    /// Notes that another process has named it as a successor, so it is alive.
    pub(super) const fn named_successor(&mut self, now: Time) {
        self.received = Some(now);
    }

    /// Notes that another candidate leads its former role, which it has not released.
    pub(super) fn went_silent(&mut self) {
        if self.absence == Absence::None {
            self.absence = Absence::UntilHello;
        }
    }

    /// Notes that it released a role.
    pub(super) fn released(&mut self, now: Time, why: Option<Why>) {
        match why {
            Some(why) if why.goes_for_good() => self.absence = Absence::ForGood,
            Some(Why::Suspended) => self.went_silent(),
            Some(Why::RestartLimit | Why::Unhealthy) => self.ran_badly(now),
            Some(_) | None => {}
        }
    }

    /// Notes that it did not take a role.
    pub(super) fn took_nothing(&mut self, now: Time) {
        self.bar(now);
        self.not_taken += 1;
    }

    /// Notes that it could not run a role. The row ends when it has run its roles for as long as it was excluded for last: it takes a role that
    /// it can't run as well.
    fn ran_badly(&mut self, now: Time) {
        let bar = self.bar(now);
        self.unfit += 1;
        self.unfit_until = now + bar * 2;
    }

    /// Excludes it, twice as long as for the last failure in this row, and returns for how long.
    fn bar(&mut self, now: Time) -> Duration {
        if now >= self.unfit_until {
            self.unfit = 0;
        }
        let failures = self.not_taken.saturating_add(self.unfit);
        let bar = SHORTEST_BAR.saturating_mul(1 << failures.min(6)).min(LONGEST_BAR);
        self.barred_until = Some(now + bar);
        bar
    }

    /// Notes that it took a role that was handed to it.
    pub(super) const fn took(&mut self) {
        self.not_taken = 0;
    }

    /// The next time at which, without further input, it counts as gone or may get roles again.
    pub(super) fn changes_at(&self, now: Time) -> Option<Time> {
        let received = self.received.filter(|_| self.absence == Absence::None);
        let goes = [HELLO_HOLDS, LEADER_GETS_ROLES].map(|span| received.map(|at| at + span));
        goes.into_iter().chain([self.barred_until]).flatten().filter(|at| *at > now).min()
    }
}

/// All known candidates, in the order of their ids.
#[derive(Clone, Debug)]
pub(super) struct Members(Vec<Member>);

impl Members {
    pub(super) fn of_one(member: Member) -> Self {
        Self([member].into())
    }

    pub(super) fn all(&self) -> &[Member] {
        &self.0
    }

    pub(super) fn index(&self, id: &MemberId) -> Option<usize> {
        self.0.binary_search_by(|member| member.id.cmp(id)).ok()
    }

    pub(super) fn by_id(&mut self, id: &MemberId) -> Option<&mut Member> {
        let index = self.index(id)?;
        self.0.get_mut(index)
    }

    /// The candidate with this id, which is added if it is unknown.
    pub(super) fn known(&mut self, id: &MemberId) -> &mut Member {
        let at = match self.0.binary_search_by(|member| member.id.cmp(id)) {
            Ok(at) => at,
            Err(at) => {
                self.0.insert(at, Member::new(id.clone(), None, None));
                at
            }
        };
        &mut self.0[at]
    }

    /// Forgets candidates that left long ago, except those for which `is_needed` returns true.
    pub(super) fn forget_gone(&mut self, now: Time, is_needed: impl Fn(&MemberId) -> bool) {
        self.0.retain(|member| !member.is_forgettable(now) || is_needed(&member.id));
    }
}
