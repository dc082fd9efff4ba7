//! Scenarios of a supervisor.

use std::time::Duration;

use neli_proto::candidate::{Departure, JobEnd, JobReport};
use neli_proto::guard::{Answer, CommandKind, Grant, Order, SeenEnd, Step, Target};
use neli_proto::health::HealthPolicy;
use neli_proto::hooks::EndedRun;
use neli_proto::job::CommandEnd;
use neli_proto::note::Note;
use neli_proto::restart::{Limit, Restart, RestartPolicy};
use neli_proto::supervisor::Supervisor;
use neli_proto::supervisor::{
    Action, Ending, Event, Foreground, JobIs, JobStatus, Local, Lost, OnLoss, Policy, StopPolicy, Wanted, WantedState,
};
use neli_proto::time::{Span, Time};

use crate::Subject;
use crate::words::{Words, begin, seen_end, shown, shown_end, shown_time};

/// A supervisor and its time.
pub(crate) struct Scenario {
    supervisor: Supervisor,
    now: Time,
    /// What the candidate wants of the job.
    wanted: Option<Wanted>,
    /// What the candidate, and with a key the node, last saw.
    seen: (Local, Option<(u32, EndedRun)>),
}

impl Scenario {
    /// `supervisor no-stop-signal settle=0 timeout=8s margin=20ms restart=no|on-failure|always delay=1s limit=2 within=5m loss=standby|exit
    /// health-interval=10s health-timeout=5s failures=3 health-start=0s`.
    pub(crate) fn begin(words: &Words<'_>) -> Self {
        let timeout = words.span_of("timeout").unwrap_or(Duration::from_secs(8));
        let kill_margin = words.span_of("margin").unwrap_or(Duration::from_millis(20));
        let restart = RestartPolicy {
            restart: match words.value("restart") {
                None | Some("no") => Restart::No,
                Some("on-failure") => Restart::OnFailure,
                Some("always") => Restart::Always,
                Some(other) => panic!("{other} is no way to restart"),
            },
            delay: words.span_of("delay").unwrap_or(Duration::from_secs(1)),
            limit: words.number_of("limit").map(|restarts| {
                let within = words.span_of("within").unwrap_or(Duration::from_secs(300));
                Limit { restarts, within }
            }),
        };
        let on_loss = match words.value("loss") {
            None | Some("standby") => OnLoss::Standby,
            Some("exit") => OnLoss::Exit,
            Some(other) => panic!("{other} is nothing to do after a loss"),
        };
        let health = words.span_of("health-interval").map(|interval| HealthPolicy {
            interval,
            timeout: words.span_of("health-timeout").unwrap_or(Duration::from_secs(5)),
            failures: words.number_of("failures").unwrap_or(3),
            start: words.span_of("health-start").unwrap_or_default(),
        });
        let settle = words.span_of("settle").unwrap_or_default();
        let stop = StopPolicy { signal: (!words.says("no-stop-signal")).then_some(15), timeout };
        let policy = Policy { settle, stop, restart, on_loss, health };
        let mut supervisor = Supervisor::new(policy, kill_margin);
        if !words.says("guard-untried") {
            supervisor.handle_answer(begin(), Answer::Ready);
        }
        let seen = (supervisor.local(), supervisor.run_end());
        Self { supervisor, now: begin(), wanted: None, seen }
    }

    /// `healthy 1`, `unhealthy 1 status=1`, `unhealthy 1 signal=9`, `unhealthy 1 timed-out`, `abandoned 1`: the end of a health command.
    fn health_ended(words: &Words<'_>) -> Event {
        let end = match words.verb() {
            "abandoned" => CommandEnd::Abandoned,
            "healthy" => CommandEnd::Exited(0),
            _ if words.says("timed-out") => CommandEnd::TimedOut,
            _ => match words.number_of("signal") {
                Some(signal) => CommandEnd::Signaled(signal),
                None => CommandEnd::Exited(words.needed("status", words.number_of("status"))),
            },
        };
        Event::HealthEnded { id: words.number(1), end, last_line: words.value("line").unwrap_or_default().into() }
    }

