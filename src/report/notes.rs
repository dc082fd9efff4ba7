//! The notes of a node as events of the log: what happened comes first, then why, then the numbers.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use neli_proto::candidate::{Elector, StandbyReason, Timings};
use neli_proto::fact::{Fact, Outcome};
use neli_proto::health::Failure;
use neli_proto::job::CommandEnd;
use neli_proto::leadership::Leadership;
use neli_proto::note::{Loss, Note, Refusal};
use neli_proto::record::{Offset, Why};
use neli_proto::supervisor::JobStatus;
use neli_proto::time::{Time, millis, millis_rounded_up};
use nix::errno::Errno;
use nix::libc::{SIGKILL, SIGTSTP, SIGTTIN, SIGTTOU};
use serde_json::json;

use crate::calendar::is_start;
use crate::report::election::{because, how_released, sentence, standing_by, waiting};
use crate::report::events;
use crate::report::log::{Event, Level};
use crate::text::{
    list, roles_differ, signal_name, spoken, timestamp, to_the_second, why_not_started, with_options_of_once,
};

/// What is known beside a note.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment<'a> {
    /// The journal's topic.
    pub(crate) topic: &'a str,
    /// COMMAND, without its arguments.
    pub(crate) command: &'a OsStr,
    pub(crate) stop_signal: Option<i32>,
    pub(crate) timings: &'a Timings,
    /// The guard's process id.
    pub(crate) guard: i32,
    /// How the guard ended, if it is dead and was waited for.
    pub(crate) guard_end: Option<ExitStatus>,
    /// Whether this process has killed it because it had closed its socket.
    pub(crate) was_guard_killed: bool,
    pub(crate) now: Time,
    /// The same time by the wall clock, in milliseconds since 1970.
    pub(crate) wall_ms: u64,
    /// When the node's own lease ends if nothing extends it.
    pub(crate) lease_end: Option<Time>,
    /// When the node claims, unless a record of another candidate comes before.
    pub(crate) claims_at: Option<Time>,
    /// Who leads by the records that were read.
    pub(crate) leadership: Leadership<'a>,
    /// Whether the last record of the node's leader is older than its lease, by timestamps.
    pub(crate) is_leader_silent: bool,
}

impl Moment<'_> {
    /// The time until the node claims, unless a record of another candidate comes before; and that time by the wall clock.
    fn claim(&self) -> Option<(Duration, u64)> {
        let left = self.claims_at?.since(self.now);
        Some((left, self.wall_ms.saturating_add(millis(left))))
    }
}

