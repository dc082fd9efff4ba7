//! The thread of a process's elections. It passes events to each election's node and performs the node's actions, as the main loop of
//! `neli-run` does. It also is the guard of the tasks under their leads.
//!
//! It is a thread and not a task of the user's runtime: a runtime whose threads are all busy would send no heartbeat
//! and notice no deadline. It waits on `CLOCK_BOOTTIME`, and holds no lock while it waits.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use std::{io, thread};

use neli_kafka::{Host, Nodes, Session, SessionEvent, Source, clock, locked, many_roles, reason};
use neli_proto::assumptions;
use neli_proto::guard::{Action as GuardAction, Order};
use neli_proto::node::{self, Action, Status};
use neli_proto::note::Note;
use neli_proto::record::{Offset, Why};
use neli_proto::time::Time;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;

use crate::error::{Error, Reason};
use crate::event::{Event, Leader};
use crate::lease::{Command, Commands, Lease, Task, Tenure};
use crate::task_guard::STOP;
use crate::waiter::Waiter;
use crate::warnings::{self, OnWarning};
use crate::wording;
use role::{Held, Role};

mod role;

/// The callback that is awaited before a lead is released.
pub(crate) type Callback = Arc<dyn Fn(Lease, Reason) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// The settings of the thread.
pub(crate) struct Settings {
    pub(crate) source: Source,
    /// The settings of each node.
    pub(crate) node: node::Settings,
    /// With many roles: the most that this process leads, and whether roles are handed over.
    pub(crate) max_roles: Option<u32>,
    pub(crate) are_spread: bool,
    /// Whether the elections are those of roles, of which there may be only one.
    pub(crate) has_roles: bool,
    /// How long tasks may continue when the lead must be given up. The callback before the release has its own time after that, and the
    /// node's stop timeout is the sum.
    pub(crate) stop_timeout: Duration,
    /// How long the callback may take, and the callback.
    pub(crate) before_release: Option<(Duration, Callback)>,
    pub(crate) on_warning: Option<OnWarning>,
    /// The runtime in which these callbacks run.
    pub(crate) runtime: Handle,
}

/// Starts the thread. Returns the state that is shared with the handles, for each role.
pub(crate) fn start(settings: Settings) -> Result<Vec<Shared>, Error> {
    let (driver, shared) = Driver::new(settings)?;
    let waiter = Waiter::new().map_err(|error| cannot(&error))?;
    let thread = thread::Builder::new().name("neli-election".to_owned());
    thread.spawn(move || driver.run(waiter)).map_err(|error| cannot(&error))?;
    Ok(shared)
}

fn cannot(error: &io::Error) -> Error {
    Error::System(format!("the election can't be started: {}", reason(error)))
}

/// A process's elections, in their thread.
struct Driver {
    nodes: Nodes<Role>,
    settings: Settings,
    command_sender: UnboundedSender<(usize, Command)>,
    commands: UnboundedReceiver<(usize, Command)>,
    /// The number of elections in which the process stands.
    standing: usize,
    /// The elections whose end was not reported to users yet.
    ended: Vec<usize>,
}

impl Driver {
    /// With the state that is shared with the handles, for each role.
    fn new(settings: Settings) -> Result<(Self, Vec<Shared>), Error> {
        let group = &settings.source.elections.group;
        let warnings =
            warnings::start(&settings.runtime, settings.on_warning.clone(), group).map_err(|error| cannot(&error))?;
        let (command_sender, commands) = mpsc::unbounded_channel();
        let (mut roles, mut shared) = (Vec::new(), Vec::new());
        let elections = &settings.source.elections;
        for (at, number) in elections.roles.clone().enumerate() {
            let (role, states, events) = Role::new(&settings, number, warnings.clone())?;
            roles.push(role);
            shared.push(Shared { commands: Commands::new(at, command_sender.clone()), state: states, events });
        }
        let node::Settings { hello, timings, .. } = &settings.node;
        let many = many_roles(hello.clone(), elections, timings.elector(), settings.max_roles, settings.are_spread);
        let session = Session::start(settings.source.clone(), timings.lease)?;
        let driver = Self {
            standing: roles.len(),
            nodes: Nodes::new(roles, session, many),
            settings,
            command_sender,
            commands,
            ended: Vec::new(),
        };
        Ok((driver, shared))
    }

