//! The guard at work: one thread, one loop, and nothing in it that waits for anything but the loop.

use std::convert::Infallible;
use std::ffi::CString;
use std::fmt;
use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use neli_proto::command::CommandEnd;
use neli_proto::flaw::{Flaw, broken};
use neli_proto::time::Time;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{self, Pid};

use crate::driver::cgroup::Cgroup;
use crate::driver::clock;
use crate::driver::descriptors;
use crate::driver::guard::Call;
use crate::driver::guard::alarm::Alarm;
use crate::driver::guard::channel::Channel;
use crate::driver::guard::commands::{Asked, Commands};
use crate::driver::guard::message::{Answer, Charge, Grant, Order, Step};
use crate::driver::guard::outbox::Outbox;
use crate::driver::guard::release;
use crate::driver::guard::run::Run;
use crate::driver::guard::standing;
use crate::driver::guard::tenure::{Tenure, Verdict};
use crate::driver::image::Image;
use crate::driver::lease::{Lease, Slot};
use crate::driver::paper;
use crate::driver::process::{self, Birth, Kind, Scheduling};
use crate::driver::shell::Circumstances;
use crate::driver::terminal::{Handover, Terminal};
use crate::driver::tree::Tree;

/// The variables that change from run to run.
const EPOCH: &str = "NELI_EPOCH";
const ATTEMPT: &str = "NELI_ATTEMPT";
const LEASE_FD: &str = "NELI_LEASE_FD";
/// Those that commands alone have.
const EVENT: &str = "NELI_EVENT";
const WHY: &str = "NELI_WHY";

/// How many orders are read before everything else has its turn again.
const ORDERS_AT_ONCE: usize = 16;

/// How often to look whether the supervisor is dead, where no pidfd says so.
const LOOK_FOR_DEATH: Duration = Duration::from_millis(20);

/// How long a look at the job's tree may take while nothing is to be done, and its share of the time: one in so many.
const LOOK: Duration = Duration::from_millis(50);
const LOOK_SHARE: u32 = 100;

/// The guard.
#[derive(Debug)]
pub(super) struct Watch {
    charge: Charge,
    job: Image,
    /// What the job and the release get, when the guard has a better one.
    scheduling_of_job: Option<Scheduling>,
    tree: Tree,
    slot: Slot,
    /// `None` once the supervisor's end is closed.
    channel: Option<Channel>,
    supervisor: Supervisor,
    children: SignalFd,
    terminal: Terminal,
    alarm: Alarm,
    outbox: Outbox,
    /// The last term that was granted.
    tenure: Option<Tenure>,
    /// That term's lease descriptor, from its first spawn on.
    lease: Option<(i64, Lease)>,
    run: Option<Run>,
    /// The number of that run, or of the last, in its term.
    attempt: u64,
    commands: Commands,
    /// Where in the tree's control group the next run, or this one, is born.
    birthplace: Option<OwnedFd>,
    runs: u64,
    /// Whether the deadline has come while the run was alive.
    fenced: bool,
    /// Whether the lease was extended since the tree could be looked at last.
    may_look: bool,
    /// When it is looked at again, at the earliest.
    look_at: Time,
}

