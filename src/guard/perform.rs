//! Performs what the guard decides.

use std::convert::Infallible;
use std::env;
use std::ffi::CString;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use neli_kafka::clock;
use neli_proto::guard::{Action, Answer, CommandKind, Event, Grant, KillMethod, Named, Step, Target};
use neli_proto::job::{CommandEnd, JobStatus};
use neli_proto::record::Record;
use neli_proto::time::{Time, millis_rounded_up};
use nix::libc::{self, SIGCONT, SIGKILL};
use nix::unistd::{self, Pid};

use crate::config::job_variables::{self, ATTEMPT, EPOCH, EVENT, LEASE_FD, WHY};
use crate::guard::deadline_thread::kill_from;
use crate::guard::guard_loop::GuardLoop;
use crate::guard::job::Job;
use crate::guard::lease::Lease;
use crate::process::attributes::EarlierAttributes;
use crate::process::memory_files::{self, Deliverer};
use crate::process::shell::{self, ShellCommands};
use crate::process::spawn::{ChildKind, SpawnSpec, spawn};
use crate::process::{descriptors, signals, spin_watch, system};

/// How many pids fit into an answer.
const MOST_STUCK: usize = 200;
/// How many processes are named. More would fit into an answer, but they are printed in one line of the log.
const MOST_NAMED: usize = 20;

impl GuardLoop {
    /// Passes an event to the guard and performs its actions. `output` is the descriptor that came with an order.
    pub(super) fn tell(&mut self, now: Time, event: Event, output: Option<BorrowedFd<'_>>) {
        self.guard.handle(now, event);
        self.perform(output);
    }

    /// Performs the guard's actions.
    pub(super) fn perform(&mut self, output: Option<BorrowedFd<'_>>) {
        while let Some(action) = self.next_action() {
            match action {
                Action::Answer(answer) => self.answer(answer, None),
                Action::AnswerExited { status, look } => self.answer_exited(status, look),
                Action::AnswerLeftBehind { until } => self.answer_left_behind(self.tree.named_members(until), true),
                Action::AnswerStarted => self.answer_started(),
                Action::AnswerStuck => {
                    let pids = self.tree.members().into_iter().take(MOST_STUCK).map(Pid::as_raw).collect();
                    self.answer(Answer::Stuck { pids }, None);
                }
                Action::BeginAnew => self.begin_anew(),
                Action::End | Action::Release { .. } => self.ending = Some(action),
                Action::HandOn => self.terminal.hand_on(),
                Action::Kill(methods) => {
                    if methods.contains(&KillMethod::Found) {
                        // The next step may take long, or stall. The flush reports to the supervisor before it that the step has begun.
                        self.flush();
                    }
                    let seen = self.tree.kill(methods, |cgroup| cgroup.kill());
                    self.keeps_ended |= seen.none_lived_at.is_some();
                    self.guard.handle(clock::now(), Event::Killed(seen));
                }
                Action::KillCommand(kind) => self.commands.kill(|running| *running == kind),
                Action::KillMainGroup => self.job.iter().for_each(|job| job.signal(SIGKILL, Target::Group)),
                Action::Learn { until } => self.learn(until),
                Action::RemoveCgroup => self.tree.cgroup.iter().for_each(|cgroup| cgroup.remove()),
                Action::ShowDeadline { term, until } => {
                    if let Some((_, lease)) = self.lease.as_ref().filter(|(of, _)| *of == term) {
                        lease.grant(until);
                    }
                }
                Action::ShowEnd => self.lease.iter().for_each(|(_, lease)| lease.end()),
                Action::Signal { signal, to } => self.job.iter().for_each(|job| job.signal(signal, to)),
                Action::SignalRest { signal, but_group, until } => {
                    let group = self.job.as_ref().filter(|_| but_group).map(Job::pid);
                    self.answer_left_behind(self.tree.signal_all_but(group, &[signal, SIGCONT], until), false);
                }
                Action::Start { term, until, attempt, window } => {
                    (self.attempt, self.window) = (attempt, window);
                    self.start(term, until);
                }
                Action::StartCommand(kind) => self.start_command(kind, output),
                Action::TakeBack => drop(self.terminal.take_back()),
            }
        }
    }

