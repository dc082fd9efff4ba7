//! Who can take roles: the candidates that are alive, as far as their hellos and their leads tell.

use alloc::vec::Vec;
use core::time::Duration;

use crate::precedence::HELLO_HOLDS;
use crate::record::{MemberId, Why};
use crate::time::Time;

/// Who did not take what it was handed, or could not run it, is given nothing for this long; doubled each time in a row.
const SHORTEST_BAR: Duration = Duration::from_secs(60);

/// And for this long at most.
const LONGEST_BAR: Duration = Duration::from_secs(60 * 60);

/// A candidate, this one or another.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) id: MemberId,
    /// When its last hello was read; none where only its lead is known.
    heard: Option<Time>,
    absence: Absence,
    /// How many roles it takes at most.
    pub(super) max_roles: Option<u32>,
    /// How often in a row it could not take or run a role.
    failures: u32,
    /// It is given nothing until then.
    barred_until: Option<Time>,
}

/// Whether it has gone, and whether it can come back under its id.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Absence {
    /// It is there.
    None,
    /// Another leads what it led, without a release; or its process is suspended. Its next hello ends this.
    UntilHello,
    /// Its process has ended or is about to.
    ForGood,
}

impl Member {
    pub(super) const fn new(id: MemberId, heard: Option<Time>, max_roles: Option<u32>) -> Self {
        Self { id, heard, absence: Absence::None, max_roles, failures: 0, barred_until: None }
    }

    /// Whether it takes part, where it holds `held` roles: who leads is alive, whatever became of its hellos.
    pub(super) fn is_there(&self, now: Time, held: u32) -> bool {
        self.absence == Absence::None && (held > 0 || self.heard.is_some_and(|at| now.since(at) < HELLO_HOLDS))
    }

    /// Whether nothing is lost by forgetting it.
    fn is_forgettable(&self, now: Time) -> bool {
        let is_old = self.heard.is_none_or(|at| now.since(at) >= HELLO_HOLDS);
        is_old && self.barred_until.is_none_or(|until| now >= until)
    }

    /// How many roles it has at most, where it holds `held`: what it holds it keeps, even where it takes nothing.
    pub(super) fn most(&self, now: Time, held: u32) -> u32 {
        let is_barred = self.barred_until.is_some_and(|until| now < until);
        if is_barred { held } else { self.max_roles.unwrap_or(u32::MAX).max(held) }
    }

    /// It has said hello.
    pub(super) fn heard(&mut self, now: Time, max_roles: Option<u32>) {
        self.heard = Some(now);
        self.max_roles = max_roles;
        if self.absence == Absence::UntilHello {
            self.absence = Absence::None;
        }
    }

    /// Another process knows that it is there.
    pub(super) const fn named(&mut self, now: Time) {
        self.heard = Some(now);
    }

    /// Another leads what it led, and it has released nothing.
    pub(super) fn went_silent(&mut self) {
        if self.absence == Absence::None {
            self.absence = Absence::UntilHello;
        }
    }

    /// It released a role.
    pub(super) fn released(&mut self, now: Time, why: Option<Why>) {
        match why {
            Some(why) if goes_for_good(why) => self.absence = Absence::ForGood,
            Some(Why::Suspended) => self.went_silent(),
            Some(Why::RestartLimit | Why::Unhealthy) => self.failed(now),
            Some(_) | None => {}
        }
    }

    /// It could not take or run a role.
    pub(super) fn failed(&mut self, now: Time) {
        let bar = SHORTEST_BAR.saturating_mul(1 << self.failures.min(6));
        self.failures += 1;
        self.barred_until = Some(now + bar.min(LONGEST_BAR));
    }

    /// It took what it was handed.
    pub(super) const fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// When that it has gone, or is barred no more, follows from the time alone.
    pub(super) fn changes_at(&self, now: Time) -> Option<Time> {
        let goes = self.heard.filter(|_| self.absence == Absence::None).map(|at| at + HELLO_HOLDS);
        [goes, self.barred_until].into_iter().flatten().filter(|at| *at > now).min()
    }
}

/// Whether whoever releases a role for this reason has gone, or is about to go.
pub(crate) const fn goes_for_good(why: Why) -> bool {
    matches!(why, Why::Ended | Why::Refused | Why::Stopped | Why::SupervisorDied)
}

/// All that are known, in the order of their ids.
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

    /// The one of this id, which is made known if it isn't.
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

    /// Forgets those that have gone long ago, but for those that `is_needed`.
    pub(super) fn forget_gone(&mut self, now: Time, is_needed: impl Fn(&MemberId) -> bool) {
        self.0.retain(|member| !member.is_forgettable(now) || is_needed(&member.id));
    }
}
