//! The guard's process: its setup, and one loop, which blocks only in its own `poll`. It passes events to [`Guard`] and performs its actions
//! ([`perform`](super::perform)). A second thread kills the job if this one stalls, and one more its control group
//! ([`deadline_thread`]); another one watches this one ([`spin_watch`]).

use std::fs::File;
use std::io;
use std::mem::{self, ManuallyDrop};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use neli_kafka::clock::{self, Alarm};
use neli_kafka::embedded::BrokerDirectory;
use neli_proto::guard::{Action, Answer, CommandKind, Event, Guard, Remains};
use neli_proto::job::JobStatus;
use neli_proto::time::{Span, Time};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{self, Pid};

use crate::guard::channel::Channel;
use crate::guard::deadline_thread;
use crate::guard::job::Job;
use crate::guard::lease::{self, Lease};
use crate::guard::message::GuardConfig;
use crate::process::attributes::{self, EarlierAttributes, Scheduling};
use crate::process::cgroup::Cgroup;
use crate::process::held::HeldProcess;
use crate::process::memory_files;
use crate::process::reap::reap;
use crate::process::shell::ShellCommands;
use crate::process::spawn::Image;
use crate::process::terminal::Terminal;
use crate::process::tree::Tree;
use crate::process::{descriptors, limits, procfs, spin_watch, system};

/// How many children are waited for before the deadline is looked at again, even if thousands have ended.
const REAPED_AT_ONCE: usize = 64;

/// How many orders are read before other events are handled.
const ORDERS_AT_ONCE: usize = 16;

/// How long the guard waits if it can't wait for events. Then it looks at all, the deadline too.
const BACK_OFF_MS: u8 = 5;

/// How often to check whether the supervisor is dead, once its end of the socket is closed.
const LOOK_FOR_DEATH: Duration = Duration::from_millis(20);

/// The guard's process.
#[derive(Debug)]
pub(super) struct GuardLoop {
    pub(super) guard: Guard,
    pub(super) guard_config: GuardConfig,
    /// The program that the job executes.
    pub(super) image: Image,
    pub(super) tree: Tree,
    /// When the second thread kills.
    pub(super) second_alarm: Alarm,
    /// The number of the lease descriptor, reserved in the job.
    pub(super) slot: OwnedFd,
    /// `None` once the supervisor's end is closed.
    channel: Option<Channel<Answer>>,
    /// The supervisor, until it is known to be dead.
    supervisor: Option<HeldProcess>,
    children: SignalFd,
    /// Whether there were living children at the last wait.
    pub(super) has_children: bool,
    /// Whether more children may have ended than one turn waits for.
    may_have_ended_children: bool,
    /// Whether there may be children that have ended and can't be waited for, because another process traces them or a sandbox forbids it.
    pub(super) keeps_ended: bool,
    pub(super) terminal: Terminal,
    alarm: Alarm,
    /// The lease descriptor of a term, from its first run on.
    pub(super) lease: Option<(i64, Lease)>,
    pub(super) job: Option<Job>,
    /// The number of the present or last run in its term.
    pub(super) attempt: u32,
    /// The window of that run, if it has one.
    pub(super) window: Option<Span>,
    /// The shells of `--health-cmd` and `--on-lead`.
    pub(super) health: Option<Image>,
    pub(super) on_lead: Option<Image>,
    /// The commands that run beside the job.
    pub(super) commands: ShellCommands<CommandKind>,
    /// The control group below the tree's into which the present or next run is created.
    pub(super) run_cgroup: Option<OwnedFd>,
    runs: u64,
    pub(super) release_queue: File,
    /// The guard's last action, once it has decided to end.
    pub(super) ending: Option<Action>,
    /// With `--embedded` no new broker begins while this process holds it. The program that releases has it no more.
    _broker_lock: Option<File>,
}

