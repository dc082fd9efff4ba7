//! The candidates that can take roles: those that are alive according to their hellos and their leads.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use crate::precedence::{HELLO_HOLDS, HELLO_INTERVAL};
use crate::record::{MemberId, Why};
use crate::restart::doubled;
use crate::time::Time;

/// How long a candidate that did not take a role or could not run it gets no other role. Doubled for each time in a row.
const SHORTEST_BAR: Duration = Duration::from_secs(60);

/// Who was excluded because of its jobs must run them for so long at least before a failure counts as the first again.
const SHORTEST_ROW: Duration = Duration::from_secs(10 * 60);

/// The longest such exclusion.
const LONGEST_BAR: Duration = Duration::from_secs(60 * 60);

/// A leader whose last hello is older than this gets no other role. This is longer than for other candidates, because a hello from before
/// the reading counts as old, and the next one may be lost.
const LEADER_GETS_ROLES: Duration = HELLO_HOLDS.saturating_add(HELLO_INTERVAL);

/// A candidate that was asked for a sign of life gets no role if none was read within this time, until one is read.
const SIGN_OF_LIFE_WITHIN: Duration = Duration::from_secs(4);

/// It is asked once more after this time: the question or the answer may have been lost.
const ASKED_AGAIN: Duration = Duration::from_secs(2);

/// A process that dies within this time after its start has lived shortly.
const SHORT_LIFE: Duration = Duration::from_secs(60);

/// If this many processes of a name have lived shortly, a new one of that name gets no role for as long as it has stood for less than that.
const SHORT_LIVES: usize = 2;

/// A short life counts for this long.
const SHORT_LIFE_COUNTS: Duration = Duration::from_secs(10 * 60);

/// A candidate: this process or another.
#[derive(Clone, Debug, Default)]
pub(super) struct Member {
    name: Option<Box<str>>,
    /// The number of this process's roles that it holds, as of the last plan.
    pub(super) held: u32,
    /// When its first hello was read, if that was after this process began to read.
    came: Option<Time>,
    /// When its last hello was read; `None` if it is only known by its lead.
    received: Option<Time>,
    /// When a record was last read that shows that it is alive.
    pub(super) heard: Option<Time>,
    /// When it was asked for a sign of life; `None` once one was read.
    asked: Option<Time>,
    was_asked_again: bool,
    /// Whether it has given none in time, and none since.
    is_unresponsive: bool,
    absence: Absence,
    /// `--priority`.
    pub(super) priority: u16,
    /// The most roles that it takes.
    pub(super) max_roles: Option<u32>,
    /// How often in a row it has not taken a role that was handed to it.
    pub(super) not_taken: u32,
    /// How often in a row its job was unhealthy or failed too often, or its guard died, and when that row ends unless it happens again.
    unfit: u32,
    unfit_until: Time,
    /// The number of roles for which it stands, and this process does not.
    pub(super) other_roles: u32,
    /// Until when it gets no role.
    barred_until: Option<Time>,
}

/// Whether a candidate has gone, and whether it can return with the same member id.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Absence {
    /// It is alive.
    #[default]
    None,
    /// Another candidate leads its former role without a release, or its process is suspended. Its next hello ends this state.
    UntilHello,
    /// Its process has ended or is about to end.
    ForGood,
}

impl Member {
    /// Whether it takes part. A leader is alive even if its hellos are missing.
    pub(super) fn is_there(&self, now: Time) -> bool {
        self.absence == Absence::None && (self.held > 0 || self.is_heard_within(now, HELLO_HOLDS))
    }

    fn is_heard_within(&self, now: Time, span: Duration) -> bool {
        self.received.is_some_and(|at| now.since(at) < span)
    }

    /// Whether it can be forgotten without a loss of data.
    fn is_forgettable(&self, now: Time) -> bool {
        !self.is_heard_within(now, HELLO_HOLDS) && !self.is_barred(now)
    }

    /// Notes its hello.
    pub(super) fn hello_received(&mut self, now: Time, max_roles: Option<u32>) {
        (self.received, self.max_roles) = (Some(now), max_roles);
        self.heard(now);
        if self.absence == Absence::UntilHello {
            self.absence = Absence::None;
        }
    }

