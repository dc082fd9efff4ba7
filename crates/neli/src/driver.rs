//! The thread of one election: it passes events to the node and performs its actions, as the main loop of `neli-run` does, and is the
//! guard of what runs under the lead.
//!
//! A thread, and not a task of the user's runtime: a runtime whose threads are all busy would send no heartbeat and hear of no
//! deadline. It waits on `CLOCK_BOOTTIME`, and holds no lock while it waits.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use neli_proto::guard::Answer;
use neli_proto::node::{Action, Event as NodeEvent, Node, Note, Refusal};
use neli_proto::record::{Offset, Why};
use neli_proto::supervisor::{self, Ending};
use neli_proto::time::Time;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::{broadcast, watch};

use crate::clock;
use crate::error::Error;
use crate::event::{Event, Leader};
use crate::handle::{Shared, State};
use crate::lease::{Lease, Tenure};
use crate::reason::Reason;
use crate::task_guard::{Effect, TaskGuard};
use crate::text::reason;
use crate::waiter::Waiter;
use kafka::{ElectionSession, Report};

pub(crate) mod kafka;
mod perform;

/// How many events are kept for whoever follows them.
const EVENTS_KEPT: usize = 256;
/// How many reports of the session are taken in before everything else has its turn again.
const REPORTS_TOGETHER: usize = 1024;
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

/// What is awaited before a lead is released.
pub(crate) type BeforeRelease = Arc<dyn Fn(Lease, Reason) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// What an election's thread is made of.
pub(crate) struct Settings {
    pub(crate) session: kafka::Settings,
    pub(crate) node: neli_proto::node::Settings,
    pub(crate) random: neli_proto::random::Random,
    pub(crate) before_release: Option<BeforeRelease>,
    /// Where that runs.
    pub(crate) runtime: Handle,
}

/// Starts the thread.
pub(crate) fn start(settings: Settings) -> Result<Shared, Error> {
    let cannot = |error: io::Error| Error::System(format!("the election can't be started: {}", reason(&error)));
    let (commands, received) = mpsc::unbounded_channel();
    let (state, states) = watch::channel(State::default());
    let (events, first_events) = broadcast::channel(EVENTS_KEPT);
    let session = ElectionSession::start(settings.session)?;
    let mut node = Node::new(clock::now(), settings.node.clone(), settings.random);
    session.first_event().into_iter().for_each(|event| node.handle(clock::now(), event));
    let driver = Driver {
        node,
        guard: TaskGuard::new(settings.node.timings.lease(), std::process::id().cast_signed()),
        session,
        lease: settings.node.timings.lease(),
        before_release: settings.before_release,
        runtime: settings.runtime,
        command_sender: commands.clone(),
        commands: received,
        state,
        events,
        held: None,
        refusal: String::new(),
        is_election_over: false,
        ending: None,
    };
    let waiter = Waiter::new().map_err(cannot)?;
    let thread = thread::Builder::new().name("neli-election".to_owned());
    thread.spawn(move || driver.run(waiter)).map_err(cannot)?;
    Ok(Shared { commands, state: states, events: first_events })
}

/// One election, in its thread.
struct Driver {
    node: Node,
    guard: TaskGuard,
    session: ElectionSession,
    lease: Duration,
    before_release: Option<BeforeRelease>,
    runtime: Handle,
    command_sender: UnboundedSender<Command>,
    commands: UnboundedReceiver<Command>,
    state: watch::Sender<State>,
    events: broadcast::Sender<Event>,
    /// The lead that is held, or was last while something runs under it.
    held: Option<Held>,
    /// Why Kafka refuses it, if it does.
    refusal: String,
    /// An operator has ended the election.
    is_election_over: bool,
    /// Why it stands no more.
    ending: Option<Error>,
}

/// A lead, from its beginning until nothing runs under it.
struct Held {
    tenure: Arc<Tenure>,
    /// It is given up then, unless somebody has taken it.
    untaken_until: Option<Time>,
    /// What is awaited before the release, once it runs.
    last: Option<tokio::task::JoinHandle<()>>,
    /// It was begun, or there is nothing to be begun.
    is_last_begun: bool,
}

/// What woke the loop.
enum Input {
    Command(Command),
    Kafka,
}

