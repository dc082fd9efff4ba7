//! An exhaustive search for two jobs at the same time, over the protocol itself.
//!
//! A node (candidate, supervisor, health and hooks) and its guard are the real objects. The job, Kafka, the clocks and all faults are
//! modelled, and rules of the model can be broken (`flaws.rs`). A [search](search::search) visits every state of a small world in
//! breadth-first order. With a broken rule it must find a trace to two jobs. With the right rules there must be none, and no other breach:
//! a release while the job is alive, a fencing token that decreases, or a timeout that stays due. `tests/mutants` shows that the search
//! also finds two jobs if a rule of the real objects is broken, in a copy of the sources.
//!
//! `cargo test --test journal_model -- --nocapture` prints the number of states; with `STORIES=1` also the trace to each breach, one line
//! per step. `--ignored` searches the larger worlds, at most a minute each.
//!
//! Not modelled are clocks with different rates (assumption 2), and old records that are read again by a reader that forgets a lease (in
//! the model no machine leads or claims while it reads again, and a second reading is complete). The search does not check whether there is
//! ever a leader.

mod fingerprint;
mod flaws;
mod guard;
mod kafka;
mod machine;
#[path = "../records/mod.rs"]
mod records;
mod search;
mod setup;
mod step;
mod trees;
mod walk;
mod world;

mod worlds;

use std::time::Instant;

use flaws::WorldFlaw;
use search::{Found, search};
use setup::Setup;

/// Searches one world with each of its wrong rules, which must be noticed, and with the right ones.
fn look_into(setup: fn() -> Setup, wrong: &[WorldFlaw]) {
    for rule in wrong {
        let found = timed(setup, Some(*rule));
        assert!(found.trace.is_some(), "{rule:?} was not caught");
    }
    let found = timed(setup, None);
    if let Some(trace) = found.trace {
        panic!("{}: {:?} after {} steps\n{}", setup().name, trace.breach, trace.steps, trace.text);
    }
}

#[expect(clippy::print_stdout, reason = "for people: what was searched, and for how long")]
fn timed(setup: fn() -> Setup, rule: Option<WorldFlaw>) -> Found {
    #[expect(clippy::disallowed_methods, reason = "how long a search takes is for people")]
    let begun = Instant::now();
    let found = search(setup(), rule);
    let name = setup().name;
    let rule = rule.map_or_else(|| "the right rules".to_owned(), |rule| format!("{rule:?}"));
    let (states, depth, took) = (found.states, found.depth, begun.elapsed().as_secs_f64());
    match &found.trace {
        Some(trace) => println!("{name}: {rule}: caught in {} steps, {states} states, {took:.2} s", trace.steps),
        None => println!("{name}: {rule}: {states} states, {depth} deep, {took:.2} s"),
    }
    if let Some(trace) = &found.trace
        && std::env::var_os("STORIES").is_some()
    {
        println!("{}", trace.text);
    }
    found
}

#[test]
fn a_start_beside_a_leader() {
    look_into(worlds::a_start_beside_a_leader, &[]);
}

#[test]
fn two_starts_at_once() {
    look_into(worlds::two_starts_at_once, &[]);
}

#[test]
fn a_leader_with_a_longer_lease() {
    look_into(worlds::a_leader_with_a_longer_lease, &[]);
}

#[test]
fn a_beat_that_is_lost() {
    look_into(worlds::a_beat_that_is_lost, &[]);
}

#[test]
fn a_topic_that_is_judged_late() {
    look_into(worlds::a_topic_that_is_judged_late, &[]);
}

#[test]
fn a_claim_that_comes_back_late() {
    look_into(worlds::a_claim_that_comes_back_late, &[]);
}

#[test]
fn a_reader_that_lags() {
    look_into(worlds::a_reader_that_lags, &[]);
}

#[test]
fn a_head_cut_by_size() {
    look_into(worlds::a_head_cut_by_size, &[]);
}

#[test]
fn a_late_beat_in_an_undecided_view() {
    look_into(worlds::a_late_beat_in_an_undecided_view, &[]);
}

#[test]
fn a_start_in_the_middle() {
    look_into(worlds::a_start_in_the_middle, &[]);
}

#[test]
fn a_marker_before_the_judgement() {
    look_into(worlds::a_marker_before_the_judgement, &[]);
}

