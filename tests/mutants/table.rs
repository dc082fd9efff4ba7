//! The mutants: each breaks one rule of the protocol, or of the code that carries it out. Those in this file and in [`law`] lead to two jobs at
//! once. [`late_guard`] has those about guards that start late, and [`guard_watch`] those about guards that do not answer. With those of
//! [`behaviour`] the wrong candidate leads or a job starts at the wrong time, and after those of [`stalls`] there is no leader,
//! or a leader's job is killed without need. With those of [`once`] a key's job runs again, with those of [`schedule`] a window's runs
//! again or not at all, and with those of [`overlap`] a third job runs, or two run for too long.

use crate::mutant::Notice::{Chaos, Model, Scenarios};
use crate::mutant::{Edit, Mutant, edit, edit_in};

mod behaviour;
mod guard_watch;
mod late_guard;
mod law;
mod library;
mod once;
mod overlap;
mod roles;
mod schedule;
mod stalls;

/// All mutants.
pub(crate) fn mutants() -> impl Iterator<Item = &'static Mutant> {
    let keyed = once::MUTANTS.iter().chain(schedule::MUTANTS);
    let of_claims = overlap::MUTANTS.iter().chain(roles::MUTANTS);
    MUTANTS
        .iter()
        .chain(late_guard::MUTANTS)
        .chain(behaviour::MUTANTS)
        .chain(guard_watch::MUTANTS)
        .chain(law::MUTANTS)
        .chain(library::MUTANTS)
        .chain(stalls::MUTANTS)
        .chain(keyed)
        .chain(of_claims)
}

/// The supervisor believes that a job is gone, and so does not order the guard to kill it.
const GUARD_GETS_NO_END: Edit = edit("self.order(Order::Over { term });", "let _ = term;");

