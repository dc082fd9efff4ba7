//! One election's node: candidate, supervisor, health and hooks, and the connections between them.
//!
//! Events go in by [`Node::handle`], and [`Node::poll_action`] returns actions in the order in which they must be performed. Inputs of the
//! whole process (signals, the terminal, the guard's process, the exit) are events too, so that several nodes can share one process, one
//! loop and one session with Kafka.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::candidate::{self, Candidate, Timings};
use crate::guard::{Answer, CommandKind};
use crate::hello::Hello;
use crate::hooks::{Hook, Hooks};
use crate::job::CommandEnd;
use crate::note::Refusal;
use crate::once::{self, Once};
use crate::random::Random;
use crate::record::{MemberId, Offset, Why};
use crate::spread::Holding;
use crate::supervisor::{self, Supervisor, WantedState};
use crate::time::{Time, Window};

pub use crate::action::{Action, HookRun};
pub use crate::fact::FactsEvent;
pub use crate::status::{Counts, OtherCandidate, Status};

mod exchange;

/// The parts of a node's configuration.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The identity of the candidate, as its hellos say it.
    pub hello: Hello,
    /// Every duration of the protocol.
    pub timings: Timings,
    /// The policy for the job.
    pub job: supervisor::Policy,
    /// The configured hooks.
    pub hooks: Vec<Hook>,
    /// Whether a topic that was deleted and created again is accepted. If operators create the topics (`--no-create-topic`), jobs must not
    /// be led by the records of an unexpected topic.
    pub accepts_remade_topic: bool,
    /// `--once` and `--window`: the key for which the job succeeds once.
    pub once: Option<once::Policy>,
    /// When the process started; the time of `wait` counts from then on.
    pub started: Time,
    /// `--wait`: the node exits if it has not led within this time.
    pub wait: Option<Duration>,
    /// R1: how far before the log's end a reading begins, in offsets: [`FIRST_SPAN`](super::listener::FIRST_SPAN), except in tests.
    pub first_span: Offset,
}

/// One election's node.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "facts that nothing ties to each other")]
pub struct Node {
    pub(crate) candidate: Candidate,
    supervisor: Supervisor,
    hooks: Hooks,
    once: Option<Once>,
    accepts_remade_topic: bool,
    /// Whether the guard has terms of a history that is gone. Then it is replaced as soon as no job is alive.
    guard_is_outdated: bool,
    /// The last term whose release was not confirmed. Its guard releases it if this process dies, unless another candidate claims before.
    unconfirmed: Option<Offset>,
    /// Whether Kafka or R0 has refused this candidate for good.
    is_refused: bool,
    /// Whether the exit status was returned.
    has_ended: bool,
    /// Whether the process is exiting.
    is_exiting: bool,
    actions: VecDeque<Action>,
}

impl Node {
    /// A node that begins to listen.
    pub fn new(now: Time, settings: Settings, random: Random) -> Self {
        let Settings { hello, timings, job, hooks, accepts_remade_topic, once, started, wait, first_span } = settings;
        let (lease, kill_margin) = (timings.lease, timings.kill_margin);
        let once = once.map(|policy| Once::new(policy, lease, hello.member.clone(), hello.name.clone()));
        let setup = candidate::Setup { hello, timings, started, wait, first_span };
        let mut node = Self {
            candidate: Candidate::new(now, setup, random),
            supervisor: Supervisor::new(job, kill_margin),
            hooks: Hooks::new(hooks),
            once,
            accepts_remade_topic,
            guard_is_outdated: false,
            unconfirmed: None,
            is_refused: false,
            has_ended: false,
            is_exiting: false,
            actions: VecDeque::new(),
        };
        node.connect(now);
        node
    }

    /// A node in a process that stands in other elections too. That process sends one hello for all of them, and is one member of the
    /// group.
    #[must_use]
    pub fn one_of_many(self) -> Self {
        Self { candidate: self.candidate.one_of_many(), ..self }
    }