impl Watch {
    /// Sets itself up as the guard that `call` asks for.
    pub(super) fn new(call: &Call) -> io::Result<Self> {
        standing::stand_apart()?;
        let mut charge: Charge = paper::read(call.charge)?;
        let lease_number = descriptors::lowest_free(&charge.inherited);
        let channel = Channel::over(standing::taken_over(call.socket, lease_number)?);
        let death = call.supervisor_pidfd.map(|number| standing::taken_over(number, lease_number)).transpose()?;
        let cgroup = charge.cgroup.map(|number| standing::taken_over(number, lease_number)).transpose()?;
        let own = [Some(channel.as_fd()), death.as_ref().map(AsFd::as_fd), cgroup.as_ref().map(AsFd::as_fd)];
        standing::close_strays(&charge.inherited, &own)?;

        let mut environment = mem::take(&mut charge.environment);
        // Those of a `neli-run` around this one.
        environment.retain(|(name, _)| ![EPOCH, ATTEMPT, LEASE_FD, EVENT, WHY].iter().any(|own| name == own));
        let job = Image::found_by_path(&mem::take(&mut charge.command), &environment)?;
        let commands = Commands::new(&charge, &environment)?;
        let scheduling_of_job = standing::go_first(charge.scheduling);
        let cgroup = cgroup.and_then(|directory| Cgroup::over(directory).ok()).map(Rc::new);
        let tree = Tree::below(unistd::getpid()).born_into(cgroup);
        let terminal = Terminal::of(Pid::from_raw(charge.group));
        let mut watch = Self {
            charge,
            job,
            tree: if scheduling_of_job.is_some() { tree.urgent() } else { tree },
            scheduling_of_job,
            slot: Slot::take(lease_number)?,
            channel: Some(channel),
            supervisor: Supervisor { pid: Pid::from_raw(call.supervisor), death, is_known_dead: false },
            children: SignalFd::with_flags(
                &SigSet::from(Signal::SIGCHLD),
                SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK,
            )?,
            terminal,
            alarm: Alarm::new()?,
            outbox: Outbox::default(),
            tenure: None,
            lease: None,
            run: None,
            attempt: 0,
            commands,
            birthplace: None,
            runs: 0,
            fenced: false,
            may_look: false,
            look_at: Time::ZERO,
        };
        watch.prepare_birthplace();
        standing::lock_memory();
        Ok(watch)
    }

    /// Keeps watch until the supervisor is gone and nothing is left to be done for it. It returns when nothing is to be
    /// released, or when the release could not be executed.
    pub(super) fn keep(mut self) -> io::Result<()> {
        loop {
            self.alarm.set(self.due())?;
            self.wait();
            // In this order: who was dead before all orders were read can give no more.
            self.supervisor.look();
            let heard_all = self.hear();
            let abandoned = self.supervisor.is_known_dead || self.channel.is_none();
            if let Some(grant) = self.tenure.and_then(|tenure| tenure.unreleased())
                && self.supervisor.is_known_dead
                && broken(Flaw::GuardReleasesFirst)
            {
                return self.release(grant).map(drop);
            }
            if abandoned && !broken(Flaw::GuardReleasesFirst) {
                // First of all: a script around the dead goes on at once, and may want to read.
                self.terminal.take_back();
                self.end_term();
            }
            self.look_after_run();
            if let Some(channel) = &self.channel {
                self.outbox.flush(channel);
            }
            self.learn_if_calm();
            if !abandoned || self.run.is_some() {
                continue;
            }
            match self.tenure.and_then(|tenure| tenure.unreleased()) {
                None => {
                    self.remove_cgroup();
                    return Ok(());
                }
                Some(grant) if self.supervisor.is_known_dead && heard_all => {
                    self.remove_cgroup();
                    return self.release(grant).map(drop);
                }
                // A closed socket is reason to kill, not to release (R6).
                Some(_) => {}
            }
        }
    }

    /// When there is something to do, whatever happens.
    fn due(&self) -> Option<Time> {
        let deadline = self.tenure.and_then(|tenure| tenure.deadline()).filter(|_| !broken(Flaw::GuardIgnoresDeadline));
        let run = self.run.as_ref().and_then(Run::due);
        let look_for_death =
            self.channel.is_none() && self.supervisor.death.is_none() && !self.supervisor.is_known_dead;
        let look = look_for_death.then(|| clock::now() + LOOK_FOR_DEATH);
        [deadline, run, self.commands.due(), look].into_iter().flatten().min()
    }

    /// Keeps up to date what is known of the job's tree, so that at the deadline it need not be looked for. Only when the lease
    /// was extended just now: at the job's memory limit a look may stall, and must be over long before the deadline.
    fn learn_if_calm(&mut self) {
        let now = clock::now();
        if !mem::take(&mut self.may_look) || now < self.look_at {
            return;
        }
        let is_calm = self.run.as_ref().is_some_and(|run| run.due().is_none());
        if let Some(end) = end_of_look(self.tenure, now).filter(|_| is_calm) {
            self.tree.learn(end);
            let end = clock::now();
            self.look_at = end + end.since(now) * LOOK_SHARE;
        }
    }

