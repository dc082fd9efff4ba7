//! The thread of a process's elections: it passes events to each election's node and performs the node's actions, as
//! the main loop of `neli-run` does, and it is the guard of the tasks under their leads.
//!
//! It is a thread and not a task of the user's runtime: a runtime whose threads are all busy would send no heartbeat
//! and notice no deadline. It waits on `CLOCK_BOOTTIME`, and holds no lock while it waits.

use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use neli_proto::many_roles::{self, ManyRoles};
use neli_proto::node;
use neli_proto::record::{Offset, Why};
use neli_proto::time::Time;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use crate::clock;
use crate::error::Error;
use crate::event::Event;
use crate::handle::Shared;
use crate::lease::Lease;
use crate::reason::Reason;
use crate::session::{Session, SessionSettings};
use crate::text::reason;
use crate::timeouts::Timeouts;
use crate::waiter::Waiter;
use role::Role;

mod kafka;
mod perform;
mod role;

/// How many events of the session are taken in before everything else has its turn again.
const EVENTS_TOGETHER: usize = 1024;
/// How long the end waits for a member that leaves the group. Half of it is what that may take.
const LEAVING_TAKES: Duration = Duration::from_secs(1);

/// What handles, leads and tasks want of the thread.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Command {
    /// The last task under a lead that ends has ended.
    Idle { term: Offset },
    /// Leave the election.
    Leave,
    /// Give this lead up.
    Resign { term: Offset },
}

/// The way to the thread for one of its elections.
#[derive(Clone, Debug)]
pub(crate) struct Commands {
    role: usize,
    sender: UnboundedSender<(usize, Command)>,
}

impl Commands {
    pub(crate) const fn new(role: usize, sender: UnboundedSender<(usize, Command)>) -> Self {
        Self { role, sender }
    }

    /// Hands it over, unless the thread has gone.
    pub(crate) fn send(&self, command: Command) {
        let _ = self.sender.send((self.role, command));
    }
}

/// What is awaited before a lead is released.
#[derive(Clone)]
pub(crate) struct BeforeRelease {
    /// How long it may take.
    pub(crate) limit: Duration,
    pub(crate) callback: Callback,
}

pub(crate) type Callback = Arc<dyn Fn(Lease, Reason) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// What the thread is made of.
pub(crate) struct Settings {
    pub(crate) access: crate::kafka::access::Access,
    pub(crate) session: SessionSettings,
    /// Of each node.
    pub(crate) node: node::Settings,
    /// Where there are many roles.
    pub(crate) many: Option<many_roles::Settings>,
    /// How long tasks may go on when the lead is to be given up. What is awaited before the release has its own time after that, and
    /// the node's stop timeout is the sum.
    pub(crate) stop_timeout: Duration,
    pub(crate) before_release: Option<BeforeRelease>,
    /// Where that runs.
    pub(crate) runtime: Handle,
}

/// Starts the thread. Gives what is shared with the handles, for each role.
pub(crate) fn start(settings: Settings) -> Result<Vec<Shared>, Error> {
    let cannot = |error: io::Error| Error::System(format!("the election can't be started: {}", reason(&error)));
    let Settings { access, session, node, many, stop_timeout, before_release, runtime } = settings;
    let (command_sender, commands) = mpsc::unbounded_channel();
    let (mut roles, mut shared) = (Vec::new(), Vec::new());
    for (at, number) in session.elections.roles.clone().enumerate() {
        let election = session.elections.election(number, 1);
        let (role, states, events) = Role::new(&node, &session.elections, election)?;
        roles.push(role);
        shared.push(Shared { commands: Commands::new(at, command_sender.clone()), state: states, events });
    }
    let mut driver = Driver {
        standing: roles.len(),
        touched: (0..roles.len()).collect(),
        timeouts: Timeouts::default(),
        roles,
        many: many.map(ManyRoles::new),
        session: Session::start(access, session)?,
        lease: node.timings.lease(),
        stop_timeout,
        before_release,
        runtime,
        command_sender,
        commands,
        ended: Vec::new(),
    };
    driver.topics_have_no_ids_if_embedded();
    let waiter = Waiter::new().map_err(cannot)?;
    let thread = thread::Builder::new().name("neli-election".to_owned());
    thread.spawn(move || driver.run(waiter)).map_err(cannot)?;
    Ok(shared)
}

/// A process's elections, in their thread.
struct Driver {
    /// By their places.
    roles: Vec<Role>,
    /// Those to which something has happened since they were last asked what they want.
    touched: BTreeSet<usize>,
    timeouts: Timeouts,
    /// What spreads them, where there are many.
    many: Option<ManyRoles>,
    session: Session,
    lease: Duration,
    stop_timeout: Duration,
    before_release: Option<BeforeRelease>,
    runtime: Handle,
    command_sender: UnboundedSender<(usize, Command)>,
    commands: UnboundedReceiver<(usize, Command)>,
    /// In how many it stands.
    standing: usize,
    /// The elections that have ended without a report so far.
    ended: Vec<usize>,
}

