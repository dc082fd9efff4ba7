//! The start up to the main loop. These steps must come before Kafka's clients, because their threads inherit priority, signal mask
//! and descriptors. And the end of the start, after which resources that only the start needed are released.

use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, RawFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Error, Result};
use neli_kafka::embedded::{BrokerFinder, FoundBroker};
use neli_kafka::{Access, Client, ElectionId, IfMissing, Session, Source, clock, random_bytes};
use neli_proto::hello::Hello;
use neli_proto::hooks::Hook;
use neli_proto::record::MemberId;
use neli_proto::time::{Time, millis};
use nix::sys::prctl;
use nix::sys::signalfd::SignalFd;
use nix::unistd::Pid;
use tokio::runtime::{Builder, Runtime};

use crate::config::{self, Config};
use crate::guard::{GuardConfig, GuardHandle, PROGRAM};
use crate::http;
use crate::process::attributes::{self, EarlierAttributes, Mark};
use crate::process::cgroup::{self, Cgroup};
use crate::process::memory_files::release_queue;
use crate::process::terminal::may_be_handed_on;
use crate::process::{descriptors, limits, procfs, signals, spin_watch, system};
use crate::release::{self, ReleaseConfig};
use crate::report::events;
use crate::report::log::Logger;
use crate::supervise::job::{self, GuardedJob, StartGuard};
use crate::supervise::orphan_thread::OrphanThread;
use crate::supervise::terminal::ShellState;
use crate::text::{counted, limit_of_starts, signal_name};

/// The objects that are created before Kafka's clients.
pub(super) struct Prepared {
    pub(super) config: Config,
    pub(super) access: Access,
    /// The broker of `--embedded`.
    pub(super) broker: Option<FoundBroker>,
    pub(super) job_maker: JobMaker,
    /// The job of a single role, whose guard starts before Kafka's clients. With several roles, a role has a guard only while it is claimed
    /// or led.
    pub(super) job: Option<GuardedJob>,
    pub(super) signals: SignalFd,
    pub(super) shell: ShellState,
    /// The children from before this program, those of a shell that has executed it; and the broker that it started.
    pub(super) other_children: Vec<Pid>,
    /// The socket of `--listen`, which is bound before the group is joined.
    pub(super) bound: Option<TcpListener>,
}

/// The constant parameters of guards.
pub(super) struct JobMaker {
    pub(super) member: MemberId,
    /// The directory of the embedded broker.
    broker: Option<PathBuf>,
    inherited: Vec<RawFd>,
    /// Those attributes of job and hooks that this process has changed for itself.
    pub(super) attributes: EarlierAttributes,
    /// What is known of the group below which those of the jobs are made.
    cgroups: Option<(PathBuf, Time)>,
    orphan_thread: Arc<OrphanThread>,
    /// The queue of releases that its guards deliver if this process dies.
    release_queue: File,
}

impl JobMaker {
    /// The configuration of a guard without its control group, with this [configuration for the release](release_config); hooks get the same
    /// environment.
    pub(super) fn guard_config(
        &self,
        config: &Config,
        election: &ElectionId,
        release: Option<ReleaseConfig>,
    ) -> GuardConfig {
        GuardConfig {
            attributes: EarlierAttributes { mark: Mark::new(), ..self.attributes },
            broker: self.broker.clone(),
            command: config.command.clone(),
            environment: job::environment(config, election, &self.member, std::env::vars_os()),
            health: config.health_command.clone(),
            ignored: signals::ignored_at_start(),
            inherited: self.inherited.clone(),
            // One terminal can't belong to several jobs.
            foreground: config.roles.is_none() && may_be_handed_on(),
            kill_margin: config.timings.kill_margin,
            lease: config.timings.lease,
            on_lead: config.hooks.get(&Hook::Lead).cloned(),
            releaser: PROGRAM.into(),
            release,
            release_queue: self.release_queue.as_raw_fd(),
            ..GuardConfig::default()
        }
    }

    /// Starts a guard for a role's job.
    pub(super) fn start_job(&mut self, guard_config: GuardConfig, start: StartGuard) -> io::Result<GuardedJob> {
        GuardedJob::with_guard(guard_config, &mut self.cgroups, Arc::clone(&self.orphan_thread), start)
    }
}