    /// Notes its hello of an unknown age. Its writer may have died since.
    pub(super) fn received_earlier(&mut self, now: Time, age: Duration, max_roles: Option<u32>) {
        self.max_roles = max_roles;
        self.received = self.received.max(Some(now - age));
    }

    /// Notes a record of it that was just written. Returns whether it was asked for a sign of life.
    pub(super) fn heard(&mut self, now: Time) -> bool {
        self.heard = Some(now);
        self.asked.take().is_some() | core::mem::take(&mut self.is_unresponsive)
    }

    /// Notes that it is asked for a sign of life, unless it was just asked. Returns whether it is.
    pub(super) fn asked(&mut self, now: Time) -> bool {
        match self.asked {
            None if !self.is_unresponsive => (self.asked, self.was_asked_again) = (Some(now), false),
            Some(at) if !self.was_asked_again && now >= at + ASKED_AGAIN => self.was_asked_again = true,
            None | Some(_) => return false,
        }
        true
    }

    /// Notes that it has given no sign of life, if the time for it is over. Returns whether that is so.
    fn note_if_unresponsive(&mut self, now: Time) -> bool {
        let is_unresponsive = self.asked.take_if(|asked| now >= *asked + SIGN_OF_LIFE_WITHIN).is_some();
        self.is_unresponsive |= is_unresponsive;
        is_unresponsive
    }

    fn was_short_lived(&self) -> bool {
        self.came.zip(self.heard).is_some_and(|(came, last)| last.since(came) < SHORT_LIFE)
    }

    /// Notes that another candidate leads its former role, which it has not released.
    fn went_silent(&mut self, now: Time) {
        if self.absence == Absence::None {
            self.goes(now, Absence::UntilHello);
        }
    }

    /// Keeps its absence in mind for as long as a hello: one from before its end may be read later, in another partition.
    fn goes(&mut self, now: Time, absence: Absence) {
        self.absence = absence;
        self.received = self.received.or(Some(now));
    }

    /// Notes that it released a role.
    fn released(&mut self, now: Time, why: Option<Why>) {
        match why {
            Some(why) if why.goes_for_good() => self.goes(now, Absence::ForGood),
            Some(Why::Suspended) => self.went_silent(now),
            // What fails together has one cause, such as a machine without memory or a database that was away.
            Some(Why::GuardDied | Why::RestartLimit | Why::Unhealthy) if !self.is_barred(now) => self.ran_badly(now),
            Some(_) | None => {}
        }
    }

    fn is_barred(&self, now: Time) -> bool {
        self.barred_until.is_some_and(|until| now < until)
    }

    /// Notes that it did not take a role.
    pub(super) fn took_nothing(&mut self, now: Time) {
        self.bar(now);
        self.not_taken += 1;
    }

    /// Notes that it could not run a role. The row ends when it has run its roles for as long as it was excluded for last, ten minutes at least: it
    /// takes a role that it can't run as well, and a job may take minutes to be found unhealthy.
    fn ran_badly(&mut self, now: Time) {
        let bar = self.bar(now);
        self.unfit += 1;
        self.unfit_until = now + bar + bar.max(SHORTEST_ROW);
    }

    /// Excludes it, twice as long as for the last failure in this row, and returns for how long.
    fn bar(&mut self, now: Time) -> Duration {
        if now >= self.unfit_until {
            self.unfit = 0;
        }
        let failures = self.not_taken.saturating_add(self.unfit);
        let bar = doubled(SHORTEST_BAR, failures.saturating_add(1), LONGEST_BAR);
        self.barred_until = Some(now + bar);
        bar
    }

    /// The next time at which, without further input, it counts as gone or may get roles again.
    pub(super) fn changes_at(&self, now: Time) -> Option<Time> {
        let received = self.received.filter(|_| self.absence == Absence::None);
        let goes = [HELLO_HOLDS, LEADER_GETS_ROLES].map(|span| received.map(|at| at + span));
        let asked = [ASKED_AGAIN, SIGN_OF_LIFE_WITHIN].map(|span| self.asked.map(|at| at + span));
        let others = [self.barred_until, self.came.map(|at| at + SHORT_LIFE)];
        goes.into_iter().chain(asked).chain(others).flatten().filter(|at| *at > now).min()
    }
}

