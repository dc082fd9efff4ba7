//! Deaths of a supervisor, and of a whole machine.

use neli_proto::guard::Queue;
use neli_proto::guard::{Grant, Order};
use neli_proto::time::Time;

use super::{GuardStart, Machine, Reader, Reading};
use crate::flaws::{WorldFlaw, is_flawed};
use crate::guard::Life;
use crate::kafka::Log;

impl Machine {
    /// Sends SIGKILL to the supervisor. The guard still reads the unread orders.
    pub(crate) fn crash(&mut self, now: Time, log: &Log) {
        if is_flawed(WorldFlaw::GuardSeesTooMuch)
            && let Some(Reading::Record(seen, _)) = self.to_read(log)
        {
            // The supervisor had just read that record and informed its guard, but had not judged it.
            let term = self.node.supervisor().term().unwrap_or(-1);
            self.guard.obey(now, Order::Lease(Grant { term, seen, next_seq: 0, until: Time::ZERO }));
        }
        self.life = Life::Dead;
        self.forget();
    }

    /// Kills the whole machine.
    pub(crate) fn die(&mut self) {
        self.life = Life::Dead;
        self.guard = self.guard.anew();
        self.guard.life = Life::Dead;
        self.forget();
    }

    /// Clears the state of a dead process, since all dead processes behave alike.
    pub(crate) fn forget(&mut self) {
        if self.guard_start == GuardStart::Waits {
            self.guard_start = GuardStart::Unneeded;
        }
        self.reader = Reader::default();
        self.late_answer = None;
        (self.check, self.hooks) = (None, Vec::new());
        self.answers = Queue::default();
        self.receipts.clear();
        self.facts_asked = None;
        self.facts_events.clear();
    }
}
