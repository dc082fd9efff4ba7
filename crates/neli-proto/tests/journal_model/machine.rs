//! One machine: a node, which is the real object, and around it a model of the process, the reader and the guard.

use std::collections::VecDeque;
use std::time::Duration;

use neli_proto::candidate;
use neli_proto::fact::Fact;
use neli_proto::guard::{Answer, Grant, Queue, SeenEnd};
use neli_proto::hello::Hello;
use neli_proto::job::CommandEnd;
use neli_proto::kafka::Request;
use neli_proto::node::{self, Action, FactsEvent, Node, Settings};
use neli_proto::note::Note;
use neli_proto::random::Random;
use neli_proto::record::{Body, MemberId, Offset, Record};
use neli_proto::supervisor::{Ending, Event, Policy, StopPolicy};
use neli_proto::time::Time;
use neli_proto::topic::TopicIdentity;

use crate::flaws::{WorldFlaw, is_flawed};
use crate::guard::{Guard, Life};
use crate::kafka::Sealed;
use crate::setup::{Occasion, Setup, Who};
use crate::world::Breach;

pub(crate) use input::{Bounds, Input};
pub(crate) use late_guard::GuardStart;
pub(crate) use reader::{Reader, Reading};

mod deaths;
mod guarded;
mod input;
mod late_guard;
mod reader;

/// One candidate's machine.
#[derive(Clone, Hash)]
pub(crate) struct Machine {
    pub(crate) member: MemberId,
    pub(crate) node: Node,
    /// The state of the supervisor's process.
    pub(crate) life: Life,
    pub(crate) guard: Guard,
    pub(crate) guard_start: GuardStart,
    pub(crate) reader: Reader,
    /// The periodic query for the log's bounds: the time of the query, and the bounds in the answer under way.
    pub(crate) late_answer: Option<(Time, Bounds)>,
    /// The time since which it has been asking for the topic's id.
    pub(crate) identity_asked: Option<Time>,
    /// Whether R0 has been judged since the last cut of the history.
    pub(crate) is_judged: bool,
    /// Whether no broker answers its queries for the topic's id.
    pub(crate) is_muted: bool,
    /// The generation of the topic in which it leads or has a job.
    pub(crate) leads_in: Option<u8>,
    /// Whether its broker has ended. Then all records that it sends are lost, and nothing is answered.
    pub(crate) cut_off: bool,
    /// The time until which its job may run while another candidate's claim overlaps its term, unless the process is stopped meanwhile.
    pub(crate) overlapped_until: Option<Time>,
    /// The last term that it released. No process of that term's job may be alive (R6).
    pub(crate) released: Offset,
    /// The running health command and hooks.
    check: Option<u32>,
    hooks: Vec<u32>,
    /// Answers of the guard that the supervisor has not read.
    pub(crate) answers: Queue<Answer, ()>,
    /// Delivery reports that it has not read.
    pub(crate) receipts: VecDeque<candidate::Event>,
    /// The number of its outstanding query for the key's facts.
    pub(crate) facts_asked: Option<u32>,
    /// How often the key had been forgotten when it began.
    pub(crate) forgets_at_begin: u32,
    /// Answers and delivery reports about facts that it has not read.
    pub(crate) facts_events: VecDeque<FactsEvent>,
}

/// A machine's effects on the world.
#[derive(Default, PartialEq)]
pub(crate) struct Actions {
    pub(crate) sent: Vec<Sealed>,
    /// Facts with their numbers.
    pub(crate) facts: Vec<(u32, Fact)>,
    /// The term that the guard releases after the supervisor's death.
    pub(crate) released: Option<(Grant, Option<Duration>)>,
    /// Lines for the trace.
    pub(crate) logged: Vec<String>,
    /// Whether it exits because the key needs no run.
    pub(crate) skipped: bool,
    /// A breach that has happened.
    pub(crate) breach: Option<Breach>,
}