impl GuardLoop {
    /// Sets this process up as the guard with the configuration in the file with this number.
    pub(super) fn new(config: RawFd) -> io::Result<Self> {
        // The guard still is in the process group of `neli-run`, which is in the terminal's foreground when the job is not.
        let terminal = Terminal::of(unistd::getpgrp());
        isolate()?;
        let mut guard_config: GuardConfig = memory_files::read_sealed(config)?;
        let lease_number = descriptors::lowest_free(&guard_config.inherited);
        // A descriptor with the number that is reserved for the lease moves.
        let adopt = |number| {
            let descriptor = system::adopt(number)?;
            if number == lease_number { descriptor.try_clone() } else { Ok(descriptor) }
        };
        // If anything fails, it is open until this process ends: its end is a reason to kill, by which the reason in the status would be lost.
        let channel = ManuallyDrop::new(Channel::over(adopt(guard_config.socket)?));
        let supervisor_pidfd = guard_config.supervisor_pidfd.map(adopt).transpose()?;
        let cgroup = guard_config.cgroup.map(adopt).transpose()?;
        let release_queue = File::from(adopt(guard_config.release_queue)?);
        let own = [Some(channel.as_fd()), supervisor_pidfd.as_ref().map(AsFd::as_fd), cgroup.as_ref().map(AsFd::as_fd)];
        let own = own.into_iter().flatten().map(|own| own.as_raw_fd()).chain([release_queue.as_raw_fd()]);
        // Descriptors that the supervisor has left open by mistake must not reach the job.
        let kept: Vec<RawFd> = guard_config.inherited.iter().copied().chain(own).collect();
        descriptors::close_all_but(&kept)?;
        // This must come before any other file is opened, because that file might get the number.
        let slot = lease::reserve(lease_number)?;
        let broker_lock = guard_config.broker.as_deref().map(|path| BrokerDirectory::at(path)?.hold()).transpose()?;

        let environment = mem::take(&mut guard_config.environment);
        let image = Image::found_by_path(&mem::take(&mut guard_config.command), &environment)?;
        let shell = |line: &Option<_>| line.as_deref().map(|line| Image::of_shell(line, &environment)).transpose();
        let (health, on_lead) = (shell(&guard_config.health)?, shell(&guard_config.on_lead)?);
        let of_job = &mut guard_config.attributes;
        of_job.scheduling = raise_priority(of_job.scheduling);
        // At a memory limit the kernel would otherwise kill the guard instead of the job that has reached the limit.
        of_job.oom_score = attributes::exempt_from_lack_of_memory();
        let EarlierAttributes { scheduling, mark, .. } = *of_job;
        // If no thread can be started, this one is not watched.
        let _ = spin_watch::watch_this_thread(system::keep_stack_from_children);
        let cgroup = cgroup.and_then(|directory| Cgroup::open(directory).ok()).map(Arc::new);
        procfs::keep_open()?;
        let mut tree = Tree::below(unistd::getpid(), cgroup, mark);
        if scheduling.is_some() {
            tree.prioritize_killed();
        }
        let supervisor = HeldProcess { pid: Pid::from_raw(guard_config.supervisor), pidfd: supervisor_pidfd };
        let mut guard_loop = Self {
            guard: Guard::new(guard_config.lease).with_kill_margin(guard_config.kill_margin),
            guard_config,
            image,
            second_alarm: deadline_thread::start(&tree)?,
            tree,
            slot,
            supervisor: Some(supervisor),
            children: SignalFd::with_flags(
                &SigSet::from(Signal::SIGCHLD),
                SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK,
            )?,
            has_children: false,
            may_have_ended_children: false,
            keeps_ended: false,
            terminal,
            alarm: Alarm::new()?,
            lease: None,
            job: None,
            attempt: 0,
            window: None,
            health,
            on_lead,
            commands: ShellCommands::none(),
            run_cgroup: None,
            runs: 0,
            release_queue,
            ending: None,
            _broker_lock: broker_lock,
            // After all that may fail.
            channel: Some(ManuallyDrop::into_inner(channel)),
        };
        guard_loop.prepare_run_cgroup();
        // A guard whose pages must be read from a disk would be late. Locking may not be allowed.
        limits::lock_memory();
        guard_loop.answer(Answer::Ready, None);
        Ok(guard_loop)
    }