/// The event for a note of a node.
#[expect(clippy::too_many_lines, reason = "one arm for each note, and what is longer has a function")]
pub(crate) fn event(note: &Note, moment: Moment<'_>) -> Event {
    let guard = moment.guard;
    match note {
        Note::AppendRefused { error } => Event::warning(format!(
            "topic {:?}: Kafka does not append this candidate's records; it tries again, and without them it leads \
             no longer than its lease: {error}",
            moment.topic
        )),
        Note::BrokerDown { error, down } => {
            let sentence = if *down < Duration::from_secs(1) {
                format!("Kafka does not answer: {error}; waiting")
            } else {
                format!("Kafka has not answered for {}: {error}; waiting", spoken(*down))
            };
            Event::new(Level::Warning, "broker_down", sentence)
                .with(json!({ "error": error, "down_ms": millis(*down) }))
        }
        Note::BrokerUp { down } => {
            let sentence = format!("Kafka answers again, {} after its silence was noticed", spoken(*down));
            Event::info("broker_up", sentence).with(json!({ "down_ms": millis(*down) }))
        }
        Note::Claiming { after } => claiming(*after, moment.leadership),
        Note::Ended { by, reason } => {
            let (by, reason) = (somebody(by.as_deref()), reason.as_deref().unwrap_or_default());
            let sentence = format!("the election was ended by {by}{}", with_reason(reason));
            Event::info("ended", sentence).with(json!({ "by": by, "reason": reason }))
        }
        Note::ExecHangs { term, for_at_least } => Event::warning(format!(
            "COMMAND has not been executed for {} or longer: its file can't be read, or its process was stopped or frozen; the job counts as \
             unhealthy, and another machine is to run it; see whether the disk or file server with COMMAND and its libraries answers (term {term})",
            spoken(*for_at_least)
        )),
        Note::FactsLost { key } => Event::warning(format!(
            "the topic of facts was missing and is created again, although a run of {key} is known: its \
             facts are lost, and a key or window that was done may run again; find out who deleted it"
        )),
        Note::FactsUnavailable { error } => Event::warning(format!(
            "the outcomes of runs can't be read or written, so the job is not run here: {error}"
        )),
        Note::Fenced { term, why, loss, left, late } => {
            let why = if *loss == Loss::HistoryCut { "history-cut" } else { why.as_str() };
            fenced(*term, why, *left, *late)
        }
        Note::FenceWarning { term, left, silent, unconfirmed } => fence_warning(*term, *left, *silent, *unconfirmed),
        Note::GroupRefuses { error } => {
            let meanwhile = match moment.timings.elector() {
                Elector::Group(None) => "this candidate claims nothing (--patience never); if it leads, it leads on",
                Elector::Group(Some(_)) | Elector::Log => {
                    "this candidate goes on without precedence: it claims and leads as with --elect log"
                }
            };
            Event::warning(format!("{error}; until the group takes it, {meanwhile}"))
        }
        Note::GuardHangs => Event::error(format!(
            "the guard (pid {guard}) does not answer: it is killed, and the job with it; the term of a job that ran is released \
             when the guard has ended; see what holds it (/proc/{guard}/stack, TracerPid in /proc/{guard}/status, a frozen control group)"
        )),
        Note::GuardLost { is_killed } => guard_lost(moment, *is_killed),
        Note::GuardStuck { pids, are_all } => Event::error(stuck_guard(guard, pids, *are_all)),
        Note::HealthFailed { term, failure, most } if failure.count >= *most => unhealthy(*term, failure),
        Note::HealthFailed { failure: Failure { count, end, last_line }, most, .. } => Event::warning(format!(
            "the health command {} ({count} of {most} in a row){}",
            how(end),
            with_reason(last_line)
        )),
        Note::HookFailed { hook, end } => {
            let (hook, reason) = (hook.event(), how(end));
            Event::new(Level::Warning, "hook_failed", format!("the hook --on-{hook} {reason}"))
                .with(json!({ "hook": hook, "reason": reason }))
        }
        Note::JobExited { term, status, ran, by_itself } => job_exited(*term, *status, *ran, *by_itself),
        // Why it was to end is said when its stop begins.
        Note::JobKilled { term, why } => {
            let sentence =
                format!("killing all that is left of the job: the time that it had to end is over (term {term})");
            Event::new(Level::Warning, "job_killed", sentence).with(json!({ "term": term, "why": why.as_str() }))
        }
        Note::JobStarted { term, pid, attempt, window } => {
            job_started(*term, *pid, *attempt, window.map(|window| to_the_second(window.from_ms)))
        }
        Note::JobStopped { signal: SIGTSTP, .. } => Event::warning(
            "the job stopped itself (SIGTSTP), and no terminal's shell can continue it: neli-run continued it at once",
        ),
        Note::JobStopped { signal: SIGTTIN | SIGTTOU, .. } => Event::warning(
            "the job is stopped, because it used the terminal in the background, or was sent that signal (SIGTTIN, SIGTTOU); this candidate \
             keeps the lead, and the job continues when neli-run is brought to the foreground (fg), or by kill -CONT",
        ),
        Note::JobStopped { pid, signal } => Event::warning(format!(
            "the job's main process is stopped ({}), and this candidate keeps the lead: the job does nothing, here or on another machine, \
             until somebody continues it (kill -CONT {})",
            signal_name(*signal),
            pid.unwrap_or_default()
        )),
        Note::Leading { term, .. } => {
            Event::info("leading", format!("leading, term {term}")).with(json!({ "term": term }))
        }
        Note::LeaseUnconfirmed { term, unconfirmed } => {
            Event::warning(format!("{}: the lease is over (term {term})", not_confirmed(*unconfirmed)))
        }
        Note::MappingInDoubt { why, until } => {
            let at = timestamp(moment.wall_ms.saturating_add(millis(until.since(moment.now))));
            Event::warning(format!(
                "{}; that candidate may have left: this process claims nothing until {at}, unless it \
                 learns before that the candidate has left; if it still runs, stop it, or give both the same --roles",
                roles_differ(why)
            ))
        }
        Note::ClockDiffers { shown, claimed_ms } => Event::warning(format!(
            "this machine's clock shows the window from {} to {}, and Kafka's clock {}: set the one that is \
             wrong, since a window that is run at another time is not run at its own",
            to_the_second(shown.from_ms),
            to_the_second(shown.until_ms),
            to_the_second(*claimed_ms)
        )),
        Note::NotBelieved(fact) => Event::warning(format!(
            "the newest window that is recorded, {}, by {}, lies more than a window ahead of this machine's \
             clock, and is ignored: check which machine's clock is wrong",
            fact.key,
            somebody(fact.name.as_deref())
        )),
        Note::NotRecorded { outcome: Outcome::Skipped, error, .. } => Event::warning(format!(
            "the skip of this window is not recorded yet ({error}): it is tried again each second, and until then \
             another leader would run the window"
        )),
        Note::NotRecorded { leads: false, error, .. } => Event::warning(format!(
            "the outcome of the last run is not recorded yet ({error}): it is tried again each second; until then this candidate \
             claims nothing, and another may run the job again"
        )),
        Note::NotRecorded { error, .. } => Event::warning(format!(
            "the run's outcome is not recorded yet ({error}): this candidate keeps the lead until it is (if it is \
             to end, for a lease at most), and writes the outcome into its release as well"
        )),
        Note::NotStarted { errno, counts } => {
            let (command, error) = (moment.command.to_string_lossy(), io::Error::from_raw_os_error(*errno));
            let effect = if *counts {
                "this counts as a failed run"
            } else {
                "the run is recorded as begun, without an outcome, and this candidate releases: another may run the job, or \
                 this one later"
            };
            Event::error(format!("{command}: can't be started: {}; {effect}", why_not_started(&error)))
        }
        Note::OnceDiffers { name, theirs, ours } => Event::warning(format!(
            "{} was started {}, and this candidate {}: give all candidates the same, or the job may run more than once",
            somebody(name.as_deref()),
            with_options_of_once(theirs),
            with_options_of_once(ours)
        )),
        Note::OnceSkipped { key, fact } => once_skipped(key, fact),
        Note::OutcomeLost => Event::warning(
            "Kafka has not confirmed the outcome of the last run, and this candidate ends: unless the record arrived, another candidate \
             runs the job again",
        ),
        Note::Overlapped { term, by_term, by, within } => {
            let leader = somebody(by.as_deref());
            let sentence = format!(
                "{leader} leads with term {by_term}: the job of term {term} runs on beside its job for {} at most (--overlap)",
                spoken(*within)
            );
            Event::info("overlapped", sentence)
                .with(json!({ "term": term, "by_term": by_term, "leader": leader, "within_ms": millis(*within) }))
        }
        Note::Preempting { term, priority, own } => {
            let sentence = format!(
                "asking the leader to stand down: its priority is {priority}, and this candidate's is {own} (term {term})"
            );
            Event::info("preempting", sentence).with(json!({ "term": term, "priority": priority, "own": own }))
        }
        Note::ReaderStuck { end, silent } => Event::warning(format!(
            "the journal's reader has delivered no record for {}, although the log has records up to offset \
             {end}: a new reader replaces it; if that is said again, check this machine's network and the brokers' load",
            spoken(*silent)
        )),
        Note::Refused(Refusal::Overlap { name, is_theirs }) => Event::error(if *is_theirs {
            format!("--overlap is missing: {name} stands in this election with it; all its candidates need it, or none")
        } else {
            format!("--overlap: {name} stands in this election without it; all its candidates need it, or none")
        }),
        Note::Refused(Refusal::Roles(differs)) => Event::error(roles_differ(differs)),
        Note::Refused(Refusal::Said(error)) => Event::error(error.as_ref()),
        Note::Refused(Refusal::TopicRemade) => Event::error(format!(
            "topic {:?}: it was deleted and made again, and --no-create-topic does not accept the new \
             one: check that it is the right one, and start neli-run again",
            moment.topic
        )),
        Note::Released { term, why, delivered } => released(*term, *why, *delivered),
        Note::Resigned { term, by, reason, successor } => {
            let (by, reason) = (somebody(by.as_deref()), reason.as_deref().unwrap_or_default());
            let successor = successor.as_deref();
            let whom = successor.map_or_else(String::new, |successor| format!(" for {successor}"));
            let sentence = format!("asked to stand down{whom} by {by}{} (term {term})", with_reason(reason));
            Event::info("resigned", sentence)
                .with(json!({ "term": term, "by": by, "successor": successor, "reason": reason }))
        }
        Note::Restarting { term, attempt, delay } => {
            let sentence = if *attempt == 1 {
                format!("the job's next run begins in {} (term {term})", spoken(*delay))
            } else {
                format!("running the job again in {} (term {term}, attempt {attempt})", spoken(*delay))
            };
            Event::info("restarting", sentence)
                .with(json!({ "term": term, "attempt": attempt, "delay_ms": millis(*delay) }))
        }
        Note::SetBack { until_ms } => Event::warning(format!(
            "this machine's clock was set back to a time whose windows are over: nothing is run until it shows {}",
            to_the_second(*until_ms)
        )),
        Note::Settling { term, delay } => {
            let delay_shown = spoken(*delay);
            let sentence =
                format!("the job starts in {delay_shown} (--settle), and the lead is kept meanwhile (term {term})");
            Event::info("settling", sentence).with(json!({ "term": term, "delay_ms": millis(*delay) }))
        }
        Note::RolesDiffer(differs) => Event::warning(roles_differ(differs)),
        Note::Standby(StandbyReason { leader, term, why }) => {
            let why = why.and_then(waiting);
            let has_led = why.is_none() && moment.is_leader_silent;
            let claim = moment.claim().filter(|_| why.is_some() || has_led);
            let known = leader.as_deref().map(|leader| (leader, if has_led { "led last" } else { "leads" }));
            Event::info("standby", standing_by(known, *term, why, claim))
                .with_some("leader", leader.as_deref())
                .with_some("term", *term)
                .with_some("why", why)
                .with_some("claim_at", claim.map(|(_, wall_ms)| timestamp(wall_ms)))
        }
        Note::StartedUnseen => Event::error(
            "the job was started and then killed, because no descriptor was left to watch it (ulimit -n); \
             this counts as a failed run",
        ),
        Note::Stopping { term, why, timeout } => {
            let lease_left = moment.lease_end.map(|end| end.since(moment.now));
            let (timeout, at_lease_end) = sigkill_in(*why, *timeout, lease_left, moment.timings);
            stopping(*term, *why, moment.stop_signal, timeout, at_lease_end)
        }
        Note::Stuck { pids } => Event::error(stuck(pids)),
        Note::Superseded { term, by_term, by } => {
            let leader = somebody(by.as_deref());
            let with_term = by_term.map_or_else(String::new, |term| format!(" with term {term}"));
            let sentence = format!(
                "superseded: {leader} leads{with_term}, though term {term} was not over here: killing the job; check whether \
                 a machine's clock ran at a wrong rate, a machine was paused, or records of the topic were deleted"
            );
            Event::new(Level::Error, "superseded", sentence)
                .with(json!({ "term": term }))
                .with_some("by_term", *by_term)
                .with(json!({ "leader": leader }))
        }
        Note::TopicRemade => Event::warning(
            "the topic was deleted and made again: records of the old topic no longer count, its leader is fenced, \
             and fencing tokens may start from 0 again: reset the highest one in stores that remember it, and find out who \
             did it",
        ),
        Note::TopicUnnamed => Event::debug(
            "this broker has no ids for topics (Kafka before 2.8): a topic that is deleted and made again under a \
             leader may go unnoticed",
        ),
        Note::Unfinished(fact) => {
            let (from_ms, until_ms) = fact.window.map_or((0, 0), |window| (window.from_ms, window.until_ms));
            let (from, until, by) = (to_the_second(from_ms), to_the_second(until_ms), somebody(fact.name.as_deref()));
            let why = if until_ms <= moment.wall_ms { "that time is over" } else { "--catch-up none" };
            let sentence = format!(
                "the run of {by} for the time from {from} to {until} was not finished, and is not begun again: {why}"
            );
            window_skipped(sentence, &from, &until, "unfinished", Some(by))
        }
        Note::UnusedPartitions => Event::warning(events::UNUSED_PARTITIONS),
        Note::WindowAwaited { next_ms } if !is_start(*next_ms) => Event::info(
            "window_awaited",
            "no time of --schedule is to come: this candidate keeps the lead, and runs the job no more",
        ),
        Note::WindowAwaited { next_ms } => {
            let next = to_the_second(*next_ms);
            Event::info("window_awaited", format!("the next window begins at {next}")).with(json!({ "next": next }))
        }
        Note::WindowsSkipped { span, why } => {
            let (from, until) = (to_the_second(span.from_ms), to_the_second(span.until_ms));
            let sentence = format!("nothing is run for the time from {from} to {until}: {}", because(why));
            window_skipped(sentence, &from, &until, why, None)
        }
        Note::Yielding { term, why, patience } => {
            let sentence = format!(
                "{}: the job runs on until another has claimed, for {} at most (--overlap, term {term})",
                because(why.as_str()),
                spoken(*patience)
            );
            Event::info("yielding", sentence)
                .with(json!({ "term": term, "why": why.as_str(), "patience_ms": millis(*patience) }))
        }
    }
}