/// All known candidates.
#[derive(Clone, Debug, Default)]
pub(super) struct Members {
    pub(super) all: BTreeMap<MemberId, Member>,
    /// The names of processes that lived shortly, and when that was noticed.
    short_lives: Vec<(Box<str>, Time)>,
}

impl Members {
    /// The candidate with this id, which is added if it is unknown.
    pub(super) fn known(&mut self, id: &MemberId) -> &mut Member {
        self.all.entry(id.clone()).or_default()
    }

    /// Notes the name of a candidate whose hello was just written.
    pub(super) fn named(&mut self, now: Time, id: &MemberId, name: Option<&str>) {
        let member = self.known(id);
        if member.came.is_some() {
            return;
        }
        (member.came, member.name) = (Some(now), name.map(Box::from));
        // Its earlier processes may have died again without a trace.
        if let Some(name) = name.filter(|name| self.is_short_lived(now, name)) {
            self.short_lives.iter_mut().filter(|(of, _)| **of == *name).for_each(|(_, at)| *at = now);
        }
    }

    /// Whether the last processes of this name have died shortly after their start.
    fn is_short_lived(&self, now: Time, name: &str) -> bool {
        let counts = |(of, at): &&(Box<str>, Time)| **of == *name && now.since(*at) < SHORT_LIFE_COUNTS;
        self.short_lives.iter().filter(counts).count() >= SHORT_LIVES
    }

    /// The most roles that a candidate may have while it holds `held`. It keeps them even if it gets no more. A leader that says no hello gets no
    /// more: its limit is not known, or it has died, and nobody has room for its roles.
    pub(super) fn most(&self, now: Time, member: &Member, held: u32, is_own: bool) -> u32 {
        let is_new = member.came.is_some_and(|came| now.since(came) < SHORT_LIFE);
        let must_stand_first = is_new && member.name.as_deref().is_some_and(|name| self.is_short_lived(now, name));
        let is_barred = must_stand_first || member.is_barred(now);
        let is_there = is_own || member.is_heard_within(now, LEADER_GETS_ROLES);
        let gets_more = is_there && !is_barred && !member.is_unresponsive;
        if gets_more { member.max_roles.unwrap_or(u32::MAX).max(held) } else { held }
    }

    /// Notes that a candidate released a role.
    pub(super) fn released(&mut self, now: Time, id: &MemberId, why: Option<Why>) {
        self.known(id).released(now, why);
        if why == Some(Why::SupervisorDied) {
            self.died(now, id);
        }
    }

    /// Notes that another candidate leads this one's former role, which it has not released.
    pub(super) fn went_silent(&mut self, now: Time, id: &MemberId) {
        self.known(id).went_silent(now);
        self.died(now, id);
    }

    /// Notes those that were asked for a sign of life and gave none in time.
    pub(super) fn note_unresponsive(&mut self, now: Time) {
        let unresponsive =
            self.all.iter_mut().filter_map(|(id, member)| member.note_if_unresponsive(now).then_some(id));
        let unresponsive: Vec<MemberId> = unresponsive.cloned().collect();
        for id in &unresponsive {
            self.died(now, id);
        }
    }

    fn died(&mut self, now: Time, id: &MemberId) {
        let Some(member) = self.all.get_mut(id).filter(|member| member.was_short_lived()) else { return };
        // Each life counts once.
        if let Some(name) = member.name.take() {
            self.short_lives.retain(|(_, at)| now.since(*at) < SHORT_LIFE_COUNTS);
            self.short_lives.push((name, now));
        }
    }

    /// Forgets candidates that left long ago, except those for which `is_needed` returns true.
    pub(super) fn forget_gone(&mut self, now: Time, is_needed: impl Fn(&MemberId) -> bool) {
        self.all.retain(|id, member| !member.is_forgettable(now) || is_needed(id));
    }
}