    fn run(mut self, mut waiter: Waiter) {
        loop {
            self.perform();
            if self.standing == 0 {
                return self.leave(&mut waiter);
            }
            self.tell_ends();
            let due = self.nodes.poll_timeout();
            if let Some((role, command)) = self.wait(&mut waiter, due) {
                self.handle_command(role, command);
            }
            self.handle_session_events();
            self.handle_timeouts();
        }
    }

    /// Waits until something is due, or there are events of Kafka, or a command for a role.
    fn wait(&mut self, waiter: &mut Waiter, due: Option<Time>) -> Option<(usize, Command)> {
        let (commands, session) = (&mut self.commands, &mut self.nodes.session);
        let wait = waiter.wait(due, async {
            tokio::select! {
                biased;
                command @ Some(_) = commands.recv() => command,
                () = session.wait() => None,
            }
        });
        wait.flatten()
    }

    fn handle_timeouts(&mut self) {
        let now = clock::now();
        for role in self.nodes.due(now) {
            self.handle_timeout(role, now);
        }
        self.nodes.handle_common_timeout(now);
    }

    /// Performs what is due for an election. The tasks' deadline comes first.
    fn handle_timeout(&mut self, role: usize, now: Time) {
        self.let_lease_end(role, now);
        self.nodes.roles[role].drop_tasks_if_due(now, self.settings.node.timings.kill_margin);
        if self.nodes.roles[role].is_margin_over(now) {
            self.end_if_idle(role);
        }
        if let Some(message) = self.nodes.poll_undecodable(now, role) {
            self.nodes.roles[role].report_warning(&message);
        }
        self.nodes.handle_timeout(now, role);
        if let Some(term) = self.nodes.roles[role].term_that_nobody_took(now) {
            if !self.nodes.roles[role].lead_ends() {
                self.nodes.roles[role].report_warning(
                    "nobody took the lead within a lease, so it is given up: one of lead, serve and background must be awaited for as \
                     long as this candidate stands for election",
                );
            }
            self.give_up(role, term);
        }
    }

    /// Ends the lead if its lease is over by now.
    fn let_lease_end(&mut self, role: usize, now: Time) {
        self.nodes.roles[role].guard.handle_timeout(now);
        self.perform_of_guard(role);
    }

    fn handle_command(&mut self, role: usize, command: Command) {
        match command {
            Command::Idle { term } => {
                if self.nodes.roles[role].holds(term) {
                    let margin = self.settings.node.timings.kill_margin;
                    self.nodes.roles[role].last_task_ended(clock::now(), margin);
                    self.end_if_idle(role);
                }
            }
            Command::Leave { all } => {
                let why = if self.nodes.has_many_roles() && !all { Why::Left } else { Why::Departed };
                self.stand_down(role, why, true);
            }
            Command::Resign { term } => self.give_up(role, term),
            Command::Warn(message) => self.nodes.roles[role].report_warning(message),
        }
    }

    /// Gives up a lead because the program does not want it, or has not taken it.
    fn give_up(&mut self, role: usize, term: Offset) {
        // A task may see the end of the lease before this thread does, and drop the lead. That is no resignation, after which this
        // candidate would claim nothing for two leases.
        self.let_lease_end(role, clock::now());
        if self.nodes.roles[role].holds(term) && !self.nodes.roles[role].lead_ends() {
            // After a resignation other processes that share the roles would hand this one over again at once, and it may not do its work here.
            let why = if self.nodes.has_many_roles() { Why::Unhealthy } else { Why::Resigned };
            self.stand_down(role, why, false);
        }
    }

    fn stand_down(&mut self, role: usize, why: Why, leaving: bool) {
        self.nodes.tell(clock::now(), role, node::Event::StandDown { why, leaving });
    }

