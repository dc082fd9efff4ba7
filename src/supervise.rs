//! The main loop: it takes an input, passes it to the protocol, and performs the protocol's actions. It uses both `neli-proto` and the
//! modules with effects.
//!
//! `MainLoop` exists once in a process: the clients of Kafka, the terminal, the log, the exit status. A `Role` exists once in an election:
//! the node, the reading of its journal, the job with its guard, its hooks. The modules below have its parts, and its methods.

use std::collections::BTreeSet;
use std::future::{poll_fn, ready};
use std::num::NonZero;
use std::os::fd::RawFd;
use std::task::{Context, Poll};
use std::time::Duration;
use std::{panic, thread};

use anyhow::{Context as _, Result};
use neli_kafka::clock::{self, Alarm};
use neli_kafka::embedded::FoundBroker;
use neli_kafka::{Host, Nodes, many_roles};
use neli_proto::guard::GuardStarts;
use neli_proto::leadership::ReadAt;
use neli_proto::node::Event;
use neli_proto::note::Refusal;
use neli_proto::reminder::Reminder;
use neli_proto::supervisor::{self, Ending};
use neli_proto::time::Time;
use nix::sys::signalfd::SignalFd;
use nix::unistd::Pid;

use crate::config::Config;
use crate::exit::{ExitStatus, line_of, status_of};
use crate::process::descriptors::{OF_CLIENT, OF_GUARD, Reserve};
use crate::process::ready::{Ready, wait_for};
use crate::report::election::sentence;
use crate::report::events;
use crate::report::log::{Event as LogEvent, Logger};
use crate::report::notify::Notifier;
use crate::supervise::facts::KeyFacts;
use crate::supervise::job::GuardedJob;
use crate::supervise::reporting::Publisher;
use crate::supervise::role::Role;
use crate::supervise::start::{JobMaker, Prepared, Settling};
use crate::supervise::terminal::ShellState;

pub use start::begin;

mod children;
mod commands;
mod facts;
mod guard;
mod host;
mod job;
mod orphan_thread;
mod reporting;
mod role;
mod start;
mod terminal;

/// How long the exit waits for the guard's exit, so that the process that adopts our children does not have to wait for the guard.
const GUARD_TAKES: Duration = Duration::from_millis(200);

/// Stands for election, and runs the job while it leads. The process has started at this time, and has inherited these descriptors.
///
/// # Errors
///
/// The reason why it can't stand for election: one line, and the exit status.
pub fn run(config: Config, (started, inherited): (Time, Vec<RawFd>)) -> Result<ExitStatus> {
    let (runtime, prepared) = Prepared::new(config, inherited)?;
    let logger = Logger::start(&prepared.config.log, &prepared.config.elections.group, &prepared.config.name)?;
    log_panics(logger.clone());
    runtime.block_on(async move {
        let config = prepared.config.clone();
        let mut main_loop = match MainLoop::new(prepared, logger.clone(), started) {
            Ok(main_loop) => main_loop,
            Err(error) => return not_started(&logger, &config, error),
        };
        let status = main_loop.run().await;
        main_loop.logger.event(&events::exiting(status, &main_loop.config, main_loop.last_leadership().as_deref()));
        main_loop.logger.finish();
        main_loop.stderr.finish();
        main_loop.shell.die_of_signal();
        Ok(status)
    })
}

/// Logs why the main loop can't begin, and ends the log. Returns the error for stderr, unless the log is there.
fn not_started(logger: &Logger, config: &Config, error: anyhow::Error) -> Result<ExitStatus> {
    let status = status_of(&error);
    logger.event(&LogEvent::error(line_of(&error)));
    logger.event(&events::exiting(status, config, None));
    logger.finish();
    if config.log.file.is_some() { Err(error) } else { Ok(status) }
}

/// Makes a panic write to the log and end the log. The usual write to stderr could block for ever, and the process would not end.
fn log_panics(logger: Logger) {
    panic::set_hook(Box::new(move |panic| {
        let message = format!(
            "neli-run has a bug and ends: {panic}; its guard kills the job and releases the term; report this line"
        );
        logger.event(&LogEvent::error(message));
        logger.finish();
    }));
}

