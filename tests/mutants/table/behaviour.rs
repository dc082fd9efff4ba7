//! Mutants with which the wrong candidate leads, a job starts or ends at the wrong time, or nothing is told; still only one job runs at a time.

use crate::mutant::Notice::{Node, Scenarios};
use crate::mutant::{Mutant, edit};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "BackOffIgnored",
        breaks: "Back-off: a candidate whose runs failed claims as soon as any other candidate",
        edits: &[edit("let added = ‹self.back_off› + self.wait_for_higher(now) + spread;", "Duration::ZERO")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "BackOffInTheGroup",
        breaks: "Back-off: a candidate that backs off remains a member of the group, which may choose it",
        edits: &[edit("if ‹self.precedence.is_backing_off() && !self.claims_only_when_assigned()› {", "false")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "BackOffWithoutEnd",
        breaks: "Back-off: a run of ten minutes does not end it",
        edits: &[edit("(self.in_a_row > 0).then(|| since + SOUND_RUN)", "None")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "BackOffWithoutFacts",
        breaks: "Back-off: a lead that ended because the facts could not be read does not count",
        edits: &[edit("if ‹why == Why::FactsUnavailable› {", "false")],
        noticed_by: &[Node(
            "once_answers::each_lead_without_the_facts_doubles_the_wait_before_the_next_also_if_another_led_meanwhile",
            "before the end of its back-off",
        )],
    },
    Mutant {
        name: "ClaimInTheLogTakenForRefused",
        breaks: "R7: a stop does not wait for a claim that may be in the log, and no process is there that could release its term",
        edits: &[edit("&& own == seq && ‹!may_be_in_log›", "true")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "TermBelowTheHighest",
        breaks: "R5: a candidate takes up a term below one that it held, so its fencing token decreases",
        edits: &[edit("|| ‹claim.term() <= election.highest_term›;", "false")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "CutUnseenAtR1",
        breaks: "R5: in a log that was cut, a former leader that reads again releases its claims until the offsets reach its old term",
        edits: &[edit("if ‹self.election.listener.known_end() <= self.election.highest_term› =>", "false")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "DeletedRecordsAreNoCut",
        breaks: "R5: a candidate that reads again claims at once in a log whose records were deleted after it had read a leader's",
        edits: &[edit("|| ‹self.recent_records_are_gone(now, start)›;", "false")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "OldAnswerIsACut",
        breaks: "R5: an answer that is older than a record that was read since counts as a cut of the history",
        edits: &[edit("if ‹self.election.listener.known_end()› <= self.election.highest_term =>", "bounds.end")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "OneAnswerIsACut",
        breaks: "A single answer of a lagging broker counts as a cut of the history while the log is read further back",
        edits: &[edit(
            "‹self.signs.ends(asked, end, denied)?;› end = denied.unwrap_or(end);",
            "if denied.is_some() { return Err(HistoryCut); }",
        )],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "GoneProcessRefuses",
        breaks: "A hello that is read again, of a process with roles that has gone since, refuses a candidate without roles",
        edits: &[edit("Some(_) if ‹!fresh› => {}", "false")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "IdUnaskedAfterFence",
        breaks: "A candidate whose topic was created again while no beat came back does not tell of it, nor that fencing tokens begin anew",
        edits: &[edit("self.topic.ask_anew(now);", "")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "IdOfBeforeTheFence",
        breaks: "The answer to a question from before a fence counts as that to the question which is asked after it",
        edits: &[edit("self.topic.ask_anew(‹now›);", "Time::ZERO")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "FenceTakenForACut",
        breaks: "Many roles: a process that reads anew after a fence forgets that it has introduced itself, and answers no other process",
        edits: &[edit("self.topic.ask_anew(now);", "{ self.topic.ask_anew(now); self.topic.cut_at = now; }")],
        noticed_by: &[Node("hellos_of_many::a_fence_is_no_cut_of_the_history", "it has introduced itself")],
    },
    Mutant {
        name: "EndBeforeTheRest",
        breaks: "--on-exit: the hook of a run begins while processes of the run are left",
        edits: &[edit("is_some_and(|run| ‹!self.supervisor.may_be_alive(run.number)›)", "run.number > 0")],
        noticed_by: &[Node(
            "hooks::a_run_that_leaves_processes_is_not_over",
            "runs the hook of a run that is not over",
        )],
    },
    Mutant {
        name: "EqualsPreempted",
        breaks: "--preempt: a candidate asks a leader of the same priority to resign",
        edits: &[edit("‹(priority < self.precedence.priority)›.then_some", "(priority <= self.precedence.priority)")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "PreemptionWhileBackingOff",
        breaks: "--preempt: a candidate that backs off asks a leader to resign, but does not claim then",
        edits: &[edit("&& ‹!self.precedence.is_backing_off()›;", "true")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "PriorityIgnored",
        breaks: "--priority: a candidate claims although one with a higher priority stands by",
        edits: &[edit("let added = self.back_off + ‹self.wait_for_higher(now)›", "Duration::ZERO")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "PriorityInTheGroup",
        breaks: "--priority: a candidate remains a member of the group although one with a higher priority stands by, and the group may \
                 choose it",
        edits: &[edit("‹!self.precedence.is_outranked(now)›", "true")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "RefusedClaimAwaited",
        breaks: "R7: a stop waits a lease for a claim that Kafka has refused",
        edits: &[edit("&& own == seq && ‹!may_be_in_log›", "false")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "RestOfCommandsForgotten",
        breaks: "A run whose main process has ended does not end while a process lives that has left the group of a hook or health command",
        edits: &[edit("‹self.ask_rest(now, REST_ENDS_WITHIN);›", "let _ = now;")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "SettleNotAwaited",
        breaks: "--settle: the first run of a lead does not wait",
        edits: &[edit("let settle = ‹self.policy.settle›;", "core::time::Duration::ZERO")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "SettleUnknownToGuard",
        breaks: "--settle: the guard gets the term only with its first run, and does not release it if the supervisor dies before",
        edits: &[edit("‹self.extend(now, grant);› } fn run_once", "")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "EarlierRunNamed",
        breaks: "R6: the guard's answer that an earlier run of the term is over counts for the run that was ordered, since both are a first \
                 attempt",
        edits: &[edit("‹u64::from(self.run.number)› == run;", "u64::from(self.run.attempt)")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "RunWithoutGuardAwaited",
        breaks: "The supervisor waits for the end of a run whose guard could not be started, and its term is not released",
        edits: &[edit("if is_ordered && ‹!self.run.started› || again", "false")],
        noticed_by: &[
            Node(
                "no_guard::a_run_that_no_guard_received_has_never_begun",
                "the term of a run that has never begun is kept",
            ),
            Scenarios,
        ],
    },
];
