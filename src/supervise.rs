//! The loop: take an input, ask the protocol, perform its actions. It knows both `neli-proto` and what has effects.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::panic;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use neli::clock;
use neli::election::{Brokers, Client};
use neli::kafka::access::Access;
use neli::kafka::embedded;
use neli::kafka::group::{GroupReport, Member};
use neli::kafka::journal::{KafkaEvent, Producer};
use neli::kafka::reader::Reader;
use neli_proto::candidate::{self, Elector, Identity};
use neli_proto::listener::FIRST_SPAN;
use neli_proto::node::{Event, Node, Settings};
use neli_proto::random::Random;
use neli_proto::record::{Body, MemberId};
use neli_proto::reminder::{Reminder, Reminders};
use neli_proto::supervisor::{Policy, StopPolicy};
use neli_proto::time::Time;
use neli_proto::topic::TopicIdentity;
use nix::sys::prctl;
use nix::unistd;
use rdkafka::config::RDKafkaLogLevel;
use tokio::sync::mpsc;

use crate::config::Config;
use crate::exit::{ExitStatus, StartupError};
use crate::guard::{GuardConfig, GuardHandle};
use crate::process::cgroup::Cgroup;
use crate::process::descriptors::{self, Reserve};
use crate::process::limits;
use crate::process::priority::{self, Priority};
use crate::process::procfs;
use crate::process::quota;
use crate::process::random;
use crate::process::ready::Ready;
use crate::process::signals::{self, Signals};
use crate::process::tail::Tail;
use crate::process::terminal::{is_there, may_be_handed_on};
use crate::process::timer::Timer;
use crate::release;
use crate::report::log::{Event as LogEvent, From, Logger};
use crate::report::notes;
use crate::report::notify::Notifier;
use crate::supervise::orphans::Orphans;
use crate::supervise::report::Report;
use crate::supervise::terminal::Session;
use crate::text::reason;

mod commands;
mod environment;
mod group;
mod guard;
mod kafka;
mod leaving;
pub(crate) mod orphans;
mod perform;
mod report;
mod terminal;
mod translate;

use commands::RunningHook;
use group::Members;

/// How many things seen of Kafka may wait for the loop; its threads wait beyond that.
const SEEN_WAITING: usize = 1024;
/// How many words of the group may.
const SAID_WAITING: usize = 16;

