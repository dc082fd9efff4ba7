//! Mutants of `--once`: with each a key that has succeeded runs a second time.

use crate::mutant::Notice::{Model, Node, Scenarios};
use crate::mutant::{Mutant, edit, edit_in};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "UnreadFacts",
        breaks: "once: facts that were recorded before the claim took effect are not read again",
        edits: &[edit_in(
            "led",
            "(self.awaited, self.until) = (self.read(), Some(self.end_of_wait(now)));",
            "self.read();
            self.announce(now, term, self.end_of_wait(now));",
        )],
        noticed_by: &[Model("a_runner_that_dies"), Model("a_runner_that_is_stopped")],
    },
    Mutant {
        name: "UnheldJob",
        breaks: "once: the job is ordered as soon as the candidate leads, without the recorded facts",
        edits: &[edit(
            "(WantedState::Run, _) => ‹WantedState::Hold { waits: self.is_waiting() && self.next_window_ms().is_some() }›,",
            "WantedState::Run",
        )],
        noticed_by: &[Node(
            "once::the_job_waits_for_what_is_recorded_and_for_the_acknowledgement_of_its_beginning",
            "a job that is started before the facts were read",
        )],
    },
    Mutant {
        name: "OldFactsCount",
        breaks: "once: the answer to a query from before the claim took effect is taken for the present facts",
        edits: &[edit_in("facts_read", "id != self.awaited", "id > self.awaited")],
        noticed_by: &[Node(
            "once::the_job_waits_for_what_is_recorded_and_for_the_acknowledgement_of_its_beginning",
            "that was asked for before the claim",
        )],
    },
    Mutant {
        name: "UnconfirmedFacts",
        breaks: "once: the end to which the facts are read counts, though the broker that said it may lead their topic no longer",
        edits: &[edit("self.unconfirmed_end = ‹Some(end)›; self.learn(facts);", "Some(end).take_if(|_| false)")],
        noticed_by: &[Model("a_broker_without_the_last_fact"), Model("a_broker_without_the_last_fact_of_a_schedule")],
    },
    Mutant {
        name: "FailureBehindOwnRun",
        breaks: "once: a failure does not count if a run that was begun without having read it was recorded after it",
        edits: &[edit("fact.is_older_than(known) || ‹fact.overlooks_failure(known)›", "false")],
        noticed_by: &[Node("once_answers::a_failure_that_is_read_before_the_run_counts", "left: (true, false)")],
    },
    Mutant {
        name: "ForgottenBehindOwnRun",
        breaks: "once: of what the second reading finds, it does not count that the key was forgotten, and a run after that is forgotten as well",
        edits: &[edit("let begun = ‹self.begun(seq, term)›;", "Fact { forgets: 0, ..self.begun(seq, term) }")],
        noticed_by: &[Node("once_answers::a_key_that_is_forgotten_before_the_run_is_done_after_it", "left: (Done, 0)")],
    },
    Mutant {
        name: "UnrecordedOutcome",
        breaks: "once: the release neither waits for the outcome's acknowledgement nor contains the outcome",
        edits: &[
            edit_in(
                "run_ended",
                "self.append(id, fact);",
                "self.append(id, fact);
                self.finish(Time::ZERO, true);",
            ),
            edit("self.scheduled.is_some() || run.key == self.policy.key", "run.key != self.policy.key"),
        ],
        noticed_by: &[Model("a_key_that_is_done")],
    },
    Mutant {
        name: "UnstartedHasFailed",
        breaks: "once: a run that could not be started is recorded as failed, and no other machine runs the key",
        edits: &[edit("if ‹!run.started› {", "false")],
        noticed_by: &[Node("once::a_run_that_could_not_be_started_is_none", "no outcome")],
    },
    Mutant {
        name: "UnstartedIsHeldAfterAStop",
        breaks: "once: a run that could not be started after a stop keeps the term, and nothing ends it",
        edits: &[edit("self.holds && ‹self.run.asked_at.is_none()›, false", "true")],
        noticed_by: &[Node("once::a_run_that_could_not_be_started_after_a_stop_ends_the_term", "the term is kept")],
    },
    Mutant {
        name: "UnrecordedTakenForRecorded",
        breaks: "once: an outcome that was not acknowledged within the lease counts as recorded",
        edits: &[edit("self.ask(‹unrecorded›);", "None")],
        noticed_by: &[Node(
            "once::a_lease_that_ends_before_the_acknowledgement_is_a_fence_and_the_release_contains_the_run",
            "the outcome is sent again",
        )],
    },
    Mutant {
        name: "EndNoticedLateIsNone",
        breaks: "once: a run that ended in time has no outcome if its end is noticed after the lease, and the key runs again",
        edits: &[edit("if ‹self.run.own_end == OwnEnd::Alone› {", "false")],
        noticed_by: &[Node(
            "once::a_run_that_ended_in_time_has_an_outcome_although_its_end_is_noticed_after_the_lease",
            ": what it had left was killed",
        )],
    },
    Mutant {
        name: "UnconfirmedIsSuccess",
        breaks: "once: a candidate that is told to stop exits with 0 although the outcome of its run was not acknowledged",
        edits: &[edit("self.scheduled.is_none() && !‹self.lacks_record()›;", "false")],
        noticed_by: &[Node(
            "once::a_stop_whose_lease_ends_before_the_outcome_is_confirmed_is_not_the_job_s_success",
            "left: [Job(Exited(0))]",
        )],
    },
    Mutant {
        name: "ForgottenForEver",
        breaks: "once: facts that are recorded after a key was forgotten, in a journal that was created again, are ignored",
        edits: &[edit("‹self.forgets < forgotten.forgets› && self.term <= forgotten.term", "true")],
        noticed_by: &[
            Node("forget::facts_after_a_key_was_forgotten_count", "the journal was made anew"),
            Model("a_key_that_is_forgotten_before_its_journal_is_remade"),
        ],
    },
    Mutant {
        name: "ForgetsDoNotOrder",
        breaks: "once: of two facts at the same place in the topic the one with the higher term counts, although the key was forgotten \
                 in between and the journal was created again",
        edits: &[edit("order(self) < order(known)", "{ let _ = order; self.term < known.term }")],
        noticed_by: &[Model("a_key_that_is_forgotten_before_its_journal_is_remade")],
    },
    Mutant {
        name: "ForgottenByOldCandidates",
        breaks: "once: facts of a candidate that has not read that the key was forgotten are ignored, although it ran after that",
        edits: &[edit("self.forgets < forgotten.forgets && ‹self.term <= forgotten.term›", "true")],
        noticed_by: &[Node("forget::facts_after_a_key_was_forgotten_count", "does not know of it")],
    },
    Mutant {
        name: "NothingIsForgotten",
        breaks: "once: a key that an operator has forgotten still counts as done",
        edits: &[edit("(None, _) => ‹!self.known.has_forgotten(fact)›,", "true")],
        noticed_by: &[Model("a_key_that_is_forgotten")],
    },
    Mutant {
        name: "StopWhileRecordingForgotten",
        breaks: "once: a stop that comes while the outcome of a run is recorded is forgotten, and the release does not report the run",
        edits: &[edit("self.until.get_or_insert(now + self.lease);", "let _ = now;")],
        noticed_by: &[Node(
            "schedule::a_stop_among_leftovers_of_a_run_ends_the_lead_when_the_outcome_is_recorded",
            "left: (None, Some(0), Some(\"stopped\"))",
        )],
    },
    Mutant {
        name: "KilledRunCounts",
        breaks: "once: with --stop-signal none a run that was killed at the stop timeout counts as one that ended by itself",
        edits: &[edit("if has_signal || ‹kill_at.is_none()›", "false")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "RetriesOfEachMachine",
        breaks: "once: the runs that failed on another machine are not counted",
        edits: &[edit("saturating_add(‹u32::from(self.outcome == Outcome::Failed)›)", "0")],
        noticed_by: &[Model("retries_of_two_machines")],
    },
];
