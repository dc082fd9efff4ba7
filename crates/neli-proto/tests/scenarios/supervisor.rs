//! Scenarios of a supervisor.

use std::time::Duration;

use neli_proto::candidate::{Departure, JobEnd, JobReport, LocalEvent, Loss};
use neli_proto::command::CommandEnd;
use neli_proto::guard::{Answer, CommandKind, Grant, Order, SeenEnd, Step, Target};
use neli_proto::health::HealthPolicy;
use neli_proto::note::Note;
use neli_proto::restart::{Limit, Restart, RestartPolicy};
use neli_proto::supervisor::Supervisor;
use neli_proto::supervisor::{
    Action, Ending, Event, Foreground, JobStatus, LeadEvent, Lost, OnLoss, Policy, RunEnd, StopPolicy,
};
use neli_proto::time::Time;
use neli_proto::window::Span;

use crate::Subject;
use crate::words::{Words, begin, seen_end, shown, shown_end, shown_time};

/// A supervisor and its time.
pub(crate) struct Scenario {
    supervisor: Supervisor,
    now: Time,
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
        Self { supervisor, now: begin() }
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

    /// The candidate's event about the lead; `None` if the line is about something else.
    fn lead_event(words: &Words<'_>) -> Option<LeadEvent> {
        let grant = || Grant {
            term: words.needed("term", words.number_of("term")),
            seen: words.needed("seen", words.number_of("seen").or(words.number_of("term"))),
            next_seq: 3,
            until: words.needed("until", words.time_of("until")),
        };
        Some(match words.verb() {
            "departed" => LeadEvent::Departed(match words.word(1) {
                "ended" => Departure::Ended,
                "left" => Departure::Left,
                "waited-enough" => Departure::WaitedEnough,
                other => panic!("{other} is no departure"),
            }),
            "extended" => LeadEvent::Extended(grant()),
            "held" => LeadEvent::Held(grant()),
            "killed" => LeadEvent::Killed(match words.word(1) {
                "history-cut" => Loss::HistoryCut,
                "lease-over" => Loss::LeaseOver,
                "superseded" => Loss::Superseded,
                other => panic!("{other} is no loss"),
            }),
            "led" => LeadEvent::Led(grant()),
            "may-run" => LeadEvent::MayRun {
                window: words
                    .number_of("window")
                    .map(|number: u64| Span { from_ms: number * 1_000, until_ms: (number + 1) * 1_000 }),
                attempt: words.number_of("attempt").unwrap_or(1),
            },
            "waits" => LeadEvent::Waits,
            "stopped-for" => LeadEvent::StoppedFor(crate::words::why(words.word(1))),
            "stopped-within" => LeadEvent::StoppedWithin {
                why: crate::words::why(words.word(1)),
                within: words.needed("within", words.span_of("within")),
            },
            _ => return None,
        })
    }