impl MainLoop {
    fn new(prepared: Prepared, logger: Logger, started: Time) -> Result<Self> {
        let Prepared { config, access, broker, job_maker, job, signals, shell, other_children, bound } = prepared;
        let writes_to_file_alone = config.log.file.is_some() && config.health_command.is_some();
        let stderr = if writes_to_file_alone { logger.on_stderr()? } else { logger.clone() };
        logger.event(&events::started(&config, &job_maker.member));
        let (notifier, warning) = Notifier::of_environment(|name| std::env::var_os(name), std::process::id());
        for message in config.warnings.iter().cloned().chain(warning) {
            logger.warn(message);
        }
        let kafka_session = start::start_session(access, &config, &logger)?;
        let elections = &config.elections;
        let mut roles = Vec::new();
        for number in elections.roles.clone() {
            let election = elections.election(number, 1);
            roles.push(Role::new(&config, &kafka_session, election, &job_maker.member, &logger, started)?);
        }
        let has_guard = job.is_some();
        if let Some(role) = roles.first_mut() {
            role.job = job;
        }
        let (most, are_spread) = config.roles.map_or((None, true), |roles| (roles.most, roles.are_spread));
        let hello = role::own_hello(&config, &job_maker.member);
        let many = many_roles(hello, elections, config.timings.elector(), most, are_spread);
        let mut nodes = Nodes::new(roles, kafka_session, many);
        if !has_guard {
            nodes.tell_all(&Event::Job(supervisor::Event::HasGuard(false)));
        }
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let cannot_wait = "the main loop can't wait for events";
        let broker_end = broker.as_ref().and_then(|found| found.connection.end());
        let broker_end = broker_end.map(|end| Ready::of(&end)).transpose().context("--embedded")?;
        let alarm = Alarm::new().context(cannot_wait)?;
        let mut main_loop = Self {
            nodes,
            signals_ready: Ready::of(&signals).context(cannot_wait)?,
            signals,
            alarm_ready: Ready::of(&alarm).context(cannot_wait)?,
            alarm,
            guard_starts: GuardStarts::new(processors, config.timings.lease),
            config,
            job_maker,
            refusal: None,
            shell,
            notifier,
            publisher: None,
            settling: Settling::default(),
            logger,
            stderr,
            reserve: Reserve::of(OF_GUARD),
            reserve_of_client: Reserve::of(OF_CLIENT),
            broker,
            broker_end,
            other_children,
            lack_of_guards: Reminder::default(),
            warned_of: BTreeSet::new(),
            is_unfinished: false,
            ending: None,
        };
        main_loop.publisher = bound.map(|bound| Publisher::start(bound, &main_loop)).transpose()?;
        Ok(main_loop)
    }

    /// Who led when this process left the election, if there is only one role.
    fn last_leadership(&self) -> Option<String> {
        let [role] = self.nodes.roles.as_slice() else { return None };
        let at = ReadAt { now: clock::now(), wall_ms: clock::wall_ms() };
        let status = role.node.status(at.now);
        Some(sentence(status.last_leadership(at, self.nodes.troubles.is_answered())))
    }

    /// Runs until the end.
    async fn run(&mut self) -> ExitStatus {
        let mut lateness = Lateness { stall: self.config.timings.stall(), awaited: None, is_reported: false };
        loop {
            self.perform();
            self.start_next_guard();
            self.report();
            self.publish();
            let is_suspended = self.nodes.roles.iter().all(Role::is_suspended);
            if is_suspended {
                self.suspend_if_possible();
            }
            if let Some(status) = self.ending {
                self.leave().await;
                return status;
            }
            let due = self.next_timeout();
            // It can't fail for our own descriptor.
            let _ = self.alarm.set(due);
            let roles = &self.nodes.roles;
            lateness.begin(clock::now(), due);
            // The user has suspended it (Ctrl-Z), which is not reported.
            lateness.awaited.take_if(|_| is_suspended);
            // What comes without end may not keep the rest waiting, so the rest of it comes last.
            tokio::select! {
                biased;
                // It comes first, so that `handle_timeouts` logs it before its effects.
                () = poll_fn(|_| if lateness.late(clock::now()).is_some() { Poll::Ready(()) } else { Poll::Pending }) => {}
                role = poll_fn(|context| poll_answers(roles, context)) => {
                    self.handle_answers(role);
                    // Answers may come faster than they are handled.
                    self.handle_signals();
                    self.handle_session_events();
                }
                role = poll_fn(|context| poll_room(roles, context)) => self.send_queued_orders(role),
                () = wait_for(self.shell.hangup.as_ref()) => self.handle_hangup(),
                () = self.signals_ready.wait() => {
                    self.handle_signals();
                    // Signals may come faster than they are handled.
                    self.handle_session_events();
                }
                () = wait_for(self.broker_end.as_ref()) => self.end_with_broker(),
                () = self.nodes.session.wait() => self.handle_session_events(),
                () = self.alarm_ready.wait() => self.alarm.acknowledge(),
                role = poll_fn(|context| poll_health_output(roles, context)) => {
                    if let Some((_, output)) = &mut self.nodes.roles[role].health_output {
                        output.read(|line| self.stderr.pass_on(line));
                    }
                }
                () = ready(()), if self.is_unfinished => {
                    self.is_unfinished = false;
                    self.handle_pending(&(0..self.nodes.roles.len()).collect());
                    self.handle_signals();
                }
            }
            self.handle_timeouts(&mut lateness);
        }
    }