    /// Runs until the supervisor is gone and there is nothing left to do for it. Returns if there is nothing to release, if another guard's
    /// process delivers the release, or if the program that delivers it could not be executed.
    pub(super) fn run(mut self) -> io::Result<()> {
        loop {
            self.alarm.set(self.due())?;
            self.wait();
            self.fence();
            // The order matters: if the supervisor was dead before all orders were read, no more orders follow. This process has another parent
            // then: the kernel changes the parent only when the last thread of the old parent has ended.
            if self.supervisor.take_if(|supervisor| supervisor.pid != unistd::getppid()).is_some() {
                self.tell(clock::now(), Event::SupervisorDied, None);
            }
            self.read_orders();
            self.look_after_children();
            self.guard.handle_timeout(clock::now());
            self.perform(None);
            self.flush();
            match self.ending {
                None => {}
                Some(Action::Release { grant, late }) => return self.release(grant, late),
                Some(_) => return Ok(()),
            }
        }
    }

    /// The next time at which the loop must act without an event.
    fn due(&self) -> Option<Time> {
        // Its pidfd does not become readable while a tracer keeps one of its threads.
        let look_for_death = self.channel.is_none() && self.supervisor.is_some();
        let look = look_for_death.then(|| clock::now() + LOOK_FOR_DEATH);
        let flush = self.channel.as_ref().and_then(Channel::poll_timeout);
        [self.guard.poll_timeout(), look, flush].into_iter().flatten().min()
    }

    /// Waits for an event or a timeout. Afterwards each part finds out by itself what to do. Nothing else in this loop blocks.
    fn wait(&self) {
        let input = PollFlags::POLLIN;
        let mut sources = vec![PollFd::new(self.children.as_fd(), input), PollFd::new(self.alarm.as_fd(), input)];
        if let Some(channel) = &self.channel {
            let output = if channel.awaits_room() { PollFlags::POLLOUT } else { PollFlags::empty() };
            sources.push(PollFd::new(channel.as_fd(), input | output));
        }
        let pidfd = self.supervisor.as_ref().and_then(|supervisor| supervisor.pidfd.as_ref());
        sources.extend(pidfd.map(|pidfd| PollFd::new(pidfd.as_fd(), input)));
        let of_job = self.job.iter().flat_map(|job| [job.progress_fd(), job.end_fd()]);
        sources.extend(of_job.flatten().map(|descriptor| PollFd::new(descriptor, input)));
        // No signal interrupts the wait, and an unnecessary turn does no harm.
        let timeout = if self.may_have_ended_children { PollTimeout::ZERO } else { PollTimeout::NONE };
        // While a child shares the pages of this process, this thread may need memory before it can say that it has an event.
        if self.job.as_ref().and_then(Job::progress_fd).is_none() && !self.commands.is_any_pending() {
            spin_watch::begin_pause();
        }
        if poll(&mut sources, timeout).is_err() {
            // At a limit of open files that is below their number, or in want of memory, it fails at once, again and again.
            let _ = poll(&mut [], BACK_OFF_MS);
        }
        spin_watch::end_pause();
    }

    fn fence(&mut self) {
        self.guard.fence(clock::now());
        self.perform(None);
    }

    fn read_orders(&mut self) {
        for _ in 0..ORDERS_AT_ONCE {
            // The fence comes before the next order is read, because reading needs memory.
            self.fence();
            let Some(channel) = &self.channel else { return };
            let received = channel.receive();
            let now = clock::now();
            match received {
                Ok(Some((order, output))) => {
                    self.tell(now, Event::Ordered(order), output.as_ref().map(AsFd::as_fd));
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return self.tell(now, Event::AllRead, None);
                }
                Ok(None) | Err(_) => {
                    self.channel = None;
                    return self.tell(now, Event::SocketClosed, None);
                }
            }
        }
    }