    /// Reports a warning to the subscribers of each election's events, and once to the callback.
    fn warn(&mut self, message: &str) {
        self.nodes.roles.iter().take(1).for_each(|role| drop(role.warnings.send((message.to_owned(), None))));
        self.nodes.roles.iter().for_each(|role| role.pass_on(Event::warning(message)));
    }

    // ---- the end ------------------------------------------------------------------------------------------------------

    /// The process no longer stands in this election.
    fn end(&mut self, role: usize, error: Error) {
        if self.nodes.roles[role].ending.is_none() {
            self.nodes.roles[role].ending = Some(error);
            self.standing -= 1;
            self.ended.push(role);
            // While the process stands for other roles, records still come. The node of a task that blocked must not claim again.
            self.nodes.tell_ended(clock::now(), role, node::Event::Exiting);
        }
    }

    fn tell_ends(&mut self) {
        for role in self.ended.drain(..) {
            self.nodes.roles[role].tell_end(self.settings.on_warning.is_none());
        }
    }

    /// Leaves the group and waits for that. If the process ended before, the other members' next rebalance would wait for the session timeout.
    fn leave(&mut self, waiter: &mut Waiter) {
        self.nodes.leave();
        self.handle_last_session_events();
        while let Some(until) = self.nodes.leaves_until() {
            self.wait(waiter, Some(until));
            self.handle_last_session_events();
        }
        self.tell_ends();
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // The tasks must also end if this thread panics, and users must learn that it reads nothing any more.
        self.nodes.roles.iter().for_each(|role| role.end_lead(Reason::Expired));
        if thread::panicking() {
            self.tell_ends();
            let warns_on_stderr = self.settings.on_warning.is_none();
            for role in self.nodes.roles.iter_mut().filter(|role| role.ending.is_none()) {
                role.ending = Some(panicked());
                role.tell_end(warns_on_stderr);
            }
        }
    }
}

// ---- what is known of a candidate outside of its thread --------------------------------------------------------------

/// The state that handles and leads share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) commands: Commands,
    pub(crate) state: watch::Receiver<State>,
    pub(crate) events: broadcast::Receiver<Event>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.commands.send(Command::Leave { all: false });
    }
}

/// What is known of a candidate outside of its thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// It has read the journal, the process may claim, and it stands for election.
    pub(crate) stands: bool,
    /// The lead that the candidate holds, or under which tasks may still run, or of which the release was not sent yet.
    pub(crate) tenure: Option<Arc<Tenure>>,
    pub(crate) leader: Option<Leader>,
    /// What the node knows, without the standbys.
    pub(crate) status: Status,
    /// Why Kafka does not answer, or that a batch of the journal can't be decoded, if so.
    pub(crate) trouble: Option<String>,
    /// Why the candidate no longer stands for election, if so.
    pub(crate) ended: Option<Error>,
}

impl Shared {
    /// Waits until the state gives something, or the candidate stands no more.
    pub(crate) async fn wait_for<T>(&self, mut what: impl FnMut(&State) -> Option<T>) -> Result<T, Error> {
        let (mut states, mut found) = (self.state.clone(), None);
        let is_found = |state: &State| {
            found = state.ended.clone().map(Err).or_else(|| what(state).map(Ok));
            found.is_some()
        };
        // It fails if the thread has ended, and the last state was looked at before.
        drop(states.wait_for(is_found).await);
        found.unwrap_or_else(|| Err(panicked()))
    }
}

fn panicked() -> Error {
    Error::System("the election's thread has panicked".to_owned())
}

// ---- the call of the user's callback before a release, in the user's runtime ---------------------------------------

/// A call that was begun, or waits for the runtime.
struct LastCall {
    call: JoinHandle<()>,
    /// The task under the lead as which the call counts, until the runtime begins the call or drops it. A runtime that is busy, or that nobody runs, does neither: what it has
    /// not begun must not count as a task that can't be ended.
    waiting: Weak<Mutex<Option<Task>>>,
}