    /// Logs that this process did not run, before it handles what is overdue: it may have been stopped in the middle of a turn.
    fn report_if_late(&self, lateness: &mut Lateness) {
        if let Some(late) = lateness.report(clock::now()) {
            self.logger.event(&events::did_not_run(late));
        }
    }

    /// Publishes the changes, if HTTP is served.
    fn publish(&mut self) {
        if let Some(publisher) = &mut self.publisher {
            publisher.publish(clock::now(), &self.nodes);
        }
    }

    /// Handles the pending answers of the due roles' guards, and ended children. They may have come while this process was stopped or got
    /// no processor time, and a timeout must not take that for silence. Also kills again the processes that a dead guard left.
    fn handle_pending(&mut self, due: &BTreeSet<usize>) {
        for &role in due {
            if self.nodes.roles[role].job.as_ref().is_some_and(|job| !job.is_silent) {
                self.handle_answers(role);
            }
        }
        self.handle_children();
        self.perform();
    }

    fn next_timeout(&self) -> Option<Time> {
        let nodes = self.nodes.poll_timeout();
        let service = self.notifier.poll_timeout();
        let publisher = self.publisher.as_ref().map(Publisher::poll_timeout);
        let guards = self.guard_starts.poll_timeout();
        [nodes, guards, self.settling.until, service, publisher].into_iter().flatten().min()
    }

    fn handle_timeouts(&mut self, lateness: &mut Lateness) {
        self.report_if_late(lateness);
        self.perform();
        let pending: BTreeSet<usize> = self.nodes.due(clock::now()).into_iter().collect();
        if self.next_timeout().is_some_and(|due| clock::now() >= due) {
            self.handle_pending(&pending);
        }
        let now = clock::now();
        self.report_if_late(lateness);
        // Roles that have become due since are handled in the next turn, after their guards' answers were read.
        for role in self.nodes.due(now).into_iter().filter(|role| pending.contains(role)) {
            self.nodes.handle_timeout(now, role);
            if self.nodes.roles[role].orders_due_at().is_some_and(|due| now >= due) {
                self.send_queued_orders(role);
            }
            self.tell_window(role, now, false);
            if let Some(message) = self.nodes.poll_undecodable(now, role) {
                self.nodes.roles[role].logger.event(&LogEvent::error(message));
            }
        }
        self.nodes.handle_common_timeout(now);
        self.settling.handle_timeout(now);
    }

    /// Passes an event that happens now to a role's node.
    fn tell(&mut self, role: usize, event: Event) {
        self.nodes.tell(clock::now(), role, event);
    }

    /// Warns of this, once.
    fn warn_once(&mut self, message: &'static str) {
        if self.warned_of.insert(message) {
            self.logger.warn(message);
        }
    }

    /// Notes that this process no longer stands for a role. With the last role the process ends.
    fn role_ended(&mut self, role: usize, status: ExitStatus) {
        self.nodes.roles[role].ending.get_or_insert(status);
        let endings: Vec<ExitStatus> = self.nodes.roles.iter().filter_map(|role| role.ending).collect();
        if endings.len() == self.nodes.roles.len() {
            self.ending = status_of_all(endings);
        } else {
            self.exit_role(role);
        }
    }

    /// Ends the parts of a role that still run, except its last hook.
    fn exit_role(&mut self, role: usize) {
        let now = clock::now();
        self.nodes.tell_ended(now, role, Event::Exiting);
        self.guard_starts.remove(role);
        // A guard that must release its term waits for this process's death.
        let job = self.nodes.roles[role].job.as_mut();
        job.filter(|job| !job.guard.owes_release()).into_iter().for_each(GuardedJob::close_guard);
    }

