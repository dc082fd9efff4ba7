//! Who leads an election, or why nobody does, and what a candidate does in it: the same words in every command, on the page, in the log and for
//! systemd (`STATUS=`).

use std::time::Duration;

use neli_proto::candidate::{JobReport, Position, StandbyReason, Waiting};
use neli_proto::leadership::{HowReleased, Leadership, Request, Unknown};
use neli_proto::node::Status;
use neli_proto::record::{JobState, KeyedRun, Offset, Why};
use neli_proto::reminder::Troubles;
use neli_proto::time::{Time, millis};

use crate::calendar::is_start;
use crate::text::{date, span, spoken, time_of_day, timestamp, to_the_second};

/// A time of the day means one within this time.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The sentence as of now: with ages.
pub(crate) fn sentence(leadership: Leadership<'_>) -> String {
    sentence_at(leadership, None)
}

/// The state as one word; docs/json.md lists the words.
pub(crate) const fn state(leadership: Leadership<'_>) -> &'static str {
    match leadership {
        Leadership::Forgotten => "forgotten",
        Leadership::Led { .. } => "led",
        Leadership::NeverLed => "never-led",
        Leadership::Released { .. } => "released",
        Leadership::Overdue { .. } | Leadership::Silent { .. } => "silent",
        Leadership::Unknown(_) => "unknown",
    }
}

/// The sentence; as of a time by the wall clock with times of the day, so that it stays right while nothing changes.
pub(crate) fn sentence_at(leadership: Leadership<'_>, wall_ms: Option<u64>) -> String {
    let past = |age: Duration| {
        let ms = wall_ms?.saturating_sub(millis(age));
        Some(if age < DAY { time_of_day(ms) } else { date(ms) })
    };
    let lasting = |age| past(age).map_or_else(|| format!("for {}", span(age)), |at| format!("since {at}"));
    let ago = |age| past(age).map_or_else(|| format!("{} ago", span(age)), |at| format!("at {at}"));
    match leadership {
        Leadership::Led { leader, .. } if leader.yields => {
            format!("{} leads (it is to stop; its job runs on until another has claimed)", leader.shown())
        }
        Leadership::Led { leader, .. } => format!("{} leads", leader.shown()),
        Leadership::Overdue { leader, age, claimable_in, .. } => {
            let (name, silent, lease) = (leader.shown(), lasting(age), spoken(leader.lease));
            let at = wall_ms.map(|wall_ms| time_of_day(wall_ms.saturating_add(millis(claimable_in))));
            let within = match at {
                _ if claimable_in.is_zero() => "now".to_owned(),
                None => format!("in {}", span(claimable_in)),
                Some(at) => format!("at {at}"),
            };
            format!(
                "{name} has been silent {silent} (lease {lease}): unless a heartbeat comes, another may claim {within}"
            )
        }
        Leadership::Silent { leader, age, .. } => {
            let (name, lease) = (leader.shown(), spoken(leader.lease));
            match leader.late().map(|late| span(late.gap)) {
                Some(gap) => format!(
                    "no leader: {name} was silent for {gap} (lease {lease}); a heartbeat that came after that extends no lease"
                ),
                None => format!("no leader: {name} has been silent {} (lease {lease})", lasting(age)),
            }
        }
        Leadership::Released { release, age } => {
            let (by, term, how) = (release.shown(), release.term, how_released(&release.how));
            format!("no leader: {by} released term {term} {}: {how}", ago(age))
        }
        Leadership::NeverLed => "no leader: nobody has ever led".to_owned(),
        Leadership::Forgotten => {
            "no leader: the topic keeps no record of this election (older ones were deleted)".to_owned()
        }
        Leadership::Unknown(unknown) => {
            let why = match unknown {
                Unknown::Cut => {
                    "the topic was made anew, or its records were deleted, and the job of an earlier leader may run on; if no record \
                     of a leader comes, a candidate claims after 60.61s"
                }
                Unknown::Left => "this process has left this election, and does not read it any more",
                Unknown::LeaseOver { is_answered: true } => "the lease of this process, which led, is over",
                Unknown::LeaseOver { is_answered: false } => {
                    "the lease of this process, which led, is over, and Kafka does not answer"
                }
                Unknown::Missing => {
                    "the record that says so is missing from the topic; if no record of a leader comes, a candidate claims \
                     after 60.61s"
                }
                Unknown::NoAnswer => "Kafka does not answer",
                Unknown::NobodyAnswers => "Kafka does not answer; nobody led when it last did",
                Unknown::NotHeard { leader, age } => {
                    &format!("Kafka does not answer; {} led, and was heard last {}", leader.shown(), ago(age))
                }
                Unknown::NotAnswered { leader, age } => &format!(
                    "Kafka has not told yet whether {} leads on, which was heard last {}",
                    leader.shown(),
                    ago(age)
                ),
                Unknown::Reading => "Kafka has not delivered the whole journal yet",
                Unknown::Unreadable => "Kafka answers, but the topic can't be read now, or this partition of it",
                Unknown::Unheard { leader } => &format!(
                    "the last heartbeat of {} lies in the future by this machine's clock, and none has come since it was read",
                    leader.shown()
                ),
            };
            format!("can't tell who leads: {why}")
        }
    }
}

/// Why a term ended, and how its job ended.
pub(crate) fn how_released(release: &HowReleased) -> String {
    let why = because(release.why.as_deref().unwrap_or("no reason said"));
    let asked = release.request.as_ref().map_or_else(String::new, |request| format!(" {}", asked_by(request)));
    // It may have been forgotten since.
    let once = release.once.as_ref().map_or_else(String::new, |KeyedRun { key, .. }| {
        let how = match release.exit {
            None => "was done already (or a newer window was), or had failed with no retries left",
            Some(0) => "has succeeded",
            Some(_) => "has failed",
        };
        format!("; {key} {how}")
    });
    let exit = release.exit.map_or_else(String::new, |exit| format!(" (the job's status: {exit})"));
    let late = release.late.map_or_else(String::new, |late| format!("; its job {}", lived_on(late)));
    format!("{why}{asked}{exit}{once}{late}")
}

/// For how long after its lease's end a job may have been alive.
pub(crate) fn lived_on(late: Duration) -> String {
    format!("may have been alive until {} after the lease's end", spoken(late))
}

/// Who made a request, and why.
pub(crate) fn asked_by(request: &Request) -> String {
    let reason = request.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
    format!("by {}{reason}", request.by.as_deref().unwrap_or("somebody"))
}

/// The protocol's reason in the words of a sentence; any other text is unchanged.
pub(crate) fn because(why: &str) -> &str {
    match why {
        "departed" => "its program has left the election",
        "ended" => "the election was ended",
        "exited" => "the job has ended",
        "facts-unavailable" => "the outcomes of runs can't be read or written",
        "failed" => "the job has failed, and is to be tried again",
        "fenced" => "no heartbeat extended the lease",
        "guard-died" => "the guard died",
        "history-cut" => "the topic's records were cut, or it was made anew",
        "no-run" => {
            "no run of it is recorded (nobody led then, or its end was not recorded), and --catch-up does not reach back to it"
        }
        "overrun" => "the previous run was not over at its start, or its outcome not recorded yet",
        "refused" => "this candidate can't stand for election any more",
        "resigned" => "it was asked to stand down",
        "restart-limit" => "the job failed too often",
        "revoked" => "the consumer group has chosen another candidate",
        "clock-set" => {
            "this machine's clock was set forward over it, neli-run was stopped then, or the schedule was another"
        }
        "claim-expired" => "the claim took effect too late to be used",
        "skipped" => "the key needs no run",
        "stopped" => "a signal to neli-run",
        "superseded" => "another candidate's claim took effect",
        "left" => "the process has left this role",
        "spread" => "moved for a fair share",
        "supervisor-died" => "neli-run died, or ended before Kafka had confirmed its release",
        "suspended" => "suspended (SIGTSTP)",
        "unhealthy" => "the health command failed",
        other => other,
    }
}

/// The sentence of a standby, also for the service manager. `leader`: its name, and whether it leads. `claim`: from now until it claims, and
/// when that is by the wall clock.
pub(super) fn standing_by(
    leader: Option<(&str, &str)>,
    term: Option<Offset>,
    why: Option<&str>,
    claim: Option<(Duration, u64)>,
) -> String {
    let leader = leader.map_or_else(String::new, |(leader, leads)| format!(": {leader} {leads}"));
    let term = term.map_or_else(String::new, |term| format!(" (term {term})"));
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    let claim = claim.map_or_else(String::new, |(left, wall_ms)| {
        let left = Duration::from_secs(left.as_secs() + u64::from(left.subsec_nanos() > 0));
        let (at, left) = (time_of_day(wall_ms), spoken(left));
        let at = at.trim_end_matches('Z');
        format!("; claiming at {at} (in {left}) unless another leader's record comes before")
    });
    format!("standing by{leader}{term}{why}{claim}")
}

pub(super) const fn waiting(why: Waiting) -> Option<&'static str> {
    Some(match why {
        Waiting::Answer => "nobody leads; a candidate of this group has --roles, and may refuse this one",
        Waiting::BackingOff => "nobody leads; its last lead failed, so others may claim first",
        Waiting::CoolingOff => "it has stood down, and lets another lead first",
        Waiting::Cut => "leader unknown, because the topic's records were cut, or it was made anew",
        Waiting::Facts => {
            "nobody leads; this candidate claims nothing until it has read the outcomes of earlier runs, and recorded that of its own"
        }
        Waiting::Full => "nobody leads; this process leads as many roles as --max-roles allows",
        Waiting::Led => return None,
        Waiting::NoGuard => "nobody leads; no guard lives here, so this candidate claims nothing until one does",
        Waiting::Precedence => "nobody leads; others may claim first",
        Waiting::Refused => "nobody leads; its last claim was refused",
        Waiting::Unassigned => {
            "nobody leads; with --patience never only the candidate that the consumer group chooses may claim"
        }
        Waiting::Undecided => "leader unknown",
    })
}

