//! The state of the process as a text for the service manager (systemd's `STATUS=`).

use std::time::Duration;

use neli_proto::candidate::{JobReport, Position, StandbyReason};
use neli_proto::leadership::{Leadership, Unknown};
use neli_proto::node::{Awaited, Status};
use neli_proto::record::{JobState, Why};
use neli_proto::time::millis;

use super::{standing_by, waiting};
use crate::report::election::lasting_sentence;
use crate::report::log::{because, timestamp, to_the_second};

/// A lasting problem with Kafka.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Trouble {
    /// The group does not take this process's member, which has no precedence.
    Group(String),
    /// No broker answers.
    NoBroker(String),
    /// Brokers answer, but refuse this candidate's records.
    Refused(String),
}

/// The state of the node, as a text for the service manager. `current`: who leads, at this time by the wall clock.
pub(crate) fn of_status(status: &Status, current: Leadership<'_>, wall_ms: u64) -> String {
    match &status.position {
        Position::AwaitingJudgement { .. } | Position::Claiming => "claiming the lead".to_owned(),
        Position::Departed => "has left the election".to_owned(),
        Position::Fenced { term } => format!("fenced: the job is being killed (term {term})"),
        Position::Leading { term, .. } if status.awaits.is_some_and(|awaits| awaits.what == Awaited::Window) => {
            format!("leading, term {term}")
        }
        Position::Leading { term, job, stopping } => format!("leading, term {term}, {}", of_job(job, *stopping)),
        Position::Listening => "reading the journal".to_owned(),
        Position::Overlapped { term } => format!("another leads, and the job of term {term} is being stopped"),
        Position::Releasing { term } => format!("releasing term {term}"),
        Position::Standby(standby) => match current {
            Leadership::Overdue { .. }
            | Leadership::Silent { .. }
            | Leadership::Unknown(Unknown::NobodyAnswers | Unknown::NotHeard { .. }) => {
                format!("standing by: {}", lasting_sentence(current, wall_ms))
            }
            Leadership::Forgotten
            | Leadership::Led { .. }
            | Leadership::NeverLed
            | Leadership::Released { .. }
            | Leadership::Unknown(_) => {
                let StandbyReason { leader, term, why } = standby.clone().unwrap_or_default();
                standing_by(leader.as_deref(), term, why.and_then(waiting), None)
            }
        },
        Position::Suspended => "suspended".to_owned(),
    }
}

/// The status for the service manager with several roles. `led` are the names of those that this process leads.
pub(crate) fn of_roles(led: &[String], count: usize) -> String {
    /// A larger number of roles is not listed.
    const NAMED: usize = 8;
    let names = if led.is_empty() || led.len() > NAMED { String::new() } else { format!(" ({})", led.join(", ")) };
    format!("leading {} of {count} roles{names}", led.len())
}

/// The problem with Kafka, and since when it lasts by this wall clock. This text is appended to the node's state.
pub(crate) fn of_trouble(lasted: Duration, trouble: &Trouble, wall_ms: u64) -> String {
    let lasted = millis(lasted);
    let since = timestamp(wall_ms.saturating_sub(lasted));
    match trouble {
        Trouble::Group(error) => format!("; without precedence since {since}: {error}"),
        Trouble::NoBroker(error) => format!("; no broker reached since {since}: {error}"),
        Trouble::Refused(error) => format!("; Kafka refuses its records since {since}: {error}"),
    }
}

/// With a schedule: when the next window begins, if the leader waits for it. Appended to the node's state.
pub(crate) fn of_next_window(next_ms: Option<u64>) -> String {
    next_ms.map_or_else(String::new, |next_ms| format!("; next window at {}", to_the_second(next_ms)))
}

