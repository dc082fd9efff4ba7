//! The loop: take an input, ask the protocol, perform its actions. It knows both `neli-proto` and what has effects.
//!
//! `MainLoop` is what there is once in a process: the clients of Kafka, the terminal, the log, the end. A `Role` is what there is
//! once in an election: the node, the reading of its journal, the job under its guard, its hooks.

use std::io;
use std::os::fd::RawFd;
use std::panic;

use neli::program::clock;
use neli::program::embedded::{self, BrokerFinder};
use neli_proto::candidate;
use neli_proto::node::Event;
use neli_proto::time::Time;

use crate::config::Config;
use crate::exit::{ExitStatus, StartupError};
use crate::process::descriptors::{self, Reserve};
use crate::process::ready::Ready;
use crate::process::signals::Signals;
use crate::process::terminal::is_there;
use crate::process::timer::Timer;
use crate::report::log::{Event as LogEvent, From, Logger};
use crate::report::notes;
use crate::report::notify::Notifier;
use crate::supervise::kafka::KafkaSession;
use crate::supervise::orphans::Orphans;
use crate::supervise::role::Role;
use crate::supervise::service_status::ServiceStatus;
use crate::supervise::start::Prepared;
use crate::supervise::terminal::Session;
use crate::text::reason;

mod children;
mod commands;
mod environment;
mod guard;
mod job;
mod journal;
mod kafka;
mod leaving;
pub(crate) mod orphans;
mod perform;
mod role;
mod service_status;
mod start;
mod terminal;
mod translate;

/// What is known of the process at the very start of `main`.
#[derive(Clone, Debug)]
pub struct AtStart {
    /// When it started.
    pub time: Time,
    /// The descriptors that it inherited.
    pub inherited: Vec<RawFd>,
    /// Whether it had a terminal.
    pub has_terminal: bool,
}

impl AtStart {
    /// To be called first thing in `main`, before anything is opened.
    #[must_use]
    pub fn now() -> Self {
        // Without /proc only the three that every process has are known.
        let inherited = descriptors::open().unwrap_or_else(|_| vec![0, 1, 2]);
        Self { time: clock::now(), inherited, has_terminal: is_there() }
    }
}

/// Stands for election, and runs the job while it leads.
///
/// # Errors
///
/// What keeps it from standing at all: one line, and the status to exit with.
pub fn run(config: Config, at_start: AtStart) -> Result<ExitStatus, StartupError> {
    let AtStart { time, inherited, has_terminal } = at_start;
    let prepared = Prepared::new(config, inherited)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .map_err(cannot("the main loop can't be started"))?;
    let logger = Logger::start(&prepared.config.log, &prepared.config.election, &prepared.config.name)?;
    log_panics(logger.clone());
    runtime.block_on(async move {
        let (mut main_loop, signals) = MainLoop::new(prepared, logger, time, has_terminal)?;
        let status = main_loop.turn(signals).await;
        main_loop.logger.event(&LogEvent::Exiting {
            status: status.code(),
            from: if status.is_jobs_own() { From::Job } else { From::NeliRun },
        });
        main_loop.logger.finish();
        main_loop.stderr.finish();
        main_loop.session.die_of_signal();
        Ok(status)
    })
}

/// Logs a panic, and ends the log: written to stderr as usual it could wait for ever, and what has panicked would not end.
fn log_panics(logger: Logger) {
    panic::set_hook(Box::new(move |panic| {
        let message = format!("a fault in neli-run itself, which ends: {panic}");
        logger.event(&LogEvent::Error { message });
        logger.finish();
    }));
}

/// The refusal of what could not be done, with the reason.
fn cannot(what: &str) -> impl FnOnce(io::Error) -> StartupError {
    move |error| StartupError::new(format!("{what}: {}", reason(&error)))
}

/// How many events of Kafka are taken in before signals and the guard are looked at again.
const EVENTS_TOGETHER: usize = 1024;

/// What there is once in a process, and its part in the election.
struct MainLoop {
    config: Config,
    role: Role,
    kafka: KafkaSession,
    session: Session,
    service_status: ServiceStatus,
    logger: Logger,
    /// The way to stderr for what others write: the log's, unless that goes to a file.
    stderr: Logger,
    /// For the moments in which one more descriptor is needed, whatever else is open.
    reserve: Reserve,
    /// The embedded brokers that this process has started: children that are no part of a job.
    brokers_started: embedded::StartedBrokers,
    /// How the process is to end, once it is.
    ending: Option<ExitStatus>,
}

/// What woke the loop.
enum Input {
    Guard,
    GuardHasRoom,
    Hangup,
    HealthOutput,
    Kafka,
    Signal,
    Timeout,
}

