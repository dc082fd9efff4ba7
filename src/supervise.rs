//! The loop: take an input, ask the protocol, perform its actions. It knows both `neli-proto` and what has effects.
//!
//! `MainLoop` is what there is once in a process: the clients of Kafka, the terminal, the log, the end. A `Role` is what there is
//! once in an election: the node, the reading of its journal, the job under its guard, its hooks.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::io;
use std::panic;
use std::task::{Context, Poll};

use neli::program::embedded::{self, BrokerFinder};
use neli::program::{Nodes, clock};
use neli_proto::candidate;
use neli_proto::guard::GuardStarts;
use neli_proto::node::Event;
use neli_proto::time::Time;

use crate::config::Config;
use crate::exit::{ExitStatus, StartupError};
use crate::process::descriptors::Reserve;
use crate::process::ready::Ready;
use crate::process::signals::Signals;
use crate::process::timer::Timer;
use crate::report::log::{Event as LogEvent, From, Logger};
use crate::report::notes::{self, KnownLeader};
use crate::report::notify::Notifier;
use crate::supervise::job::GuardedJob;
use crate::supervise::kafka::KafkaState;
use crate::supervise::listening::Publisher;
use crate::supervise::role::Role;
use crate::supervise::service_status::ServiceStatus;
use crate::supervise::settling::Settling;
use crate::supervise::start::{JobMaker, Prepared};
use crate::supervise::terminal::Session;
use crate::text::reason;
pub use at_start::AtStart;

mod at_start;
mod children;
mod commands;
mod environment;
mod facts;
mod guard;
mod job;
mod journal;
mod kafka;
mod leaving;
mod listening;
mod main_process;
mod many_roles;
pub(crate) mod orphans;
mod perform;
mod role;
mod service_status;
mod settling;
mod start;
mod terminal;
mod translate;
mod wall_clock;

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
            why: notes::of_exit(status, &main_loop.config, &main_loop.known_leader()),
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
        let message = format!("neli-run has a bug and ends: {panic}");
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

/// What there is once in a process, and its part in each election.
struct MainLoop {
    config: Config,
    /// The elections' nodes, with all that this process has in each election.
    nodes: Nodes<Role>,
    job_maker: JobMaker,
    /// Where there are many roles: whose guard is started next.
    guard_starts: GuardStarts,
    /// Kafka's last refusal: each role gets it, and one logs it.
    refusal: Option<Box<str>>,
    kafka: KafkaState,
    session: Session,
    service_status: ServiceStatus,
    /// Where HTTP is served.
    publisher: Option<Publisher>,
    /// How far the start has come.
    settling: Settling,
    logger: Logger,
    /// The way to stderr for what others write: the log's, unless that goes to a file.
    stderr: Logger,
    /// For the moments in which one more descriptor is needed, whatever else is open.
    reserve: Reserve,
    /// The same for a client of Kafka that is made anew.
    reserve_of_client: Reserve,
    /// The embedded brokers that this process has started: children that are no part of a job.
    brokers_started: embedded::StartedBrokers,
    /// How the process is to end, once it is.
    ending: Option<ExitStatus>,
}