    /// Waits for children that have ended, a limited number per turn so that the deadline is checked in between, and reports whether some
    /// are left.
    fn look_after_children(&mut self) {
        // The kernel keeps one at a time.
        let _ = self.children.read_signal();
        self.observe_start();
        let had_ended = self.job.as_ref().is_some_and(Job::has_ended);
        let reaped = reap(REAPED_AT_ONCE, |ended| self.commands.end_group_of(ended));
        (self.has_children, self.may_have_ended_children) = (reaped.children_left, reaped.may_be_more);
        self.keeps_ended = (self.keeps_ended && reaped.children_left) || reaped.is_refused;
        let now = clock::now();
        for (pid, status) in &reaped.changes {
            if let Some((kind, end)) = self.commands.observe_child(*pid, *status) {
                self.tell(now, Event::CommandEnded { kind, end }, None);
            }
        }
        let main = self.job.as_ref().filter(|job| job.has_main).map(Job::pid);
        for (_, status) in reaped.changes.iter().filter(|(pid, _)| Some(*pid) == main) {
            self.observe_main(now, *status);
        }
        // One that ended after the others were waited for is waited for at the next turn.
        if had_ended
            && !reaped.may_be_more
            && let Some(status) = self.job.as_mut().and_then(Job::unwaited_end)
        {
            self.keeps_ended = true;
            self.observe_main(now, status);
        }
        // A look takes long, and a main process that was not waited for has hardly ended.
        let looks = self.keeps_ended && !self.job.as_ref().is_some_and(|job| job.has_main);
        self.has_children = reaped.children_left && !(looks && !reaped.may_be_more && self.tree.is_all_below(&[]));
        let (tree, has_run) = (&self.tree, self.guard.run_phase().is_some());
        // Without a run there is nothing to search for.
        let remains = Remains::seen(self.has_children, || has_run && !tree.is_nothing_elsewhere());
        self.tell(clock::now(), Event::Waited(remains), None);
    }

    fn observe_start(&mut self) {
        if let Some(event) = self.job.as_mut().and_then(Job::observe_start) {
            self.tell(clock::now(), event, None);
        }
    }

    fn observe_main(&mut self, now: Time, status: ExitStatus) {
        if let Some(signal) = status.stopped_signal() {
            return self.tell(now, Event::MainStopped { signal }, None);
        }
        // Only now it is known for certain whether the job had executed its program.
        self.observe_start();
        self.job.iter_mut().for_each(|job| job.has_main = false);
        let exited = || JobStatus::Exited(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX));
        let status = status.signal().map_or_else(exited, JobStatus::Signaled);
        self.tell(now, Event::MainEnded { status }, None);
    }

    /// Answers the supervisor, as soon as its socket has room.
    pub(super) fn answer(&self, answer: Answer, along: Option<OwnedFd>) {
        if let Some(channel) = &self.channel {
            channel.queue.borrow_mut().put(answer, along);
        }
    }

    pub(super) fn flush(&self) {
        if let Some(channel) = &self.channel {
            // If the supervisor is gone, its socket says so too.
            let _ = channel.flush(clock::now());
        }
    }

    pub(super) fn prepare_run_cgroup(&mut self) {
        self.runs += 1;
        self.tree.begin_anew();
        self.run_cgroup = self.tree.cgroup.as_ref().and_then(|cgroup| cgroup.make_for_run(self.runs).ok());
    }
}

/// Blocks every signal, creates a process group, and makes this process the subreaper of all orphans below it. It stays in the supervisor's
/// session, whose terminal the job uses.
fn isolate() -> io::Result<()> {
    SigSet::all().thread_set_mask()?;
    unistd::setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
    prctl::set_child_subreaper(true)?;
    prctl::set_name(c"neli-guard")?;
    Ok(())
}

/// Raises the priority above all ordinary processes and above the job, if that is allowed; returns the scheduling that the job must get
/// back. Without it, a machine with all cores busy may delay the guard for longer than the kill margin, and a real-time job may delay it
/// for as long as the job runs.
///
/// `of_job`: the scheduling that the supervisor had before it raised its own; the job must get it.
fn raise_priority(of_job: Option<Scheduling>) -> Option<Scheduling> {
    let job = of_job.or_else(|| Scheduling::current().ok())?;
    // With a limit on real-time running the kernel would kill the guard sooner or later.
    let may = job.is_real_time() || attributes::is_running_unlimited();
    (may && job.next_higher()?.set_for(Pid::from_raw(0)).is_ok()).then_some(job)
}