/// The log of a machine that died tells nothing: that of the next leader says what became of the one before.
fn claiming(after: Offset, leadership: Leadership<'_>) -> Event {
    let why = if let Leadership::Released { release, .. } = leadership {
        format!("{} released term {}: {}", release.shown(), release.term, how_released(&release.how))
    } else {
        sentence(leadership)
    };
    let why = why.strip_prefix("no leader: ").unwrap_or(&why);
    let read = if after < 0 { String::new() } else { format!("; journal read up to offset {after}") };
    Event::info("claiming", format!("claiming the lead: {why}{read}")).with(json!({ "after": after, "why": why }))
}

/// Why heartbeats that are read back don't extend the lease.
fn not_confirmed(unconfirmed: Duration) -> String {
    format!(
        "heartbeats came back from Kafka, but no broker had confirmed for {} that the topic is still the same (-v logs why)",
        spoken(unconfirmed)
    )
}

fn fence_warning(term: Offset, left: Duration, silent: Duration, unconfirmed: Option<Duration>) -> Event {
    let silence = || format!("no heartbeat has come back from Kafka for {}", spoken(silent));
    let what = unconfirmed.map_or_else(silence, not_confirmed);
    let sentence = format!("{what}: the lease ends in {} unless one does (term {term})", spoken(left));
    Event::new(Level::Warning, "fence_warning", sentence)
        .with(json!({ "term": term, "left_ms": millis(left), "silent_ms": millis(silent) }))
        .with_some("unconfirmed_ms", unconfirmed.map(millis_rounded_up))
}