impl Prepared {
    /// Prepares the process, with the runtime of its main loop. `inherited` are the descriptors that this process inherited; the job inherits them
    /// too.
    pub(super) fn new(mut config: Config, inherited: Vec<RawFd>) -> Result<(Runtime, Self)> {
        system::share_heaps();
        let open_files_of_http = config.listen.as_ref().map_or(0, |_| http::OPEN_FILES);
        let more_files = open_files_of_http + limits::open_files_of_inherited(inherited.len());
        let open_files = limits::raise_open_files();
        limits::open_files(more_files)?;
        limits::address_space()?;
        // A name may take a name server's time to look up, and ^C ends that as it ends any program.
        let bound = config.listen.as_ref().map(http::bind).transpose()?;
        config.listening_at = bound.as_ref().map(TcpListener::local_addr).transpose()?;
        // It starts no thread.
        let runtime = Builder::new_current_thread()
            .enable_io()
            .on_thread_park(spin_watch::begin_pause)
            .on_thread_unpark(spin_watch::end_pause)
            .build()
            .context("the main loop can't be started")?;
        // Before SIGHUP is taken over, which says that the terminal is gone.
        let shell = {
            let _within = runtime.enter();
            ShellState::new()
        };
        // Before anything else that takes time: until then the kernel drops a SIGTERM to process 1 of a container.
        let signals = signals::take().context("signals can't be taken over")?;
        // Before the threads are tried, which a PID namespace for the children alone refuses.
        procfs::validate()?;
        limits::threads()?;
        lead_as_many_as_possible(&mut config, more_files);
        procfs::keep_open().context("/proc can't be read")?;
        let (guard_is_real_time, scheduling) = attributes::take_priority()?;
        if !guard_is_real_time {
            let (timings, warning) = config.with_wider_kill_margin(limits::longest_quota().as_ref())?;
            config.timings = timings;
            config.warnings.extend(warning);
        }
        // The watch is needed if the job, and so this process, is real-time. If no thread can be started, there is no watch.
        let _ = spin_watch::watch_this_thread(|| ());
        // When the guard dies, this process becomes the parent of the remaining processes, and kills them.
        prctl::set_child_subreaper(true).map_err(io::Error::from).context("can't become a subreaper")?;
        let ignored = signals::ignored_at_start();
        config.warnings.extend(config.job.stop.signal.filter(|signal| ignored.contains(*signal)).map(|signal| {
            format!(
                "--stop-signal {}: it was ignored when neli-run started (nohup, a script's &), and so the job ignores it too: a job that does not \
                 handle it is killed at --stop-timeout; start neli-run by env --default-signal",
                signal_name(signal)
            )
        }));
        let bits = random_bytes().context("no randomness")?;
        let member = MemberId::from_random(u128::from_le_bytes(bits));
        let (access, broker) = reach_kafka(&config.client)?;
        config.warnings.extend(broker.as_ref().map(|_| {
            let at = &access.bootstrap;
            format!("--embedded is for a trial on this one machine: its broker, at {at}, keeps nothing")
        }));
        let other_children = procfs::children();
        let release_queue = release_queue().context("no file in memory for the guards' releases")?;
        let mut job_maker = JobMaker {
            member,
            broker: broker.as_ref().map(|found| found.directory.path().to_owned()),
            inherited,
            attributes: EarlierAttributes { scheduling, open_files, ..EarlierAttributes::default() },
            cgroups: None,
            orphan_thread: OrphanThread::start().context("no thread to kill what a dead guard leaves")?,
            release_queue,
        };
        let job = if config.roles.is_none() {
            let election = config.elections.election(0, 1);
            let release = release_config(&config, &access, &election, &job_maker.member, None);
            let guard_config = job_maker.guard_config(&config, &election, Some(release));
            let _within = runtime.enter();
            let started = job_maker.start_job(guard_config, GuardHandle::start);
            Some(started.map_err(|error| {
                let what = format!("the guard can't be started{}", limit_of_starts(&error));
                Error::from(error).context(what)
            })?)
        } else {
            None
        };
        let has_cgroup = match &job {
            Some(job) => job.cgroup.is_some(),
            None => Cgroup::make(&mut job_maker.cgroups).is_ok(),
        };
        if !has_cgroup && cgroup::kills_without_one().is_none() {
            config.warnings.push(cgroup::WITHOUT_ONE.to_owned());
        }
        Ok((runtime, Self { config, access, broker, job_maker, job, signals, shell, other_children, bound }))
    }
}