impl LastCall {
    /// Makes the runtime run `call`, which counts as `task`, and returns `None` if it ends unfinished.
    fn spawn(runtime: &Handle, mut task: Task, call: impl Future<Output = Option<()>> + Send + 'static) -> Self {
        let not_called = "the callback of before_release was not called: the runtime in which join was called has ended, or was busy \
                          until the limit or the lease was over";
        task.unfinished = Some(not_called);
        let waiting = Arc::new(Mutex::new(Some(task)));
        let left = Arc::downgrade(&waiting);
        let call = runtime.spawn(async move {
            // There is none if the call has come too late.
            let Some(mut task) = locked(&waiting).take() else { return };
            task.unfinished = Some(
                "the callback of before_release was dropped before its end: its limit or the lease is over, or the runtime \
                 that it ran in has ended",
            );
            if call.await.is_some() {
                task.unfinished = None;
            }
        });
        Self { call, waiting: left }
    }

    /// Drops the call.
    fn abort(&self) {
        self.call.abort();
        if let Some(waiting) = self.waiting.upgrade() {
            drop(locked(&waiting).take());
        }
    }
}

// ---- the actions of the nodes and of the guards of the tasks, and the session's events ------------------------------

impl Host for Driver {
    type Role = Role;

    fn nodes(&mut self) -> &mut Nodes<Role> {
        &mut self.nodes
    }

    fn perform_one(&mut self, role: usize, action: Action) {
        // The guard is in this thread and answers each order: it is never taken for dead. There are no hooks and no key, there is no terminal, and
        // nothing suspends the node.
        if let Action::Exit(ending) = action {
            let error = self.nodes.roles[role].error_of(ending);
            self.end(role, error);
        } else if let Action::Note(note) = action {
            self.handle_note(role, note);
        } else if let Action::Order(order) = action {
            if let Order::Stop { kill_at, .. } = order {
                self.begin_stop(role, kill_at);
            }
            self.nodes.roles[role].guard.obey(clock::now(), order);
            self.perform_of_guard(role);
        } else if action == Action::RenewGuard {
            // The node asks for it only when no task is alive.
            self.nodes.roles[role].guard.renew();
        }
    }

    fn end_actions(&mut self, role: usize) {
        let outage = self.nodes.troubles.outage.trouble().map(|(_, why)| why);
        let trouble = outage.or_else(|| self.nodes.undecodable(role));
        self.nodes.roles[role].publish(self.nodes.may_claim(), trouble);
    }

    fn show(&mut self, note: Note) {
        if let Some(Event::Warning { message }) = Event::of(&note) {
            self.warn(&message);
        }
    }

    fn handle_process_event(&mut self, _now: Time, event: SessionEvent) {
        // The library has no keys.
        if let SessionEvent::Outage { .. } = event {
            // The state of each says so.
            for role in 0..self.nodes.roles.len() {
                self.nodes.touch(role);
            }
        } else if let SessionEvent::BrokerSession(session) = event {
            let timings = &self.settings.node.timings;
            if let Some(why) = assumptions::warning(timings, session) {
                self.warn(&format!("the lease of {} ms is {why}", timings.lease.as_millis()));
            }
        } else if let SessionEvent::Warning(message) = event {
            self.warn(&message);
        }
    }
}

impl Driver {
    /// Tells the tasks under the lead why it ends, before the guard gets the order to stop them. Without a callback, the guard drops them at
    /// `kill_at`; with one they are dropped at the stop timeout, and the callback follows.
    fn begin_stop(&mut self, role: usize, kill_at: Time) {
        let role = &mut self.nodes.roles[role];
        let Some(why) = role.node.stops_for() else { return };
        let Some(held) = role.held.as_mut().filter(|held| held.tenure.ends().is_none()) else { return };
        held.tenure.stop(Reason::of(why));
        let Settings { before_release, stop_timeout, .. } = &self.settings;
        held.drop_at = before_release.is_some().then(|| kill_at.min(clock::now() + *stop_timeout));
    }