/// What woke the loop.
enum Input {
    Guard(usize),
    GuardHasRoom(usize),
    Hangup,
    HealthOutput(usize),
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
        let Prepared { config, access, broker, job_maker, job, signals, bound } = prepared;
        let writes_to_file_alone = config.log.file.is_some() && config.commands.health.is_some();
        let stderr = if writes_to_file_alone { logger.on_stderr()? } else { logger.clone() };
        logger.event(&LogEvent::Started {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            name: config.name.clone(),
            member: job_maker.member.to_string(),
            topic: config.election.topic.clone(),
            elect: role::name_of(config.timings.elector()).to_owned(),
            lease: config.timings.lease(),
        });
        let (notifier, warning) = Notifier::of_environment(|name| std::env::var_os(name), std::process::id());
        for message in config.warnings.iter().cloned().chain(warning.map(|error| error.to_string())) {
            logger.warn(message);
        }
        let kafka_session = kafka::start_session(access, &config, &logger)?;
        let elections = config.elections();
        let mut roles = Vec::new();
        for number in elections.roles.clone() {
            let member = job_maker.member.clone();
            roles.push(Role::new(&config, elections.election(number, 1), member, &logger, started)?);
        }
        if let (Some(job), Some(role)) = (job, roles.first_mut()) {
            role.job = Some(GuardedJob::new(job).map_err(cannot("the guard can't be awaited"))?);
        }
        let nodes = Nodes::new(roles, kafka_session, many_roles::of(&config, &job_maker.member));
        let publisher =
            bound.map(|bound| Publisher::start(bound, &config, &job_maker, &nodes.roles, &logger)).transpose()?;
        let main_loop = Self {
            nodes,
            guard_starts: guard::starts_of(&config),
            config,
            job_maker,
            refusal: None,
            kafka: KafkaState::default(),
            session: Session::new(has_terminal),
            service_status: ServiceStatus::to(notifier),
            publisher,
            settling: Settling::Starting,
            logger,
            stderr,
            reserve: Reserve::of_guard(),
            reserve_of_client: Reserve::of_client(),
            brokers_started: broker.as_ref().map(|finder| finder.started.clone()).unwrap_or_default(),
            ending: None,
        };
        if let Some(finder) = broker {
            main_loop.follow_broker(finder)?;
        }
        Ok((main_loop, signals))
    }

    /// Warns that an embedded broker is for trials only, and has it replaced when it dies.
    fn follow_broker(&self, finder: BrokerFinder) -> Result<(), StartupError> {
        if let Some(bootstrap) = self.nodes.session.follow_broker(finder).map_err(cannot("--embedded"))? {
            self.logger.warn(format!(
                "--embedded is for a trial on this one machine: its broker, at {bootstrap}, keeps nothing"
            ));
        }
        Ok(())
    }

    /// The leader, as far as known, if there is only one role.
    fn known_leader(&self) -> KnownLeader {
        let [role] = self.nodes.roles.as_slice() else { return KnownLeader::None };
        match role.node.status(clock::now()).leader.and_then(|leader| leader.name) {
            Some(name) => KnownLeader::Named(name),
            None if self.kafka.outage.trouble().is_some() => KnownLeader::NoAnswer,
            None if !role.node.is_caught_up() => KnownLeader::Unread,
            None => KnownLeader::None,
        }
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
            self.start_next_guard();
            self.report();
            self.publish();
            self.suspend_if_due();
            if let Some(status) = self.ending {
                self.leave(&signals, &signals_ready, &mut timer).await;
                return status;
            }
            timer.set(self.next_timeout());
            let roles = &self.nodes.roles;
            let input = tokio::select! {
                biased;
                input = poll_fn(|context| poll_guards(roles, context)) => input,
                () = signals_ready.wait() => Input::Signal,
                () = self.session.hung_up() => Input::Hangup,
                () = self.nodes.session.wait() => Input::Kafka,
                () = timer.due() => Input::Timeout,
                input = poll_fn(|context| poll_health_output(roles, context)) => input,
            };
            match input {
                Input::Guard(at) => self.handle_answers(at),
                // The supervisor notices by the lack of answers whether the guard takes orders.
                Input::GuardHasRoom(at) => self.nodes.roles[at].job.iter().for_each(|job| drop(job.guard.flush())),
                Input::Hangup => self.handle_hangup(),
                Input::HealthOutput(at) => self.nodes.roles[at].commands.pass_on_health_output(&self.stderr),
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
            let Some(event) = self.nodes.session.poll() else { break };
            self.perform();
            self.handle_session_event(event);
        }
    }

    /// Takes in what the guards of the roles that are due, and children, have done while this process was stopped, or got no processor:
    /// before a timeout is taken for their silence. What a dead guard left is killed again.
    fn handle_pending(&mut self, due: &BTreeSet<usize>) {
        for &at in due {
            if self.nodes.roles[at].job.as_ref().is_some_and(|job| !job.is_silent) {
                self.handle_answers(at);
            }
        }
        self.handle_children();
        self.perform();
    }

    fn next_timeout(&self) -> Option<Time> {
        let nodes = self.nodes.poll_timeout();
        let service = self.service_status.notifier.poll_timeout();
        let publisher = self.publisher.as_ref().map(Publisher::poll_timeout);
        let guards = self.guard_starts.poll_timeout();
        let kafka = self.kafka.poll_timeout();
        let settling = self.settling.poll_timeout();
        [nodes, guards, kafka, settling, service, publisher].into_iter().flatten().min()
    }

    fn handle_timeouts(&mut self) {
        self.perform();
        let pending: BTreeSet<usize> = self.nodes.due(clock::now()).into_iter().collect();
        if self.next_timeout().is_some_and(|due| clock::now() >= due) {
            self.handle_pending(&pending);
        }
        let now = clock::now();
        // Whatever is due since then is done in the next turn, once its guard's answers were read.
        for at in self.nodes.due(now).into_iter().filter(|at| pending.contains(at)) {
            self.nodes.let_time_pass(now, at);
            self.tell_window(at, now, false);
            if let Some((message, _)) = self.nodes.roles[at].undecodable.poll(now) {
                self.nodes.roles[at].logger.event(&LogEvent::Error { message });
            }
        }
        self.nodes.handle_timeout_of_many(now);
        self.settling.handle_timeout(now);
        if self.kafka.log_becomes_trusted(now) {
            self.nodes.tell_all(&Event::Election(candidate::Event::LogTrusted));
        }
        if let Some((error, down)) = self.kafka.outage.poll(now) {
            self.logger.event(&notes::of_outage(error, down));
        }
        while let Some((error, _)) = self.kafka.refused_appends.poll(now) {
            self.logger.warn(notes::of_refused_append(&self.config.election.topic, &error));
        }
    }

    /// Something has happened to a role now.
    fn tell(&mut self, at: usize, event: Event) {
        self.nodes.tell(clock::now(), at, event);
    }

    /// A role is stood for no more. With the last one the process ends, with the highest status of all.
    fn role_ended(&mut self, at: usize, status: ExitStatus) {
        self.nodes.roles[at].ending.get_or_insert(status);
        let endings: Vec<ExitStatus> = self.nodes.roles.iter().filter_map(|role| role.ending).collect();
        if endings.len() == self.nodes.roles.len() {
            self.ending = endings.into_iter().max_by_key(|status| status.code());
        } else {
            self.exit_role(at);
        }
    }

    /// What the role still does is its last hook.
    fn exit_role(&mut self, at: usize) {
        let now = clock::now();
        self.nodes.tell_ended(now, at, Event::Exiting);
        self.want_no_guard(at);
        // One that owes a release waits for our death.
        self.nodes.roles[at].job.iter().filter(|job| !job.guard.owes_release()).for_each(|job| job.guard.close());
    }

    /// Ends the process.
    fn refuse(&mut self, message: String) -> ExitStatus {
        self.logger.event(&LogEvent::Error { message });
        *self.ending.get_or_insert(ExitStatus::Refused)
    }
}

/// What the guard of one of the roles wants, if one does.
fn poll_guards(roles: &[Role], context: &mut Context<'_>) -> Poll<Input> {
    for (at, role) in roles.iter().enumerate() {
        let Some(job) = &role.job else { continue };
        if !job.is_silent && job.ready.poll_wait(context).is_ready() {
            return Poll::Ready(Input::Guard(at));
        }
        if job.guard.has_backlog() && job.ready.poll_room(context).is_ready() {
            return Poll::Ready(Input::GuardHasRoom(at));
        }
    }
    Poll::Pending
}

/// The same of the health commands.
fn poll_health_output(roles: &[Role], context: &mut Context<'_>) -> Poll<Input> {
    let mut outputs = roles.iter().enumerate().map(|(at, role)| (at, role.commands.poll_health_output(context)));
    match outputs.find(|(_, output)| output.is_ready()) {
        Some((at, _)) => Poll::Ready(Input::HealthOutput(at)),
        None => Poll::Pending,
    }
}