#[test]
fn a_late_beat_at_the_end() {
    look_into(worlds::a_late_beat_at_the_end, &[]);
}

#[test]
fn a_claim_that_cannot_be_judged() {
    look_into(worlds::a_claim_that_cannot_be_judged, &[]);
}

#[test]
fn a_deleted_claim() {
    look_into(worlds::a_deleted_claim, &[]);
}

#[test]
fn a_claim_that_is_compacted() {
    look_into(worlds::a_claim_that_is_compacted, &[]);
}

#[test]
fn a_deleted_claim_and_a_late_beat() {
    look_into(worlds::a_deleted_claim_and_a_late_beat, &[]);
}

#[test]
fn a_leader_that_was_superseded() {
    look_into(worlds::a_leader_that_was_superseded, &[]);
}

#[test]
fn a_daemon_that_is_left() {
    look_into(worlds::a_daemon_that_is_left, &[]);
}

#[test]
fn a_daemon_that_is_elsewhere() {
    look_into(worlds::a_daemon_that_is_elsewhere, &[WorldFlaw::ElsewhereForgotten]);
}

#[test]
fn a_command_beside_the_job() {
    look_into(worlds::a_command_beside_the_job, &[WorldFlaw::CommandForgotten]);
}

#[test]
fn deaths() {
    look_into(worlds::deaths, &[WorldFlaw::ReleaseAtGuardsEnd]);
}

#[test]
fn orders_of_the_dead() {
    look_into(worlds::orders_of_the_dead, &[]);
}

#[test]
fn a_stop_behind_the_spawn() {
    look_into(worlds::a_stop_behind_the_spawn, &[]);
}

#[test]
fn an_unhealthy_job() {
    look_into(worlds::an_unhealthy_job, &[]);
}

#[test]
fn a_suspension() {
    look_into(worlds::a_suspension, &[]);
}

#[test]
fn a_stop_between_two_runs() {
    look_into(worlds::a_stop_between_two_runs, &[]);
}

#[test]
fn an_answer_about_the_run_before() {
    look_into(worlds::an_answer_about_the_run_before, &[]);
}

#[test]
fn a_stop_before_the_first_run() {
    look_into(worlds::a_stop_before_the_first_run, &[]);
}

#[test]
fn a_restart_that_is_held_up() {
    look_into(worlds::a_restart_that_is_held_up, &[WorldFlaw::SupervisorSpawns]);
}

#[test]
fn sleepers() {
    look_into(worlds::sleepers, &[WorldFlaw::BothAsleep, WorldFlaw::GuardUnwatched]);
}

#[test]
fn a_start_that_is_held_up() {
    look_into(worlds::a_start_that_is_held_up, &[WorldFlaw::SupervisorSpawns]);
}

#[test]
fn a_guard_that_is_late() {
    look_into(worlds::a_guard_that_is_late, &[]);
}

#[test]
fn a_resign_for_one_that_is_stopped() {
    look_into(worlds::a_resign_for_one_that_is_stopped, &[]);
}

#[test]
fn a_resign_for_the_leader_itself() {
    look_into(worlds::a_resign_for_the_leader_itself, &[]);
}

#[test]
fn a_guard_that_is_started_late() {
    look_into(worlds::a_guard_that_is_started_late, &[]);
}

#[test]
fn an_end_before_the_guard_is_started() {
    look_into(worlds::an_end_before_the_guard_is_started, &[]);
}

#[test]
fn a_release_for_a_superseded_leader() {
    look_into(worlds::a_release_for_a_superseded_leader, &[WorldFlaw::GuardSeesTooMuch]);
}

#[test]
fn a_late_end_of_a_superseded_leader() {
    look_into(worlds::a_late_end_of_a_superseded_leader, &[]);
}

#[test]
fn a_broker_that_dies() {
    let flaws = [WorldFlaw::NewBrokerForgetsGuards, WorldFlaw::NewBrokerWaitsForNobody];
    look_into(worlds::a_broker_that_dies, &flaws);
}

#[test]
fn a_topic_that_is_remade() {
    look_into(worlds::a_topic_that_is_remade, &[]);
}

#[test]
fn a_topic_that_is_remade_after_a_fence() {
    look_into(worlds::a_topic_that_is_remade_after_a_fence, &[]);
}

#[test]
fn a_remade_topic_whose_id_no_broker_tells() {
    look_into(worlds::a_remade_topic_whose_id_no_broker_tells, &[]);
}