    /// What the candidate or the node wants of the job from now on; `None` if the line is about something else.
    fn new_wanted(&self, words: &Words<'_>) -> Option<Wanted> {
        let grant = || Grant {
            term: words.needed("term", words.number_of("term")),
            seen: words.needed("seen", words.number_of("seen").or(words.number_of("term"))),
            next_seq: 3,
            until: words.needed("until", words.time_of("until")),
        };
        let led = |state| Wanted { grant: grant(), again: 0, state };
        let wanted = |state| Wanted { state, ..words.needed("led", self.wanted) };
        Some(match words.verb() {
            "extended" => {
                let (before, grant) = (words.needed("led", self.wanted), grant());
                let again = if before.grant == grant { before.again + 1 } else { 0 };
                Wanted { grant, again, ..before }
            }
            "held" => led(WantedState::Hold { waits: false }),
            "killed" => wanted(WantedState::Kill),
            "led" => led(WantedState::Run),
            "may-run" => wanted(WantedState::RunOnce {
                // Each run has another number.
                id: self.seen.1.map_or(0, |(id, _)| id) + 1,
                window: words
                    .number_of("window")
                    .map(|number: u64| Span { from_ms: number * 1_000, until_ms: (number + 1) * 1_000 }),
                attempt: words.number_of("attempt").unwrap_or(1),
            }),
            "holds" => wanted(WantedState::Hold { waits: false }),
            "waits" => wanted(WantedState::Hold { waits: true }),
            "stopped-for" => wanted(WantedState::Stop { why: crate::words::why(words.word(1)), by: None }),
            "stopped-within" => wanted(WantedState::Stop {
                why: crate::words::why(words.word(1)),
                by: Some(self.now + words.needed("within", words.span_of("within"))),
            }),
            _ => return None,
        })
    }

    /// The guard's answer; `None` if the line is about something else. `exited status=3 ended=300ms`: the guard noticed the end earlier.
    fn answer(now: Time, words: &Words<'_>) -> Option<Answer> {
        Some(match words.verb() {
            "accepted" => Answer::Accepted { until: words.needed("until", words.time_of("until")) },
            "answered" => Answer::Extended { until: words.needed("until", words.time_of("until")) },
            "commands-left" => Answer::CommandsLeft,
            "exited" => {
                let (left, foreground) = (words.says("left"), words.says("foreground"));
                let ended_at = words.time_of("ended").unwrap_or(now);
                Answer::Exited { status: words.status(), ended_at, left, foreground }
            }
            "fenced" => {
                let term = words.needed("term", words.number_of("term"));
                Answer::Fenced { term, end: seen_end(words) }
            }
            "gone" => Answer::Gone,
            "ready" => Answer::Ready,
            "killed-at-timeout" => Answer::Killed,
            "no-run" => {
                let run = words.needed("run", words.number_of("run"));
                Answer::NoRun { term: words.needed("term", words.number_of("term")), run }
            }
            "not-started" => Answer::NotStarted { errno: words.number(1), at: Step::Exec },
            "started" => Answer::Started { pid: words.needed("pid", words.number_of("pid")) },
            "started-unseen" => Answer::StartedUnseen { pid: words.needed("pid", words.number_of("pid")) },
            "still-killing" => Answer::StillKilling,
            "stuck" => Answer::Stuck { pids: vec![words.number(1)] },
            _ => return None,
        })
    }

    fn event(now: Time, words: &Words<'_>) -> Event {
        match words.verb() {
            "abandoned" | "healthy" | "unhealthy" => Self::health_ended(words),
            "foreground" => Event::ForegroundSeen(foreground(words.word(1))),
            "guard-died" => Event::GuardDied,
            "guard-not-started" => Event::GuardNotStarted { again: words.says("again") },
            "guard-parted" => Event::HasGuard(false),
            "guard-started" => Event::HasGuard(true),
            "job-stopped" => Event::JobStopped {
                signal: words.number(1),
                foreground: words.value("foreground").map_or(Foreground::Elsewhere, foreground),
                continuable: !words.says("orphaned"),
            },
            "orphans-gone" => Event::OrphansGone(seen_end(words).unwrap_or(SeenEnd { gone_at: now, lived_at: None })),
            "guard-stuck" => {
                Event::GuardStuck { pids: words.says("7").then_some(7).into_iter().collect(), are_all: true }
            }
            "orphans-stuck" => Event::OrphansStuck { pids: vec![words.number(1)] },
            "suspend" => Event::SuspendSignal { continuable: !words.says("orphaned") },
            other => panic!("nothing is called {other}"),
        }
    }
}

impl Subject for Scenario {
    fn now(&mut self) -> &mut Time {
        &mut self.now
    }