fn fenced(term: Offset, why: &str, left: Duration, late: Option<Duration>) -> Event {
    let shown = because(why);
    let sentence = match late {
        // When the last process ended is not known, because this process or its guard came late.
        None if left.is_zero() => format!("fenced, {shown}: nothing of the job is left (term {term})"),
        None => {
            let left = spoken(left);
            format!("fenced, {shown}: nothing of the job is left, {left} before the lease's end (term {term})")
        }
        Some(late) => format!(
            "fenced too late, {shown}: a process of the job may have been alive until {} after the lease's end, and \
             another candidate's job may have run beside it (term {term}); check what they wrote, and why this \
             machine killed too late (neli-run doctor)",
            spoken(late.max(Duration::from_millis(1)))
        ),
    };
    Event::new(Level::Error, "fenced", sentence)
        .with(json!({ "term": term, "why": why, "left_ms": millis(left) }))
        .with_some("late_ms", late.map(millis_rounded_up))
}

fn released(term: Offset, why: Why, delivered: bool) -> Event {
    let shown = because(why.as_str());
    let unconfirmed = "; Kafka has not confirmed it, so the others may have to wait out the lease";
    // With many roles no exit says so.
    let left = "; this process does not stand for this election again until it is restarted";
    let rest = [(!delivered).then_some(unconfirmed), (why == Why::RestartLimit).then_some(left)];
    let rest: String = rest.into_iter().flatten().collect();
    let level = if rest.is_empty() { Level::Info } else { Level::Warning };
    Event::new(level, "released", format!("released term {term}: {shown}{rest}"))
        .with(json!({ "term": term, "why": why.as_str(), "delivered": delivered }))
}

