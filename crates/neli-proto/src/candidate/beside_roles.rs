//! A candidate without `--roles` in a group whose candidates have roles: of the two kinds the one that came later exits. If it has read that such
//! processes were there, it claims nothing before they have had time to answer its first hello, so that no job is started and then stopped.

use alloc::collections::BTreeSet;

use super::action::Action;
use super::{Candidate, Common};
use crate::mapping::Mapping;
use crate::precedence::ANSWERS;
use crate::process_hello::ProcessHello;
use crate::record::{Hello, MemberId, Offset};
use crate::time::Time;

/// The processes with many roles of which a candidate without roles knows.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct BesideRoles {
    /// The offset of its own first hello or effective claim, and when it was read back: the claim may come before the hello.
    joined: Option<(Offset, Time)>,
    /// Those that said hello before that, and are not known to have gone.
    before: BTreeSet<MemberId>,
}

impl BesideRoles {
    /// The offset of its own first hello or effective claim, once it was read back.
    pub(super) fn joined(&self) -> Option<Offset> {
        self.joined.map(|(offset, _)| offset)
    }

    /// Notes that a hello or an effective claim of its own was read back.
    pub(super) fn introduced(&mut self, now: Time, offset: Offset) {
        self.joined.get_or_insert((offset, now));
    }

    /// When a claim that is due then may be sent; `None` if that is unknown.
    pub(super) fn claim_due(&self, due: Time) -> Option<Time> {
        if self.before.is_empty() {
            return Some(due);
        }
        self.joined.map(|(_, read)| due.max(read + ANSWERS))
    }

    /// Whether it claims nothing yet for that reason.
    pub(super) fn awaits_answer(&self, now: Time) -> bool {
        self.claim_due(now) != Some(now)
    }
}

impl Candidate {
    /// Handles the hello of a process with many roles at `offset`.
    pub(super) fn read_process_hello(&mut self, now: Time, offset: Offset, hello: &ProcessHello) {
        // One that stands for role 0 too is a standby of this election.
        let number = hello.mapping().number("0");
        let about = number.map(|number| hello.clone().about(number));
        let standby = about.map(|ProcessHello { member, name, priority, leaves, .. }| Hello {
            member,
            group_member: None,
            name,
            priority,
            overlaps: false,
            leaves,
        });
        self.read_others(now, offset, offset, standby);
        self.compare_with_process(now, offset, hello);
    }

    fn compare_with_process(&mut self, now: Time, offset: Offset, hello: &ProcessHello) {
        let Common { beside_roles, .. } = &mut self.common;
        if hello.leaves || hello.stands_for_no_role() {
            beside_roles.before.remove(&hello.member);
            return;
        }
        match beside_roles.joined() {
            None => drop(beside_roles.before.insert(hello.member.clone())),
            // It came later, and learns at once of this candidate.
            Some(own) if own < hello.joined.unwrap_or(offset) => {
                if hello.joined.is_none() && self.common.next_hello.is_some() {
                    self.common.say_hello(now);
                }
            }
            // A leader stays until it has no term.
            Some(_) if !self.state.holds_nothing() => {}
            Some(_) => {
                let name = hello.name.as_deref().unwrap_or("a candidate without a name");
                if let Some(why) = Mapping::of_one_role().refusal(&hello.mapping(), name) {
                    self.common.actions.push_back(Action::Refuse { why: why.into() });
                }
            }
        }
    }
}