    /// Leaves the group in order, because the group would wait for a whole session for a member that only ends. Also waits for hooks.
    async fn leave(&mut self) {
        self.nodes.roles.iter_mut().filter_map(|role| role.facts.as_mut()).for_each(KeyFacts::stop_reading);
        // Processes that could not be killed may still have the terminal.
        self.shell.terminal.take_back();
        for role in 0..self.nodes.roles.len() {
            self.exit_role(role);
        }
        self.nodes.leave();
        let guards_end_by = clock::now() + GUARD_TAKES;
        loop {
            let guards_end_by = (self.has_closed_guards() && clock::now() < guards_end_by).then_some(guards_end_by);
            self.perform();
            let leaves_until = self.nodes.leaves_until();
            let has_hooks = self.nodes.roles.iter().any(|role| role.node.has_running_hooks());
            if leaves_until.is_none() && !has_hooks && guards_end_by.is_none() {
                return;
            }
            self.report();
            self.publish();
            let of_nodes = self.nodes.roles.iter().filter_map(|role| role.node.poll_timeout()).min();
            let timeouts = [leaves_until, guards_end_by, of_nodes, self.notifier.poll_timeout()];
            let _ = self.alarm.set(timeouts.into_iter().flatten().min());
            tokio::select! {
                () = self.nodes.session.wait(), if leaves_until.is_some() => self.handle_last_session_events(),
                () = self.signals_ready.wait() => self.handle_signals(),
                () = self.alarm_ready.wait() => self.handle_last_timeouts(),
            }
        }
    }

    /// Whether a guard that was told to exit has not ended yet.
    fn has_closed_guards(&self) -> bool {
        let mut jobs = self.nodes.roles.iter().filter_map(|role| role.job.as_ref());
        jobs.any(|job| !job.guard.owes_release() && !job.guard.is_dead)
    }

    fn handle_last_timeouts(&mut self) {
        self.alarm.acknowledge();
        let now = clock::now();
        for role in 0..self.nodes.roles.len() {
            self.nodes.roles[role].node.handle_timeout(now);
            self.nodes.touch(role);
        }
    }
}

/// Notices that the main loop is late. Of several late turns in sequence only the first is reported: with many roles each turn of a busy machine is
/// late for another one, and would do nothing but say so.
struct Lateness {
    /// A shorter delay is not reported.
    stall: Duration,
    /// The time for which this turn waits; `None` if its delay was reported, or is not to be.
    awaited: Option<Time>,
    /// Whether a turn was reported, and every one since was late too.
    is_reported: bool,
}

impl Lateness {
    /// Begins a turn that waits for `due`.
    fn begin(&mut self, now: Time, due: Option<Time>) {
        self.awaited = due;
        self.is_reported &= self.late(now).is_some();
        self.awaited.take_if(|_| self.is_reported);
    }

    /// The delay of this turn, if it is to be reported.
    fn report(&mut self, now: Time) -> Option<Duration> {
        let late = self.late(now)?;
        (self.awaited, self.is_reported) = (None, true);
        Some(late)
    }

    fn late(&self, now: Time) -> Option<Duration> {
        let late = now.since(self.awaited?);
        (late >= self.stall).then_some(late)
    }
}

/// The first role whose guard has answered.
fn poll_answers(roles: &[Role], context: &mut Context<'_>) -> Poll<usize> {
    poll_first(roles, |role| {
        let job = role.job.as_ref().filter(|job| !job.is_silent);
        job.map_or(Poll::Pending, |job| job.ready.poll_wait(context))
    })
}

/// The first role whose guard has room for orders that wait.
fn poll_room(roles: &[Role], context: &mut Context<'_>) -> Poll<usize> {
    poll_first(roles, |role| {
        let job = role.job.as_ref().filter(|job| job.guard.awaits_room());
        job.map_or(Poll::Pending, |job| job.ready.poll_room(context))
    })
}

/// The first role with output of a health command.
fn poll_health_output(roles: &[Role], context: &mut Context<'_>) -> Poll<usize> {
    poll_first(roles, |role| role.health_output.as_ref().map_or(Poll::Pending, |(_, output)| output.poll_wait(context)))
}