fn guard_lost(moment: Moment<'_>, is_killed: bool) -> Event {
    let Moment { guard, guard_end: end, was_guard_killed, .. } = moment;
    let signal = end.and_then(|end| end.signal());
    let (how, hint) = match (end, signal) {
        _ if is_killed => (" (neli-run killed it)".to_owned(), ""),
        (None, _) | (_, Some(SIGKILL)) if was_guard_killed => {
            (" (it had closed its socket, and neli-run killed it)".to_owned(), "")
        }
        (None, _) => (String::new(), FOR_LACK_OF_MEMORY),
        (_, Some(SIGKILL)) => (" (SIGKILL)".to_owned(), FOR_LACK_OF_MEMORY),
        (_, Some(signal)) => (format!(" ({})", signal_name(signal)), ""),
        (Some(end), None) => (format!(" ({})", why_guard_ended(end.code().unwrap_or_default())), ""),
    };
    let sentence = format!("the guard (pid {guard}) died{how}: no job runs without one, and another is started{hint}");
    Event::new(Level::Error, "guard_lost", sentence).with(json!({ "pid": guard }))
}

/// A guard that can't be executed or set up ends with the errno. 127 is the dynamic loader's, which has said why on stderr.
fn why_guard_ended(status: i32) -> String {
    let errno = Errno::from_raw(status);
    if matches!(errno, Errno::UnknownErrno | Errno::EKEYEXPIRED) {
        format!("exit status {status}")
    } else {
        why_not_started(&errno.into())
    }
}

