//! Scenarios of a guard.

use std::time::Duration;

use neli_proto::guard::{
    Action, Answer, CommandKind, Event, Grant, Guard, KillMethod, KillRound, Order, Remains, Step, Target,
};
use neli_proto::job::{CommandEnd, JobStatus};
use neli_proto::time::Time;

use crate::Subject;
use crate::words::{Words, begin, shown_end, shown_time};

/// A guard and its time.
pub(crate) struct Scenario {
    guard: Guard,
    now: Time,
}

impl Scenario {
    /// `guard patience=5s kill-margin=20ms`.
    pub(crate) fn begin(words: &Words<'_>) -> Self {
        let patience = words.span_of("patience").unwrap_or(Duration::from_secs(5));
        let kill_margin = words.span_of("kill-margin").unwrap_or(Duration::from_millis(20));
        Self { guard: Guard::new(patience).with_kill_margin(kill_margin), now: begin() }
    }

    fn grant(words: &Words<'_>) -> Grant {
        let term = words.needed("term", words.number_of("term"));
        Grant {
            term,
            seen: words.number_of("seen").unwrap_or(term),
            next_seq: words.number_of("seq").unwrap_or(1),
            until: words.needed("until", words.time_of("until")),
        }
    }

    fn order(words: &Words<'_>) -> Option<Order> {
        let term = || words.needed("term", words.number_of("term"));
        let kill_at = || words.needed("kill-at", words.time_of("kill-at"));
        Some(match words.verb() {
            "command" => {
                let id = words.needed("id", words.number_of("id"));
                Order::Command { kind: kind(words.word(1)), id, kill_at: kill_at() }
            }
            "hand-on" => Order::HandOn,
            "kill" => Order::Kill,
            "lease" => Order::Lease(Self::grant(words)),
            "over" => Order::Over { term: term() },
            "released" => Order::Released { term: term() },
            "signal" => Order::Signal { signal: words.number(1), to: target(words.word(2)) },
            "spawn" => Order::Spawn {
                grant: Self::grant(words),
                run: words.number_of("run").unwrap_or(1),
                attempt: words.number_of("attempt").unwrap_or(1),
                window: None,
            },
            "stop" => Order::Stop { signal: words.number_of("signal"), kill_at: kill_at() },
            "take-back" => Order::TakeBack,
            _ => return None,
        })
    }

    fn event(words: &Words<'_>) -> Event {
        match words.verb() {
            "all-read" => Event::AllRead,
            "closed" => Event::SocketClosed,
            "command-ended" => {
                let end = match words.number_of("signal") {
                    Some(signal) => CommandEnd::Signaled(signal),
                    None if words.says("not-started") => CommandEnd::NotStarted("no process to spare".into()),
                    None => CommandEnd::Exited(words.needed("status", words.number_of("status"))),
                };
                Event::CommandEnded { kind: kind(words.word(1)), end }
            }
            "died" => Event::SupervisorDied,
            "executed" => Event::Executed,
            "learnt" => {
                let begun = words.needed("begun", words.time_of("begun"));
                Event::Learnt { begun }
            }
            "main-ended" => Event::MainEnded { status: words.status() },
            "main-stopped" => Event::MainStopped { signal: words.number(1) },
            "not-started" => Event::NotStarted {
                errno: words.needed("errno", words.number_of("errno")),
                at: match words.word(1) {
                    "exec" => Step::Exec,
                    "fork" => Step::Fork,
                    "in-time" => Step::InTime,
                    "lease" => Step::Lease,
                    other => panic!("{other} is no step of a start"),
                },
            },
            "sigkill-sent" => {
                let (lived_at, none_lived_at) = (words.time_of("one-lives-at"), words.time_of("none-lives-at"));
                Event::Killed(KillRound { has_seen_all: !words.says("in-part"), lived_at, none_lived_at })
            }
            "waited" => Event::Waited(match words.word(1) {
                "children-left" => Remains::seen(true, || false),
                "others-left" => Remains::seen(false, || true),
                "nothing-left" => Remains::seen(false, || false),
                other => panic!("{other} is nothing that is left"),
            }),
            other => panic!("nothing is called {other}"),
        }
    }
}

impl Subject for Scenario {
    fn now(&mut self) -> &mut Time {
        &mut self.now
    }

    fn meet(&mut self, words: &Words<'_>) {
        let event = Self::order(words).map(Event::Ordered);
        self.guard.handle(self.now, event.unwrap_or_else(|| Self::event(words)));
    }

    fn handle_timeout(&mut self, now: Time) {
        self.guard.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.guard.poll_timeout()
    }

    fn actions(&mut self) -> Vec<String> {
        let mut actions = Vec::new();
        while let Some(action) = self.guard.poll_action() {
            actions.push(shown_action(action));
        }
        actions
    }
}

