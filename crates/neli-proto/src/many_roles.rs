//! The decisions of a process with several roles, besides those of each node: its hello to the other processes, and the roles that it
//! should hold.
//!
//! It connects `Introduction` and [`Spread`] for the owner of the nodes. Nothing is said or claimed before the number of the topic's partitions
//! is known, and no claim is made before the introduction allows it.

use crate::candidate::{self, Elector};
use crate::hello::{Hello, is_question};
use crate::introduction::Introduction;
use crate::node::{Event, Node};
use crate::precedence::Assignment;
use crate::record::{Body, Offset, Record, Why};
use crate::role_set::RoleSet;
use crate::spread::{Holding, Spread};
use crate::time::Time;

pub use crate::action::RolesAction as Action;

/// The spread and the introduction of a process with many roles.
#[derive(Clone, Debug)]
pub struct ManyRoles {
    introduction: Introduction,
    spread: Spread,
    elector: Elector,
    uses_group: bool,
    /// The offset of the last hello that was read.
    last_hello: Option<Offset>,
    /// When the spread asks to be called again.
    spread_due: Option<Time>,
}

impl ManyRoles {
    /// The state of a process that has read nothing yet. `hello` has what is fixed of the process's own: its identity, its roles as typed, of which there
    /// are `roles`, and how many it leads at most; `are_spread`: whether roles are handed over (`--spread`).
    pub fn new(hello: Hello, roles: usize, elector: Elector, are_spread: bool) -> Self {
        let spread = Spread::new(&hello, roles, are_spread);
        let introduction = Introduction::new(hello);
        Self { introduction, spread, elector, uses_group: true, last_hello: None, spread_due: None }
    }

    /// The next action. The caller must ask until there is none, since a node's reaction to one event may change the input of another node.
    #[must_use]
    pub fn poll_action(&mut self) -> Option<Action> {
        let Self { introduction, spread, spread_due, .. } = self;
        if let Some(action) = introduction.poll_action() {
            return Some(action);
        }
        // No role is claimed before this process may stand.
        if !introduction.stands() || !spread.has_news() {
            return None;
        }
        let mut action = spread.poll_action();
        if action.is_none()
            && let Some((now, member)) = spread.poll_question()
        {
            introduction.ask(now, Some(member));
            action = introduction.poll_action();
        }
        // The owner does not ask again before the next event, so this is also checked with the last action.
        if !spread.has_news() {
            *spread_due = spread.poll_timeout();
        }
        action
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), unless something happens before.
    pub fn poll_timeout(&self) -> Option<Time> {
        let spread_due = self.spread_due.filter(|_| self.stands());
        [self.introduction.poll_timeout(), spread_due].into_iter().flatten().min()
    }