fn of_job(job: &JobReport, stopping: Option<Why>) -> String {
    let pid = job.pid.map_or_else(String::new, |pid| format!(" {pid}"));
    let attempt = if job.attempt > 1 { format!(" (attempt {})", job.attempt) } else { String::new() };
    match (job.state, stopping) {
        (JobState::Restarting, _) => "job to be started again".to_owned(),
        (JobState::Running, None) => format!("job{pid} running{attempt}"),
        (JobState::Running, Some(_)) => format!("job{pid} running until another has claimed{attempt}"),
        (JobState::Starting, _) => format!("job starting{attempt}"),
        (JobState::Stopping, Some(why)) => format!("job{pid} stopping: {}", because(why.as_str())),
        (JobState::Stopping, None) => "job ended, what it left is stopping".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use neli_proto::candidate::Waiting;
    use neli_proto::journal::{Journal, Origin};
    use neli_proto::leadership::{LastTerm, ReadAt, Receipt, TermState};
    use neli_proto::record::Record;
    use neli_proto::time::Time;

    use super::*;

    #[test]
    fn the_next_window_is_shown_while_it_is_awaited() {
        assert_eq!(of_next_window(Some(1_769_825_400_000)), "; next window at 2026-01-31T02:10:00Z");
        assert_eq!(of_next_window(None), "");
    }

    #[test]
    fn the_status_describes_the_node_s_state() {
        let job = |state, pid, attempt| JobReport { state, pid, attempt, since: Time::ZERO };
        let leading = |job, stopping| Position::Leading { term: 42, job, stopping };
        let leader = Some("db2:77".into());
        let down = Trouble::NoBroker("kafka:9092: refused".to_owned());
        let refused = Trouble::Refused("Not enough in-sync replicas".to_owned());
        let at = |position| Status { position, ..Status::default() };
        let shown = [
            (Position::Claiming, Some((Duration::from_secs(2), &refused))),
            (Position::Listening, None),
            (Position::Standby(Some(StandbyReason { leader, term: Some(42), why: Some(Waiting::Led) })), None),
            (leading(job(JobState::Starting, None, 1), None), None),
            (leading(job(JobState::Running, Some(4711), 1), None), None),
            (leading(job(JobState::Running, Some(4712), 2), None), Some((Duration::from_secs(1), &down))),
            (leading(job(JobState::Stopping, Some(4712), 2), Some(Why::Stopped)), None),
            (leading(job(JobState::Stopping, None, 1), None), None),
            (Position::Releasing { term: 42 }, None),
        ];
        assert_eq!(
            shown.map(|(position, trouble)| {
                let trouble = trouble.map(|(lasted, trouble)| of_trouble(lasted, trouble, 1_769_860_801_123));
                of_status(&at(position), Leadership::NeverLed, 0) + &trouble.unwrap_or_default()
            }),
            [
                "claiming the lead; Kafka refuses its records since 2026-01-31T11:59:59.123Z: Not enough in-sync replicas",
                "reading the journal",
                "standing by: db2:77 leads (term 42)",
                "leading, term 42, job starting",
                "leading, term 42, job 4711 running",
                "leading, term 42, job 4712 running (attempt 2); no broker reached since 2026-01-31T12:00:00.123Z: \
                 kafka:9092: refused",
                "leading, term 42, job 4712 stopping: a signal to neli-run",
                "leading, term 42, job ended, what it left is stopping",
                "releasing term 42",
            ]
        );
    }

    #[test]
    fn the_status_describes_a_leader_that_is_silent() {
        let received = Time::ZERO + Duration::from_secs(100);
        let mut last_term = LastTerm::none();
        let claim = br#"{"v":1,"kind":"claim","member":"m","name":"db2","seq":1,"after":41,"lease_ms":20000}"#;
        let mut journal = Journal::read_from(42, Origin::Beginning);
        let record = Record::parse(claim);
        let verdict = journal.read(received, 42, record.as_ref());
        let receipt = Receipt { read: received, written_ms: None, is_live: true };
        last_term.read(journal.view(), 42, record.as_ref(), verdict, receipt);
        let why = Some(Waiting::Led);
        let position = Position::Standby(Some(StandbyReason { leader: Some("db2".into()), term: Some(42), why }));
        let status = Status { last_term, term_state: TermState::Led, position, ..Status::default() };
        let shown = |seconds: u64, is_answered| {
            let at =
                ReadAt { now: received + Duration::from_secs(seconds), wall_ms: 1_769_860_800_000 + seconds * 1_000 };
            of_status(&status, status.leadership(at, is_answered), at.wall_ms)
        };
        assert_eq!(
            [shown(3, true), shown(18, true), shown(25, true), shown(3, false), shown(18, false)],
            [
                "standing by: db2 leads (term 42)",
                "standing by: db2 has been silent since 12:00:00Z (lease 20s): unless a heartbeat comes, another may claim at 12:00:20Z",
                "standing by: no leader: db2 has been silent since 12:00:00Z (lease 20s)",
                "standing by: db2 leads (term 42)",
                "standing by: can't tell who leads: Kafka does not answer; db2 led, and was heard last at 12:00:00Z",
            ]
        );
    }
}
