//! The events of the log that concern this process and Kafka. Those of an election are in [`notes`](super::notes).

use std::time::Duration;

use neli_proto::guard::Named;
use neli_proto::record::MemberId;
use neli_proto::supervisor::{Ending, Lost};
use neli_proto::time::millis;
use serde_json::json;

use crate::config::Config;
use crate::exit::ExitStatus;
use crate::report::log::{Event, Level};
use crate::text::{counted, list, signal_name, spoken};

/// The first line.
pub(crate) fn started(config: &Config, member: &MemberId) -> Event {
    let (version, topic) = (env!("CARGO_PKG_VERSION"), config.elections.topic.as_str());
    let (elect, lease) = (config.timings.elector().name(), config.timings.lease);
    let sentence = format!(
        "standing for election as {} (version {version}, topic {topic}, --elect {elect}, lease {})",
        config.name,
        spoken(lease)
    );
    Event::info("started", sentence).with(json!({
        "version": version, "member": member.as_str(), "topic": topic, "elect": elect, "lease_ms": millis(lease),
    }))
}

/// The server of `--listen` is ready.
pub(crate) fn listening(address: &str) -> Event {
    Event::info("listening", format!("serving HTTP at http://{address}/")).with(json!({ "address": address }))
}

/// A message of librdkafka.
pub(crate) fn librdkafka(facility: &str, message: &str) -> Event {
    Event::new(Level::Debug, "librdkafka", format!("librdkafka: {facility}: {message}"))
        .with(json!({ "facility": facility, "message": message }))
}

/// The group assigns the partition, and with it precedence, to this candidate.
pub(crate) fn assigned(partition: i32) -> Event {
    let sentence = format!(
        "the consumer group has chosen this candidate, to claim first when nobody leads (partition {partition})"
    );
    Event::info("assigned", sentence).with(json!({ "partition": partition }))
}

/// The group took the partition away. `lost`: the session expired or the coordinator can't be reached; otherwise another member has it, and
/// `leads_on`: this one leads all the same.
pub(crate) fn revoked(lost: bool, leads_on: bool) -> Event {
    let sentence = if lost {
        "no longer in the consumer group (session expired, or its coordinator is out of reach); a leader keeps the \
         lead, because the journal decides"
    } else if leads_on {
        "the consumer group has chosen another candidate, and this one keeps the lead"
    } else {
        "the consumer group has chosen another candidate"
    };
    Event::info("revoked", sentence).with(json!({ "lost": lost }))
}

/// The topic was missing, and this candidate created it.
pub(crate) fn topic_created(topic: &str, replicas: usize, brokers: usize) -> Event {
    let (of_topic, up) = (counted(replicas as u64, "replica"), counted(brokers as u64, "broker"));
    Event::info("topic_created", format!("created the topic {topic:?} with {of_topic} ({up} up)"))
        .with(json!({ "topic": topic, "replicas": replicas, "brokers": brokers }))
}

/// A signal that may stop this process, from a process with its user id, or else from the terminal. A sender that this process can't see has the
/// pid 0.
pub(crate) fn signal(signal: i32, sender: Option<(Named, u32)>) -> Event {
    let from = match &sender {
        None => "the terminal".to_owned(),
        Some((Named { pid: 0, .. }, uid)) => format!("outside this PID namespace, uid {uid}"),
        Some((process, uid)) => format!("pid {process}, uid {uid}"),
    };
    let (pid, uid) = sender.map(|(process, uid)| (process.pid, uid)).unzip();
    Event::info("signal", format!("got {} from {from}", signal_name(signal)))
        .with(json!({ "signal": signal }))
        .with_some("pid", pid)
        .with_some("uid", uid)
}

/// The main loop woke so much later than it was due.
pub(crate) fn did_not_run(late: Duration) -> Event {
    Event::warning(format!(
        "neli-run did not run for {} at least: it was stopped, hung or swapped out, or this machine was suspended or too busy; it sent no \
         heartbeats, and the guard kills a job whose lease ends meanwhile",
        spoken(late)
    ))
}

/// Processes that the job's main process has left behind, which were killed, or asked to stop and have so long.
pub(crate) fn left_behind(processes: &[Named], count: usize, killed: bool, timeout: Duration) -> Event {
    let more = count.saturating_sub(processes.len());
    let others = if more > 0 { format!(" and {more} more") } else { String::new() };
    let noun = if count == 1 { "process" } else { "processes" };
    let asked = format!("asked to stop, SIGKILL in {} at the latest", spoken(timeout));
    let what = if killed { "still there, so killed" } else { &asked };
    Event::warning(format!(
        "the job's main process has ended and left {count} {noun} behind, {what}: {}{others}; let it wait for its children",
        list(processes)
    ))
}

/// A job is run again although its end may have been the container's stop.
pub(crate) fn container_signal(signal: i32) -> Event {
    let (name, option) = (signal_name(signal), signal_name(signal).replacen("SIG", "", 1));
    Event::warning(format!(
        "the job has ended after {name}, which process 1 of this container got and passed on, and it is run again; if the container was to \
         stop (STOPSIGNAL {name} of its image), neli-run is killed with the job soon: set --stop-signal {option}"
    ))
}