    fn meet(&mut self, words: &Words<'_>) {
        match words.verb() {
            "signal" => self.supervisor.handle_signal(self.now, words.number(1), false),
            "terminal-gone" => self.supervisor.handle_signal(self.now, 1, true),
            "typed" => self.supervisor.handle_signal(self.now, words.number(1), true),
            "departed" => self.supervisor.exit(match words.word(1) {
                "ended" => Departure::Ended,
                "left" => Departure::Left,
                "waited-enough" => Departure::WaitedEnough,
                other => panic!("{other} is no departure"),
            }),
            _ => match (self.new_wanted(words), Self::answer(self.now, words)) {
                (Some(wanted), _) => {
                    self.wanted = Some(wanted);
                    self.supervisor.set_wanted(self.now, self.wanted);
                }
                (None, Some(answer)) => self.supervisor.handle_answer(self.now, answer),
                (None, None) => self.supervisor.handle(self.now, Self::event(self.now, words)),
            },
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.supervisor.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.supervisor.poll_timeout()
    }

    fn actions(&mut self) -> Vec<String> {
        let mut actions = Vec::new();
        if self.supervisor.take_give_up() {
            actions.push("has the candidate wait no more".to_owned());
        }
        while let Some(action) = self.supervisor.poll_action() {
            actions.push(shown_action(action));
        }
        let seen = (self.supervisor.local(), self.supervisor.run_end());
        actions.extend(shown_change(&self.seen.0, &seen.0));
        if let Some((_, EndedRun { status, ran, .. })) = seen.1.filter(|_| self.seen.1.is_none()) {
            actions.push(format!("asks what follows a run with {}, after {}", status.code(), shown(ran)));
        }
        self.seen = seen;
        actions
    }
}

fn foreground(word: &str) -> Foreground {
    match word {
        "elsewhere" => Foreground::Elsewhere,
        "job" => Foreground::Job,
        "neli-run" => Foreground::NeliRun,
        other => panic!("{other} has no foreground"),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the others are actions of other objects")]
fn shown_action(action: Action) -> String {
    match action {
        Action::DieOf { signal, to_group } => {
            format!("is to die of signal {signal}{}", if to_group { ", with its group" } else { "" })
        }
        Action::Exit(ending) => match ending {
            Ending::Ended => "exits: 0, the election was ended".to_owned(),
            Ending::Job(status) => format!("exits: {}, the job's own", status.code()),
            Ending::Lost(Lost::Fenced) => "exits: the lead is lost, the job was fenced".to_owned(),
            Ending::Lost(Lost::Killed) => "exits: the lead is lost, the job had to be killed".to_owned(),
            Ending::Lost(Lost::Stopped) => "exits: the lead is lost, the job had stopped".to_owned(),
            Ending::Refused => "exits: refused".to_owned(),
            Ending::RestartLimit => "exits: the restart limit is reached".to_owned(),
            Ending::Skipped { .. } | Ending::NotDone { .. } => panic!("the node's: {ending:?}"),
            Ending::StoppedBy(signal) => format!("exits: stopped by signal {signal}"),
            Ending::Stuck => "exits: something can't be killed".to_owned(),
            Ending::WaitedEnough => "exits: waited enough".to_owned(),
        },
        Action::KillGuard => "kills the guard, and the job".to_owned(),
        Action::KillOrphans => "kills what the guard left".to_owned(),
        Action::LookAtForeground => "looks whose the foreground is".to_owned(),
        Action::Note(note) => shown_note(note),
        Action::Order(order) => shown_order(order),
        Action::StartGuard => "starts a guard".to_owned(),
        action => panic!("not a supervisor's: {action:?}"),
    }
}

fn shown_order(order: Order) -> String {
    match order {
        Order::Command { kind: CommandKind::Health, id, kill_at } => {
            format!("runs health command {id}, kill at {}", shown_time(kill_at))
        }
        Order::HandOn => "orders: hand the foreground on".to_owned(),
        Order::Kill => "orders: kill".to_owned(),
        Order::Lease(grant) => format!("orders: term {} until {}", grant.term, shown_time(grant.until)),
        Order::Over { term } => format!("orders: term {term} is over"),
        Order::Signal { signal, to } => {
            let target = match to {
                Target::Group => "group",
                Target::Main => "main process",
            };
            format!("orders: signal {signal} to the {target}")
        }
        Order::Spawn { grant, run, attempt, window } => {
            let window = window.map(|window| format!(", window {}", window.from_ms / 1_000)).unwrap_or_default();
            let run = if run == u64::from(attempt) { String::new() } else { format!(", run {run}") };
            let until = shown_time(grant.until);
            format!("orders: spawn, attempt {attempt}{run}, term {} until {until}{window}", grant.term)
        }
        Order::Stop { signal: Some(signal), kill_at } => {
            format!("orders: stop by signal {signal}, kill at {}", shown_time(kill_at))
        }
        Order::Stop { signal: None, kill_at } => format!("orders: stop by no signal, kill at {}", shown_time(kill_at)),
        Order::TakeBack => "orders: take the foreground back".to_owned(),
        Order::Command { kind: CommandKind::Lead, .. } | Order::Released { .. } => panic!("the node's: {order:?}"),
    }
}

/// What the candidate sees of a change.
fn shown_change(before: &Local, local: &Local) -> Vec<String> {
    let mut seen = Vec::new();
    if before.lacks_guard != local.lacks_guard {
        seen.push(if local.lacks_guard { "no guard lives" } else { "a guard lives" }.to_owned());
    }
    if local.is_stopped && !before.is_stopped {
        seen.push("it is to stop and leave".to_owned());
    }
    match (before.is_suspended, local.is_suspended) {
        (false, true) => seen.push("it is to be suspended".to_owned()),
        (true, false) => seen.push("it was continued".to_owned()),
        (false, false) | (true, true) => {}
    }
    seen.extend(shown_job(before.job.as_ref(), local.job.as_ref()));
    seen.into_iter().map(|seen| format!("shows the candidate: {seen}")).collect()
}

fn shown_job(before: Option<&JobIs>, job: Option<&JobIs>) -> Vec<String> {
    let Some(job) = job else { return Vec::new() };
    let (report_before, unhealthy_before, fenced_before) = match before {
        Some(JobIs::Alive { report, is_unhealthy, fenced, .. }) => (Some(*report), *is_unhealthy, *fenced),
        Some(JobIs::Gone(_)) | None => (None, false, None),
    };
    let mut seen = Vec::new();
    match job {
        JobIs::Alive { report, is_unhealthy, fenced, .. } => {
            if let Some(why) = fenced.filter(|_| fenced_before.is_none()) {
                seen.push(format!("fenced, {why}"));
            }
            if report_before != Some(*report) {
                let JobReport { state, pid, .. } = report;
                let pid = pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
                seen.push(format!("the job is {}{pid}", format!("{state:?}").to_lowercase()));
            }
            if *is_unhealthy && !unhealthy_before {
                seen.push("the job is unhealthy".to_owned());
            }
        }
        JobIs::Gone(end) => {
            if let Some(why) = end.fenced.filter(|_| fenced_before.is_none()) {
                seen.push(format!("fenced, {why}"));
            }
            if !matches!(before, Some(JobIs::Gone(_))) {
                seen.push(shown_job_end(end));
            }
        }
    }
    seen
}

fn shown_job_end(end: &JobEnd) -> String {
    let JobEnd { why, exit, leaving, seen, back_off, .. } = end;
    let exit = exit.map(|exit| format!(", exit {exit}")).unwrap_or_default();
    let since = seen.map(|seen| format!(", since {}", shown_end(seen))).unwrap_or_default();
    let backs_off =
        if back_off.is_zero() { String::new() } else { format!(", and it backs off for {}", shown(*back_off)) };
    format!("nothing is left, {why}{exit}{since}{backs_off}{}", if *leaving { ", and it leaves" } else { "" })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the others are notes of other objects")]
fn shown_note(note: Note) -> String {
    let status = |status| match status {
        JobStatus::Exited(code) => format!("with {code}"),
        JobStatus::Signaled(signal) => format!("by signal {signal}"),
    };
    match note {
        Note::ExecHangs { .. } => "says: the command is not executed".to_owned(),
        Note::GuardHangs => "says: the guard does not answer".to_owned(),
        Note::GuardLost { is_killed: false } => "says: the guard is lost".to_owned(),
        Note::GuardLost { is_killed: true } => "says: the guard that was killed is lost".to_owned(),
        Note::HealthFailed { failure, most, .. } if failure.count == most => {
            format!("says: unhealthy, {} failures: {:?} {:?}", failure.count, failure.end, failure.last_line)
        }
        Note::HealthFailed { failure, most, .. } => {
            format!(
                "says: the health command failed, {} of {most}: {:?} {:?}",
                failure.count, failure.end, failure.last_line
            )
        }
        Note::JobExited { status: how, ran, .. } => {
            format!("says: the job ended {}, after {}", status(how), shown(ran))
        }
        Note::JobKilled { why, .. } => format!("says: the job had to be killed, {why}"),
        Note::JobStarted { pid, attempt, .. } => format!("says: the job runs, pid {pid}, attempt {attempt}"),
        Note::JobStopped { signal: 20, .. } => "says: the job was continued, since nobody else could".to_owned(),
        Note::JobStopped { signal: 21, .. } => "says: the job wants the terminal, and is in the background".to_owned(),
        Note::JobStopped { pid, signal } => format!("says: the job, pid {pid:?}, is stopped by signal {signal}"),
        Note::NotStarted { errno, counts: _ } => format!("says: the job could not be started, errno {errno}"),
        Note::Restarting { attempt, delay, .. } => format!("says: attempt {attempt} follows in {}", shown(delay)),
        Note::Settling { delay, .. } => format!("says: the job starts in {}", shown(delay)),
        Note::StartedUnseen => "says: the job runs, and no descriptor is left to watch it by".to_owned(),
        Note::Stopping { why, .. } => format!("says: stopping, {why}"),
        Note::GuardStuck { pids, are_all: _ } => {
            format!("says: the guard does not end, and of the job there is: {pids:?}")
        }
        Note::Stuck { pids } => format!("says: can't be killed: {pids:?}"),
        note => panic!("{note:?} is no note of a supervisor"),
    }
}