    /// The next action. First the second thread is told when to kill, because to perform the action may stall.
    fn next_action(&mut self) -> Option<Action> {
        let at = self.guard.second_thread_kills_at(clock::now());
        kill_from(&mut self.second_alarm, at);
        self.guard.poll_action()
    }

    fn answer_exited(&mut self, status: JobStatus, look: bool) {
        let ended_at = clock::now();
        let foreground = self.terminal.take_back();
        // Besides those there may be some that have ended.
        let commands: Vec<Pid> = self.commands.pids().collect();
        let is_of_commands = self.has_children && look && self.tree.is_all_below(&commands);
        let left = self.has_children && !is_of_commands;
        self.answer(Answer::Exited { status, ended_at, left, foreground }, None);
        if is_of_commands && !commands.is_empty() {
            self.answer(Answer::CommandsLeft, None);
        }
        self.keeps_ended |= is_of_commands && commands.is_empty();
    }

    fn answer_left_behind(&mut self, mut processes: Vec<Named>, killed: bool) {
        let count = processes.len();
        if count > 0 {
            processes.truncate(MOST_NAMED);
            self.answer(Answer::LeftBehind { processes, count, killed }, None);
        }
    }

    fn answer_started(&mut self) {
        if let Some(job) = &self.job {
            let (pid, pidfd) = (job.pid().as_raw(), system::open_pidfd(job.pid()));
            let answer = match pidfd.as_ref().map_err(io::Error::raw_os_error) {
                Ok(_) | Err(Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM)) => Answer::StartedUnseen { pid },
                // It has ended, the kernel has no pidfds, or a sandbox hides them.
                Err(_) => Answer::Started { pid },
            };
            self.answer(answer, pidfd.ok());
        }
    }

    fn begin_anew(&mut self) {
        self.job = None;
        // One that has ended and that a tracer keeps would be taken for the next run's.
        self.commands = ShellCommands::none();
        self.terminal.forget_job();
        // Flushed first, because the next step may take long.
        self.flush();
        self.prepare_run_cgroup();
    }

    fn learn(&mut self, until: Time) {
        // Flushed first, because reading the tree may stall.
        self.flush();
        let begun = clock::now();
        self.tree.learn(until);
        self.guard.handle(clock::now(), Event::Learnt { begun });
    }

    fn start(&mut self, term: i64, until: Time) {
        // Flushed first, so that the supervisor knows that the guard has read the order and is about to perform it.
        self.flush();
        match self.try_start(term, until) {
            Ok(job) => self.job = Some(job),
            Err((at, error)) => {
                self.terminal.forget_job();
                let errno = error.raw_os_error().unwrap_or(libc::EINVAL);
                self.guard.handle(clock::now(), Event::NotStarted { errno, at });
            }
        }
    }

    fn try_start(&mut self, term: i64, until: Time) -> Result<Job, (Step, io::Error)> {
        let lease = match self.lease.take().filter(|(of, _)| *of == term) {
            Some((_, lease)) => lease,
            None => Lease::new(term, &mut self.slot).map_err(|error| (Step::Lease, error))?,
        };
        lease.grant(until);
        let environment = self.variables(term, [variable(LEASE_FD, self.slot.as_raw_fd())]);
        let (_, lease) = self.lease.insert((term, lease));
        let terminal = if self.guard_config.foreground { self.terminal.about_to_hand_on() } else { None };
        let foreground = terminal.as_ref().map(|terminal| (terminal.as_fd(), self.terminal.own));
        let spec = SpawnSpec {
            image: &self.image,
            environment: &environment,
            descriptors: &[self.slot.as_raw_fd()],
            ignored: self.guard_config.ignored,
            attributes: self.guard_config.attributes,
            cgroup: self.run_cgroup.as_ref().map(AsFd::as_fd),
            deadline: Some(lease.deadline()),
            kind: ChildKind::Job(foreground),
        };
        let pending = spawn(&spec).map_err(|error| (Step::Fork, error))?;
        self.terminal.belongs_to_job(pending.pid);
        Ok(Job::new(pending))
    }

    fn start_command(&mut self, kind: CommandKind, output: Option<BorrowedFd<'_>>) {
        let Some((term, lease)) = &self.lease else { return };
        let image = match kind {
            CommandKind::Health => &self.health,
            CommandKind::Lead => &self.on_lead,
        };
        let Some(image) = image else {
            return self.guard.handle(clock::now(), Event::CommandEnded { kind, end: CommandEnd::Abandoned });
        };
        let environment = self.variables(*term, [variable(EVENT, kind.event()), variable(WHY, "")]);
        let spec = SpawnSpec {
            image,
            environment: &environment,
            descriptors: &[],
            ignored: self.guard_config.ignored,
            attributes: self.guard_config.attributes,
            cgroup: self.run_cgroup.as_ref().map(AsFd::as_fd),
            deadline: Some(lease.deadline()),
            kind: ChildKind::Command(output),
        };
        if let Err(error) = self.commands.start(kind, &spec) {
            let end = shell::not_started(error);
            self.guard.handle(clock::now(), Event::CommandEnded { kind, end });
        }
    }

    /// The variables of one run, and of the commands that run beside it.
    fn variables<const N: usize>(&self, term: i64, own: [CString; N]) -> Vec<CString> {
        let of_run = [variable(EPOCH, term), variable(ATTEMPT, self.attempt)];
        let of_window = self.window.map(job_variables::of_window).into_iter().flatten();
        let of_window = of_window.map(|(name, value)| variable(name, value));
        of_run.into_iter().chain(of_window).chain(own).collect()
    }

    /// Releases the term after the supervisor's death: appends the release to the queue. If no other guard of that supervisor delivers the
    /// queue, this process becomes the program that does.
    pub(super) fn release(self, grant: Grant, late: Option<Duration>) -> io::Result<()> {
        let Self { guard_config, release_queue, .. } = self;
        let Some(config) = guard_config.release else { return Ok(()) };
        let Grant { term, seen, next_seq, .. } = grant;
        let (member, late_ms) = (Some(config.member.clone()), late.map(millis_rounded_up));
        let release = Record::release_for_dead(member, &config.name, term, seen, next_seq, late_ms);
        let Some(deliverer) = memory_files::append(release_queue, &(config, release))? else { return Ok(()) };
        // The program is a client of Kafka, which may need more open files than the job.
        spin_watch::end_watch();
        EarlierAttributes { open_files: None, mark: None, ..guard_config.attributes }.restore()?;
        become_releaser(&guard_config.releaser, deliverer).map(|never| match never {})
    }
}