fn poll_first(roles: &[Role], mut poll: impl FnMut(&Role) -> Poll<()>) -> Poll<usize> {
    roles.iter().position(|role| poll(role).is_ready()).map_or(Poll::Pending, Poll::Ready)
}

/// The state that exists once in a process, and the nodes of its elections. Other modules add the methods.
struct MainLoop {
    config: Config,
    /// The elections' nodes, with this process's state in each election.
    nodes: Nodes<Role>,
    signals: SignalFd,
    signals_ready: Ready,
    /// The loop's timer. (tokio's timers do not advance while the machine sleeps.)
    alarm: Alarm,
    alarm_ready: Ready,
    job_maker: JobMaker,
    /// With many roles: the order in which guards are started.
    guard_starts: GuardStarts,
    /// Kafka's last refusal. Each role gets it, and one logs it.
    refusal: Option<Refusal>,
    shell: ShellState,
    notifier: Notifier,
    /// The publisher of snapshots, if HTTP is served.
    publisher: Option<Publisher>,
    /// The progress of the start.
    settling: Settling,
    logger: Logger,
    /// The log for the output of other programs on stderr. It is the log itself, unless that goes to a file.
    stderr: Logger,
    /// Descriptors for moments in which no other one is free.
    reserve: Reserve,
    /// Descriptors for a Kafka client that replaces another one.
    reserve_of_client: Reserve,
    /// The broker of `--embedded`. The journal is lost with it, so its candidates end with it.
    broker: Option<FoundBroker>,
    /// Reports its end; `None` once that was handled.
    broker_end: Option<Ready>,
    /// The children from before this program, and the broker that it started, as far as they were not waited for.
    other_children: Vec<Pid>,
    /// That guards can't be started for now, which may concern many roles.
    lack_of_guards: Reminder,
    /// The warnings that are said once.
    warned_of: BTreeSet<&'static str>,
    /// Whether there may be more signals, answers of guards, or children that have ended, than one turn handles.
    is_unfinished: bool,
    /// The exit status, once the process is ending.
    ending: Option<ExitStatus>,
}

/// The exit status of a process with several roles: that a job could not be killed, or the highest status.
fn status_of_all(of_roles: impl IntoIterator<Item = ExitStatus>) -> Option<ExitStatus> {
    of_roles.into_iter().max_by_key(|status| (*status == ExitStatus::Ending(Ending::Stuck), status.code()))
}

#[cfg(test)]
mod tests {
    use neli_proto::supervisor::JobStatus;

    use super::*;

    #[test]
    fn a_job_that_could_not_be_killed_decides_the_status_of_all_roles() {
        let exited = |status| ExitStatus::Ending(Ending::Job(JobStatus::Exited(status)));
        let killed_by_term = ExitStatus::Ending(Ending::Job(JobStatus::Signaled(15)));
        assert_eq!(status_of_all([exited(0), killed_by_term, exited(3)]), Some(killed_by_term));
        let stuck = ExitStatus::Ending(Ending::Stuck);
        assert_eq!(status_of_all([stuck, killed_by_term]), Some(stuck));
        assert_eq!(status_of_all([]), None);
    }

    #[test]
    fn a_machine_that_is_late_for_each_of_many_roles_is_reported_once() {
        let now = clock::now();
        let mut lateness = Lateness { stall: Duration::from_secs(1), awaited: None, is_reported: false };
        let mut reported = Vec::new();
        for late in [0, 2, 3, 4, 0, 5, 6].map(Duration::from_secs) {
            lateness.begin(now, Some(now - late));
            reported.extend(lateness.report(now));
        }
        assert_eq!(reported, [2, 5].map(Duration::from_secs));
    }

    #[test]
    fn a_turn_that_is_stopped_after_it_has_begun_is_reported_once() {
        let now = clock::now();
        let mut lateness = Lateness { stall: Duration::from_secs(1), awaited: None, is_reported: false };
        lateness.begin(now, Some(now + Duration::from_secs(1)));
        assert_eq!(lateness.report(now), None);
        let late = now + Duration::from_secs(5);
        assert_eq!(lateness.report(late), Some(Duration::from_secs(4)));
        assert_eq!(lateness.report(late), None);
        // Its timeouts are handled before the next turn begins.
        lateness.begin(late, Some(late + Duration::from_secs(1)));
        assert_eq!(lateness.report(late), None);
    }
}
