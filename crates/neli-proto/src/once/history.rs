//! Whether the topic of facts was lost: the journal told of a run that was recorded there, and the topic was missing.

use alloc::boxed::Box;

use super::{Action, Note, Once};
use crate::candidate;
use crate::record::{Body, Offset};

/// What the journal told before this candidate began.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct History {
    /// Where the journal ended when the candidate first asked.
    end: Option<Offset>,
    /// The key that a release below that end names last.
    named: Option<Box<str>>,
    /// The topic of facts was missing, and was made here.
    facts_are_new: bool,
}

impl Once {
    /// Something has happened in the election.
    pub(crate) fn observe(&mut self, event: &candidate::Event) {
        if let candidate::Event::Answered { end, .. } = event {
            self.history.end.get_or_insert(*end);
        }
        if let candidate::Event::Read { offset, record: Some(record) } = event
            && let Body::Release { once: Some(key), .. } = &record.body
            && self.history.end.is_some_and(|end| *offset < end)
        {
            self.history.named = Some(key.clone());
            self.tell_of_lost_facts();
        }
    }

    /// The topic of facts was missing, and was made here.
    pub(crate) fn facts_are_new(&mut self) {
        self.history.facts_are_new = true;
        self.tell_of_lost_facts();
    }

    fn tell_of_lost_facts(&mut self) {
        if !self.history.facts_are_new {
            return;
        }
        if let Some(key) = self.history.named.take() {
            self.history.facts_are_new = false;
            self.actions.push_back(Action::Note(Note::FactsLost(key)));
        }
    }
}