    /// The next action.
    #[must_use]
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), unless something happens before.
    pub fn poll_timeout(&self) -> Option<Time> {
        if self.is_exiting {
            return self.hooks.poll_timeout();
        }
        let once = self.once.as_ref().and_then(Once::poll_timeout);
        let timeouts = [self.candidate.poll_timeout(), self.supervisor.poll_timeout(), self.hooks.poll_timeout(), once];
        timeouts.into_iter().flatten().min()
    }

    /// Performs what is due. Early calls do nothing.
    pub fn handle_timeout(&mut self, now: Time) {
        if !self.is_exiting {
            self.supervisor.handle_timeout(now);
            self.candidate.handle_timeout(now);
            self.once.iter_mut().for_each(|once| once.handle_timeout(now));
        }
        self.hooks.handle_timeout(now);
        self.connect(now);
    }

    /// Handles an event.
    pub fn handle(&mut self, now: Time, event: Event) {
        match event {
            Event::Election(event) => self.election(now, event),
            Event::Exiting => {
                self.is_exiting = true;
                self.hooks.exiting(now);
            }
            Event::Facts(event) => {
                // The end of a lease is handled before the answer: no run is announced after it.
                self.candidate.handle_timeout(now);
                self.connect(now);
                if let Some(once) = &mut self.once {
                    once.handle(now, event);
                }
            }
            Event::Guard(Answer::CommandEnded { kind: CommandKind::Lead, id, end }) => {
                self.hooks.ended(id, end);
            }
            Event::Guard(answer) => self.supervisor.handle_answer(now, answer),
            Event::HandOver { to } => self.candidate.hand_over(now, to),
            Event::HookEnded { id, end } => self.hooks.ended(id, end),
            Event::Job(mut event) => {
                if let supervisor::Event::JobStopped { continuable, .. } = &mut event {
                    // The process stops itself only when all its roles are suspended. One of many alone would never be continued.
                    *continuable &= !self.candidate.is_one_of_many();
                }
                self.supervisor.handle(now, event);
            }
            Event::JobsTerminalGone => self.supervisor.jobs_terminal_gone(now),
            Event::Refused(why) => self.refuse(now, why),
            Event::Signal { signal, by_terminal } => self.supervisor.handle_signal(now, signal, by_terminal),
            Event::SpreadBy(delay) => self.candidate.spread_by(now, delay),
            Event::StandDown { why, leaving } => self.candidate.stand_down(now, why, leaving),
            Event::Window(window) => self.once.iter_mut().for_each(|once| once.window_shown(now, &window)),
        }
        self.connect(now);
    }

    /// What decides in the election.
    pub const fn candidate(&self) -> &Candidate {
        &self.candidate
    }

    /// What decides about the job.
    pub const fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// The term that it holds, while the lease lasts.
    pub fn leads(&self) -> Option<Offset> {
        self.candidate.leads()
    }

    /// Why the job of the term that it holds must end in order, while it must.
    pub fn stops_for(&self) -> Option<Why> {
        if let WantedState::Stop { why, .. } = self.candidate.wants()?.state { Some(why) } else { None }
    }

    /// The holder of the role. A node that has ended stands no more, also if it did not depart in order: its job can't be killed, for example.
    pub fn holding(&self) -> Holding {
        if self.has_ended { Holding::Done } else { self.candidate.holding() }
    }

    /// Whether the candidate exits for good.
    pub fn is_leaving(&self) -> bool {
        self.candidate.is_leaving()
    }

    /// Whether the log was read up to the requested end.
    pub fn is_caught_up(&self) -> bool {
        self.candidate.is_caught_up()
    }

    /// Whether no other candidate of the group would wait for this one: all records were read and no other is known, or all of them leave,
    /// since the key needs no run.
    pub fn is_alone(&self, now: Time) -> bool {
        self.candidate.is_alone(now) || self.once.as_ref().is_some_and(Once::is_settled)
    }

    /// Whether the process must be suspended once it has left the group: no term is held, no claim is in flight and no hook runs (a process that
    /// is stopped could not end one in time), and that stays so until SIGCONT.
    pub fn is_suspended(&self) -> bool {
        self.candidate.is_suspended() && self.hooks.is_idle()
    }

    /// Whether a hook runs for which the exit waits.
    pub fn has_running_hooks(&self) -> bool {
        !self.hooks.is_idle()
    }

    /// Whether it leads, and would also after a revocation by the group.
    pub fn leads_on_if_revoked(&self) -> bool {
        self.leads().is_some() && self.candidate.is_kept_if_revoked()
    }

    /// The node's state, and the data that it knows.
    pub fn status(&self, now: Time) -> Status {
        let waiting = self.once.as_ref().filter(|once| once.is_waiting());
        Status { next_window_ms: waiting.and_then(Once::next_window_ms), ..self.candidate.status(now) }
    }
}

// ---- the events of a node ------------------------------------------------------------------------------------------

/// An event.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[expect(missing_docs, reason = "a field with an unclear meaning has a comment")]
pub enum Event {
    /// An event of the election: Kafka's answers about the journal, the topic and the group.
    Election(candidate::Event),
    /// The process exits: nothing is started any more except the hook that runs at the exit.
    Exiting,
    /// An answer from the topic of facts.
    Facts(FactsEvent),
    /// Hand over the lead, if it is held: another candidate holds fewer roles than its share.
    HandOver { to: MemberId },
    /// The hook of this number has ended.
    HookEnded { id: u32, end: CommandEnd },
    /// An answer of the guard. If the owner has more data than the answer, the job's event contains all of it: a health command's end with
    /// its output, and a stop with the terminal's state.
    Guard(Answer),
    /// An event of the job that is not an answer of its guard.
    Job(supervisor::Event),
    /// The terminal is gone. The kernel has reported that only to the job, since the job had the foreground.
    JobsTerminalGone,
    /// This process can't stand any more: Kafka refuses its records or its login, the topic may not carry an election (R0), another
    /// candidate looks for a role in another partition, or no guard can be started, neither a first one nor one in place of a dead one.
    Refused(Refusal),
    /// A signal to the process. `by_terminal`: HUP since the terminal is gone, or INT or QUIT that were typed.
    Signal { signal: i32, by_terminal: bool },
    /// Add this to the claim delay from now on; `None` if nothing may be claimed.
    SpreadBy(Option<Duration>),
    /// Stand down, because the process wants it: for good, if it is `leaving`.
    StandDown { why: Why, leaving: bool },
    /// `--window` and `--schedule`: the window that the wall clock shows now. It must come before the recorded facts of windows, and with a
    /// schedule whenever the window changes while the node leads.
    Window(Window),
}
