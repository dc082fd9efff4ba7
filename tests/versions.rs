//! The main flows of the end-to-end tests with each Kafka in the table of docs/operating.md. A maintainer runs them at each release:
//! `cargo test --test versions -- --ignored`. One version alone: `cargo test --test versions -- --ignored kafka_3_9`.

#![expect(clippy::expect_used, reason = "a test fails by a panic")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use harness::install::VERSION;

const FLOWS: [&str; 38] = [
    // The first lead, and who stands by.
    "handover::one_leads_of_three::group",
    "handover::one_leads_of_three::log",
    "handover::with_patience_never_the_group_alone_decides",
    "status::a_leader_and_a_standby_are_shown",
    "watch::reports_changes_as_they_happen_until_its_reader_closes",
    "history::each_term_is_shown_with_its_end_and_the_gap_to_the_next",
    "list::the_elections_of_a_topic_and_those_of_all",
    // Handover.
    "handover::term_hands_over::group",
    "handover::term_hands_over::log",
    "handover::a_job_that_ends_hands_over::group",
    "handover::a_job_that_ends_hands_over::log",
    "resign::a_leader_that_is_asked_hands_over::group",
    "resign::a_leader_that_is_asked_hands_over::log",
    // kill -9 of the program, and of all processes of a machine.
    "death::the_guard_of_a_dead_supervisor_kills_the_tree_and_releases_the_term::group",
    "death::the_guard_of_a_dead_supervisor_kills_the_tree_and_releases_the_term::log",
    "death::after_the_death_of_a_whole_machine_another_leads_after_the_silence::group",
    "death::after_the_death_of_a_whole_machine_another_leads_after_the_silence::log",
    // Roles.
    "roles::each_role_is_led_by_one::group",
    "roles::each_role_is_led_by_one::log",
    "roles::the_roles_of_a_killed_supervisor_are_released::group",
    "roles::the_roles_of_a_killed_supervisor_are_released::log",
    // Once, windows, schedules.
    "once::three_starts_run_once",
    "once::a_runner_that_is_gone_has_not_done_it",
    "window::the_job_learns_its_window",
    "schedule::one_of_them_runs_the_job_at_each_time",
    // The group refuses a candidate.
    "group::a_group_of_another_program_stops_no_job",
    "group::processes_that_the_group_does_not_take_share_their_roles",
    "group::a_session_that_the_broker_does_not_take_stops_no_job",
    "group::a_full_group_is_reported_once_with_its_name",
    // Rights, doctor, and what the topic must be.
    "rights::the_rights_that_the_manual_lists_are_enough::group",
    "rights::the_rights_that_the_manual_lists_are_enough::log",
    "rights::a_right_that_is_revoked_from_a_leader_ends_its_lead_before_its_lease",
    "doctor::every_missing_right_is_reported_with_the_command_that_grants_it",
    "doctor::doctor_does_not_create_a_missing_topic",
    "doctor::every_setting_of_a_topic_is_judged_at_once",
    "doctor::beside_a_leader_nothing_fails_and_its_heartbeat_shows_the_brokers_clock",
    "remade::a_topic_that_is_made_again_has_another_id",
    "remade::a_leader_whose_topic_is_made_again_loses_its_lead",
];

/// With a group of the consumer protocol (KIP-848), which a broker has since 4.0 by default.
const WITH_THE_CONSUMER_PROTOCOL: &str = "group::a_group_with_the_consumer_protocol_stops_no_job";

/// Runs the flows with this version, while no other version's are run: a machine has processors for one broker.
fn run_flows(version: &str) {
    static RUNNING: Mutex<()> = Mutex::new(());
    let _alone = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    let of_group = version.starts_with("4.").then_some(WITH_THE_CONSUMER_PROTOCOL);
    let flows: Vec<&str> = FLOWS.into_iter().chain(of_group).collect();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--locked", "--test", "e2e", "--", "--exact", "--test-threads=2"]).args(&flows);
    let run = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).env(VERSION, version).output().expect("cargo runs");
    let (text, errors) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    let has_passed = |flow: &str| text.lines().any(|line| line == format!("test {flow} ... ok"));
    let failed: Vec<&str> = flows.into_iter().filter(|flow| !has_passed(flow)).collect();
    assert!(run.status.success() && failed.is_empty(), "Kafka {version}: {failed:#?}\n{text}\n{errors}");
}

/// A test for each version.
macro_rules! versions {
    ($($name:ident: $version:literal),+) => {
        $(
            #[test]
            #[ignore = "fetches a Kafka and runs for minutes"]
            fn $name() {
                run_flows($version);
            }
        )+

        #[test]
        fn the_table_names_each_version() {
            let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operating.md"));
            let page = page.expect("a page");
            for version in [$($version),+] {
                assert!(page.contains(&format!("| {version} |")), "{version}");
            }
        }
    };
}

versions! {
    kafka_2_8: "2.8.2",
    kafka_3_3: "3.3.2",
    kafka_3_9: "3.9.1",
    kafka_4_1: "4.1.1",
    kafka_4_4: "4.4.0"
}