    /// Performs what is due. Early calls do nothing.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.poll_timeout().is_none_or(|due| now < due) {
            return;
        }
        self.introduction.handle_timeout(now);
        // This is also called before this process may stand, so that a later plan uses this time.
        self.spread.handle_timeout(now);
    }

    /// Whether the process should be a member of the group. It is none if the topic has another number of partitions than there are roles, since
    /// the group could not say of each role which process claims it first. (With `--patience never` only members claim.)
    pub const fn uses_group(&self) -> bool {
        self.uses_group
    }

    /// Whether the process may claim vacancies: its first hello was read back, and no other candidate has objected in time.
    pub fn stands(&self) -> bool {
        self.introduction.stands()
    }

    /// The last hello, if the process has sent any: it reports that the process leads no role and will lead none.
    pub fn last_hello(&self) -> Option<Hello> {
        self.introduction.said().map(|said| Hello { leaves: true, left: RoleSet::new(), ..said.clone() })
    }

    /// The hello that is written for the process after its death, if it has said any: it reports that the process stands for no role.
    /// It does not say that the process leaves: one of its guards may still have to end a job, and until then a role must not be led elsewhere by
    /// a process that looks for it in another partition.
    pub fn hello_after_death(&self) -> Option<Hello> {
        let said = self.introduction.said()?;
        Some(Hello { left: RoleSet::of_first(said.mapping().count()), ..said.clone() })
    }

    // ---- events -----------------------------------------------------------------------------------------------------

    /// Handles the answer about the end of a role's log: by then the number of partitions is known.
    pub fn listens(&mut self, now: Time, role: usize, end: Offset, partitions: u32) {
        let hello = &mut self.introduction.hello;
        if hello.partitions.is_none() {
            hello.partitions = Some(partitions);
            let roles = hello.mapping().count();
            let is_never = self.elector == Elector::Group(None);
            self.uses_group = is_never || self.elector != Elector::Log && partitions == roles;
            if self.uses_group {
                // A candidate of an earlier version hands roles over by the group's assignment, unless another one states a limit.
                hello.max_roles.get_or_insert(roles);
            }
        }
        if role == 0 {
            self.introduction.listens(now, end);
        }
    }

    /// Notes that a role's topic satisfies R0.
    pub fn topic_judged(&mut self, now: Time, role: usize) {
        if role == 0 {
            self.introduction.topic_judged(now);
        }
    }

    /// Handles a cut of the history of a role's partition.
    pub fn history_cut(&mut self, role: usize) {
        if role == 0 {
            self.introduction.history_cut();
            self.last_hello = None;
        }
    }

    /// Handles a change of this member's assignment in a role.
    pub fn stand(&mut self, now: Time, role: usize, assignment: Assignment) {
        if assignment != Assignment::Unknown {
            self.introduction.group_refuses(now, None);
        }
        self.spread.stand(now, role, assignment);
    }

    /// Handles a hello that was read in partition 0. Returns it for the nodes, each of which gets what it [says about its
    /// role](Hello::about): here the roles are numbered as in this process, and it has left those for which it does not stand.
    pub fn received(&mut self, now: Time, offset: Offset, value: &[u8]) -> Option<Hello> {
        if is_question(value) {
            self.introduction.answer(now);
            return None;
        }
        let hello = Hello::parse(value).filter(|_| self.introduction.hello.partitions.is_some())?;
        // A new reader reads old hellos again, whose writers may have gone since.
        if self.last_hello >= Some(offset) {
            return None;
        }
        self.last_hello = Some(offset);
        let Self { introduction, spread, .. } = self;
        introduction.received(now, offset, &hello);
        let (member, is_live) = (&hello.member, !introduction.is_history(offset));
        if *member == introduction.hello.member {
            return None;
        }
        let (own, theirs) = (introduction.mapping(), hello.mapping());
        let without = own.roles_without(&theirs, &hello.left);
        let is_for_others = without.has_first(own.count());
        // A candidate without `--roles` stands in one election at most, which may be none of these. A candidate with other roles stands in
        // none of these. So neither gets a role.
        let may_get_roles = hello.roles.is_some() && own.shares_role(&theirs);
        let max_roles = if may_get_roles && !is_for_others { hello.max_roles } else { Some(0) };
        if hello.leaves || hello.stands_for_no_role() {
            spread.member_left(now, member);
        } else if hello.takes_roles() && is_live {
            spread.hello_received(now, member, max_roles);
        } else if hello.takes_roles() {
            spread.received_earlier(now, member, max_roles);
        }
        if is_live {
            spread.note_name(now, member, hello.lasting_name());
            if let Some(asked) = &hello.asks {
                spread.asked(now, asked);
            }
        }
        if may_get_roles && !hello.leaves {
            spread.note_priority(now, member, hello.priority);
            spread.roles_left(now, member, &without);
            spread.note_other_roles(now, member, own.roles_beyond(&theirs, &hello.left));
        }
        Some(Hello { group_member: None, left: without, ..hello })
    }

    /// Notes who holds a role now. Must be called after each input of that role's node; most calls change nothing.
    pub fn observe(&mut self, now: Time, role: usize, holding: Holding) {
        if self.spread.holding(role).is_some_and(|before| holding.is_lost_from(before)) {
            self.introduction.lead_ended(now);
        }
        if holding == Holding::Done {
            self.introduction.role_left(now, u32::try_from(role).unwrap_or(u32::MAX));
        }
        self.spread.observe(now, role, holding);
    }

    /// Handles an event of a role's election, and passes it to the role's node.
    pub fn tell(&mut self, now: Time, role: usize, node: &mut Node, event: candidate::Event) {
        self.learn(now, role, &event);
        let mut release = None;
        if let candidate::Event::Read { record: Some(Record { member: Some(by), body, .. }), .. } = &event {
            if let Body::Release { .. } = body {
                release = Some((by.clone(), body.clone()));
            } else if body.lease().is_some() && node.is_caught_up() {
                self.spread.heard(now, by);
            }
        }
        let cut_at = node.candidate.history_cut_at();
        node.handle(now, Event::Election(event));
        if node.candidate.history_cut_at() != cut_at {
            self.history_cut(role);
        }
        if let Some((by, Body::Release { term, why, successor, .. })) = release
            && node.candidate.released_term() == Some(term)
        {
            let why = why.unwrap_or_default();
            // The node may already have claimed the role that became vacant.
            self.spread.observe(now, role, Holding::Vacant { successor });
            self.spread.released(now, role, &by, &why);
            if by == self.introduction.hello.member && !Why::parse(&why).is_some_and(Why::goes_for_good) {
                self.introduction.lead_ended(now);
            }
        }
        if let Some(until) = node.candidate.undecided_until(now) {
            self.introduction.undecided(now, until);
        }
        self.observe(now, role, node.holding());
    }

    /// What an event of a role's election says of this process's place in the group, and of the topic.
    fn learn(&mut self, now: Time, role: usize, event: &candidate::Event) {
        if let candidate::Event::AssignmentChanged(assignment) = event {
            self.stand(now, role, *assignment);
        } else if let candidate::Event::GroupRefuses { words } = event {
            self.introduction.group_refuses(now, words.as_deref());
        } else if *event == candidate::Event::Revoked {
            self.stand(now, role, Assignment::Elsewhere);
        } else if matches!(event, candidate::Event::TopicJudged { .. }) {
            self.topic_judged(now, role);
        }
    }
}