fn variable(name: &str, value: impl fmt::Display) -> CString {
    // A number or a time contains no NUL.
    CString::new(format!("{name}={value}")).unwrap_or_default()
}

/// Executes `<releaser> release <queue's descriptor>` without any other inherited descriptor. Returns only on failure. There is no fork: so a
/// lack of processes can't prevent it, and no part of the guard is left.
///
/// Every signal stays blocked, as in the guard, because a service manager that sends SIGTERM to the whole control group of a dead
/// supervisor must not end this program. It lives for at most a lease. Pending signals are discarded, in case one is unblocked: the kernel
/// itself sends SIGHUP to a guard that was stopped when its supervisor died.
fn become_releaser(releaser: &Path, deliverer: Deliverer) -> io::Result<Infallible> {
    env::set_current_dir("/")?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    unistd::dup2_stdin(&null)?;
    unistd::dup2_stdout(&null)?;
    unistd::dup2_stderr(&null)?;
    // If the file itself has one of the three numbers, it stays open; any other number is closed here.
    let _ = null.into_raw_fd();
    let queue = deliverer.hand_on()?;
    descriptors::close_all_but(&[0, 1, 2, queue])?;
    signals::discard_pending();

    let program = CString::new(releaser.as_os_str().as_bytes())?;
    let arguments = [c"neli-run".to_owned(), c"release".to_owned(), CString::new(queue.to_string())?];
    Ok(unistd::execv(&program, &arguments)?)
}
