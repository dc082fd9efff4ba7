//! The mutants of `--overlap`: a third job, two jobs for too long, or a lead that is taken from a leader that did not yield it.

use crate::mutant::Notice::{Model, Node, Scenarios};
use crate::mutant::{Mutant, edit};

use super::STOPPING;

const OVERLAP_LISTENER: &str = "crates/neli-proto/src/listener/overlap.rs";
const LEADERS: &str = "crates/neli-proto/src/candidate/overlapping.rs";
const OVERLAPPED: &str = "crates/neli-proto/src/candidate/overlapped.rs";
const EARLIER_JOB: &str = "crates/neli-proto/src/journal/earlier_job.rs";

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "OverlapAsLongAsAnyStop",
        breaks: "overlap: a job beside another's is killed at the stop timeout alone",
        edits: &[edit(STOPPING, "let timeout = ‹within.min(self.policy.stop.timeout)›;", "self.policy.stop.timeout")],
        noticed_by: &[Model("a_leader_that_yields"), Scenarios],
    },
    Mutant {
        name: "OverlapAskedLate",
        breaks: "overlap: a job whose successor's does not run is asked to stop only when its time is over",
        edits: &[edit(OVERLAPPED, "asks_at: Some(now + ‹within / 2›)", "within")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "OverlapOfAnyClaim",
        breaks: "overlap: a leader takes every effective claim for one that lets its job run on",
        edits: &[edit(LEADERS, "by_term.filter(|_| ‹is_over› && self.timings", "(is_over || true)")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "OverlapUnyielded",
        breaks: "overlap: a leader is overlapped that does not yield",
        edits: &[edit(OVERLAP_LISTENER, "View::Led(term) if ‹term.yields› =>", "(term.yields || true)")],
        noticed_by: &[Node("overlap::a_leader_that_does_not_yield_is_left_alone", "it claims")],
    },
    Mutant {
        name: "OverlapWithoutIt",
        breaks: "overlap: a candidate stands in an election of the other kind",
        edits: &[edit(LEADERS, "if ‹is_declared› && overlaps !=", "(is_declared && false)")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "EarlierJobForgotten",
        breaks: "overlap: a leader's beats do not tell that a job before its own may be alive",
        edits: &[edit(LEADERS, "term().filter(|_| ‹may_be_alive›);", "(may_be_alive && false)")],
        noticed_by: &[Model("a_start_beside_two_jobs")],
    },
    Mutant {
        name: "EarlierJobGoneByAnybodysWord",
        breaks: "overlap: whoever releases a term that was overlapped is believed",
        edits: &[edit(
            EARLIER_JOB,
            "&& ‹Some(&*member) == record.member.as_ref()›",
            "(Some(&*member) == record.member.as_ref() || true)",
        )],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "EarlierJobIgnored",
        breaks: "overlap: a claim is sent while the job before the leader's may be alive",
        edits: &[edit(
            OVERLAP_LISTENER,
            "gone_at.map_or(since, |gone_at| ‹since.max(gone_at)›)",
            "since.max(Time::ZERO.min(gone_at))",
        )],
        noticed_by: &[Model("two_hand_overs_in_a_row"), Model("a_vacancy_beside_an_overlapped_job"), Scenarios],
    },
    Mutant {
        name: "EarlierJobUnread",
        breaks: "overlap: a release alone is taken for the end of a job that was overlapped before and not read of",
        edits: &[edit(OVERLAP_LISTENER, "EarlierJob::Unknown => ‹Some(self.began + silence(LONGEST_LEASE))›,", "None")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "YieldToNobody",
        breaks: "overlap: a leader waits for a successor where none is known",
        edits: &[edit(
            LEADERS,
            "self.timings.overlap().is_some() && ‹self.precedence.standbys(now) > 0›",
            "now >= Time::ZERO",
        )],
        noticed_by: &[Scenarios],
    },
];