#[test]
fn a_standby_that_missed_a_remake() {
    look_into(worlds::a_standby_that_missed_a_remake, &[]);
}

#[test]
fn a_young_record_deleted() {
    look_into(worlds::a_young_record_deleted, &[WorldFlaw::YoungRecordsDeleted]);
}

#[test]
fn a_key_that_is_done() {
    look_into(worlds::a_key_that_is_done, &[]);
}

#[test]
fn a_key_that_is_forgotten() {
    look_into(worlds::a_key_that_is_forgotten, &[]);
}

#[test]
fn a_key_that_is_forgotten_before_its_journal_is_remade() {
    look_into(worlds::a_key_that_is_forgotten_before_its_journal_is_remade, &[]);
}

#[test]
fn a_runner_that_is_stopped() {
    look_into(worlds::a_runner_that_is_stopped, &[]);
}

#[test]
fn a_schedule_whose_leader_dies() {
    look_into(worlds::a_schedule_whose_leader_dies, &[]);
}

#[test]
fn a_window_that_is_over() {
    look_into(worlds::a_window_that_is_over, &[]);
}

#[test]
fn a_schedule_that_catches_nothing_up() {
    look_into(worlds::a_schedule_that_catches_nothing_up, &[]);
}

#[test]
fn retries_of_two_machines() {
    look_into(worlds::retries_of_two_machines, &[]);
}

#[test]
fn a_runner_that_dies() {
    look_into(worlds::a_runner_that_dies, &[]);
}

#[test]
fn a_broker_without_the_last_fact() {
    look_into(worlds::a_broker_without_the_last_fact, &[]);
}

#[test]
fn a_broker_without_the_last_fact_of_a_schedule() {
    look_into(worlds::a_broker_without_the_last_fact_of_a_schedule, &[]);
}

#[test]
fn a_leader_that_yields() {
    look_into(worlds::a_leader_that_yields, &[]);
}

#[test]
fn a_death_beside_another_job() {
    look_into(worlds::a_death_beside_another_job, &[]);
}

#[test]
fn two_hand_overs_in_a_row() {
    look_into(worlds::two_hand_overs_in_a_row, &[]);
}

#[test]
fn a_vacancy_beside_an_overlapped_job() {
    look_into(worlds::a_vacancy_beside_an_overlapped_job, &[]);
}

#[test]
fn a_start_beside_two_jobs() {
    look_into(worlds::a_start_beside_two_jobs, &[]);
}

const LEASES: [[u64; 3]; 3] = [[300, 300, 300], [60_000, 60_000, 60_000], [300, 60_000, 1_200]];

fn walk_with_everything(setup: fn([u64; 3]) -> Setup, seeds: std::ops::Range<u64>) {
    flaws::break_only(None);
    for leases in LEASES {
        for seed in seeds.clone() {
            walk::walk(setup(leases), seed, 3_000);
        }
    }
}

#[test]
fn walks_with_everything_at_once() {
    walk_with_everything(worlds::everything, 0..200);
}

#[test]
fn walks_with_everything_and_overlap() {
    walk_with_everything(worlds::everything_with_overlap, 0..200);
}

#[test]
fn walks_with_everything_and_a_key() {
    walk_with_everything(worlds::everything_with_a_key, 0..100);
}

#[test]
fn walks_with_everything_and_late_guards() {
    walk_with_everything(worlds::everything_with_late_guards, 0..200);
}

#[test]
#[ignore = "larger: 27 million steps"]
fn many_walks_with_everything_at_once() {
    walk_with_everything(worlds::everything, 1_000..4_000);
}

#[test]
#[ignore = "larger: 0.9 million states, 5 s"]
fn two_candidates() {
    look_into(worlds::two_candidates, &[]);
}

#[test]
#[ignore = "larger: 2.9 million states, 15 s"]
fn three_candidates() {
    look_into(worlds::three_candidates, &[]);
}

#[test]
#[ignore = "larger: 0.7 million states, 4 s"]
fn a_reader_in_the_middle() {
    look_into(worlds::a_reader_in_the_middle, &[]);
}

#[test]
#[ignore = "larger: 5.3 million states, 45 s, 2.2 GB"]
fn guard_and_supervisor() {
    look_into(worlds::guard_and_supervisor, &[]);
}