impl MainLoop {
    fn new(
        prepared: Prepared,
        logger: Logger,
        started: Time,
        has_terminal: bool,
    ) -> Result<(Self, Signals), StartupError> {
        let Prepared { config, access, broker, member, job, signals } = prepared;
        let writes_to_file_alone = config.log.file.is_some() && config.commands.health.is_some();
        let stderr = if writes_to_file_alone { logger.on_stderr()? } else { logger.clone() };
        logger.event(&LogEvent::Started {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            name: config.name.clone(),
            member: member.to_string(),
            topic: config.election.topic.clone(),
            elect: role::name_of(config.timings.elector()).to_owned(),
            lease: config.timings.lease(),
        });
        let (notifier, warning) = Notifier::of_environment(|name| std::env::var_os(name), std::process::id());
        for message in config.warnings.iter().cloned().chain(warning.map(|error| error.to_string())) {
            logger.warn(message);
        }
        let kafka = KafkaSession::start(access, &config, &logger)?;
        let mut role = Role::new(&config, member, job, started)?;
        if kafka.is_embedded() {
            role.topic_has_no_id();
        }
        let mut main_loop = Self {
            config,
            role,
            kafka,
            session: Session::new(has_terminal),
            service_status: ServiceStatus::to(notifier),
            logger,
            stderr,
            reserve: Reserve::default(),
            brokers_started: broker.as_ref().map(|finder| finder.started.clone()).unwrap_or_default(),
            ending: None,
        };
        main_loop.reserve.fill();
        if let Some(finder) = broker {
            main_loop.follow_broker(finder)?;
        }
        Ok((main_loop, signals))
    }

    /// Warns of what an embedded broker is for, and has it replaced when it dies.
    fn follow_broker(&self, finder: BrokerFinder) -> Result<(), StartupError> {
        if let Some(bootstrap) = self.kafka.session.follow_broker(finder).map_err(cannot("--embedded"))? {
            self.logger.warn(format!(
                "--embedded is for a trial on this one machine: its broker, at {bootstrap}, keeps nothing"
            ));
        }
        Ok(())
    }

    /// Turns until the end.
    async fn turn(&mut self, signals: Signals) -> ExitStatus {
        let (signals_ready, mut timer) = match (Ready::of(&signals), Timer::new()) {
            (Ok(ready), Ok(timer)) => (ready, timer),
            (Err(error), _) | (_, Err(error)) => {
                return self.refuse(format!("the main loop can't wait: {}", reason(&error)));
            }
        };
        loop {
            self.perform();
            self.report();
            self.suspend_if_due();
            if let Some(status) = self.ending {
                self.leave(&signals, &signals_ready, &mut timer).await;
                return status;
            }
            timer.set(self.next_timeout());
            let job = &self.role.job;
            let input = tokio::select! {
                biased;
                () = job.ready.wait(), if !job.is_silent => Input::Guard,
                () = job.ready.wait_for_room(), if job.guard.has_backlog() => Input::GuardHasRoom,
                () = signals_ready.wait() => Input::Signal,
                () = self.session.hung_up() => Input::Hangup,
                () = self.kafka.session.wait() => Input::Kafka,
                () = timer.due() => Input::Timeout,
                () = self.role.commands.health_has_output() => Input::HealthOutput,
            };
            match input {
                Input::Guard => self.handle_answers(),
                // The supervisor notices by the lack of answers whether the guard takes orders.
                Input::GuardHasRoom => drop(self.role.job.guard.flush()),
                Input::Hangup => self.handle_hangup(),
                Input::HealthOutput => self.role.commands.pass_on_health_output(&self.stderr),
                Input::Kafka => self.handle_session_events(),
                Input::Signal => self.handle_signals(&signals),
                Input::Timeout => {}
            }
            self.handle_timeouts();
        }
    }

    /// What came together is taken together, but signals and the guard are not kept waiting for long.
    fn handle_session_events(&mut self) {
        for _ in 0..EVENTS_TOGETHER {
            let Some(event) = self.kafka.session.poll() else { break };
            self.perform();
            self.handle_session_event(event);
        }
    }

    /// Takes in what guard and children have done while this process was stopped, or got no processor: before a timeout is taken for
    /// their silence. What a dead guard left is killed again.
    fn handle_pending(&mut self) {
        if !self.role.job.is_silent {
            self.handle_answers();
        }
        self.handle_children();
        self.perform();
    }

    fn next_timeout(&self) -> Option<Time> {
        let timeouts = [
            self.role.node.poll_timeout(),
            self.role.undecodable.poll_timeout(),
            self.role.job.orphans.as_ref().map(Orphans::again_at),
            self.kafka.poll_timeout(),
            self.service_status.notifier.poll_timeout(),
        ];
        timeouts.into_iter().flatten().min()
    }

    fn handle_timeouts(&mut self) {
        if self.next_timeout().is_some_and(|due| clock::now() >= due) {
            self.handle_pending();
        }
        let now = clock::now();
        self.take_passed(now);
        self.role.node.handle_timeout(now);
        if self.kafka.log_becomes_trusted(now) {
            self.election_event(now, candidate::Event::LogTrusted);
        }
        if let Some(outage) = self.kafka.outage.poll(now) {
            self.logger.event(&notes::of_outage(outage));
        }
        while let Some((error, _)) = self.kafka.refused_appends.poll(now) {
            self.logger.warn(notes::of_refused_append(&self.role.election.topic, &error));
        }
        if let Some((message, _)) = self.role.undecodable.poll(now) {
            self.logger.event(&LogEvent::Error { message });
        }
    }

    /// What others wrote was read before whatever happens now.
    fn take_passed(&mut self, now: Time) {
        if let Some(event) = self.kafka.session.take_passed(self.role.election.role) {
            self.handle_role_event(now, event);
        }
    }

    /// Something that concerns the election has happened.
    fn election_event(&mut self, now: Time, event: candidate::Event) {
        self.role.node.handle(now, Event::Election(event));
    }

    fn refuse(&mut self, message: String) -> ExitStatus {
        self.logger.event(&LogEvent::Error { message });
        *self.ending.get_or_insert(ExitStatus::Refused)
    }
}