/// A minute of chaos shows only some of the program's mutants. For the others the model is the proof: most need a history that is truncated
/// at the right moment, or that is longer than a reading. If a supervisor wrongly believes that a job is gone, the guard kills the job as
/// soon as it gets the order about the release, or the supervisor ends.
const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "AcknowledgedClaimTaken",
        breaks: "R3: a claim counts as effective when its delivery is acknowledged",
        edits: &[edit(
            "if let State::Releasing(releasing) = &self.state && releasing.seq == seq { self.release_is_over(now, true); }",
            "if let State::Claiming { .. } = self.state {
                let (own, at) = (self.election.hello.member.clone(), self.election.listener.last() + 1);
                let body = Body::Claim { after: at - 1, lease_ms: 0, overlap: None };
                let record = Record { member: Some(own.clone()), name: None, seq: Some(seq), body };
                let claim = OwnClaim::read_back(&own, at, &record, Verdict::Effective);
                claim.into_iter().for_each(|claim| self.own_claim_effective(now, claim));
            } else if let State::Releasing(releasing) = &self.state
                && releasing.seq == seq
            {
                self.release_is_over(now, true);
            }",
        )],
        noticed_by: &[Model("two_starts_at_once"), Chaos(&["kill-supervisor", "term"])],
    },
    Mutant {
        name: "ClaimAheadOfReading",
        breaks: "R2: a claim states that everything up to the log's end was judged, even what was not read",
        edits: &[edit("self.journal.last()", "self.log.known_end.1 - 1")],
        noticed_by: &[Model("a_reader_that_lags")],
    },
    Mutant {
        name: "EchoByKind",
        breaks: "R3: any record of the same kind by this member counts as the echo, with any `seq`",
        edits: &[
            edit("= self.state && ‹claim.seq == Some(seq)›", "true"),
            edit("State::Claiming { seq: own, .. } if ‹seq == Some(own)›", "true"),
            edit(
                "self.in_flight.iter().position(|(sent, _)| Some(*sent) == seq)",
                "self.in_flight.len().checked_sub(1)",
            ),
        ],
        noticed_by: &[Model("a_beat_that_is_lost"), Chaos(&["fade", "resign"])],
    },
    Mutant {
        name: "EmptinessUnderSizeRetention",
        breaks: "Vacant: an empty log counts as a vacancy even if size retention may have deleted a leader's records",
        edits: &[edit("self.cut_is_harmless = ‹cut_is_harmless›;", "true")],
        noticed_by: &[Model("a_head_cut_by_size")],
    },
    Mutant {
        name: "FenceTakenForDone",
        breaks: "R6: a fence is over for the candidate before the guard has answered that no process is left",
        edits: &[
            edit(
                "if changes && state == WantedState::Kill { ‹self.lose(now);› }",
                "{
                self.lose(now);
                self.handle_answer(now, crate::guard::Answer::Gone);
            }",
            ),
            GUARD_GETS_NO_END,
        ],
        noticed_by: &[Model("a_guard_that_is_late")],
    },
    Mutant {
        name: "FurtherBackCountsFromTheStart",
        breaks: "R1: a record that only a reading from further back shows to be effective counts as received when listening began",
        edits: &[edit("self.heard.last_effective = self.heard.last_record;", "")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "GuardForgetsElsewhere",
        breaks: "R6: a process of the job whose parent is no process of the job does not count as left",
        edits: &[edit("if ‹is_elsewhere()› {", "false")],
        noticed_by: &[Model("a_daemon_that_is_elsewhere"), Scenarios],
    },
    Mutant {
        name: "GuardForgetsTree",
        breaks: "R6: the guard takes the end of the main process for the end of the whole tree",
        edits: &[
            edit("match ‹remains› {", "if run.has_main() { remains } else { Remains::seen(false, || false) }"),
            edit("actions.extend(before.into_iter().chain([Action::Kill(‹methods›)]).chain(after));", "&[]"),
            edit("actions.extend(killing.map(|killing| Action::Kill(killing.round(now))));", ""),
        ],
        noticed_by: &[Model("a_daemon_that_is_left"), Chaos(&["kill-job", "kill-supervisor", "term"])],
    },
    Mutant {
        name: "GuardIgnoresDeadline",
        breaks: "R4: the guard ignores its deadline: it starts jobs after it, and does not kill at it",
        edits: &[edit(
            "fn deadline(&self) -> Option<Time> { ‹self.tenure.and_then(|tenure| tenure.deadline())› }",
            "None",
        )],
        noticed_by: &[Model("sleepers"), Chaos(&["stop-supervisor"])],
    },
    Mutant {
        name: "GuardReleasesFirst",
        breaks: "R6: a guard whose supervisor has died releases the term before it has killed the job",
        edits: &[
            edit("self.supervisor = SupervisorLife::Closed; ‹self.lose_supervisor(now);›", ""),
            edit(
                "if before == SupervisorLife::Open { self.lose_supervisor(now); }",
                "if let Some(grant) = self.tenure.and_then(|tenure| tenure.unreleased()) {
                    self.is_over = true;
                    self.actions.push_back(Action::Release { grant, late: None });
                } else if before == SupervisorLife::Open {
                    self.lose_supervisor(now);
                }",
            ),
        ],
        noticed_by: &[Model("deaths"), Chaos(&["kill-supervisor"])],
    },
    Mutant {
        name: "GuardReleasesUnread",
        breaks: "R6: the guard releases for a dead supervisor before it has read all orders of that supervisor",
        edits: &[edit("SupervisorLife::Open => ‹SupervisorLife::DeadUnread›,", "SupervisorLife::Dead")],
        noticed_by: &[Model("orders_of_the_dead")],
    },
    Mutant {
        name: "JudgementNotAwaited",
        breaks: "R0: a candidate claims before the topic was judged as suitable",
        edits: &[edit("self.next_claim.lacks_guard || ‹!self.is_judged›", "false")],
        noticed_by: &[Model("a_topic_that_is_judged_late")],
    },
    Mutant {
        name: "LateClaimTaken",
        breaks: "R3: a claim that is read a lease after it was sent starts a lead, with a lease from the time of reading",
        edits: &[edit(
            "let is_late = ‹now >= election.claim_expires_at(sent)› ||",
            "{ if now >= election.claim_expires_at(sent) { return self.become_leader(now, claim, now); } false }",
        )],
        noticed_by: &[Model("a_claim_that_comes_back_late")],
    },
    Mutant {
        name: "LateReleaseSeesAll",
        breaks: "R6, L4: a release that is void, since another candidate has claimed, says that its term was current behind that claim",
        edits: &[edit("self.end.void_seen.unwrap_or(election.listener.last())", "election.listener.last()")],
        noticed_by: &[Model("a_late_end_of_a_superseded_leader"), Scenarios],
    },
    Mutant {
        name: "LeaseFromReceipt",
        breaks: "R3: the lease runs from the receipt of the echo",
        edits: &[
            edit_in("claim_took_effect", "self.become_leader(now, claim, ‹sent›)", "now"),
            edit("self.in_flight.remove(index)", "self.in_flight.remove(index).map(|(seq, _)| (seq, now))"),
        ],
        noticed_by: &[Model("a_beat_that_is_lost"), Chaos(&["fade", "resign"])],
    },
    Mutant {
        name: "LeaseWithoutIdentity",
        breaks: "R3: a lease is extended without a confirmation that the topic is still the one in which it was claimed",
        edits: &[edit("election.topic.is_confirmed_since(now - election.timings.lease)", "true")],
        noticed_by: &[Model("a_remade_topic_whose_id_no_broker_tells")],
    },
    Mutant {
        name: "MainEndTakenForAll",
        breaks: "R6: the end of the main process counts as the end of the whole tree",
        edits: &[
            edit(
                "self.job = Job::Stopping { why: Why::Exited, main: None, kill_at: Some(kill_at) }; \
                 ‹self.ask_rest(now, if foreground { REST_ENDS_WITHIN } else { Duration::ZERO });›",
                "return self.handle_answer(now, crate::guard::Answer::Gone);",
            ),
            GUARD_GETS_NO_END,
        ],
        noticed_by: &[Model("a_daemon_that_is_left")],
    },
    Mutant {
        name: "OrphansTakenForGone",
        breaks: "R6: a supervisor that inherits the job of a dead guard reports it as gone while its processes are alive",
        edits: &[edit("let is_any_left = ‹self.kill_remaining_processes(role, &mut orphans)›;", "false")],
        noticed_by: &[Chaos(&["kill-guard", "term"])],
    },
    Mutant {
        name: "OwnLeaseOfSilence",
        breaks: "R2: silence is measured with the candidate's own lease, not with the leader's",
        edits: &[edit_in(
            "claim_due",
            "self.listener.claim_window()?",
            "{
                let mut opening = self.listener.claim_window()?;
                if let View::Led(term) = self.listener.journal().view() {
                    opening.since = opening.since - term.lease.saturating_sub(self.timings.lease);
                }
                opening
            }",
        )],
        noticed_by: &[Model("a_leader_with_a_longer_lease"), Chaos(&["cut", "stop-supervisor", "term"])],
    },
    Mutant {
        name: "ReleaseOfAnEndedTerm",
        breaks: "R6: a release is written for a term that is no longer current at its `seen`",
        edits: &[edit("if ‹is_current› {", "true")],
        noticed_by: &[Model("a_leader_that_was_superseded")],
    },
    Mutant {
        name: "RestartAfterRelease",
        breaks: "R6: a stop between two runs releases the term, but the next run is still started",
        edits: &[
            edit(
                "Job::Held { .. } | Job::Restarting { .. } => ‹self.end_term(reason)›,",
                "self.over = Some((reason, None))",
            ),
            edit("= ‹(&self.job, self.over)› else", "(&Job::None, self.over)"),
            // Without a term nothing may run, which would end the job as well.
            edit_in("set_wanted", "else if ‹self.job_may_be_alive()› {", "false"),
        ],
        noticed_by: &[Model("a_stop_between_two_runs"), Model("a_stop_before_the_first_run")],
    },
    Mutant {
        name: "SilenceFromBeforeListening",
        breaks: "R2: the time before a start counts as silence, and records that are read at a start count as received long ago",
        edits: &[edit("self.heard = Heard::nothing_since(‹now›);", "Time::ZERO")],
        noticed_by: &[Model("a_start_beside_a_leader"), Chaos(&["kill-supervisor", "stop-supervisor", "term"])],
    },
    Mutant {
        name: "SilenceNotAwaited",
        breaks: "R2: a candidate claims while it reads the beats of a leader",
        edits: &[edit("self.heard.last_effective + ‹silence(term.lease)›", "Duration::ZERO")],
        noticed_by: &[Model("a_start_beside_a_leader"), Chaos(&["kill-supervisor", "term"])],
    },
    Mutant {
        name: "SilenceWithoutIdentity",
        breaks: "R2: a candidate claims after a silence without a later confirmation that the topic is still the one that was read",
        edits: &[edit("is_some_and(|from| ‹!self.topic.is_confirmed_since(from)›)", "false")],
        noticed_by: &[Model("a_standby_that_missed_a_remake")],
    },
    Mutant {
        name: "StopBehindSpawnTakenForDone",
        breaks: "R6: a job that is stopped before the guard has answered that it runs counts as gone, and the term is released; the \
                 guard still starts the job",
        edits: &[
            edit(
                "self.begin_to_stop(now, reason, None, timeout)",
                "{
                    self.job = Job::Stopping { why: reason, main: None, kill_at: None };
                    self.handle_answer(now, crate::guard::Answer::Gone);
                }",
            ),
            GUARD_GETS_NO_END,
        ],
        noticed_by: &[Model("a_stop_behind_the_spawn")],
    },
    Mutant {
        name: "StopTakenForDone",
        breaks: "R6: a job counts as gone as soon as it is asked to stop, and the term is released",
        edits: &[
            edit(
                "self.begin_to_stop(now, reason, Some(main), timeout);",
                "self.order_stop_by(now + timeout);
                self.job = Job::Stopping { why: reason, main: Some(main), kill_at: None };
                self.handle_answer(now, crate::guard::Answer::Gone);",
            ),
            edit("self.actions.push_back(Action::Order(Order::Released { term }));", ""),
            GUARD_GETS_NO_END,
        ],
        noticed_by: &[Model("a_stop_behind_the_spawn"), Model("an_unhealthy_job"), Chaos(&["resign", "term"])],
    },
    Mutant {
        name: "UndecidedForgetsLeases",
        breaks: "R2: in an undecided view, the candidate does not wait for the leases that it has read",
        edits: &[edit("longest_allowed.max(longest_known)", "longest_allowed")],
        noticed_by: &[Model("a_late_beat_in_an_undecided_view")],
    },
    Mutant {
        name: "UnreadSkipped",
        breaks: "R1: a reading that starts further back skips the records that were appended meanwhile, and later counts them as \
                 received long ago",
        edits: &[edit("start.max(‹(end - self.reading.span).min(self.frontier)›)", "end - self.reading.span")],
        noticed_by: &[Scenarios],
    },
    Mutant {
        name: "UndecidedHurries",
        breaks: "R2: in an undecided view, the candidate does not wait for the longest lease that is allowed",
        edits: &[edit("longest_allowed.max(longest_known)", "longest_known")],
        noticed_by: &[Model("a_head_cut_by_size")],
    },
];