// ---- the job ----------------------------------------------------------------------------------------------------------

fn job_started(term: Offset, pid: u32, attempt: u32, window: Option<String>) -> Event {
    let shown = window.as_ref().map_or_else(String::new, |window| format!(", window {window}"));
    let sentence = if attempt == 1 {
        format!("the job runs, pid {pid} (term {term}{shown})")
    } else {
        format!("the job runs again, pid {pid} (term {term}, attempt {attempt}{shown})")
    };
    Event::info("job_started", sentence)
        .with(json!({ "term": term, "pid": pid, "attempt": attempt }))
        .with_some("window", window)
}

fn job_exited(term: Offset, status: JobStatus, ran: Duration, by_itself: bool) -> Event {
    let (code, shown) = (status.code(), spoken(ran));
    let hint = if by_itself && status == JobStatus::Signaled(SIGKILL) { FOR_LACK_OF_MEMORY } else { "" };
    let (signal, sentence) = match status {
        JobStatus::Exited(_) => (None, format!("the job exited with status {code} after {shown}")),
        JobStatus::Signaled(signal) => {
            (Some(signal), format!("the job was ended by {} after {shown} (status {code}){hint}", signal_name(signal)))
        }
    };
    let level = if by_itself && code != 0 { Level::Warning } else { Level::Info };
    Event::new(level, "job_exited", sentence)
        .with(json!({ "term": term, "status": code, "signal": signal, "ran_ms": millis(ran) }))
}

