//! The candidate's part in the spread of many roles: which candidate holds this role, and the handover of a lead.

use alloc::boxed::Box;
use core::time::Duration;

use super::state::State;
use super::{Action, Candidate, Election};
use crate::hello::Hello;
use crate::journal::{Term, Verdict, View};
use crate::mapping::Mapping;
use crate::note::{Note, Refusal};
use crate::precedence::ANSWERS;
use crate::record::{Body, MemberId, Offset, Record, Why};
use crate::spread::Holding;
use crate::time::Time;

impl Candidate {
    /// The holder of the role, as far as it is known here.
    pub(crate) fn holding(&self) -> Holding {
        match &self.state {
            State::Claiming { .. } => Holding::Claiming,
            State::Departed(_) => Holding::Done,
            State::Fenced(_) | State::Overlapped(_) | State::Releasing(_) => Holding::Ending,
            State::Leading(leading) if leading.stands_down.is_some() => Holding::Ending,
            State::Leading(_) => Holding::Leading,
            State::StandingBy { .. } | State::Suspended => self.election.holding_as_read(),
        }
    }

    /// The time until which the candidate may not claim because the records do not show who leads; `None` if they do.
    pub(crate) fn undecided_until(&self, now: Time) -> Option<Time> {
        self.election.listener.undecided_for(now).map(|left| now + left)
    }

    /// When the history was last cut or the topic made anew, as far as the candidate knows.
    pub(crate) const fn history_cut_at(&self) -> Time {
        self.election.topic.cut_at
    }

    /// Stands down in favour of another candidate, if it leads and is not standing down already: another member holds fewer roles than its
    /// share.
    pub fn hand_over(&mut self, now: Time, to: MemberId) {
        self.on_local(now, |candidate| {
            if candidate.holding() == Holding::Leading {
                candidate.election.successor = Some(to);
                candidate.stand_down_for(now, Why::Spread, false);
            }
        });
    }

    /// Adds this time to the claim delay from now on; with `None`, the candidate claims nothing.
    pub fn spread_by(&mut self, now: Time, delay: Option<Duration>) {
        self.on_local(now, |candidate| candidate.election.precedence.spread_by(delay));
    }
}

impl Election {
    fn holding_as_read(&self) -> Holding {
        match self.listener.journal().view() {
            _ if !self.listener.is_caught_up() => Holding::Unknown,
            // Its release was acknowledged but not read back yet.
            View::Led(Term { member: Some(by), .. }) if *by == self.hello.member => Holding::Ending,
            View::Led(Term { member: Some(by), .. }) => Holding::Held { by: by.clone() },
            View::Led(_) | View::Undecided(_) => Holding::Unknown,
            View::NeverLed | View::Released { .. } => Holding::Vacant { successor: self.precedence.successor.clone() },
        }
    }

    /// Notes the successor that a release names, until a candidate has claimed. A request to resign names it before: with `--overlap` the claim
    /// comes before the release.
    pub(super) fn note_successor(&mut self, record: Option<&Record>, verdict: Verdict) {
        self.precedence.successor = match record.map(|record| &record.body).filter(|_| verdict == Verdict::Effective) {
            Some(Body::Release { successor, .. }) => successor.clone(),
            Some(Body::Request { successor: Some(successor), .. }) => Some(successor.clone()),
            Some(Body::Claim { .. }) => None,
            Some(Body::Beat { .. } | Body::Request { .. }) | None => return,
        };
    }
}

// A candidate without `--roles` in a group whose candidates have roles: of the two kinds the one that came later exits. If it has read that such
// processes were there, it claims nothing before they have had time to answer its first hello, so that no job is started and then stopped.

impl Election {
    /// The offset of its own first hello or effective claim, once it was read back.
    pub(super) fn joined(&self) -> Option<Offset> {
        self.introduced.map(|(offset, _)| offset)
    }

    /// Notes that a hello or an effective claim of its own was read back.
    pub(super) fn was_introduced(&mut self, now: Time, offset: Offset) {
        self.introduced.get_or_insert((offset, now));
    }

    /// When a claim that is due then may be sent: after those processes' answers. `None` if that is unknown.
    pub(super) fn after_answers(&self, due: Time) -> Option<Time> {
        if self.roles_before.is_empty() {
            return Some(due);
        }
        self.introduced.map(|(_, read)| due.max(read + ANSWERS))
    }
}

impl Candidate {
    /// Compares this candidate with a process with many roles whose hello was read at `offset`. The writer of one that is read again, or from further
    /// back, may have gone since.
    pub(super) fn compare_with_process(&mut self, now: Time, offset: Offset, hello: &Hello, fresh: bool) {
        let election = &mut self.election;
        if hello.leaves || hello.stands_for_no_role() {
            election.roles_before.remove(&hello.member);
            return;
        }
        match election.joined() {
            None => drop(election.roles_before.insert(hello.member.clone())),
            Some(_) if !fresh => {}
            // It came later, and learns at once of this candidate.
            Some(own) if own < hello.joined.unwrap_or(offset) => {
                if hello.joined.is_none() && election.next_hello.is_some() {
                    election.say_hello(now);
                }
            }
            // A leader stays until it has no term.
            Some(_) if !self.state.holds_nothing() => {}
            Some(_) => {
                let name = hello.name.as_deref().unwrap_or("a candidate without a name");
                if let Some(differs) = Mapping::of_one_role().refusal(&hello.mapping(), name) {
                    let refusal = Refusal::Roles(Box::new(differs));
                    election.actions.push_back(Action::Note(Note::Refused(refusal)));
                }
            }
        }
    }
}