impl Machine {
    /// A candidate that begins at `now`.
    pub(crate) fn begin(now: Time, (index, birth): (Who, usize), setup: &Setup, actions: &mut Actions) -> Self {
        let candidate = &setup.candidates[index];
        let name = crate::setup::NAMES[index];
        let member = MemberId::from(&*format!("{name}{birth}"));
        let hello = Hello::new(member.clone(), Some(name.into()));
        let timings = candidate.timings();
        let policy = Policy {
            settle: candidate.settle,
            stop: StopPolicy { signal: Some(15), timeout: candidate.stop_timeout },
            restart: candidate.restart,
            on_loss: candidate.on_loss,
            health: setup.health.clone(),
        };
        // Each machine has its own random share, so that two never act in step.
        let random = Random::fixed([20, 50, 80][index]);
        let guard = Guard::new(candidate.lease, timings.kill_margin, setup);
        let settings = Settings {
            hello,
            timings,
            job: policy,
            hooks: setup.hooks.to_vec(),
            accepts_remade_topic: true,
            once: setup.once.map(|once| once.policy(index)),
            started: now,
            wait: None,
            first_span: setup.span,
        };
        let mut machine = Self {
            member,
            node: Node::new(now, settings, random),
            life: Life::Awake,
            guard,
            guard_start: GuardStart::of(setup),
            reader: Reader::default(),
            late_answer: None,
            identity_asked: None,
            is_judged: false,
            is_muted: false,
            leads_in: None,
            cut_off: false,
            overlapped_until: None,
            released: -1,
            check: None,
            hooks: Vec::new(),
            answers: Queue::default(),
            receipts: VecDeque::new(),
            facts_asked: None,
            forgets_at_begin: 0,
            facts_events: VecDeque::new(),
        };
        if setup.guards_start_late {
            machine.guard.life = Life::Dead;
            machine.hear_of_job(now, Event::HasGuard(false));
        }
        if !candidate.claim_delay.is_zero() {
            machine.node.handle(now, node::Event::SpreadBy(Some(candidate.claim_delay)));
        }
        if !setup.topic_ids {
            let (asked, identity) = (now, TopicIdentity::Unnamed);
            machine.hear_of_election(now, candidate::Event::TopicIdentified { asked, identity });
        }
        machine.perform(now, setup, actions);
        machine
    }

    /// The next time at which the supervisor acts.
    pub(crate) fn due(&self) -> Option<Time> {
        self.node.poll_timeout()
    }

    /// Whether neither supervisor nor guard is alive.
    pub(crate) fn is_gone(&self) -> bool {
        self.life == Life::Dead && self.guard.life == Life::Dead
    }

    /// Whether a process of a job is alive.
    pub(crate) fn job_is_alive(&self) -> bool {
        self.guard.living_term().is_some()
    }

    pub(crate) fn fire(&mut self, now: Time, setup: &Setup, actions: &mut Actions) {
        self.node.handle_timeout(now);
        self.perform(now, setup, actions);
        if self.life == Life::Awake && self.due().is_some_and(|due| due <= now) {
            actions.breach = Some(Breach::BusyLoop);
        }
    }

    pub(crate) fn tell(&mut self, now: Time, event: candidate::Event, setup: &Setup, actions: &mut Actions) {
        self.hear_of_election(now, event);
        self.perform(now, setup, actions);
    }

    fn hear_of_election(&mut self, now: Time, event: candidate::Event) {
        self.node.handle(now, node::Event::Election(event));
    }

    fn hear_of_job(&mut self, now: Time, event: Event) {
        self.node.handle(now, node::Event::Job(event));
    }

    fn answered(&mut self, now: Time, answer: Answer) {
        self.node.handle(now, node::Event::Guard(answer));
    }

    /// Judges the topic (R0).
    pub(crate) fn judge(&mut self, now: Time, setup: &Setup) {
        self.is_judged = true;
        let (cut_is_harmless, gaps_are_markers) = (!setup.size_retention, setup.gaps_are_markers);
        self.hear_of_election(now, candidate::Event::TopicJudged { cut_is_harmless, gaps_are_markers });
    }

    /// Reports the result of the judgement to the node.
    pub(crate) fn learn_judgement(&mut self, now: Time, setup: &Setup, actions: &mut Actions) {
        self.judge(now, setup);
        self.perform(now, setup, actions);
    }

    /// Sends a stop signal to `neli-run`.
    pub(crate) fn stop(&mut self, now: Time, setup: &Setup, actions: &mut Actions) {
        self.node.handle(now, node::Event::Signal { signal: 15, by_terminal: false });
        self.perform(now, setup, actions);
    }