fn unhealthy(term: Offset, Failure { count, end, last_line }: &Failure) -> Event {
    let checks = if *count == 1 { "1 check".to_owned() } else { format!("{count} checks in a row") };
    let (how, line) = (how(end), with_reason(last_line));
    let sentence = format!("job unhealthy: {checks} failed (last: the health command {how}{line}; term {term})");
    Event::new(Level::Warning, "unhealthy", sentence)
        .with(json!({ "term": term, "failures": count, "reason": how, "line": last_line }))
}

fn stopping(term: Offset, why: Why, signal: Option<i32>, timeout: Duration, at_lease_end: bool) -> Event {
    let end = match (at_lease_end, why) {
        (true, Why::Fenced) => ", at the lease's end",
        (true, _) => ", at the lease's end, unless a heartbeat comes back from Kafka",
        (false, _) => "",
    };
    let shown = if why == Why::Fenced { "no heartbeat extends the lease" } else { because(why.as_str()) };
    let kill_in = spoken(timeout);
    let sentence = match signal {
        _ if timeout.is_zero() => format!("killing the job: {}", because(why.as_str())),
        Some(signal) => format!("stopping the job: {shown}; {} now, SIGKILL in {kill_in}{end}", signal_name(signal)),
        None => format!("letting the job's run finish (--stop-signal none): {shown}; SIGKILL in {kill_in}{end}"),
    };
    Event::info("stopping", sentence)
        .with(json!({ "term": term, "why": why.as_str(), "signal": signal, "timeout_ms": millis(timeout) }))
}

/// The time until SIGKILL for a job that is asked to stop, and whether the reason is the end of the lease. While heartbeats are read
/// back, the lease continues until the stop timeout; if one is overdue, its end may come before.
fn sigkill_in(why: Why, timeout: Duration, lease_left: Option<Duration>, timings: &Timings) -> (Duration, bool) {
    // Two intervals after the last heartbeat that was read back was sent, the next one has been in flight for one interval.
    let of_overdue = timings.lease.saturating_sub(timings.heartbeat_interval * 2);
    let at_lease_end = lease_left
        .filter(|left| why == Why::Fenced || *left < of_overdue)
        .map(|left| left.saturating_sub(timings.kill_margin))
        .filter(|left| *left < timeout);
    at_lease_end.map_or((timeout, false), |left| (left, true))
}

/// The error about processes that are still alive a lease after SIGKILL. `pids` is empty if `/proc` can't be read.
fn stuck(pids: &[u32]) -> String {
    if pids.is_empty() {
        return "whether a process of the job is left is unknown (/proc can't be read): the term is not released, and ends with its \
                lease; check that files can be opened (ulimit -n), that there is memory, and which processes of \
                the job still run"
            .to_owned();
    }
    let pids = list(pids);
    format!(
        "what is left of the job can't be killed (pid {pids}): the term is not released, and ends with its lease; if it is another user's (a \
         setuid program), kill it as root; otherwise see what holds it (/proc/PID/stack, TracerPid in /proc/PID/status, a frozen \
         control group), or restart the machine"
    )
}