/// What the group can't do if the topic has more partitions than it uses.
pub(crate) const UNUSED_PARTITIONS: &str = "the topic has more partitions than this group uses, and Kafka moves them between members when one joins: the \
     candidate that the group chooses claims first when nobody leads, and a leader that loses the partition keeps the \
     lead; to let the group end a lead, use a --topic with one partition";

/// The last line. `leadership`: who leads, as a sentence.
pub(crate) fn exiting(status: ExitStatus, config: &Config, leadership: Option<&str>) -> Event {
    let (code, why) = (status.code(), why_exiting(status, config, leadership));
    let is_jobs_own = matches!(status, ExitStatus::Ending(Ending::Job(_) | Ending::NotDone { job: Some(_), .. }));
    let from = if is_jobs_own { "job" } else { "neli-run" };
    // A reason for another status than 0 is also shown with `-q`. The job's own status has none: the job says itself why it failed. Who stops a
    // candidate knows why it exits.
    let is_stopped = matches!(status, ExitStatus::Ending(Ending::StoppedBy(_)));
    let level = if code == 0 || why.is_none() || is_stopped { Level::Info } else { Level::Warning };
    let shown = match &why {
        Some(why) => format!(": {why}"),
        None if is_jobs_own => ": the job's status".to_owned(),
        None => String::new(),
    };
    Event::new(level, "exiting", format!("exiting {code}{shown}"))
        .with(json!({ "status": code, "from": from }))
        .with_some("why", why)
}

/// Why the process exits with this status; `None` if it is the job's.
fn why_exiting(status: ExitStatus, config: &Config, leadership: Option<&str>) -> Option<String> {
    // No other status is a candidate's.
    let ExitStatus::Ending(ending) = status else { return None };
    let why = match ending {
        Ending::Job(_) => return None,
        Ending::Ended => "the election was ended".to_owned(),
        Ending::Lost(Lost::Fenced) => {
            "fenced: the job was killed, since its right to run was over (--on-loss exit)".to_owned()
        }
        Ending::Lost(Lost::Killed) => {
            "the lead was lost, and the job killed at the stop timeout (--on-loss exit)".to_owned()
        }
        Ending::Lost(Lost::Stopped) => "the lead was lost, and the job has stopped (--on-loss exit)".to_owned(),
        Ending::WaitedEnough => {
            let wait = config.wait.filter(|wait| !wait.is_zero()).map_or_else(|| "0".to_owned(), spoken);
            let leadership = leadership.map_or_else(String::new, |leadership| format!("; {leadership}"));
            format!("not elected within --wait {wait}{leadership}")
        }
        Ending::Refused => "neli-run can't stand for election; an error above says why".to_owned(),
        Ending::RestartLimit => "the job failed more often than --restart-limit allows".to_owned(),
        Ending::Skipped { is_done, .. } => {
            let has_window = config.once.as_ref().is_some_and(|once| once.policy.window.is_some());
            let (key, option) =
                if has_window { ("the window, or a newer one,", "--window") } else { ("the key", "--once") };
            let how = if is_done { "is done" } else { "has failed, and no retries are left" };
            format!("{key} {how} ({option})")
        }
        // A job may have run: with several roles the highest status counts, and a typed key ends the process as its job.
        Ending::StoppedBy(signal) => format!("stopped by {}", signal_name(signal)),
        Ending::NotDone { signal, .. } => {
            let what = signal
                .map_or("the election was ended".to_owned(), |signal| format!("stopped by {}", signal_name(signal)));
            format!("{what} before the key was known to be done (--once, --window)")
        }
        Ending::Stuck => "a process of the job, or its guard, can't be killed; the term was not released".to_owned(),
    };
    Some(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_names_the_process_and_the_numbers() {
        let sent = |pid, name: &str| signal(15, Some((Named { pid, name: name.to_owned() }, 0)));
        let events = [
            signal(1, None),
            sent(1, "systemd"),
            sent(4_711, ""),
            sent(0, ""),
            revoked(false, false),
            revoked(false, true),
            assigned(0),
            topic_created("g.neli", 1, 1),
            topic_created("g.neli", 3, 4),
        ];
        assert_eq!(
            events.map(|event| event.sentence().to_owned()),
            [
                "got SIGHUP from the terminal",
                "got SIGTERM from pid 1 (systemd), uid 0",
                "got SIGTERM from pid 4711, uid 0",
                "got SIGTERM from outside this PID namespace, uid 0",
                "the consumer group has chosen another candidate",
                "the consumer group has chosen another candidate, and this one keeps the lead",
                "the consumer group has chosen this candidate, to claim first when nobody leads (partition 0)",
                "created the topic \"g.neli\" with 1 replica (1 broker up)",
                "created the topic \"g.neli\" with 3 replicas (4 brokers up)",
            ]
        );
    }
}
