//! Decides which roles this process should hold if several processes share many roles: which process claims a vacant role first, and which
//! role is handed over so that every process holds a fair share.
//!
//! There is one `Spread` for all elections of a process. Its inputs are the holder of each role (from the roles' journals) and the living
//! candidates (from their hellos). Its outputs are an additional claim delay for each role and, one at a time, a role to hand over. All
//! processes read the same journals and compute the same shares independently. While two processes have read different records, a role may
//! be led by the second-best process, but never by two, because only the journal decides that. `Spread` has no data about jobs, nor whether
//! a claim takes effect.
//!
//! With the consumer group a process also knows which roles' partitions are assigned to it. Below its share it claims such a role first,
//! whichever process would have it by the role's number. The assignment never decides which process keeps a role.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::hello::Hello;
use crate::precedence::{Assignment, HELLO_HOLDS, HELLO_INTERVAL};
use crate::record::{MemberId, Why};
use crate::role_set::RoleSet;
use crate::time::Time;
use crate::timings::TAKEN_WITHIN;
use hand_over::Role;
use members::{Member, Members};

pub use crate::action::RolesAction as Action;
pub use crate::timings::PATIENCE;

mod hand_over;
mod members;
mod plan;

/// Added to the claim delay for each role that this process holds beyond the number held by the candidate with the
/// fewest.
pub(crate) const DELAY_PER_ROLE: Duration = Duration::from_millis(50);

/// At most this many roles count towards that delay.
const ROLES_COUNTED: u32 = 20;

/// A periodic hello may arrive this late.
const LATE_HELLO: Duration = Duration::from_secs(5);

/// A role that has had no leader for this long no longer counts in the shares, and no candidate waits for another one to claim it.
const VACANCY_COUNTS: Duration = TAKEN_WITHIN;

/// The holder of a role, according to its journal and to this process's candidate.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
#[expect(missing_docs, reason = "a field with an unclear meaning has a comment")]
pub enum Holding {
    /// A claim of this process is in flight.
    Claiming,
    /// This process no longer stands in this role's election.
    Done,
    /// This process's term is ending: its job is being stopped, or its release is in flight.
    Ending,
    /// The journal names another candidate as the leader, which may have been silent since.
    Held { by: MemberId },
    /// This process leads it.
    Leading,
    /// The records that were read so far don't show it.
    #[default]
    Unknown,
    /// There is no leader. The last one may have named a successor in its release.
    Vacant { successor: Option<MemberId> },
}

impl Holding {
    /// Whether the role counts among those that this process holds.
    const fn is_own(&self) -> bool {
        matches!(self, Self::Claiming | Self::Ending | Self::Leading)
    }

    /// Whether this process's term has ended without a release in the journal, if this was `before`.
    pub(crate) const fn is_lost_from(&self, before: &Self) -> bool {
        matches!((before, self), (Self::Ending | Self::Leading, Self::Held { .. } | Self::Unknown))
    }
}

/// The spread of one process's roles.
#[derive(Clone, Debug, Default)]
pub struct Spread {
    member: MemberId,
    is_on: bool,
    roles: Vec<Role>,
    members: Members,
    /// The candidates that were alive at the last plan.
    candidates: Vec<MemberId>,
    /// The role that is being handed over now, and to whom.
    pending: Option<(usize, MemberId)>,
    /// The candidate that is to have a role next, and since when. It must give a sign of life before a job is stopped for it.
    chosen: Option<(MemberId, Time)>,
    /// No role is handed over before this time.
    not_before: Time,
    /// When a role last changed its holder.
    changed_at: Time,
    /// The time of the last input.
    now: Time,
    is_planned: bool,
    actions: VecDeque<Action>,
    /// The candidates to be asked for a hello.
    questions: VecDeque<MemberId>,
}

impl Spread {
    /// A `Spread` of so many roles, numbered from 0, without other candidates. `hello`: what is fixed of the process's own; `is_on`: whether roles are
    /// handed over (`--spread`).
    pub fn new(hello: &Hello, roles: usize, is_on: bool) -> Self {
        let member = hello.member.clone();
        let mut members = Members::default();
        let own = members.known(&member);
        (own.max_roles, own.priority) = (hello.max_roles, hello.priority);
        let roles = alloc::vec![Role::default(); roles];
        Self { member, is_on, roles, members, ..Self::default() }
    }

    /// The next action, after all inputs have been passed in.
    #[must_use]
    pub fn poll_action(&mut self) -> Option<Action> {
        if !self.is_planned {
            self.plan();
        }
        self.actions.pop_front()
    }

    /// The next candidate that is to be asked for a hello, since it is to have a role if it is still there; with the time of the question. There is
    /// none before the first [action](Self::poll_action) after an input.
    #[must_use]
    pub fn poll_question(&mut self) -> Option<(Time, MemberId)> {
        self.questions.pop_front().map(|member| (self.now, member))
    }