/// This program, even where its file has been replaced since.
const PROGRAM: &str = "/proc/self/exe";

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
pub fn run(mut config: Config, at_start: AtStart) -> Result<ExitStatus, StartupError> {
    let cannot = |what: &str| {
        let what = what.to_owned();
        move |error: io::Error| StartupError::new(format!("{what}: {}", reason(&error)))
    };
    limits::validate().map_err(StartupError::new)?;
    if !procfs::is_visible() {
        return Err(StartupError::new(
            "/proc is not there, or another PID namespace's: the job's processes could not be found and killed; mount it \
             anew (unshare --mount-proc; mount -t proc proc /proc)",
        ));
    }
    if !procfs::is_complete() {
        return Err(StartupError::new(
            "/proc hides processes (hidepid), and this kernel lists no children (CONFIG_PROC_CHILDREN): not all of the job's \
             could be found and killed; root is shown them all",
        ));
    }
    // Before any thread exists: threads inherit the priority, and the mask.
    let priority = priority::take().map_err(StartupError::new)?;
    if !priority.guard_is_real_time {
        let quota = quota::longest();
        config.widen_kill_margin(quota.as_ref().map(|quota| (quota.file.as_path(), quota.period)))?;
    }
    let signals = Signals::take().map_err(cannot("signals can't be taken over"))?;
    // When the guard dies, what it leaves becomes ours to kill.
    prctl::set_child_subreaper(true).map_err(io::Error::from).map_err(cannot("can't become a subreaper"))?;
    let bits = random::bytes().map_err(cannot("no randomness"))?;
    let member = MemberId::from_random(u128::from_le_bytes(bits));
    let mut seeker = None;
    let access = match &config.client.brokers {
        Brokers::At(brokers) => Access::at(brokers, &config.client.properties),
        Brokers::Embedded => {
            let own = embedded::Seeker::of_user().map_err(cannot("--embedded"))?;
            let found = own.find_or_start().map_err(cannot("--embedded"))?;
            let access = Access::embedded(&found.connection, &config.client.properties);
            seeker = Some(own);
            access
        }
    };
    let cgroup = Cgroup::make().ok().map(Rc::new);
    if cgroup.is_none() && !unistd::geteuid().is_root() {
        config.warnings.push(
            "without root, and without a control group for the job (systemd: Delegate=yes), a setuid program that the job \
             runs can't be killed, and would outlive its right"
                .to_owned(),
        );
    }
    let guard_config = guard_config(&config, &access, &member, at_start.inherited.clone(), cgroup.as_deref(), priority);
    let guard = GuardHandle::start(Path::new(PROGRAM), &guard_config).map_err(cannot("the guard can't be started"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .map_err(cannot("the main loop can't be started"))?;
    let logger = Logger::start(&config.log, &config.election, &config.name)?;
    let last_words = logger.clone();
    // Written to stderr as usual it could wait for ever, and what has panicked would not end.
    panic::set_hook(Box::new(move |panic| {
        let message = format!("a fault in neli-run itself, which ends: {panic}");
        last_words.event(&LogEvent::Error { message });
        last_words.finish();
    }));
    runtime.block_on(async move {
        let mut run = Run::new(config, access, member, guard_config, guard, logger, &at_start)?;
        run.cgroup = cgroup;
        run.reserve.fill();
        if let Some(seeker) = seeker {
            run.follow_broker(seeker)?;
        }
        let status = run.turn(signals).await;
        run.logger.event(&LogEvent::Exiting {
            status: status.code(),
            from: if status.is_jobs_own() { From::Job } else { From::NeliRun },
        });
        run.logger.finish();
        run.stderr.finish();
        run.die_of_the_terminals_signal();
        Ok(status)
    })
}

/// What the guard is told at its own start.
fn guard_config(
    config: &Config,
    access: &Access,
    member: &MemberId,
    inherited: Vec<RawFd>,
    cgroup: Option<&Cgroup>,
    priority: Priority,
) -> GuardConfig {
    GuardConfig {
        cgroup: cgroup.map(|cgroup| cgroup.as_fd().as_raw_fd()),
        command: config.command.clone(),
        environment: environment::of_job(config, member, std::env::vars_os()),
        health: config.commands.health.as_ref().map(|(command, _)| command.clone()),
        ignored: signals::ignored_at_start(),
        inherited,
        group: unistd::getpgrp().as_raw(),
        foreground: may_be_handed_on(),
        lease: config.timings.lease,
        member: member.to_string(),
        on_lead: config.commands.on_lead.clone(),
        releaser: PROGRAM.into(),
        release: means_of_release(config, access),
        scheduling: priority.of_job,
    }
}

/// What the guard hands on, when it releases for the dead.
fn means_of_release(config: &Config, access: &Access) -> serde_json::Value {
    let means = release::Means {
        client: Client { brokers: Brokers::At(access.bootstrap.clone()), properties: access.properties.clone() },
        election: config.election.clone(),
        name: config.name.clone(),
        lease_ms: u64::try_from(config.timings.lease.as_millis()).unwrap_or(u64::MAX),
    };
    // A struct of strings and numbers always has a JSON form.
    serde_json::to_value(&means).unwrap_or_default()
}

/// One candidate's hands.
struct Run {
    config: Config,
    access: Access,
    guard_config: GuardConfig,
    node: Node,
    guard: GuardHandle,
    guard_ready: Ready,
    /// The guard's socket is closed: nothing more comes from it but its end, by SIGCHLD.
    guard_is_silent: bool,
    session: Session,
    /// For the moments in which one more is needed, whatever else is open.
    reserve: Reserve,
    /// The job's main process, as the guard's kernel names it: killed by it when the guard has died.
    main: Option<OwnedFd>,
    /// The children that are no part of a job, besides hooks.
    brokers_started: embedded::Started,
    running_hooks: Vec<RunningHook>,
    /// The output of the health command that runs.
    health_output: Option<Tail>,
    /// The job's control group, where one could be made.
    cgroup: Option<Rc<Cgroup>>,
    /// What a dead guard left, while it is not all gone.
    orphans: Option<Orphans>,
    producer: Producer,
    reader: Option<Reader>,
    reading: u32,
    seen: mpsc::Receiver<KafkaEvent>,
    seen_sender: mpsc::Sender<KafkaEvent>,
    members: Members<Member>,
    said: mpsc::Receiver<GroupReport>,
    said_sender: mpsc::Sender<GroupReport>,
    logger: Logger,
    /// The way to stderr for what others say: the log's, unless that goes to a file.
    stderr: Logger,
    report: Report,
    /// When an embedded broker that follows a killed one is to be trusted, while it is not.
    distrust_ends: Option<Time>,
    outage: Reminder,
    undecodable: Reminder,
    /// Appends that Kafka refuses, by its words.
    refusals: Reminders,
    /// After so long without a heartbeat a broker is taken for dead: whether the lease outlives that has been judged.
    broker_session: Option<Duration>,
    /// How it is to end, once it is.
    ending: Option<ExitStatus>,
}

/// What woke the loop.
enum Input {
    Guard,
    GuardHasRoom,
    Hangup,
    HealthOutput,
    Kafka(Option<KafkaEvent>),
    Group(Option<GroupReport>),
    Signal,
    Timeout,
}

impl Run {
    fn new(
        config: Config,
        access: Access,
        member: MemberId,
        guard_config: GuardConfig,
        guard: GuardHandle,
        logger: Logger,
        at_start: &AtStart,
    ) -> Result<Self, StartupError> {
        let (seen_sender, seen) = mpsc::channel(SEEN_WAITING);
        let (said_sender, said) = mpsc::channel(SAID_WAITING);
        let log_callback = logger.clone();
        let access = Access {
            log_callback: Some(Arc::new(move |_level: RDKafkaLogLevel, message: &str| {
                log_callback
                    .event(&LogEvent::Librdkafka { facility: "client".to_owned(), message: message.to_owned() });
            })),
            ..access
        };
        let elect = match config.timings.elector {
            Elector::Group(_) => "group",
            Elector::Log => "log",
        };
        let has_file_alone = config.log.file.is_some() && config.commands.health.is_some();
        let stderr = if has_file_alone { logger.on_stderr()? } else { logger.clone() };
        logger.event(&LogEvent::Started {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            name: config.name.clone(),
            member: member.to_string(),
            topic: config.election.topic.clone(),
            elect: elect.to_owned(),
            lease: config.timings.lease,
        });
        let (notifier, warning) = Notifier::of_environment(|name| std::env::var_os(name), std::process::id());
        for warning in config.warnings.iter().chain(&warning) {
            logger.event(&LogEvent::Warning { message: warning.clone(), dropped: None });
        }
        let producer = Producer::start(&access, &config.election, config.timings.lease, seen_sender.clone())
            .map_err(StartupError::new)?;
        let policy = Policy {
            stop: StopPolicy {
                signal: config.stop_signal,
                timeout: config.stop_timeout,
                kill_margin: config.timings.kill_margin,
            },
            restart: config.restart,
            on_loss: config.on_loss,
            health: config.commands.health.as_ref().map(|(_, health)| health.clone()),
        };
        let hello = Body::Hello {
            host: unistd::gethostname().ok().and_then(|host| host.into_string().ok()).map(Into::into),
            pid: Some(std::process::id()),
            version: Some(env!("CARGO_PKG_VERSION").into()),
            elector: Some(elect.into()),
            group_member: None,
        };
        let identity = Identity { member, name: config.name.as_str().into(), hello };
        let random_seed =
            random::bytes().map(u64::from_le_bytes).map_err(|error| StartupError::new(error.to_string()))?;
        let settings = Settings {
            identity,
            timings: config.timings.clone(),
            job: policy,
            hooks: commands::hooks_in(&config.commands),
            accepts_remade_topic: config.create_topic,
            started: at_start.time,
            wait: config.wait,
            first_span: FIRST_SPAN,
        };
        let mut node = Node::new(clock::now(), settings, Random::from_seed(random_seed));
        if access.embedded.is_some() {
            let (asked, identity) = (clock::now(), TopicIdentity::Unnamed);
            node.handle(asked, Event::Election(candidate::Event::TopicIdentified { asked, identity }));
        }
        Ok(Self {
            node,
            config,
            access,
            guard_config,
            guard_ready: Ready::of_socket(&guard)
                .map_err(|error| StartupError::new(format!("the guard can't be awaited: {}", reason(&error))))?,
            guard,
            guard_is_silent: false,
            session: Session::new(at_start.has_terminal),
            reserve: Reserve::default(),
            main: None,
            brokers_started: embedded::Started::default(),
            running_hooks: Vec::new(),
            health_output: None,
            cgroup: None,
            orphans: None,
            producer,
            reader: None,
            reading: 0,
            seen,
            seen_sender,
            members: Members::none(),
            said,
            said_sender,
            logger,
            stderr,
            report: Report::to(notifier),
            distrust_ends: None,
            outage: Reminder::default(),
            undecodable: Reminder::default(),
            refusals: Reminders::default(),
            broker_session: None,
            ending: None,
        })
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
            let input = tokio::select! {
                biased;
                () = self.guard_ready.wait(), if !self.guard_is_silent => Input::Guard,
                () = self.guard_ready.wait_for_room(), if self.guard.has_backlog() => Input::GuardHasRoom,
                () = signals_ready.wait() => Input::Signal,
                () = self.session.hung_up() => Input::Hangup,
                seen = self.seen.recv() => Input::Kafka(seen),
                said = self.said.recv() => Input::Group(said),
                () = timer.due() => Input::Timeout,
                () = wait_for(self.health_output.as_ref()) => Input::HealthOutput,
            };
            match input {
                Input::Guard => self.hear_guard(),
                // Whether it takes orders the supervisor's watch sees.
                Input::GuardHasRoom => drop(self.guard.flush()),
                Input::Hangup => self.terminal_hung_up(),
                Input::HealthOutput => self.read_health_output(),
                Input::Kafka(seen) => {
                    if let Some(seen) = seen {
                        self.see(seen);
                    }
                    // What came together is taken together, but signals and the guard are not kept waiting for long.
                    for _ in 0..SEEN_WAITING {
                        let Ok(seen) = self.seen.try_recv() else { break };
                        self.perform();
                        self.see(seen);
                    }
                }
                Input::Group(said) => {
                    if let Some(said) = said {
                        self.hear_group(said);
                    }
                }
                Input::Signal => self.take_signals(&signals),
                Input::Timeout => {}
            }
            self.handle_timeouts();
        }
    }

    fn next_timeout(&self) -> Option<Time> {
        let timeouts = [
            self.node.poll_timeout(),
            self.outage.poll_timeout(),
            self.undecodable.poll_timeout(),
            self.refusals.poll_timeout(),
            self.report.notifier.poll_timeout(),
            self.orphans.as_ref().map(Orphans::again_at),
            self.distrust_ends,
        ];
        timeouts.into_iter().flatten().min()
    }

    fn handle_timeouts(&mut self) {
        let now = clock::now();
        self.node.handle_timeout(now);
        if self.orphans.as_ref().is_some_and(|orphans| now >= orphans.again_at()) {
            self.kill_orphans();
        }
        if self.distrust_ends.is_some_and(|end| now >= end) {
            self.distrust_ends = None;
            self.node.handle(now, Event::Election(candidate::Event::LogTrusted));
        }
        if let Some(outage) = self.outage.poll(now) {
            self.logger.event(&notes::of_outage(outage));
        }
        while let Some((error, _)) = self.refusals.poll(now) {
            let message = notes::of_refused_append(&self.config.election.topic, &error);
            self.logger.event(&LogEvent::Warning { message, dropped: None });
        }
        if let Some((message, _)) = self.undecodable.poll(now) {
            self.logger.event(&LogEvent::Error { message });
        }
    }

    // ---- the end --------------------------------------------------------------------------------------------------

    fn refuse(&mut self, message: String) -> ExitStatus {
        self.logger.event(&LogEvent::Error { message });
        *self.ending.get_or_insert(ExitStatus::Refused)
    }
}

async fn wait_for(output: Option<&Tail>) {
    match output {
        Some(output) => output.wait().await,
        None => std::future::pending().await,
    }
}