    /// The guard's answer; `None` if the line is about something else. `exited status=3 ended=300ms`: the guard noticed the end earlier.
    fn answer(now: Time, words: &Words<'_>) -> Option<Answer> {
        Some(match words.verb() {
            "answered" => Answer::Extended { until: words.needed("until", words.time_of("until")) },
            "exited" => {
                let signal = words.number_of("signal");
                let code = signal.is_none().then(|| words.needed("status", words.number_of("status")));
                let (left, foreground) = (words.says("left"), words.says("foreground"));
                Answer::Exited { code, signal, ended_at: words.time_of("ended").unwrap_or(now), left, foreground }
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
            "guard-not-started" => Event::GuardNotStarted,
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
            "terminal-gone" => Event::TerminalGone,
            "typed" => Event::Typed { signal: words.number(1) },
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
            "signal" => self.supervisor.handle_signal(self.now, words.number(1)),
            _ => match (Self::lead_event(words), Self::answer(self.now, words)) {
                (Some(event), _) => self.supervisor.handle_lead(self.now, event),
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
        while let Some(action) = self.supervisor.poll_action() {
            actions.push(shown_action(action));
        }
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
            Ending::Skipped(_) => panic!("the node's: {ending:?}"),
            Ending::StoppedBy(signal) => format!("exits: stopped by signal {signal}"),
            Ending::Stuck => "exits: something can't be killed".to_owned(),
            Ending::WaitedEnough => "exits: waited enough".to_owned(),
        },
        Action::GiveUpWaiting => "has the candidate wait no more".to_owned(),
        Action::KillGuard => "kills the guard, and the job".to_owned(),
        Action::KillOrphans => "kills what the guard left".to_owned(),
        Action::LookAtForeground => "looks whose the foreground is".to_owned(),
        Action::Note(note) => shown_note(note),
        Action::Order(order) => shown_order(order),
        Action::RunEnded(RunEnd { status, ran }) => {
            format!("asks what follows a run with {status}, after {}", shown(ran))
        }
        Action::StartGuard => "starts a guard".to_owned(),
        Action::Tell(event) => format!("tells the candidate: {}", shown_event(&event)),
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

fn shown_event(event: &LocalEvent) -> String {
    match event {
        LocalEvent::Continued => "it was continued".to_owned(),
        LocalEvent::Fenced { why } => format!("fenced, {why}"),
        LocalEvent::GuardIsMissing(true) => "no guard lives".to_owned(),
        LocalEvent::GuardIsMissing(false) => "a guard lives".to_owned(),
        LocalEvent::HandOver { .. } | LocalEvent::SpreadBy(_) => {
            panic!("the spread's: {event:?}")
        }
        LocalEvent::JobChanged(JobReport { state, pid, .. }) => {
            let pid = pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
            format!("the job is {}{pid}", format!("{state:?}").to_lowercase())
        }
        LocalEvent::NothingLeft(JobEnd { why, exit, leaving, seen, back_off, .. }) => {
            let exit = exit.map(|exit| format!(", exit {exit}")).unwrap_or_default();
            let since = seen.map(|seen| format!(", since {}", shown_end(seen))).unwrap_or_default();
            let backs_off =
                if back_off.is_zero() { String::new() } else { format!(", and it backs off for {}", shown(*back_off)) };
            format!("nothing is left, {why}{exit}{since}{backs_off}{}", if *leaving { ", and it leaves" } else { "" })
        }
        LocalEvent::StandDown { why, leaving } => {
            format!("stand down, {why}{}", if *leaving { ", and leave" } else { "" })
        }
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the others are notes of other objects")]
fn shown_note(note: Note) -> String {
    let status = |status| match status {
        JobStatus::Exited(code) => format!("with {code}"),
        JobStatus::Signaled(signal) => format!("by signal {signal}"),
    };
    match note {
        Note::GuardHangs => "says: the guard does not answer".to_owned(),
        Note::GuardLost => "says: the guard is lost".to_owned(),
        Note::HealthFailed { failure, most } => {
            format!(
                "says: the health command failed, {} of {most}: {:?} {:?}",
                failure.count, failure.end, failure.last_line
            )
        }
        Note::JobContinued => "says: the job was continued, since nobody else could".to_owned(),
        Note::JobInBackground => "says: the job wants the terminal, and is in the background".to_owned(),
        Note::JobExited { status: how, ran, .. } => {
            format!("says: the job ended {}, after {}", status(how), shown(ran))
        }
        Note::JobKilled { why, .. } => format!("says: the job had to be killed, {why}"),
        Note::JobStarted { pid, attempt, .. } => format!("says: the job runs, pid {pid}, attempt {attempt}"),
        Note::NotStarted { errno } => format!("says: the job could not be started, errno {errno}"),
        Note::Restarting { attempt, delay, .. } => format!("says: attempt {attempt} follows in {}", shown(delay)),
        Note::Settling { delay, .. } => format!("says: the job starts in {}", shown(delay)),
        Note::StartedUnseen => "says: the job runs, and no descriptor is left to watch it by".to_owned(),
        Note::Stopping { why, .. } => format!("says: stopping, {why}"),
        Note::GuardStuck { pids, are_all: _ } => {
            format!("says: the guard does not end, and of the job there is: {pids:?}")
        }
        Note::Stuck { pids } => format!("says: can't be killed: {pids:?}"),
        Note::Unhealthy { failure, .. } => {
            format!("says: unhealthy, {} failures: {:?} {:?}", failure.count, failure.end, failure.last_line)
        }
        note => panic!("{note:?} is no note of a supervisor"),
    }
}