/// The error about a guard that was killed, and has not ended a lease later. It is no process of the job; the job's processes are named if
/// any can be seen.
fn stuck_guard(guard: i32, pids: &[u32], are_all: bool) -> String {
    let of_job = match pids {
        [] if are_all => {
            "no process of the job is seen any more, but only the guard's end can show that none is left".to_owned()
        }
        [] => "whether a process of the job is left is unknown (/proc can't be read)".to_owned(),
        _ => format!("something is left of the job too (pid {})", list(pids)),
    };
    format!(
        "the guard (pid {guard}) can't be killed; {of_job}: the term is not released, and ends with its lease; see what holds the guard \
         (/proc/{guard}/stack, TracerPid in /proc/{guard}/status, a frozen control group), or restart the machine"
    )
}

// ---- keys and windows -------------------------------------------------------------------------------------------------

fn once_skipped(key: &str, fact: &Fact) -> Event {
    let Fact { key: found, outcome, term, name, exit, ran_ms, at_ms, window, .. } = fact;
    let (done, newer) = (*outcome != Outcome::Failed, (**found != *key).then_some(found.as_ref()));
    let (by, at, exit) = (somebody(name.as_deref()), at_ms.map(timestamp), exit.unwrap_or_default());
    let (how, end) = match (done, window) {
        (true, _) if *outcome == Outcome::Skipped => ("was left out by the schedule of", ""),
        (true, _) => ("was done by", ""),
        (false, Some(_)) => {
            ("failed, run by", "; no retries are left; neli-run forget --newest-window makes it run again")
        }
        (false, None) => ("failed, run by", "; no retries are left; neli-run forget --once makes it run again"),
    };
    let run = newer
        .map_or_else(|| key.to_owned(), |newer| format!("{key} is not run any more, since the newer window {newer}"));
    let at_shown = at.as_ref().map_or_else(String::new, |at| format!(" at {at}"));
    let ran = ran_ms.map_or_else(String::new, |ran| format!(" after {}", spoken(Duration::from_millis(ran))));
    let ended = if *outcome == Outcome::Skipped { String::new() } else { format!(", exit {exit}{ran}") };
    let sentence = format!("{run} {how} {by}{at_shown} (term {term}{ended}){end}");
    // With the status of a run that failed elsewhere, this line says which run that was. Whether an older window was run at all is not known.
    let level = if done && newer.is_none() { Level::Info } else { Level::Warning };
    Event::new(level, "once_skipped", sentence)
        .with(json!({ "key": key }))
        .with_some("newer", newer)
        .with(json!({ "by": by, "term": term }))
        .with_some("at", at)
        .with(json!({ "exit": exit }))
        .with_some("ran_ms", *ran_ms)
        .with(json!({ "done": done }))
}

fn window_skipped(sentence: String, from: &str, until: &str, why: &str, by: Option<&str>) -> Event {
    Event::new(Level::Warning, "window_skipped", sentence)
        .with(json!({ "from": from, "until": until, "why": why }))
        .with_some("by", by)
}

// ---- parts of sentences -----------------------------------------------------------------------------------------------

/// Why a process may have got a SIGKILL that neither `neli-run` nor its guard has sent.
const FOR_LACK_OF_MEMORY: &str = "; perhaps for lack of memory: then the kernel's log names it";

/// How a command ended, as the continuation of a sentence.
fn how(end: &CommandEnd) -> String {
    match end {
        CommandEnd::Abandoned => "was ended with the job".to_owned(),
        CommandEnd::Exited(status) => format!("exited with status {status}"),
        CommandEnd::NoTime => "was not started, because the lease was about to end".to_owned(),
        CommandEnd::NotStarted(error) => format!("could not be started: {error}"),
        CommandEnd::Replaced => "was killed, because 8 run at once at most".to_owned(),
        CommandEnd::Signaled(signal) => format!("was ended by {}", signal_name(*signal)),
        CommandEnd::TimedOut => "took too long and was killed".to_owned(),
        CommandEnd::Unanswered => "took too long, and the guard did not report its end".to_owned(),
    }
}

fn somebody(name: Option<&str>) -> &str {
    name.unwrap_or("somebody")
}

fn with_reason(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {reason}") }
}

#[cfg(test)]
mod tests;
