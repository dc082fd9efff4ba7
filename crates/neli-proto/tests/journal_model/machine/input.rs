//! What can happen to a machine.

use std::rc::Rc;

use neli_proto::candidate;
use neli_proto::fact::Facts;
use neli_proto::job::CommandEnd;
use neli_proto::node::FactsEvent;
use neli_proto::record::Offset;
use neli_proto::time::Time;
use neli_proto::topic::TopicIdentity;

use super::{Actions, Machine};
use crate::guard::Life;
use crate::kafka::Log;
use crate::setup::{Occasion, Setup};
use crate::world::Known;

/// The log's first offset and its end.
pub(crate) type Bounds = (Offset, Offset);

/// An input of a machine. It contains all that the machine is told, so that the same machine at the same time does the same.
#[derive(Clone, Hash)]
pub(crate) enum Input {
    /// An answer to a query for the log's bounds arrives: the delayed one, or these bounds.
    Answer(Bounds),
    /// The periodic query for the log's bounds is sent; the answer is under way.
    Ask(Bounds),
    /// The first query is answered; the answer is under way.
    Capture(Bounds),
    ChildEnds,
    Crash(Rc<Known<Log>>),
    Die,
    /// This fact is in the topic of facts.
    FactAppended {
        id: u32,
        offset: Offset,
    },
    /// The topic of facts is read to its end.
    FactsRead {
        end: Offset,
        facts: Box<Facts>,
    },
    Fire,
    GuardActs,
    GuardReads,
    GuardWaited,
    HealthEnds(CommandEnd),
    HookEnds,
    Identify(TopicIdentity),
    Judge,
    KillGuard,
    Lag,
    LoseBroker,
    MainEnds,
    Mute,
    Pause,
    PauseGuard,
    Read(Rc<Known<Log>>),
    /// The topic was created again, and the reader does not notice it.
    Remade,
    Receive,
    Reported(candidate::Event),
    Resume,
    ResumeGuard,
    StartGuard,
    Stop,
    Suspend,
}

impl Machine {
    pub(crate) fn handle(&mut self, now: Time, input: Input, setup: &Setup, actions: &mut Actions) {
        match input {
            Input::Answer(bounds) => self.answer(now, bounds, setup, actions),
            Input::Ask(bounds) => self.late_answer = Some((now, bounds)),
            Input::Capture(bounds) => self.reader.answer = Some(bounds),
            Input::ChildEnds => {
                self.guard.child_ends();
                self.job_changed(now, setup, actions);
            }
            Input::Crash(log) => self.crash(now, &log.part),
            Input::Die => self.die(),
            Input::FactAppended { id, offset } => {
                self.facts_events.push_back(FactsEvent::Appended { id, offset });
            }
            Input::FactsRead { end, facts } => {
                if let Some(id) = self.facts_asked.take() {
                    self.facts_events.push_back(FactsEvent::Read { id, end, facts });
                }
            }
            Input::Fire => self.fire(now, setup, actions),
            Input::GuardActs => self.guard_acts(now, setup, actions),
            Input::GuardReads => self.guard_reads(now, setup, actions),
            Input::GuardWaited => self.guard_died(now, setup, actions),
            Input::HealthEnds(end) => self.health_ends(now, end, setup, actions),
            Input::HookEnds => self.hook_ends(now, setup, actions),
            Input::Identify(identity) => {
                if let Some(asked) = self.identity_asked.take() {
                    self.tell(now, candidate::Event::TopicIdentified { asked, identity }, setup, actions);
                }
            }
            Input::Judge => self.learn_judgement(now, setup, actions),
            Input::KillGuard => {
                self.kill_guard(now);
                self.perform_if_awake(now, setup, actions);
            }
            Input::Lag => self.reader.lags = true,
            Input::LoseBroker => self.lose_broker(),
            Input::MainEnds => {
                self.guard.main_ends(setup.once.map_or(0, Occasion::status));
                self.job_changed(now, setup, actions);
            }
            Input::Mute => self.is_muted = true,
            Input::Pause => self.pause(),
            Input::PauseGuard => self.pause_guard(),
            Input::Read(log) => self.read(now, &log.part, setup, actions),
            Input::Remade => self.reader.waits = self.reader.next.is_some(),
            Input::Receive => self.receive(now, setup, actions),
            Input::Reported(event) => self.receipts.push_back(event),
            Input::Resume => self.resume(now, setup, actions),
            Input::ResumeGuard => self.guard.life = Life::Awake,
            Input::StartGuard => self.start_guard(now, setup, actions),
            Input::Stop => self.stop(now, setup, actions),
            Input::Suspend => self.suspend(now, setup, actions),
        }
    }
}
