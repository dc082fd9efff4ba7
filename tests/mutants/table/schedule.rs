//! Mutants of windows and schedules: a window runs twice, or not at all.

use crate::mutant::Notice::{Model, Node, Scenarios};
use crate::mutant::{Mutant, edit};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "AnyClockBelieved",
        breaks: "Windows: a window in the future, recorded by a wrong clock, stops all candidates until that time",
        edits: &[edit("other.from_ms <= self.until_ms", "let _ = (self, other); true")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "OlderWindowHides",
        breaks: "Windows: a machine whose clock is two windows behind runs an older window, and with that hides that the present one is done",
        edits: &[edit("‹start(known) < start(fact)› || is_ahead(known, fact)", "false")],
        noticed_by: &[Node("windows::an_older_window_that_was_run_since_hides_no_newer_one", "a run is begun")],
    },
    Mutant {
        name: "FutureWindowHides",
        breaks: "Windows: a machine whose clock is far ahead runs a window of its own, and with that hides that the present one is done",
        edits: &[edit("start(known) < start(fact) || ‹is_ahead(known, fact)›", "false")],
        noticed_by: &[Node(
            "windows::a_window_of_a_wrong_clock_hides_not_that_the_present_one_is_done",
            "a run is begun",
        )],
    },
    Mutant {
        name: "OlderWindowRun",
        breaks: "--window: a window is run although a newer one is done",
        edits: &[edit("(‹own.from_ms < other.from_ms› || is_own_over)", "false")],
        noticed_by: &[Model("a_window_that_is_over")],
    },
    Mutant {
        name: "LeftOutTakenForDone",
        breaks: "--window: a window that a schedule has left out counts as done",
        edits: &[edit("let left_out = ‹fact.outcome == Outcome::Skipped && self.scheduled.is_none()›;", "false")],
        noticed_by: &[Node(
            "windows::a_window_that_a_schedule_has_left_out_is_run_and_those_before_it_are_over",
            "Asked {",
        )],
    },
    Mutant {
        name: "OutcomeDropped",
        breaks: "K3: with a schedule, an outcome that was not acknowledged before the lease ended is dropped, and the window runs again",
        edits: &[edit("self.scheduled.is_some() && ‹unrecorded.is_none()› &&", "true")],
        noticed_by: &[Node(
            "schedule::nothing_is_claimed_before_the_outcome_of_a_lost_lead_is_recorded",
            "a later run may have been recorded",
        )],
    },
    Mutant {
        name: "OverrunForgotten",
        breaks: "--schedule: the windows that passed during a run are neither reported nor recorded as over",
        edits: &[edit(
            "if ‹shown.span.from_ms <= run.from_ms || self.over_at(shown.span.from_ms).is_some()› {",
            "true",
        )],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "RecordedWindowForgotten",
        breaks: "--schedule: a new leader runs a window that is done",
        edits: &[edit("self.mark_over(Span { from_ms: 0, until_ms: end_of(newest, shown.span) });", "let _ = newest;")],
        noticed_by: &[Scenarios, Model("a_schedule_whose_leader_dies")],
    },
    Mutant {
        name: "SetBackForgotten",
        breaks: "--schedule: after a clock is set back, windows are run again",
        edits: &[edit("let is_over = ‹self.over_at(window.span.from_ms).is_some()›;", "false")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "CaughtUpWithNone",
        breaks: "--catch-up none: a new leader runs the window that its clock shows",
        edits: &[edit("‹self.asked_for == Some(shown.span)› { CatchUp::Last }", "true")],
        noticed_by: &[Model("a_schedule_that_catches_nothing_up")],
    },
];
