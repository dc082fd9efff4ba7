//! Mutants of the journal's law (L1 to L4), which lead to two jobs at once.

use crate::mutant::Notice::{Chaos, Law, Model, Scenarios};
use crate::mutant::{Mutant, edit};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "AnswersDatedByArrival",
        breaks: "L4: the time of an answer about the log's end is that of its arrival, not that of the query",
        edits: &[edit("self.answers.push((‹asked›, end))", "now")],
        noticed_by: &[Law],
    },
    Mutant {
        name: "AnswersHoldForEver",
        breaks: "L4: an answer distinguishes markers from missing records for ever, not for 60 s",
        edits: &[edit("iter().filter(|(asked, _)| ‹now.since(*asked) <= ANSWER_HOLDS›)", "asked >= &Time::ZERO")],
        noticed_by: &[Law],
    },
    Mutant {
        name: "BeatsDoNotVoid",
        breaks: "L1: a beat between a claim's `after` and the claim does not void the claim; only another claim does",
        edits: &[edit("if ‹self.last_of_election›.is_some_and(", "self.term()")],
        noticed_by: &[Model("a_reader_that_lags"), Law],
    },
    Mutant {
        name: "EveryClaimEffective",
        breaks: "L1 is dropped: every claim is effective, and the newest wins",
        edits: &[edit("self.last_of_election.is_some_and(|last| last > after)", "false")],
        noticed_by: &[Model("two_starts_at_once"), Law, Chaos(&["delay", "kill-supervisor", "term"])],
    },
    Mutant {
        name: "GapIgnored",
        breaks: "L4: a missing offset does not make a decided view undecided",
        edits: &[edit("if ‹!matches!(self.view, View::Undecided(_))› {", "false")],
        noticed_by: &[Model("a_deleted_claim"), Law],
    },
    Mutant {
        name: "GapIgnoredBehindCutHead",
        breaks: "L4: a missing offset leaves a log vacant whose head was cut, and in which no record of the election was read",
        edits: &[edit("self.view = View::Undecided(Undecided::default()); } ‹self.note_not_empty()›;", "()")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "GapsTakenForMarkers",
        breaks: "L4: a missing offset counts as a marker even where single records may be deleted, as by compaction",
        edits: &[edit("is_between && ‹self.gaps_are_markers›", "true")],
        noticed_by: &[Law, Scenarios],
    },
    Mutant {
        name: "LaterTermVoid",
        breaks: "L4: a beat of a later term, whose claim was taken for a marker, is void",
        edits: &[edit("if ‹self.claim_is_missing(term)› {", "false")],
        noticed_by: &[Model("a_claim_that_is_compacted"), Law],
    },
    Mutant {
        name: "MemberIgnored",
        breaks: "L3: a beat or release of the current term counts whichever member has written it",
        edits: &[edit("if current.offset == term && ‹current.member == record.member› =>", "true")],
        noticed_by: &[Model("a_topic_that_is_remade"), Law],
    },
    Mutant {
        name: "OthersRecordsNotCounted",
        breaks: "L1: a run of other programs' records counts only up to its first record, so a claim states too low an `after`",
        edits: &[edit("self.last = Some(last);", "self.last = Some(first);")],
        noticed_by: &[Law],
    },
    Mutant {
        name: "SeenIgnored",
        breaks: "L4: a beat or release with any `seen` decides the view",
        edits: &[edit("‹seen >= window - 1› && undecided", "true")],
        noticed_by: &[Model("a_late_beat_at_the_end"), Law],
    },
    Mutant {
        name: "StartDecided",
        breaks: "L4: a start in the middle of the log counts as a vacancy",
        edits: &[edit("Origin::Middle => ‹View::Undecided(Undecided::default())›", "View::NeverLed")],
        noticed_by: &[Model("a_start_in_the_middle"), Law],
    },
    Mutant {
        name: "UnjudgedIsVoid",
        breaks: "L4: a claim that can't be judged counts as void",
        edits: &[edit("if ‹after >= self.window - 1› {", "if after < self.window - 1 { return Verdict::Void; } true")],
        noticed_by: &[Model("a_claim_that_cannot_be_judged"), Law],
    },
    Mutant {
        name: "WindowKept",
        breaks: "L4: `w` does not change at a missing offset",
        edits: &[edit("self.window = offset;", "")],
        noticed_by: &[Model("a_deleted_claim_and_a_late_beat"), Law],
    },
];
