//! `/metrics`: all elections in Prometheus' text format (0.0.4).

use std::fmt::Write;
use std::time::Duration;

use neli_proto::fact::Outcome;
use neli_proto::leadership::ReadAt;

use super::state::{Shown, State};
use crate::command::facts::outcome;
use crate::command::list::Rank;
use crate::command::reading::unread;
use crate::http::{Exposition, Metric, counter, flag, gauge, label, number, seconds};

/// The most elections that have metrics: each has up to fourteen lines, and one for each reason why a term has ended.
const MOST: usize = 10_000;

/// The lines of an election, each with its other label and its value.
type OfElection = fn(&Shown<'_>) -> Vec<(String, f64)>;

const OF_ELECTIONS: [Metric<OfElection>; 13] = [
    gauge(
        "neli_election_led",
        "Whether a candidate leads, as far as this process knows: 1 or 0. 0 if the leader has missed three heartbeats. Missing while this user \
         may not read the topic.",
        |shown| if shown.read.trouble(None).is_some() { Vec::new() } else { one(flag(shown.current.is_led())) },
    ),
    gauge(
        "neli_election_done",
        "Whether nobody has to lead: its key or window is done, its job has succeeded, or it was ended: 1 or 0.",
        |shown| one(flag(shown.rank() == Rank::Done)),
    ),
    gauge("neli_election_leader_info", "Who leads: always 1. Missing without a leader.", |shown| {
        let leader = shown.current.leader().filter(|_| shown.current.is_led());
        leader.map(|leader| (with("leader", leader.shown()), 1.0)).into_iter().collect()
    }),
    gauge(
        "neli_election_silent_seconds",
        "Time since the last record of a leader that has missed three heartbeats; else 0. Missing while that is unknown.",
        |shown| {
            let silent = shown.current.silent_for().unwrap_or_default();
            if shown.current.is_unknown() { Vec::new() } else { one(silent.as_secs_f64()) }
        },
    ),
    counter(
        "neli_election_without_leader_seconds_total",
        "Time in which nobody led, as this process has seen it since it began. What is unknown does not count.",
        |shown| one(shown.notes.map_or(Duration::ZERO, |notes| notes.unled).as_secs_f64()),
    ),
    counter(
        "neli_election_terms_total",
        "Terms that have begun since this process began, by why the term before ended.",
        |shown| {
            let terms = shown.notes.iter().flat_map(|notes| &notes.terms);
            terms.map(|(why, count)| (with("why", why), number(*count))).collect()
        },
    ),
    gauge("neli_election_standbys", "Number of candidates that stand by, by their hellos of the last 75 s.", |shown| {
        one(number(shown.standbys.len() as u64))
    }),
    gauge("neli_election_lease_seconds", "The leader's lease. Missing without a leader.", |shown| {
        shown.current.may_lead().map_or_else(Vec::new, |leader| one(leader.lease.as_secs_f64()))
    }),
    gauge(
        "neli_election_last_success_timestamp_seconds",
        "When the last success of --once, --window or --schedule was recorded, by the clock of its machine.",
        |shown| {
            let success = shown.run.and_then(|run| run.account.success.as_ref()?.at_ms);
            success.map_or_else(Vec::new, |ms| one(seconds(ms)))
        },
    ),
    gauge("neli_election_last_outcome", "The outcome of the last recorded run: always 1.", |shown| {
        shown.run.map_or_else(Vec::new, |run| vec![(with("outcome", outcome(&run.fact, shown.current)), 1.0)])
    }),
    gauge(
        "neli_election_last_run_failed",
        "1 if the last recorded run that has ended by itself has failed, else 0.",
        |shown| {
            let last = shown.run.and_then(|run| run.account.last.as_ref());
            last.map_or_else(Vec::new, |run| one(flag(run.outcome == Outcome::Failed)))
        },
    ),
    gauge("neli_election_scheduled", "Whether the last recorded run was one of --schedule: 1 or 0.", |shown| {
        shown.run.map_or_else(Vec::new, |run| one(flag(run.account.schedule.is_some())))
    }),
    gauge("neli_election_next_window_timestamp_seconds", "When the next window begins.", |shown| {
        let next = shown.run.and_then(|run| run.next_windows(shown.at.wall_ms).first().copied());
        next.map_or_else(Vec::new, |ms| one(seconds(ms)))
    }),
];

impl State {
    /// `/metrics`.
    pub fn metrics(&self, at: ReadAt) -> String {
        let mut page = Exposition::default();
        // What was given up has nothing to be alerted of.
        let mut all: Vec<Shown<'_>> = self.elections(at, None).filter(|shown| shown.rank() != Rank::Dead).collect();
        // A role that moves to another partition may have an election in each, with the same labels: that which is led counts, else the last.
        all.dedup_by(|next, known| {
            let (one, other) = (next.found.place(), known.found.place());
            let is_moved = (next.topic, &one.group, &one.role) == (known.topic, &other.group, &other.role);
            if is_moved && known.current.may_lead().is_none() {
                std::mem::swap(next, known);
            }
            is_moved
        });
        let shown = &all[..all.len().min(MOST)];
        let (left_out, count) = (all.len() - shown.len(), |count: usize| number(count as u64));
        let (topics, unread) = (self.topics.topics().count(), unread(&self.topics).count());
        let of_process = [
            gauge("neli_observe_broker_up", "1 if Kafka answers, else 0.", flag(self.topics.outage().is_none())),
            gauge("neli_observe_topics", "Number of topics that are read.", count(topics - unread)),
            gauge("neli_observe_topics_unread", "Number of topics that can't be read.", count(unread)),
            gauge(
                "neli_observe_elections",
                "Number of elections of which something was written within a week.",
                count(all.len()),
            ),
            gauge(
                "neli_observe_elections_left_out",
                "Elections without metrics, since there are more than 10000.",
                count(left_out),
            ),
        ];
        for (name, kind, help, value) in of_process {
            page.head(name, kind, help);
            // Writing to a String can't fail.
            let _ = writeln!(page.0, "{name} {value}");
        }
        let labels = |shown: &Shown<'_>| {
            let place = shown.found.place();
            [("topic", shown.topic), ("group", &*place.group), ("role", &*place.role)]
                .map(|(n, v)| label(n, v))
                .join(",")
        };
        let labels: Vec<String> = shown.iter().map(labels).collect();
        for (name, kind, help, value) in OF_ELECTIONS {
            page.head(name, kind, help);
            for (shown, labels) in shown.iter().zip(&labels) {
                for (more, value) in value(shown) {
                    page.line(name, format_args!("{labels}{more}"), value);
                }
            }
        }
        page.0
    }
}

fn one(value: f64) -> Vec<(String, f64)> {
    vec![(String::new(), value)]
}

fn with(name: &str, value: &str) -> String {
    format!(",{}", label(name, value))
}