    /// Waits until there is something to do. What it is, everybody finds out by himself: nothing here ever blocks.
    fn wait(&self) {
        let input = PollFlags::POLLIN;
        let mut sources = vec![PollFd::new(self.children.as_fd(), input), PollFd::new(self.alarm.as_fd(), input)];
        if let Some(channel) = &self.channel {
            let output = if self.outbox.is_empty() { PollFlags::empty() } else { PollFlags::POLLOUT };
            sources.push(PollFd::new(channel.as_fd(), input | output));
        }
        if let Some(death) = &self.supervisor.death
            && !self.supervisor.is_known_dead
        {
            sources.push(PollFd::new(death.as_fd(), input));
        }
        if let Some(progress) = self.run.as_ref().and_then(Run::progress_fd) {
            sources.push(PollFd::new(progress, input));
        }
        // No signal interrupts it, and a turn too many does no harm.
        let _ = poll(&mut sources, PollTimeout::NONE);
    }

    /// Reads orders; whether all that had come were read.
    fn hear(&mut self) -> bool {
        for _ in 0..ORDERS_AT_ONCE {
            // Before each order: what it says may have come too late.
            let now = clock::now();
            self.fence_if_due(now);
            let Some(channel) = &self.channel else { return true };
            match channel.receive() {
                Ok(Some(packet)) => {
                    if let Ok(order) = serde_json::from_slice(&packet.bytes) {
                        self.obey(&order, packet.descriptor.as_ref().map(AsFd::as_fd), now);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Ok(None) | Err(_) => self.channel = None,
            }
        }
        false
    }

    /// R4: at the deadline nothing may run.
    fn fence_if_due(&mut self, now: Time) {
        let Some(tenure) = self.tenure.filter(|tenure| tenure.deadline().is_some_and(|deadline| now >= deadline))
        else {
            return;
        };
        if broken(Flaw::GuardIgnoresDeadline) {
            return;
        }
        self.end_term();
        if let Some(run) = &mut self.run {
            self.fenced = true;
            run.kill(now, &self.tree);
        } else {
            self.outbox.put(Answer::Fenced { term: tenure.term(), gone_at: None }, None);
        }
    }

    fn obey(&mut self, order: &Order, descriptor: Option<BorrowedFd<'_>>, now: Time) {
        match *order {
            Order::Command { kind, id, kill_at } => {
                let asked = Asked { kind, id };
                if let Err(end) = self.start_command(asked, kill_at, descriptor) {
                    self.outbox.put(asked.answer(end), None);
                }
            }
            Order::HandOn => {
                if let Some(run) = &mut self.run {
                    run.hand_on(&mut self.terminal);
                }
            }
            Order::Kill => {
                if let Some(run) = self.run.as_mut().filter(|run| !run.is_being_killed()) {
                    self.outbox.put(Answer::Killed, None);
                    run.kill(now, &self.tree);
                }
            }
            Order::Lease(grant) => self.extend(grant, now),
            Order::Over { term } => {
                if self.holds(term) {
                    self.end_term();
                }
            }
            Order::Released { term } => {
                if self.holds(term) {
                    self.end_term();
                    self.tenure.iter_mut().for_each(Tenure::settle);
                }
            }
            Order::Signal { signal, to } => {
                if let Some(run) = &mut self.run {
                    run.signal(signal, to);
                }
            }
            Order::Spawn { grant, attempt } => self.spawn(grant, attempt, now),
            Order::Stop { signal, kill_at } => {
                if let Some(run) = &mut self.run {
                    run.stop(signal, kill_at, &self.tree, &mut self.outbox);
                }
            }
            Order::TakeBack => {
                self.terminal.take_back();
            }
        }
    }

    fn holds(&self, term: i64) -> bool {
        self.tenure.is_some_and(|tenure| tenure.term() == term)
    }

    fn extend(&mut self, grant: Grant, now: Time) {
        if self.run.is_some() && !self.holds(grant.term) {
            // The job of one term never runs on another's lease.
            return;
        }
        match self.take_grant(grant, now) {
            Verdict::Granted(until) => {
                self.outbox.put(Answer::Extended { until }, None);
                self.may_look = true;
            }
            // While something is being killed, its end says so.
            Verdict::Refused if self.run.is_some() => {}
            Verdict::Refused => self.outbox.put(Answer::Fenced { term: grant.term, gone_at: None }, None),
        }
    }

    fn take_grant(&mut self, grant: Grant, now: Time) -> Verdict {
        let (tenure, verdict) = Tenure::granted(self.tenure, grant, now);
        self.tenure = Some(tenure);
        if let (Verdict::Granted(until), Some((term, lease))) = (verdict, &self.lease)
            && *term == grant.term
        {
            lease.grant(until);
        }
        verdict
    }

    /// Starts the job, unless one is there: two at once is what no order can bring about.
    fn spawn(&mut self, grant: Grant, attempt: u64, now: Time) {
        if self.run.is_some() {
            return;
        }
        let Verdict::Granted(until) = self.take_grant(grant, now) else {
            self.outbox.put(Answer::Fenced { term: grant.term, gone_at: None }, None);
            return;
        };
        if self.supervisor.is_known_dead {
            return;
        }
        self.outbox.put(Answer::Accepted { until }, None);
        if let Some(channel) = &self.channel {
            self.outbox.flush(channel);
        }
        match self.start(grant.term, until, attempt) {
            Ok(run) => (self.run, self.attempt) = (Some(run), attempt),
            Err((at, error)) => {
                self.terminal.forget_job();
                let errno = error.raw_os_error().unwrap_or(libc::EINVAL);
                self.outbox.put(Answer::NotStarted { errno, at }, None);
            }
        }
    }

    fn start(&mut self, term: i64, until: Time, attempt: u64) -> Result<Run, (Step, io::Error)> {
        let lease = match self.lease.take().filter(|(of, _)| *of == term) {
            Some((_, lease)) => lease,
            None => Lease::new(term, &mut self.slot).map_err(|error| (Step::Lease, error))?,
        };
        lease.grant(until);
        let (_, lease) = self.lease.insert((term, lease));
        let environment = [variable(EPOCH, term), variable(ATTEMPT, attempt), variable(LEASE_FD, self.slot.number())];
        let terminal = if self.charge.foreground { self.terminal.about_to_hand_on() } else { None };
        let foreground = terminal.as_ref().map(|terminal| Handover::of(terminal, &self.terminal));
        let birth = Birth {
            image: &self.job,
            environment: &environment,
            descriptors: &[self.slot.number()],
            ignored: self.charge.ignored,
            kind: Kind::Job {
                deadline: lease.deadline(),
                scheduling: self.scheduling_of_job,
                cgroup: self.birthplace.as_ref().map(AsFd::as_fd),
                foreground,
            },
        };
        let newborn = process::spawn(&birth).map_err(|error| (Step::Fork, error))?;
        self.terminal.belongs_to_job(newborn.pid);
        Ok(Run::new(newborn, self.charge.lease))
    }

    /// Starts a command beside a job that runs, and beside no other.
    fn start_command(&mut self, asked: Asked, kill_at: Time, output: Option<BorrowedFd<'_>>) -> Result<(), CommandEnd> {
        let runs = self.run.as_ref().is_some_and(|run| run.has_main() && !run.is_being_killed());
        let Some((term, lease)) = self.lease.as_ref().filter(|_| runs && !self.supervisor.is_known_dead) else {
            return Err(CommandEnd::Abandoned);
        };
        let event = asked.kind.event();
        let environment =
            [variable(EPOCH, term), variable(ATTEMPT, self.attempt), variable(EVENT, event), variable(WHY, "")];
        let circumstances = Circumstances {
            cgroup: self.birthplace.as_ref().map(AsFd::as_fd),
            deadline: Some(lease.deadline()),
            environment: &environment,
            ignored: self.charge.ignored,
            output,
            scheduling: self.scheduling_of_job,
        };
        self.commands.start(asked, kill_at, circumstances)
    }

    /// Nothing is started or extended under the term any more, and its job may not run.
    fn end_term(&mut self) {
        self.tenure.iter_mut().for_each(Tenure::end);
        if let Some((_, lease)) = &self.lease {
            lease.end();
        }
    }

    fn look_after_run(&mut self) {
        while let Ok(Some(_)) = self.children.read_signal() {}
        let Some(run) = &mut self.run else { return };
        run.observe_start(&mut self.outbox);
        let reaped = process::reap_after(|ended| self.commands.end_group_of(ended));
        self.commands.observe_children(&reaped, run.is_being_killed(), &mut self.outbox);
        let is_killed = run.is_being_killed();
        // A look at the tree is not to hold up its killing.
        let left = || reaped.children_left && (is_killed || !self.commands.are_all_of(&self.tree));
        run.observe_children(&reaped, left, &self.terminal, &mut self.outbox);
        if !run.has_main() {
            self.commands.abandon(&mut self.outbox);
        }
        let nothing_left = !reaped.children_left && self.tree.is_out_of_cgroup();
        if nothing_left || (broken(Flaw::GuardForgetsTree) && !run.has_main()) {
            self.end_run();
            return;
        }
        let now = clock::now();
        self.commands.handle_timeout(now, &mut self.outbox);
        let may_run = self.tenure.is_some_and(|tenure| tenure.deadline().is_some());
        // What somebody else has put into the job's control group is not asked when the job has ended.
        if !(may_run && reaped.children_left || run.is_being_killed()) {
            run.kill(now, &self.tree);
        }
        run.handle_timeout(now, &self.tree, end_of_look(self.tenure, now), &mut self.outbox);
        if run.is_stuck() {
            // Whenever it ends: what was said stands, and the lease runs out by itself.
            self.tenure.iter_mut().for_each(Tenure::settle);
        }
    }

    /// Nothing is left of the job.
    fn end_run(&mut self) {
        self.terminal.take_back();
        self.terminal.forget_job();
        let failure = self.run.take().and_then(Run::into_failure);
        let fenced = mem::take(&mut self.fenced).then_some(self.tenure).flatten();
        let fenced = fenced.map(|tenure| Answer::Fenced { term: tenure.term(), gone_at: Some(clock::now()) });
        let gone = (failure.is_none() && fenced.is_none()).then_some(Answer::Gone);
        for answer in [failure, fenced, gone].into_iter().flatten() {
            self.outbox.put(answer, None);
        }
        if let Some(channel) = &self.channel {
            self.outbox.flush(channel);
        }
        self.prepare_birthplace();
    }

    fn prepare_birthplace(&mut self) {
        self.runs += 1;
        self.tree.begin_anew();
        self.birthplace = self.tree.cgroup().and_then(|cgroup| cgroup.birthplace(self.runs).ok());
    }

    /// While the supervisor lives it is the supervisor's.
    fn remove_cgroup(&self) {
        if self.supervisor.is_known_dead {
            self.tree.cgroup().iter().for_each(|cgroup| cgroup.remove());
        }
    }

    /// Becomes the program that releases for the dead. Everything that the guard has open is closed before.
    fn release(self, grant: Grant) -> io::Result<Infallible> {
        let Self { charge, scheduling_of_job, .. } = self;
        if let Some(scheduling) = scheduling_of_job {
            scheduling.resume()?;
        }
        release::execute(&charge, grant)
    }
}

/// When a look at the job's tree that begins now must be over; `None` where the deadline is too near for one.
fn end_of_look(tenure: Option<Tenure>, now: Time) -> Option<Time> {
    let deadline = tenure.and_then(|tenure| tenure.deadline())?;
    (now + LOOK * 2 <= deadline).then(|| now + LOOK)
}

/// The process that gives the orders.
#[derive(Debug)]
struct Supervisor {
    pid: Pid,
    /// A pidfd of it: readable when it is dead. `None` where the kernel has none.
    death: Option<OwnedFd>,
    is_known_dead: bool,
}

impl Supervisor {
    /// The kernel gives a child to another parent when the last thread of its own has ended, and not before.
    fn look(&mut self) {
        self.is_known_dead = unistd::getppid() != self.pid;
    }
}

fn variable(name: &str, value: impl fmt::Display) -> CString {
    // A number holds no NUL.
    CString::new(format!("{name}={value}")).unwrap_or_default()
}