    fn handle_note(&mut self, role: usize, note: Note) {
        let role = &mut self.nodes.roles[role];
        if let Some(why) = wording::trouble(&note) {
            role.report_warning(&why);
        }
        if let Some(event) = Event::of(&note) {
            role.tell(event);
        }
        if let Note::Refused(refusal) = note {
            // The node stops the tasks in order before it ends.
            role.refusal = Some(refusal);
        } else if let Note::Ended { .. } = note {
            role.is_election_over = true;
        }
    }

    /// Performs the actions of a role's guard. There is no process with an exit status, no terminal and no command; and the supervisor is in
    /// this thread, and never gone.
    fn perform_of_guard(&mut self, role: usize) {
        while let Some(action) = self.nodes.roles[role].guard.poll_action() {
            if let GuardAction::Answer(answer) = action {
                self.nodes.tell(clock::now(), role, node::Event::Guard(answer));
            } else if let GuardAction::Start { term, until, .. } = action {
                self.begin(role, term, until);
            } else if let GuardAction::KillMainGroup | GuardAction::ShowEnd = action {
                self.nodes.roles[role].expire(clock::now(), self.settings.node.timings.kill_margin);
                self.end_if_idle(role);
            } else if let GuardAction::ShowDeadline { until, .. } = action {
                self.nodes.roles[role].held.iter().for_each(|held| held.tenure.extend(until));
            } else if let GuardAction::Signal { signal: STOP, .. } = action {
                self.end_if_idle(role);
            }
        }
    }

    /// Begins a lead, and offers it to the program.
    fn begin(&mut self, role: usize, term: Offset, until: Time) {
        let commands = Commands::new(role, self.command_sender.clone());
        let role = &mut self.nodes.roles[role];
        let tenure = Arc::new(Tenure::new(term, until, role.label.clone(), commands));
        let untaken_until = Some(clock::now() + self.settings.node.timings.lease);
        role.held =
            Some(Held { tenure, untaken_until, drop_at: None, is_dropped: false, in_flight_until: None, last: None });
        role.tell(Event::Acquired { term });
    }

    /// If the end of the lead has begun and no task runs: begins the callback before the release, or tells the guard that nothing is left, once
    /// what dropped tasks have sent has had time to arrive.
    fn end_if_idle(&mut self, role: usize) {
        let held = self.nodes.roles[role].held.as_ref();
        let Some(nothing) = held.and_then(|held| held.tenure.no_task()) else { return };
        self.nodes.touch(role);
        let of_role = &mut self.nodes.roles[role];
        let Some(held) = &mut of_role.held else { return };
        let last = self.settings.before_release.as_ref().filter(|_| held.last.is_none());
        if let Some(((limit, callback), Ok(task))) = last.map(|last| (last, held.tenure.begin_last())) {
            let reason = held.tenure.ends().unwrap_or(Reason::Resigned);
            let (lease, callback) = (Lease::new(Arc::clone(&held.tenure)), Arc::clone(callback));
            (held.drop_at, held.is_dropped) = (Some(clock::now() + *limit), false);
            // The callback is called in the runtime as well: it may spawn, block or panic, and this thread sends the heartbeats.
            let call = async move { lease.run_last(async { callback(lease.clone(), reason).await }).await };
            held.last = Some(LastCall::spawn(&self.settings.runtime, task, call));
            return;
        }
        if held.in_flight_until.is_some() {
            return of_role.guard.note_no_task(&nothing);
        }
        let is_skipped = last.is_some() && held.tenure.ends() != Some(Reason::Expired);
        held.tenure.end(Reason::Resigned);
        of_role.held = None;
        if is_skipped {
            of_role.report_warning(
                "the callback of before_release was not called: a task under the lead ended only after the stop timeout and the limit, \
                 or when the lease was over",
            );
        }
        of_role.guard.ended(clock::now(), &nothing);
        self.perform_of_guard(role);
    }
}

#[cfg(test)]
mod tests;