/// What woke the loop.
enum Input {
    Command(usize, Command),
    Kafka,
}

impl Driver {
    fn run(mut self, mut waiter: Waiter) {
        loop {
            self.perform();
            if self.standing == 0 {
                return self.leave(&mut waiter);
            }
            self.tell_ends();
            match self.wait(&mut waiter, self.next_timeout()) {
                Some(Input::Command(at, command)) => self.handle_command(at, command),
                Some(Input::Kafka) => self.handle_session_events(),
                None => {}
            }
            self.handle_timeouts();
        }
    }

    fn wait(&mut self, waiter: &mut Waiter, due: Option<Time>) -> Option<Input> {
        let (commands, session) = (&mut self.commands, &mut self.session);
        waiter.wait(due, async {
            tokio::select! {
                biased;
                Some((at, command)) = commands.recv() => Input::Command(at, command),
                () = session.wait() => Input::Kafka,
            }
        })
    }

    fn next_timeout(&self) -> Option<Time> {
        [self.timeouts.first(), self.many.as_ref().and_then(ManyRoles::poll_timeout)].into_iter().flatten().min()
    }

    fn handle_timeouts(&mut self) {
        let now = clock::now();
        for at in self.timeouts.due(now) {
            self.let_time_pass(at, now);
        }
        if let Some(many) = &mut self.many {
            many.handle_timeout(now);
            self.follow_many();
        }
    }

    /// The deadline of what runs comes first.
    fn let_time_pass(&mut self, at: usize, now: Time) {
        self.roles[at].guard.handle_timeout(now);
        self.perform_effects(at);
        self.roles[at].drop_tasks_if_due(now);
        self.take_passed(at, now);
        self.call(at, now, |node| node.handle_timeout(now));
        self.follow_many();
        if let Some(term) = self.roles[at].term_that_nobody_took(now) {
            self.resign(at, term);
        }
    }

    fn handle_command(&mut self, at: usize, command: Command) {
        match command {
            Command::Idle { term } => {
                if self.roles[at].holds(term) {
                    self.end_if_idle(at);
                }
            }
            Command::Leave => self.stand_down(at, Why::Stopped, true),
            Command::Resign { term } => self.resign(at, term),
        }
    }

    /// What came together is taken together, but commands and the guard are not kept waiting for long.
    fn handle_session_events(&mut self) {
        for _ in 0..EVENTS_TOGETHER {
            let Some(event) = self.session.poll() else { break };
            self.perform();
            self.handle_session_event(event);
        }
    }

    fn resign(&mut self, at: usize, term: Offset) {
        if self.roles[at].holds(term) && !self.roles[at].lead_ends() {
            self.stand_down(at, Why::Resigned, false);
        }
    }

    fn stand_down(&mut self, at: usize, why: Why, leaving: bool) {
        let now = clock::now();
        self.take_passed(at, now);
        self.call(at, now, |node| node.handle(now, node::Event::StandDown { why, leaving }));
        self.follow_many();
    }

    /// Wakes the subscribers of the elections' state.
    fn warn(&mut self, message: &str) {
        self.roles.iter_mut().for_each(|role| role.tell(Event::warning(message)));
    }

    // ---- the end ------------------------------------------------------------------------------------------------------

    /// It stands in this election no more.
    fn end(&mut self, at: usize, error: Error) {
        if self.roles[at].ending.is_none() {
            self.roles[at].ending = Some(error);
            self.standing -= 1;
            self.ended.push(at);
        }
    }

    /// Nor in any other.
    fn end_all(&mut self, error: &Error) {
        for at in 0..self.roles.len() {
            self.end(at, error.clone());
        }
    }

    fn tell_ends(&mut self) {
        for at in self.ended.drain(..) {
            self.roles[at].tell_end();
        }
    }

    /// Leaves the group for real: a member that just goes would hold up the others for a session.
    fn leave(&mut self, waiter: &mut Waiter) {
        self.session.stop_reading();
        let now = clock::now();
        self.session.leave_group_for_good(self.roles.iter().all(|role| role.node.is_alone(now)));
        self.say_last_hello();
        let left_by = now + LEAVING_TAKES;
        loop {
            let left_by = (self.session.is_leaving_group() && clock::now() < left_by).then_some(left_by);
            let waits = [left_by, self.session.awaits_last_hello_until()];
            let Some(until) = waits.into_iter().flatten().min() else { break };
            self.wait(waiter, Some(until));
            // Nothing more is taken in.
            while self.session.poll().is_some() {}
        }
        self.tell_ends();
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // A fault here ends what runs too.
        self.roles.iter().for_each(|role| role.end_lead(Reason::Expired));
    }
}
