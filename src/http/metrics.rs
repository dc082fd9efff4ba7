//! `/metrics`: the snapshot in Prometheus' text format (0.0.4).

use std::fmt::{Display, Write};
use std::time::Duration;

use neli_proto::fact::Outcome;
use neli_proto::time::Time;

use super::snapshot::{BOUNDS_MS, Histogram, RESULTS, RoleSnapshot, Snapshot};
use crate::text::one_line;

/// A metric: its name, kind and help text, and how its value is found.
pub(crate) type Metric<V> = (&'static str, &'static str, &'static str, V);

pub(crate) const fn gauge<V: Copy>(name: &'static str, help: &'static str, value: V) -> Metric<V> {
    (name, "gauge", help, value)
}

pub(crate) const fn counter<V: Copy>(name: &'static str, help: &'static str, value: V) -> Metric<V> {
    (name, "counter", help, value)
}

/// The value when the metrics are asked for, by whether Kafka answers then. Without one the role has no line.
type OfRole = fn(&RoleSnapshot, Time, bool) -> Option<f64>;

const OF_ROLES: [Metric<OfRole>; 18] = [
    gauge(
        "neli_leader",
        "Whether this process leads: 1 or 0. 0 from the end of its lease on, also if the main loop hangs.",
        |role, now, _| Some(flag(role.leads(now))),
    ),
    gauge(
        "neli_led",
        "Whether a candidate leads, as far as this process knows: 1 or 0. 0 if the leader has missed three heartbeats.",
        |role, now, is_answered| Some(flag(role.status.is_led(now, is_answered))),
    ),
    gauge(
        "neli_term",
        "The term (the offset of its claim) of the leader, or of the last release. Missing if none is known.",
        |role, _, _| u64::try_from(role.status.term()?).ok().map(number),
    ),
    gauge(
        "neli_lease_remaining_seconds",
        "Time that is left of this process's own lease; 0 if it holds none.",
        |role, now, _| Some(role.lease_left(now).as_secs_f64()),
    ),
    gauge(
        "neli_heartbeat_age_seconds",
        "Time since this process read the last record of the leader, also if the leader has fallen silent. Missing without a leader.",
        |role, now, _| role.status.leader().map(|leader| now.since(leader.last_record.read).as_secs_f64()),
    ),
    gauge(
        "neli_standbys",
        "Number of candidates that stand by, this process among them, by their hellos of the last 75 s.",
        |role, now, _| Some(number(role.standbys(now))),
    ),
    gauge("neli_job_running", "1 if the job's main process runs here, else 0.", |role, _, _| {
        Some(flag(role.has_running_job()))
    }),
    counter(
        "neli_transitions_total",
        "Terms of any leader that have begun since this process began to listen.",
        |role, _, _| Some(number(role.status.counts.terms)),
    ),
    counter(
        "neli_void_claims_total",
        "Claims of any candidate that came too late, since this process began to listen.",
        |role, _, _| Some(number(role.status.counts.void_claims)),
    ),
    counter(
        "neli_fences_total",
        "Leads of this process that ended because the right to run was over: the job, if one ran, was stopped or killed for it.",
        |role, _, _| Some(number(role.tally.fences)),
    ),
    counter(
        "neli_restarts_total",
        "Runs of the job that followed another run in the same term (--restart).",
        |role, _, _| Some(number(role.tally.restarts)),
    ),
    counter(
        "neli_recorded_runs_total",
        "Runs of --once, --window or --schedule that have ended, as recorded by all processes. This and the next ones: of the leader.",
        |role, now, _| Some(number(role.known_runs(now)?.runs)),
    ),
    counter("neli_recorded_failures_total", "Those of them that have failed.", |role, now, _| {
        Some(number(role.known_runs(now)?.failures))
    }),
    gauge("neli_last_run_failed", "1 if the last recorded run has failed, else 0.", |role, now, _| {
        Some(flag(role.known_runs(now)?.last.as_ref()?.outcome == Outcome::Failed))
    }),
    gauge(
        "neli_last_run_exit_status",
        "The job's status in the last recorded run; 128 + n if signal n killed it.",
        |role, now, _| role.known_runs(now)?.last.as_ref()?.exit.map(f64::from),
    ),
    gauge(
        "neli_last_success_timestamp_seconds",
        "When the last success was recorded, by the clock of its machine.",
        |role, now, _| role.known_runs(now)?.success.as_ref()?.at_ms.map(seconds),
    ),
    gauge("neli_next_window_timestamp_seconds", "When the next window begins.", |role, now, _| {
        role.known_runs(now).and(role.next_window_ms).map(seconds)
    }),
    gauge("neli_success_due_timestamp_seconds", "When two windows have passed without a success.", |role, now, _| {
        role.known_runs(now).and(role.success_due_ms).map(seconds)
    }),
];

/// All metrics.
pub(super) fn render(snapshot: &Snapshot, now: Time) -> String {
    let Snapshot { about, kafka, .. } = snapshot;
    let (mut page, group) = (Exposition::default(), label("group", &about.group));
    let (version, elector) = (env!("CARGO_PKG_VERSION"), about.elector);
    let info = [("topic", &*about.topic), ("name", &about.name), ("version", version), ("elector", elector)];
    let info = info.map(|(name, value)| format!(",{}", label(name, value))).concat();
    let of_process = [
        gauge("neli_info", "What this process is: always 1.", (&*info, 1.0)),
        gauge(
            "neli_broker_up",
            "1 if Kafka answers and the journal was read once, else 0.",
            ("", flag(snapshot.is_up())),
        ),
        gauge(
            "neli_group_refused",
            "1 if the consumer group does not take this process, which then has no precedence (/status says why), else 0.",
            ("", flag(kafka.group.trouble().is_some())),
        ),
        gauge("neli_lease_seconds", "The lease (--lease).", ("", about.lease.as_secs_f64())),
    ];
    for (name, kind, help, (more, value)) in of_process {
        page.head(name, kind, help);
        page.line(name, format_args!("{group}{more}"), value);
    }
    let labels = |role: &RoleSnapshot| format!("{group},{}", label("role", &role.label));
    let roles: Vec<(String, &RoleSnapshot)> = snapshot.roles.iter().map(|role| (labels(role), &**role)).collect();
    for (name, kind, help, value) in OF_ROLES {
        page.head(name, kind, help);
        for (labels, role) in &roles {
            if let Some(value) = value(role, now, kafka.is_answered()) {
                page.line(name, labels, value);
            }
        }
    }
    let name = "neli_job_exits_total";
    let help = "Runs of the job that have ended: with status 0; by themselves with another, or by a signal; or because they were told to.";
    page.head(name, "counter", help);
    for (labels, role) in &roles {
        for (result, count) in RESULTS.iter().zip(role.tally.exits) {
            page.line(name, format_args!("{labels},result=\"{result}\""), count);
        }
    }
    page.echoes(&group, &snapshot.echoes);
    page.0
}

/// The metrics as text, so far.
#[derive(Default)]
pub(crate) struct Exposition(pub(crate) String);

impl Exposition {
    pub(crate) fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String can't fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    pub(crate) fn line(&mut self, name: &str, labels: impl Display, value: impl Display) {
        let _ = writeln!(self.0, "{name}{{{labels}}} {value}");
    }

    fn echoes(&mut self, group: &str, histogram: &Histogram) {
        self.head(
            "neli_echo_seconds",
            "histogram",
            "From the sending of a claim, heartbeat or release of this process to its being read back.",
        );
        let bounds = BOUNDS_MS.map(|ms| Duration::from_millis(ms).as_secs_f64().to_string());
        let bounds = bounds.into_iter().chain(["+Inf".to_owned()]);
        let mut count = 0;
        for (bound, more) in bounds.zip(histogram.buckets) {
            count += more;
            self.line("neli_echo_seconds_bucket", format_args!("{group},le=\"{bound}\""), count);
        }
        self.line("neli_echo_seconds_sum", group, histogram.sum.as_secs_f64());
        self.line("neli_echo_seconds_count", group, count);
    }
}

/// A time in milliseconds since 1970, in seconds.
pub(crate) fn seconds(ms: u64) -> f64 {
    Duration::from_millis(ms).as_secs_f64()
}

pub(crate) const fn flag(is_so: bool) -> f64 {
    if is_so { 1.0 } else { 0.0 }
}

/// A count as a floating-point number, since Prometheus has no others. Above 2^53 it is not exact.
#[expect(clippy::cast_precision_loss, reason = "as the format has it")]
pub(crate) fn number(count: impl TryInto<u64>) -> f64 {
    count.try_into().unwrap_or(u64::MAX) as f64
}

/// A label with its value, escaped for Prometheus.
pub(crate) fn label(name: &str, value: &str) -> String {
    let lines = value.split('\n').map(|line| one_line(line).replace('\\', "\\\\").replace('"', "\\\""));
    format!("{name}=\"{}\"", lines.collect::<Vec<_>>().join("\\n"))
}