/// The state of the node, as a text for the service manager. `current`: who leads, at this time by the wall clock.
pub(crate) fn of_status(status: &Status, current: Leadership<'_>, wall_ms: u64) -> String {
    match &status.position {
        Position::Claiming => "claiming the lead".to_owned(),
        Position::Departed => "has left the election".to_owned(),
        Position::Fenced { term } => format!("fenced: the job is being killed (term {term})"),
        Position::Leading { term, .. } if status.next_window_ms.is_some() => {
            format!("leading, term {term}{}", of_next_window(status.next_window_ms))
        }
        Position::Leading { term, job, stopping } => format!("leading, term {term}, {}", of_job(job, *stopping)),
        Position::Listening => "reading the journal".to_owned(),
        Position::Overlapped { term } => format!("another leads, and the job of term {term} is being stopped"),
        Position::Releasing { term } => format!("releasing term {term}"),
        Position::Standby(standby) => {
            if let Leadership::Overdue { .. }
            | Leadership::Silent { .. }
            | Leadership::Unknown(Unknown::NobodyAnswers | Unknown::NotHeard { .. }) = current
            {
                return format!("standing by: {}", sentence_at(current, Some(wall_ms)));
            }
            let StandbyReason { leader, term, why } = standby.clone().unwrap_or_default();
            standing_by(leader.as_deref().map(|leader| (leader, "leads")), term, why.and_then(waiting), None)
        }
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

/// A lasting problem with Kafka: since when it lasts, what it is, and why.
pub(crate) type Trouble = (Time, &'static str, String);

/// The problem with Kafka.
pub(crate) fn present_trouble(Troubles { outage, group, refused_appends, .. }: &Troubles) -> Option<Trouble> {
    let all = [
        (outage.trouble(), "no broker reached"),
        (refused_appends.trouble(), "Kafka refuses its records"),
        (group.trouble(), "without precedence"),
    ];
    all.into_iter().find_map(|(trouble, what)| trouble.map(|(since, why)| (since, what, why.to_owned())))
}

/// A problem with Kafka, with why, and since when it lasts by this wall clock. This text is appended to the node's state.
pub(crate) fn of_trouble(lasted: Duration, what: &str, why: &str, wall_ms: u64) -> String {
    let since = timestamp(wall_ms.saturating_sub(millis(lasted)));
    format!("; {what} since {since}: {why}")
}

/// With a schedule: when the next window begins, if the leader waits for it. Appended to the node's state.
fn of_next_window(next_ms: Option<u64>) -> String {
    let next_ms = next_ms.filter(|next_ms| is_start(*next_ms));
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
        (JobState::Stopping, None) => "job ended: what it left is stopped, and its outcome recorded".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use neli_proto::journal::{Journal, Origin};
    use neli_proto::leadership::{LastTerm, ReadAt, Receipt, TermState};
    use neli_proto::record::Record;
    use neli_proto::time::Time;

    use super::*;

    #[test]
    fn each_reason_of_the_protocol_has_words() {
        // The error for a word that is none of them names them all.
        let error = serde_json::from_str::<Why>("\"?\"").unwrap_err().to_string();
        let whys: Vec<&str> = error.split('`').skip(3).step_by(2).collect();
        assert_eq!(whys.len(), 19, "{error}");
        for why in whys {
            assert_eq!(Why::parse(why).map(Why::as_str), Some(why));
            let said = because(why);
            assert!(said != why && !said.contains("supervisor"), "{said}");
        }
    }

    #[test]
    fn the_next_window_is_shown_while_it_is_awaited() {
        assert_eq!(of_next_window(Some(1_769_825_400_000)), "; next window at 2026-01-31T02:10:00Z");
        assert_eq!([None, Some(253_402_300_799_999)].map(of_next_window), ["", ""], "no further time");
    }

    #[test]
    fn the_status_describes_the_node_s_state() {
        let job = |state, pid, attempt| JobReport { state, pid, attempt, since: Time::ZERO };
        let leading = |job, stopping| Position::Leading { term: 42, job, stopping };
        let leader = Some("db2:77".into());
        let down = ("no broker reached", "kafka:9092: refused");
        let refused = ("Kafka refuses its records", "Not enough in-sync replicas");
        let at = |position| Status { position, ..Status::default() };
        let shown = [
            (Position::Claiming, Some((Duration::from_secs(2), refused))),
            (Position::Listening, None),
            (Position::Standby(Some(StandbyReason { leader, term: Some(42), why: Some(Waiting::Led) })), None),
            (leading(job(JobState::Starting, None, 1), None), None),
            (leading(job(JobState::Running, Some(4711), 1), None), None),
            (leading(job(JobState::Running, Some(4712), 2), None), Some((Duration::from_secs(1), down))),
            (leading(job(JobState::Stopping, Some(4712), 2), Some(Why::Stopped)), None),
            (leading(job(JobState::Stopping, None, 1), None), None),
            (Position::Releasing { term: 42 }, None),
        ];
        assert_eq!(
            shown.map(|(position, trouble)| {
                let trouble = trouble.map(|(lasted, (what, why))| of_trouble(lasted, what, why, 1_769_860_801_123));
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
                "leading, term 42, job ended: what it left is stopped, and its outcome recorded",
                "releasing term 42",
            ]
        );
    }

    #[test]
    fn the_status_describes_a_leader_that_is_silent() {
        let received = Time::ZERO + Duration::from_secs(100);
        let mut last_term = LastTerm::default();
        let claim = br#"{"v":1,"kind":"claim","member":"m","name":"db2","seq":1,"after":41,"lease_ms":20000}"#;
        let mut journal = Journal::read_from(42, Origin::Beginning);
        let record = Record::parse(claim);
        let verdict = journal.read(received, 42, record.as_ref());
        let receipt = Receipt { read: received, written_ms: None, is_brokers_time: true, is_live: true };
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

    const REFUSAL: &str = "Not enough in-sync replicas";

    #[test]
    fn a_refused_append_is_the_trouble_while_brokers_answer() {
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let mut state = Troubles::default();
        state.append_was_refused(at(1), REFUSAL.to_owned());
        let refused = Some((at(1), "Kafka refuses its records", REFUSAL.to_owned()));
        assert_eq!(present_trouble(&state), refused);
        assert_eq!(state.poll_timeout(), Some(at(1)));
        assert!(state.refused_appends.poll(at(1)).is_some());
        assert_eq!(state.poll_timeout(), Some(at(31)), "it is logged again");

        state.outage.begin(at(2), "refused".to_owned());
        assert_eq!(present_trouble(&state), Some((at(2), "no broker reached", "refused".to_owned())));
        // The outage is reported, so a record that is given up for lack of an answer gets no line.
        state.append_was_refused(at(3), "no acknowledgement within 5000 ms".to_owned());
        state.outage.end(at(4));
        assert_eq!(present_trouble(&state), refused);
    }

    #[test]
    fn a_refusal_by_the_group_is_the_last_trouble_and_is_logged_again() {
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let mut state = Troubles::default();
        state.group.begin(at(1), "it is full".to_owned());
        assert_eq!(present_trouble(&state), Some((at(1), "without precedence", "it is full".to_owned())));
        assert!(state.group.poll(at(1)).is_some());
        assert_eq!(state.poll_timeout(), Some(at(31)));
        state.append_was_refused(at(2), REFUSAL.to_owned());
        assert_eq!(present_trouble(&state), Some((at(2), "Kafka refuses its records", REFUSAL.to_owned())));
    }
}