    /// Whether a health command runs.
    pub(crate) fn is_checked(&self) -> bool {
        self.check.is_some()
    }

    /// Whether a hook runs.
    pub(crate) fn has_hook(&self) -> bool {
        !self.hooks.is_empty()
    }

    /// Ends the health command.
    pub(crate) fn health_ends(&mut self, now: Time, end: CommandEnd, setup: &Setup, actions: &mut Actions) {
        let Some(id) = self.check.take() else { return };
        self.hear_of_job(now, Event::HealthEnded { id, end, last_line: "".into() });
        self.perform(now, setup, actions);
    }

    /// Ends the oldest running hook.
    pub(crate) fn hook_ends(&mut self, now: Time, setup: &Setup, actions: &mut Actions) {
        if self.hooks.is_empty() {
            return;
        }
        let id = self.hooks.remove(0);
        self.node.handle(now, node::Event::HookEnded { id, end: CommandEnd::Exited(0) });
        self.perform(now, setup, actions);
    }

    /// Sends SIGTSTP to `neli-run`.
    pub(crate) fn suspend(&mut self, now: Time, setup: &Setup, actions: &mut Actions) {
        self.hear_of_job(now, Event::SuspendSignal { continuable: true });
        self.perform(now, setup, actions);
    }

    /// Continues the process. SIGCONT also ends a suspension.
    pub(crate) fn resume(&mut self, now: Time, setup: &Setup, actions: &mut Actions) {
        const SIGCONT: i32 = 18;
        self.life = Life::Awake;
        if self.node.is_suspended() {
            self.node.handle(now, node::Event::Signal { signal: SIGCONT, by_terminal: false });
            self.perform(now, setup, actions);
        }
    }

    /// Reads one of the waiting events.
    pub(crate) fn receive(&mut self, now: Time, setup: &Setup, actions: &mut Actions) {
        if let Some(answer) = self.answers.take_first() {
            actions.logged.push(format!("its guard answers: {answer:?}"));
            self.answered(now, answer);
        } else if let Some(receipt) = self.receipts.pop_front() {
            self.hear_of_election(now, receipt);
        } else if let Some(event) = self.facts_events.pop_front() {
            actions.logged.push(format!("it gets an answer about its facts: {event:?}"));
            let shown = setup.once.and_then(Occasion::shown);
            if let Some(window) = shown.filter(|_| matches!(event, FactsEvent::Read { .. })) {
                self.node.handle(now, node::Event::Window(window));
            }
            self.node.handle(now, node::Event::Facts(event));
        }
        self.perform(now, setup, actions);
    }

    /// Notes the generation of the topic in which it leads or has a job.
    pub(crate) fn note_topic(&mut self, remakes: u8) {
        let leads = self.node.leads().is_some() || self.job_is_alive();
        self.leads_in = leads.then(|| self.leads_in.unwrap_or(remakes));
    }

    /// Performs the node's actions after an event, if the supervisor is awake.
    pub(crate) fn perform_if_awake(&mut self, now: Time, setup: &Setup, actions: &mut Actions) {
        if self.life == Life::Awake {
            self.perform(now, setup, actions);
        }
    }

    /// Performs the node's actions, and then reads the guard's answers, unless they are delayed.
    pub(crate) fn perform(&mut self, now: Time, setup: &Setup, actions: &mut Actions) {
        loop {
            if let Some(action) = self.node.poll_action() {
                self.perform_one(now, action, setup, actions);
            } else if !setup.slow_pipe
                && let Some(answer) = self.answers.take_first()
            {
                self.answered(now, answer);
            } else {
                break;
            }
        }
        if self.node.supervisor().awaits_guard() {
            self.need_guard();
        }
        if !self.is_judged && self.node.leads().is_some() {
            actions.breach = Some(Breach::Unjudged);
        }
        if self.life == Life::Awake && self.node.is_suspended() {
            if self.job_is_alive() || self.node.leads().is_some() {
                actions.breach = Some(Breach::SuspendedLeader);
            }
            self.life = Life::Asleep;
        }
    }