fn kind(word: &str) -> CommandKind {
    match word {
        "health" => CommandKind::Health,
        "lead" => CommandKind::Lead,
        other => panic!("{other} is no command"),
    }
}

fn target(word: &str) -> Target {
    match word {
        "group" => Target::Group,
        "main" => Target::Main,
        other => panic!("{other} gets no signal"),
    }
}

const fn shown_target(target: Target) -> &'static str {
    match target {
        Target::Group => "the main process's group",
        Target::Main => "the main process",
    }
}

fn shown_action(action: Action) -> String {
    match action {
        Action::Answer(answer) => format!("answers: {}", shown_answer(answer)),
        Action::AnswerExited { status, look } => {
            let left = if look { "whether the job left anything, by a look" } else { "whether anything is left" };
            format!("takes the terminal back, and answers: exited, {}; {left}", ended(status))
        }
        Action::AnswerLeftBehind { until } => {
            format!("answers: who is left and killed, by a look until {}", shown_time(until))
        }
        Action::AnswerStarted => "answers: started".to_owned(),
        Action::AnswerStuck => "answers: stuck, and who".to_owned(),
        Action::BeginAnew => "gets ready for the next run".to_owned(),
        Action::End => "ends".to_owned(),
        Action::HandOn => "hands the foreground on".to_owned(),
        Action::Kill(methods) => {
            let looks = if methods.contains(&KillMethod::Look) { "looks whether a process is alive, and " } else { "" };
            let methods = methods.iter().filter_map(|method| {
                Some(match method {
                    KillMethod::Look => return None,
                    KillMethod::Known => "what is known",
                    KillMethod::Cgroup => "the control group",
                    KillMethod::Found => "what a look finds",
                })
            });
            format!("{looks}kills {}", methods.collect::<Vec<_>>().join(", "))
        }
        Action::KillCommand(kind) => format!("kills the {} command's group", kind.event()),
        Action::KillMainGroup => "kills the main process's group".to_owned(),
        Action::Learn { until } => format!("learns the tree, until {}", shown_time(until)),
        Action::Release { grant: Grant { term, seen, next_seq, .. }, late } => {
            let late = late.map(|late| format!(", {}ms late", late.as_millis())).unwrap_or_default();
            format!("releases term {term}, seen {seen}, seq {next_seq}{late}")
        }
        Action::RemoveCgroup => "removes the control group".to_owned(),
        Action::ShowDeadline { term, until } => {
            format!("shows the job of term {term} its deadline, {}", shown_time(until))
        }
        Action::ShowEnd => "shows the job that the term is over".to_owned(),
        Action::Signal { signal, to } => format!("signal {signal} to {}", shown_target(to)),
        Action::SignalRest { signal, but_group, until } => {
            let but = if but_group { ", but for the main process's group" } else { "" };
            let until = shown_time(until);
            format!("signal {signal} and SIGCONT to who is left{but}, as found until {until}, and answers who it was")
        }
        Action::Start { term, until, attempt, window: _ } => {
            format!("starts attempt {attempt} of term {term}, before {}", shown_time(until))
        }
        Action::StartCommand(kind) => format!("starts the {} command", kind.event()),
        Action::TakeBack => "takes the terminal back".to_owned(),
    }
}

fn ended(status: JobStatus) -> String {
    match status {
        JobStatus::Exited(code) => format!("with {code}"),
        JobStatus::Signaled(signal) => format!("by signal {signal}"),
    }
}

fn shown_answer(answer: Answer) -> String {
    match answer {
        Answer::Accepted { until } => format!("accepted, until {}", shown_time(until)),
        Answer::CommandEnded { kind, id, end } => format!("{} command {id} ended, {end:?}", kind.event()),
        Answer::Extended { until } => format!("extended, until {}", shown_time(until)),
        Answer::Fenced { term, end } => {
            let gone = end.map(|end| format!(", gone at {}", shown_end(end))).unwrap_or_default();
            format!("term {term} is fenced{gone}")
        }
        Answer::Gone => "gone".to_owned(),
        Answer::Killed => "killed".to_owned(),
        Answer::NoRun { term, run } => format!("run {run} of term {term} was the last run, and is over"),
        Answer::NotStarted { errno, at } => format!("not started, errno {errno} at {at:?}"),
        Answer::StillKilling => "still killing".to_owned(),
        Answer::Stopped { signal } => format!("stopped by signal {signal}"),
        Answer::CommandsLeft
        | Answer::Exited { .. }
        | Answer::LeftBehind { .. }
        | Answer::Ready
        | Answer::Started { .. }
        | Answer::StartedUnseen { .. }
        | Answer::Stuck { .. } => {
            panic!("the process fills in what it sees: {answer:?}")
        }
    }
}