/// Limits the number of roles that this process leads by the number of files that it may open, and warns of that. Without
/// the limit it would take roles for which it can start no guard.
fn lead_as_many_as_possible(config: &mut Config, more_files: u64) {
    let Some(roles) = &mut config.roles else { return };
    let count = config.elections.roles.end;
    let wanted = roles.most.unwrap_or(count).min(count);
    if let Some((limit, most)) = limits::roles_with_open_files(more_files)
        && most < wanted
    {
        roles.most = Some(most);
        let needed = limits::open_files_of_roles(wanted, more_files);
        config.warnings.push(format!(
            "{limit} open files (ulimit -n, LimitNOFILE=) are enough to lead {}, so this process leads no more, as with \
             --max-roles {most}; {wanted} roles need {needed}",
            counted(most, "role")
        ));
    }
}

/// The connection to Kafka; an embedded broker is found or started for it.
fn reach_kafka(client: &Client) -> Result<(Access, Option<FoundBroker>)> {
    let (access, found) = if let Some(brokers) = &client.bootstrap {
        let refuses_embedded = Some(config::EMBEDDED_BY_ADDRESS);
        (Access { refuses_embedded, ..Access::at(brokers, &client.properties) }, None)
    } else {
        let found = BrokerFinder::of_user().and_then(|finder| finder.find_or_start()).context("--embedded")?;
        (Access::embedded(&found.connection, &client.properties), Some(found))
    };
    Ok((Access { words: &config::WORDS, ..access }, found))
}

/// The guard's configuration for the process that releases the term if the supervisor dies. `hello` is that of a process with many roles.
pub(super) fn release_config(
    config: &Config,
    access: &Access,
    election: &ElectionId,
    member: &MemberId,
    hello: Option<&Hello>,
) -> ReleaseConfig {
    ReleaseConfig {
        bootstrap: access.bootstrap.clone(),
        properties: release::with_absolute_paths(&access.properties),
        election: election.clone(),
        member: member.clone(),
        name: config.name.clone(),
        lease_ms: millis(config.timings.lease),
        hello: hello
            .map(|hello| (config.elections.hello_key(), String::from_utf8_lossy(&hello.to_bytes()).into_owned())),
    }
}

/// Connects this process's producer.
pub(super) fn start_session(access: Access, config: &Config, logger: &Logger) -> Result<Session> {
    let logger = logger.clone();
    let log_callback = Arc::new(move |message: &str| {
        logger.event(&events::librdkafka("client", message));
    });
    let access = Access { log_callback: Some(log_callback), ..access };
    let if_missing = if config.create_topic { IfMissing::Create } else { IfMissing::Refuse };
    Ok(Session::start(Source::new(access, config.elections.clone(), if_missing), config.timings.lease)?)
}

/// When the process started, and the descriptors that it inherited. Must be the first call in `main`, before anything is opened.
pub fn begin() -> (Time, Vec<RawFd>) {
    // Without /proc only the three standard descriptors are known.
    (clock::now(), descriptors::open().unwrap_or_else(|_| vec![0, 1, 2]))
}

/// Within this time after a role has read its journal, the process has joined its group.
const SETTLES_WITHIN: Duration = Duration::from_secs(1);

/// The progress of the start.
#[derive(Debug, Default)]
pub(super) struct Settling {
    /// When the start is over, while a role stands by or leads, and it is not.
    pub(super) until: Option<Time>,
    is_over: bool,
}

impl Settling {
    /// Notes that a role has read its journal.
    pub(super) fn begin(&mut self, now: Time) {
        if !self.is_over {
            self.until.get_or_insert(now + SETTLES_WITHIN);
        }
    }

    /// Releases the resources that only the start needed, once.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        if self.until.take_if(|until| now >= *until).is_some() {
            self.is_over = true;
            system::give_back_libraries();
            // At a memory limit, what is in use would be taken and read from the disk again, for seconds. Locking may not be allowed.
            limits::lock_memory();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_over_once() {
        let (begun, mut settling) = (Time::ZERO, Settling::default());
        settling.handle_timeout(begun);
        assert_eq!(settling.until, None);
        settling.begin(begun);
        let over = begun + SETTLES_WITHIN;
        settling.begin(over);
        settling.handle_timeout(begun);
        assert_eq!(settling.until, Some(over));
        settling.handle_timeout(over);
        settling.begin(over);
        assert_eq!(settling.until, None);
    }
}
