//! Mutants of `--overlap`: a third job, two jobs for too long, or a lead that is taken from a leader that did not offer it.

use crate::mutant::Notice::{Model, Node, Scenarios};
use crate::mutant::{Mutant, edit, edit_in};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "HelloReadAgainCounts",
        breaks: "O6: a hello that is read again counts as one of a living candidate, and this one exits for good",
        edits: &[edit("if ‹fresh› { self.compare_with_standby(offset, &hello); }", "true")],
        noticed_by: &[Node(
            "overlap::a_node_that_reads_anew_is_not_refused_beside_a_standby_of_before",
            "left: ([Overlap",
        )],
    },
    Mutant {
        name: "OverlapAsLongAsAnyStop",
        breaks: "overlap: a job that runs beside its successor's is killed only at the stop timeout",
        edits: &[edit("let timeout = ‹by.map_or(longest, |by| by.since(now).min(longest))›;", "longest")],
        noticed_by: &[Model("a_leader_that_yields"), Scenarios],
    },
    Mutant {
        name: "OverlapAskedLate",
        breaks: "overlap: if the successor's job does not start, the job is asked to stop only at the end of the overlap",
        edits: &[edit("runs_on.then(|| now + ‹within / 2›)", "within")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "OverlapOfAnyClaim",
        breaks: "overlap: a leader takes every effective claim for one that lets its job continue",
        edits: &[edit("by_term.filter(|_| ‹is_over› && self.overlaps()", "(is_over || true)")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "OverlapUnyielded",
        breaks: "overlap: a candidate overlaps a leader that does not yield",
        edits: &[edit_in("note_overlap", "is_some_and(|term| ‹term.yields›)", "(term.yields || true)")],
        noticed_by: &[Node("overlap::a_leader_that_does_not_yield_is_left_alone", "it claims")],
    },
    Mutant {
        name: "OverlapWithoutIt",
        breaks: "overlap: a candidate stands by although its leader has `--overlap` and it has not, or the other way round",
        edits: &[edit("if is_declared && ‹fresh› && differs &&", "(fresh && false)")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "OverlapLedByAStandby",
        breaks: "O6: a candidate exits for a standby with another setting, although the leader's is its own",
        edits: &[edit("&& !hello.leaves && ‹!agrees_with_leader›", "(!agrees_with_leader || true)")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "OverlapOfOneThatLeaves",
        breaks: "O6: a candidate exits for a standby with another setting that leaves",
        edits: &[edit("&& ‹!hello.leaves› && !agrees_with_leader", "(!hello.leaves || true)")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "EarlierJobForgotten",
        breaks: "overlap: a leader's beats do not contain that a job before its own may be alive",
        edits: &[edit("term().filter(|_| ‹may_be_alive›);", "(may_be_alive && false)")],
        noticed_by: &[Model("a_start_beside_two_jobs")],
    },
    Mutant {
        name: "EarlierJobGoneByAnybodysWord",
        breaks: "overlap: a release of an overlapped term counts whichever member has written it",
        edits: &[edit(
            "&& ‹Some(&*member) == record.member.as_ref()›",
            "(Some(&*member) == record.member.as_ref() || true)",
        )],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "EarlierJobIgnored",
        breaks: "overlap: a claim is sent while the job before the leader's may be alive",
        edits: &[edit("gone_at.map_or(since, |gone_at| ‹since.max(gone_at)›)", "since.max(Time::ZERO.min(gone_at))")],
        noticed_by: &[Model("two_hand_overs_in_a_row"), Model("a_vacancy_beside_an_overlapped_job"), Scenarios],
    },
    Mutant {
        name: "EarlierJobUnread",
        breaks: "overlap: after a release, a candidate does not wait for a job that was overlapped before it began to read",
        edits: &[edit("EarlierJob::Unknown => ‹Some(self.heard.began + silence(LONGEST_LEASE))›,", "None")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "YieldToNobody",
        breaks: "overlap: a leader waits for a successor when no other candidate stands by",
        edits: &[edit("self.overlaps() && ‹self.precedence.standbys(now) > 0›", "now >= Time::ZERO")],
        noticed_by: &[Scenarios],
    },
];
