//! Effects in Kafka, and between Kafka and the machines.

use neli_proto::record::What;

use crate::flaws::{WorldFlaw, is_flawed};
use crate::guard::Life;
use crate::kafka::Log;
use crate::machine::{Input, Machine};
use crate::setup::Who;
use crate::world::{Broker, Known, World};

impl World {
    /// Appends a record under way to the log.
    pub(super) fn arrive(&mut self, flight: usize) {
        let flight = self.flying.remove(flight);
        self.append(&flight);
    }

    /// Loses a record under way.
    pub(super) fn lose(&mut self, flight: usize) {
        let flight = self.flying.remove(flight);
        self.receipt(&flight, false);
    }

    /// Deletes the beginning of the log.
    pub(super) fn cut(&mut self) {
        let start = self.log.part.start_after_cut(self.now, self.cuts_young());
        self.change_log(|log| log.cut_to(start));
    }

    /// Ends the embedded broker, and its log with it.
    pub(super) fn end_broker(&mut self) {
        self.broker = Broker::Dead;
        self.flying.clear();
        self.log = Known::new(Log::with_others(0, self.now));
        for who in 0..self.machines.len() {
            self.tell(who, Input::LoseBroker);
        }
    }

    /// Whether a new embedded broker serves: no process of the one before it is left that could have a job.
    pub(super) fn may_have_new_broker(&self) -> bool {
        let is_gone = |machine: &Machine| {
            if is_flawed(WorldFlaw::NewBrokerForgetsGuards) {
                machine.life == Life::Dead
            } else {
                is_flawed(WorldFlaw::NewBrokerWaitsForNobody) || machine.is_gone()
            }
        };
        self.broker == Broker::Dead && (0..self.machines.len()).filter_map(|who| self.machine(who)).all(is_gone)
    }

    /// Lets an operator ask the leader to resign.
    pub(super) fn ask_to_resign(&mut self, who: Who) {
        let term = self.machine(who).and_then(|machine| machine.node.leads());
        self.request(What::Resign, term);
    }
}
