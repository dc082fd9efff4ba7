//! Mutants about guards that can't kill in time, about the report of a late kill, and about the watch of a guard's answers, without which a
//! hanging guard is not killed in time.

use crate::mutant::Notice::{Model, Scenarios};
use crate::mutant::{Mutant, edit};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "AnotherRunsEndTaken",
        breaks: "R6: the guard's answer about the end of another run counts for the present run",
        edits: &[edit("if ‹is_present› && self.has_run() {", "true")],
        noticed_by: &[Model("an_answer_about_the_run_before"), Scenarios],
    },
    Mutant {
        name: "AnyAnswerEndsTheWatch",
        breaks: "A guard that has answered one of several orders, and then hangs, is not taken for dead before its deadline",
        edits: &[edit("self.question.take_if(|question| ‹question.awaited <= Some(until)›);", "true")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "BusyGuardTakenForHung",
        breaks: "R4: a guard that is killing a large tree is taken for one that hangs and is killed, and the supervisor, which has no \
                 priority, starts to kill again",
        edits: &[edit(
            "‹question.respite.unwrap_or_else(|| due(question)).max(self.busy_until)›",
            "question.respite.unwrap_or_else(|| due(question))",
        )],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "BusyGuardTrustedForEver",
        breaks: "R4: a guard that has answered that it is still killing, and then hangs, is never taken for dead",
        edits: &[edit("self.busy_until = now + ‹KILLS_FOR›;", "Duration::from_secs(3_600)")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "DeadsLateEndUntold",
        breaks: "A guard that releases for a dead supervisor does not report that the job outlived its lease",
        edits: &[edit("let late = ‹self.tenure.and_then(|tenure| tenure.overrun(self.kill_margin))›;", "None")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "FailedLookTakenForWhole",
        breaks: "R4: after a search for processes that failed in part, the next kill is as late as after a complete one",
        edits: &[edit("self.pause = Some(if ‹has_seen_all || is_in_vain› {", "true")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "ForkBeforeTheDeadline",
        breaks: "R4: a guard starts a command just before the deadline, so that the kill is delayed by the fork",
        edits: &[edit("else if ‹self.has_time_to_fork(now)› {", "true")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "HungGuardsJobLives",
        breaks: "R4: the job of a guard that hangs is not killed",
        edits: &[edit("self.actions.push_back(Action::KillGuard);", "")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "HungGuardsLeaseGoesOn",
        breaks: "R4: the lease of a guard that hangs is still extended",
        edits: &[edit("self.note(Note::GuardHangs); if ‹self.job != Job::None› {", "false")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "LateEndUntold",
        breaks: "A job that outlived its lease is reported as fenced in time",
        edits: &[edit("let late = ‹seen.and_then(|seen| seen.overrun(*lease_end))›;", "None")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "LateKillUnproved",
        breaks: "A job that is first killed after its lease's end, and dies at once, is not reported as alive after it",
        edits: &[edit("(true, _) if ‹self.lease_end.is_some_and(|end| now >= end)› =>", "false")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "LateSearchTakenForLateEnd",
        breaks: "Processes that have ended in time are reported as alive after the lease's end if the guard gets no processor until then",
        edits: &[edit("self.lived_at.filter(|lived_at| ‹*lived_at >= lease_end›)?;", "*lived_at < lease_end || true")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "LookBeforeTheKnown",
        breaks: "R4: the guard does not kill the known processes first, but searches for the others at once, which is slow at the memory \
                 limit",
        edits: &[edit("match (‹self.uses_known_processes_only()›, self.pause.is_none()) {", "false")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "LostEndAwaited",
        breaks: "R7: a guard without a run does not answer a stop, so the supervisor waits for ever if the report of the end was lost",
        edits: &[edit("self.actions.extend(‹answer.map(Action::Answer)›);", "None")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "OneLookTakenForTwo",
        breaks: "R6: a tree counts as gone if each process that a look has shown has ended, even if one of them has left a child meanwhile",
        edits: &[edit("‹second.iter().all(|(child, _)| ended.contains(child))›", "true")],
        noticed_by: &[Model("trees::a_tree_of_which_a_process_lives_is_never_taken_for_gone")],
    },
    Mutant {
        name: "OldAnswerForTheEnd",
        breaks: "A guard that answers an earlier order, and hangs before it kills, has time until that order's deadline",
        edits: &[edit("if ‹self.question.is_some_and(|question| question.awaited.is_none())› {", "false")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "OwnStallTakenForTheGuards",
        breaks: "A supervisor that was stopped itself takes its guard for dead before it has read the guard's answers",
        edits: &[edit("let is_in_time = ‹late <= margin / 2›;", "true")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "RespiteWithoutEnd",
        breaks: "R4: a supervisor that is slow itself gives a guard that hangs more time again and again",
        edits: &[edit("let had_respite = ‹question.respite.is_some()›;", "false")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "SlowWaitTakenForLateEnd",
        breaks: "Processes that have ended in time, and that take long to be waited for, are reported as alive after the lease's end",
        edits: &[edit("self.none_lived_at = ‹none_lived_at.map(|at| self.none_lived_at.unwrap_or(at))›;", "None")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "StallTakenForStuck",
        breaks: "Processes that are left after the killer itself has stalled count as stuck, and their term is never released",
        edits: &[edit("self.stuck_at.iter_mut().for_each(|at| *at = *at + uncounted);", "let _ = uncounted;")],
        noticed_by: &[Scenarios],
    },
];
