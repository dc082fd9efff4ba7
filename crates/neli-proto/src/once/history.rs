//! Whether the topic of facts was lost: the topic was missing, but the journal contains a run that was recorded there.

use alloc::boxed::Box;

use super::{Action, Once};
use crate::candidate;
use crate::note::Note;
use crate::record::{Body, Offset};

/// The journal's contents from before this candidate began.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct History {
    /// The journal's end when the candidate first asked for it.
    end: Option<Offset>,
    /// The key in the last release below that end that contains one.
    named: Option<Box<str>>,
    /// Whether the topic of facts was missing, and this candidate created it.
    facts_are_new: bool,
}

impl Once {
    /// Handles an event of the election.
    pub(crate) fn observe(&mut self, event: &candidate::Event) {
        if let candidate::Event::Answered { end, .. } = event {
            self.history.end.get_or_insert(*end);
        }
        if let candidate::Event::Read { offset, record: Some(record), .. } = event
            && let Body::Release { once: Some(run), .. } = &record.body
            && self.history.end.is_some_and(|end| *offset < end)
        {
            self.history.named = Some(run.key.clone());
            self.tell_of_lost_facts();
        }
    }

    /// Notes that the topic of facts was missing, and this candidate created it.
    pub(crate) fn facts_were_created(&mut self) {
        self.history.facts_are_new = true;
        self.tell_of_lost_facts();
    }

    fn tell_of_lost_facts(&mut self) {
        if !self.history.facts_are_new {
            return;
        }
        if let Some(key) = self.history.named.take() {
            self.history.facts_are_new = false;
            self.actions.push_back(Action::Note(Note::FactsLost { key }));
        }
    }
}