    /// Whether there has been an input since the last action was taken.
    pub(crate) fn has_news(&self) -> bool {
        !self.is_planned || !self.actions.is_empty() || !self.questions.is_empty()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), unless something happens before.
    pub fn poll_timeout(&self) -> Option<Time> {
        let now = self.now;
        let members = self.members.all.values().filter_map(|member| member.changes_at(now));
        let vacancies = self.roles.iter().filter_map(Role::stops_counting_at).filter(|at| *at > now);
        members.chain(vacancies).chain(self.hand_over_due()).min()
    }

    /// Performs what is due. Early calls do nothing.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.poll_timeout().is_some_and(|due| now >= due) {
            self.is_planned = false;
        }
        self.now = now;
    }

    /// Handles another candidate's hello, from any role.
    pub fn hello_received(&mut self, now: Time, member: &MemberId, max_roles: Option<u32>) {
        self.news_of(now, member).hello_received(now, max_roles);
    }

    /// Notes the `--priority` of another candidate. Of the candidates that can have a vacant role, one of the highest priority is to have it.
    pub(crate) fn note_priority(&mut self, now: Time, member: &MemberId, priority: u16) {
        self.news_of(now, member).priority = priority;
    }

    /// Notes for how many roles another candidate stands that this process does not have, as in a rolling restart that adds roles.
    pub fn note_other_roles(&mut self, now: Time, member: &MemberId, count: u32) {
        self.news_of(now, member).other_roles = count;
    }

    /// Handles that another candidate does not stand for these roles, or no longer, according to its hello. This is final.
    pub fn roles_left(&mut self, now: Time, member: &MemberId, left: &RoleSet) {
        if !left.is_empty() {
            let roles = (0..).zip(&mut self.roles).filter(|(number, _)| left.contains(*number));
            roles.for_each(|(_, role)| role.note_left(member));
            self.changed(now);
        }
    }

    /// Handles another candidate's hello that is older than this process's reading. A living candidate repeats its hello within the
    /// interval.
    pub fn received_earlier(&mut self, now: Time, member: &MemberId, max_roles: Option<u32>) {
        let age = HELLO_HOLDS.saturating_sub(HELLO_INTERVAL + LATE_HELLO);
        self.news_of(now, member).received_earlier(now, age, max_roles);
    }

    /// Notes the name in another candidate's hello. A process that died shortly after its start again and again has the same name each time.
    pub fn note_name(&mut self, now: Time, member: &MemberId, name: Option<&str>) {
        self.members.named(now, member, name);
        self.changed(now);
    }

    /// Notes that another candidate, a leader, has just written a record.
    pub fn heard(&mut self, now: Time, member: &MemberId) {
        // Most records of leaders change nothing.
        if self.members.all.get_mut(member).is_some_and(|member| member.heard(now)) {
            self.changed(now);
        }
    }

    /// Notes that a process asked another candidate for a hello.
    pub fn asked(&mut self, now: Time, member: &MemberId) {
        if *member != self.member {
            self.news_of(now, member).asked(now);
        }
    }

    /// Handles a release that took effect in a role, of this process or of another.
    pub fn released(&mut self, now: Time, role: usize, member: &MemberId, why: &str) {
        let (is_own, why) = (*member == self.member, Why::parse(why));
        if let Some(role) = self.roles.get_mut(role) {
            role.given_up_by = why.filter(|why| why.lets_another_lead()).map(|_| member.clone());
            if why.is_some_and(Why::leaves_role) {
                role.note_left(member);
            }
        }
        if !is_own {
            self.members.released(now, member, why);
        }
        self.changed(now);
    }

    /// Handles another candidate's last hello: it leaves for good.
    pub fn member_left(&mut self, now: Time, member: &MemberId) {
        self.members.released(now, member, Some(Why::Stopped));
        self.changed(now);
    }

    /// Handles a change of this member's assignment in a role.
    pub fn stand(&mut self, now: Time, role: usize, assignment: Assignment) {
        if let Some(role) = self.roles.get_mut(role).filter(|role| role.assignment != assignment) {
            role.assignment = assignment;
            self.changed(now);
        }
    }

    /// The holder of a role according to the last observation.
    pub(crate) fn holding(&self, number: usize) -> Option<&Holding> {
        self.roles.get(number).map(|role| &role.holding)
    }

    /// Notes who holds a role now. Must be called after each input of that role's node; most calls change nothing.
    pub fn observe(&mut self, now: Time, number: usize, holding: Holding) {
        let Some(role) = self.roles.get_mut(number).filter(|role| role.holding != holding) else { return };
        let silent = role.becomes(now, holding);
        if let Some(silent) = silent.filter(|silent| *silent != self.member) {
            self.members.went_silent(now, &silent);
        }
        self.changed_at = now;
        self.changed(now);
        self.look_at_pending(Some(number));
    }

    fn changed(&mut self, now: Time) {
        self.now = now;
        self.is_planned = false;
    }

    /// The candidate with this id, of which there is news.
    fn news_of(&mut self, now: Time, id: &MemberId) -> &mut Member {
        self.changed(now);
        self.members.known(id)
    }
}