impl Driver {
    fn run(mut self, mut waiter: Waiter) {
        loop {
            self.perform();
            self.publish();
            if self.ending.is_some() {
                return self.leave(&mut waiter);
            }
            match self.wait(&mut waiter, self.next_timeout()) {
                Some(Input::Command(command)) => self.handle_command(command),
                Some(Input::Kafka) => self.handle_reports(),
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
                Some(command) = commands.recv() => Input::Command(command),
                () = session.wait() => Input::Kafka,
            }
        })
    }

    fn next_timeout(&self) -> Option<Time> {
        let untaken = self.held.as_ref().and_then(|held| held.untaken_until);
        [self.node.poll_timeout(), self.guard.poll_timeout(), untaken].into_iter().flatten().min()
    }

    /// The deadline of what runs comes first.
    fn handle_timeouts(&mut self) {
        let now = clock::now();
        self.guard.handle_timeout(now);
        self.perform_effects();
        // What others wrote was read before whatever happens now.
        self.session.take_passed().into_iter().for_each(|report| self.take_in(report));
        self.node.handle_timeout(now);
        let Some(held) = &mut self.held else { return };
        if held.untaken_until.take_if(|until| now >= *until).is_some() && !held.tenure.is_taken() {
            let term = held.tenure.term();
            self.resign(term);
        }
    }

    fn handle_command(&mut self, command: Command) {
        match command {
            Command::Idle { term } => {
                if self.held.as_ref().is_some_and(|held| held.tenure.term() == term) {
                    self.end_if_idle();
                }
            }
            Command::Leave => self.stand_down(Why::Stopped, true),
            Command::Resign { term } => self.resign(term),
        }
    }

    /// What came together is taken together, but commands and the guard are not kept waiting for long.
    fn handle_reports(&mut self) {
        for _ in 0..REPORTS_TOGETHER {
            let Some(report) = self.session.poll() else { break };
            self.perform();
            self.take_in(report);
        }
    }

    fn take_in(&mut self, report: Report) {
        match report {
            Report::Event(event) => {
                self.node.handle(clock::now(), event);
                if self.node.is_caught_up() {
                    self.session.is_caught_up();
                }
            }
            Report::Warning(message) => self.tell(Event::Warning { message }),
        }
    }

    fn resign(&mut self, term: Offset) {
        let is_held = self.held.as_ref().is_some_and(|held| held.tenure.term() == term && held.tenure.ends().is_none());
        if is_held {
            self.stand_down(Why::Resigned, false);
        }
    }

    fn stand_down(&mut self, why: Why, leaving: bool) {
        self.node.handle(clock::now(), NodeEvent::StandDown { why, leaving });
    }

    // ---- what is said outside ----------------------------------------------------------------------------------------

    fn tell(&self, event: Event) {
        // Nobody may be listening.
        let _ = self.events.send(event);
    }

    fn publish(&self) {
        use neli_proto::candidate::Position;
        let status = self.node.status(clock::now());
        let leader = status.leader.map(Leader::of);
        let tenure = self.held.as_ref().map(|held| Arc::clone(&held.tenure)).filter(|tenure| tenure.ends().is_none());
        let stands = !matches!(status.position, Position::Listening);
        self.state.send_if_modified(|state| {
            let term = |tenure: &Option<Arc<Tenure>>| tenure.as_ref().map(|tenure| tenure.term());
            let has_changed = state.leader != leader || term(&state.tenure) != term(&tenure) || stands && !state.stands;
            (state.leader, state.tenure, state.stands) = (leader, tenure, state.stands || stands);
            has_changed
        });
    }

    // ---- the end ------------------------------------------------------------------------------------------------------

    fn end(&mut self, error: Error) {
        self.ending.get_or_insert(error);
    }

    fn end_by(&mut self, ending: Ending) {
        let error = match ending {
            Ending::Refused => Error::Refused(std::mem::take(&mut self.refusal)),
            Ending::Stuck => Error::Blocked,
            Ending::Ended
            | Ending::Job(_)
            | Ending::Lost(_)
            | Ending::RestartLimit
            | Ending::Skipped(_)
            | Ending::StoppedBy(_)
            | Ending::WaitedEnough => {
                if self.is_election_over {
                    Error::Ended
                } else {
                    Error::Left
                }
            }
        };
        self.end(error);
    }

    /// Leaves the group for real: a member that just goes would hold up the others for a session.
    fn leave(&mut self, waiter: &mut Waiter) {
        self.session.stop_reading();
        let now = clock::now();
        self.session.leave_group(self.node.is_alone(now));
        let left_by = now + LEAVING_TAKES;
        while self.session.is_leaving_group() && clock::now() < left_by {
            self.wait(waiter, Some(left_by));
            while self.session.poll().is_some() {}
        }
        self.end_held(Reason::Left);
        let ended = self.ending.take();
        self.state.send_modify(|state| (state.tenure, state.ended) = (None, ended));
    }

    fn end_held(&self, reason: Reason) {
        self.held.iter().for_each(|held| held.tenure.end(reason));
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // A fault here ends what runs too.
        self.end_held(Reason::Expired);
    }
}
