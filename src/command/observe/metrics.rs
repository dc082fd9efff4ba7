//! `/metrics`: all elections in Prometheus' text format (0.0.4).

use std::fmt::Write;
use std::time::Duration;

use neli_proto::fact::Outcome;
use neli_proto::leadership::{Leadership, ReadAt};

use super::state::{Shown, State};
use crate::command::list::Rank;
use crate::http::{flag, label, number, seconds};

/// The most elections that have metrics: each has up to thirteen lines, and one for each reason why a term has ended.
const MOST: usize = 10_000;

/// A metric of an election: name, kind, help text, and its lines, each with its other label and its value.
struct OfElection {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    lines: fn(&Shown<'_>) -> Vec<(String, f64)>,
}

const OF_ELECTIONS: [OfElection; 11] = [
    OfElection {
        name: "neli_election_led",
        kind: "gauge",
        help: "Whether a candidate leads, as far as this process knows: 1 or 0. 0 if the leader has missed three heartbeats.",
        lines: |shown| one(flag(shown.current.is_led())),
    },
    OfElection {
        name: "neli_election_done",
        kind: "gauge",
        help: "Whether nobody has to lead: its key or window is done, its job has succeeded, or it was ended: 1 or 0.",
        lines: |shown| one(flag(shown.rank() == Rank::Done)),
    },
    OfElection {
        name: "neli_election_leader_info",
        kind: "gauge",
        help: "Who leads: always 1. Missing without a leader.",
        lines: |shown| {
            let leader = shown.current.leader().filter(|_| shown.current.is_led());
            leader.map(|leader| (with("leader", leader.shown()), 1.0)).into_iter().collect()
        },
    },
    OfElection {
        name: "neli_election_silent_seconds",
        kind: "gauge",
        help: "Time since the last record of a leader that has missed three heartbeats; else 0. Missing while that is unknown.",
        lines: |shown| match shown.current {
            Leadership::Unknown(_) => Vec::new(),
            Leadership::Overdue { age, .. } | Leadership::Silent { age, .. } => one(age.as_secs_f64()),
            Leadership::Forgotten | Leadership::Led { .. } | Leadership::NeverLed | Leadership::Released { .. } => {
                one(0.0)
            }
        },
    },
    OfElection {
        name: "neli_election_without_leader_seconds_total",
        kind: "counter",
        help: "Time in which nobody led, as this process has seen it since it began. What is unknown does not count.",
        lines: |shown| one(shown.notes.map_or(Duration::ZERO, |notes| notes.unled).as_secs_f64()),
    },
    OfElection {
        name: "neli_election_terms_total",
        kind: "counter",
        help: "Terms that have begun since this process began, by why the term before ended.",
        lines: |shown| {
            let terms = shown.notes.iter().flat_map(|notes| &notes.terms);
            terms.map(|(why, count)| (with("why", why), number(*count))).collect()
        },
    },
    OfElection {
        name: "neli_election_standbys",
        kind: "gauge",
        help: "Number of candidates that stand by, by their hellos of the last 75 s.",
        lines: |shown| one(number(shown.found.observer().standbys(shown.at).len() as u64)),
    },
    OfElection {
        name: "neli_election_lease_seconds",
        kind: "gauge",
        help: "The leader's lease. Missing without a leader.",
        lines: |shown| shown.current.leader().map_or_else(Vec::new, |leader| one(leader.lease.as_secs_f64())),
    },
    OfElection {
        name: "neli_election_last_success_timestamp_seconds",
        kind: "gauge",
        help: "When the last success of --once, --window or --schedule was recorded, by the clock of its machine.",
        lines: |shown| {
            let success = shown.run.and_then(|run| run.runs.account.success.as_ref()?.at_ms);
            success.map_or_else(Vec::new, |ms| one(seconds(ms)))
        },
    },
    OfElection {
        name: "neli_election_last_outcome",
        kind: "gauge",
        help: "The outcome of the last recorded run: always 1.",
        lines: |shown| {
            let outcome = shown.run.map(|run| outcome(run.fact.outcome));
            outcome.map(|outcome| (with("outcome", outcome), 1.0)).into_iter().collect()
        },
    },
    OfElection {
        name: "neli_election_next_window_timestamp_seconds",
        kind: "gauge",
        help: "When the next window begins.",
        lines: |shown| {
            let next = shown.run.and_then(|run| run.next_windows(shown.at.wall_ms).first().copied());
            next.map_or_else(Vec::new, |ms| one(seconds(ms)))
        },
    },
];

/// All metrics.
pub(super) fn render(state: &State, at: ReadAt) -> String {
    let mut text = String::new();
    // What was given up has nothing to be alerted of.
    let all: Vec<Shown<'_>> = state.elections(at).filter(|shown| shown.rank() != Rank::Dead).collect();
    let shown = &all[..all.len().min(MOST)];
    let of_process = [
        ("neli_observe_broker_up", "1 if Kafka answers, else 0.", flag(state.topics.outage().is_none())),
        ("neli_observe_topics", "Number of topics that are read.", number(state.topics.topics().count() as u64)),
        ("neli_observe_topics_unread", "Number of topics that can't be read.", number(state.unread().count() as u64)),
        (
            "neli_observe_elections",
            "Number of elections of which something was written within a week.",
            number(all.len() as u64),
        ),
        (
            "neli_observe_elections_left_out",
            "Elections without metrics, since there are more than 10000.",
            number((all.len() - shown.len()) as u64),
        ),
    ];
    for (name, help, value) in of_process {
        // Writing to a String can't fail.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}");
    }
    let labels: Vec<String> = shown
        .iter()
        .map(|shown| {
            let place = shown.found.place();
            format!(
                "topic=\"{}\",group=\"{}\",role=\"{}\"",
                label(shown.topic),
                label(&place.group),
                label(&place.role)
            )
        })
        .collect();
    for OfElection { name, kind, help, lines } in OF_ELECTIONS {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (shown, labels) in shown.iter().zip(&labels) {
            for (more, value) in lines(shown) {
                let _ = writeln!(text, "{name}{{{labels}{more}}} {value}");
            }
        }
    }
    text
}

fn one(value: f64) -> Vec<(String, f64)> {
    vec![(String::new(), value)]
}

fn with(name: &str, value: &str) -> String {
    format!(",{name}=\"{}\"", label(value))
}

const fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Done => "done",
        Outcome::Failed => "failed",
        Outcome::Forgotten => "forgotten",
        Outcome::Running => "running",
        Outcome::Skipped => "skipped",
    }
}