    fn perform_one(&mut self, now: Time, action: Action, setup: &Setup, actions: &mut Actions) {
        match action {
            // The model has neither a group nor a terminal, and reader and producer never fail.
            Action::DieOf { .. }
            | Action::Kafka(Request::JoinGroup | Request::LeaveGroup | Request::LookForEnd | Request::RenewProducer)
            | Action::LookAtForeground => {}
            Action::AppendFact { id, fact } => actions.facts.push((id, fact)),
            Action::Exit(ending) => {
                actions.skipped |= matches!(ending, Ending::Skipped { .. });
                self.life = Life::Dead;
            }
            Action::Kafka(Request::Identify | Request::ReadAnew | Request::ReadFrom(_)) if self.cut_off => {}
            Action::Kafka(Request::Identify) => self.identity_asked = Some(now),
            Action::KillGuard => self.kill_silent_guard(now, actions),
            Action::KillHook { id } => self.hooks.retain(|running| *running != id),
            Action::KillOrphans => {
                if !is_flawed(WorldFlaw::ReleaseAtGuardsEnd) {
                    self.guard.job = None;
                }
                self.hear_of_job(now, Event::OrphansGone(SeenEnd { gone_at: now, lived_at: None }));
            }
            Action::Note(note) => {
                if let Note::Overlapped { within, .. } = note {
                    self.overlapped_until = (self.guard.life == Life::Awake).then_some(now + within);
                }
                actions.logged.push(format!("{note:?}"));
            }
            Action::Order(order) => {
                actions.logged.push(format!("{order:?}"));
                self.order(now, order, setup, actions);
            }
            Action::Kafka(Request::ReadAnew) => {
                self.reader = Reader { asked: Some(now), ..Reader::default() };
                self.late_answer = None;
                self.judge_if_prompt(now, setup);
            }
            Action::ReadFacts { id } => self.facts_asked = Some(id),
            Action::Kafka(Request::ReadFrom(offset)) => self.reader.next = Some(offset),
            // The topic that is read from now on has not been judged.
            Action::RenewGuard => {
                let job = self.guard.job;
                if self.guard_start == GuardStart::Begun {
                    self.guard = self.guard.anew();
                    self.guard.job = job;
                }
                self.released = -1;
                self.is_judged = false;
                self.judge_if_prompt(now, setup);
            }
            Action::RunHook(run) => self.hooks.push(run.id),
            // Nobody is left to whom a release would say something.
            Action::Kafka(Request::Send { record })
                if self.knows_that_broker_ended() && matches!(record.body, Body::Release { .. }) =>
            {
                self.hear_of_election(now, candidate::Event::HistoryCut);
            }
            // Hellos do not affect the law, and only use offsets.
            Action::Kafka(Request::SayHello(hello)) => {
                if setup.overlaps() {
                    actions.sent.push(Sealed::new(*hello));
                }
            }
            Action::Kafka(Request::Send { record }) => self.send(record, actions),
            Action::StartGuard => {
                if self.guard.life == Life::Dead {
                    self.guard = self.guard.anew();
                    self.answers.put(Answer::Ready, None);
                }
            }
        }
    }

    fn kill_silent_guard(&mut self, now: Time, actions: &mut Actions) {
        actions.logged.push("kills its guard, which does not answer".to_owned());
        if self.guard_start != GuardStart::Begun {
            actions.breach = Some(Breach::UnstartedKilled);
        } else if self.guard.has_answered_all() && self.answers.is_empty() {
            actions.breach = Some(Breach::AnsweringGuardKilled);
        } else if !is_flawed(WorldFlaw::GuardUnwatched) {
            self.kill_guard(now);
        }
    }

    fn send(&mut self, record: Record, actions: &mut Actions) {
        if let Body::Release { term, .. } = record.body {
            self.released = term;
            if self.job_is_alive() {
                actions.breach = Some(Breach::ReleasedAlive);
            }
        }
        let is_claim = matches!(record.body, Body::Claim { .. });
        actions.sent.push(Sealed::new(record));
        if is_claim {
            self.need_guard();
        }
    }

    fn judge_if_prompt(&mut self, now: Time, setup: &Setup) {
        if !self.is_judged && !setup.judged_late {
            self.judge(now, setup);
        }
    }
}
