//! The hellos of a process with many roles, and the last one of any process.

use neli_proto::process_hello::ProcessHello;
use neli_proto::time::Time;

use super::{Session, SessionEvent};
use crate::clock;

impl Session {
    /// Hands over a hello for all roles of this process, and returns at once: [`SessionEvent::HelloDelivered`] follows when it is in the log. If
    /// it can't be delivered, no event follows; if it can't be handed over (the queue is full, or the hello too large),
    /// [`SessionEvent::AppendRefused`].
    pub fn say_hello(&mut self, hello: &ProcessHello) {
        if let Err(error) = self.producer.say_hello(&hello.to_bytes()) {
            self.outputs.push_back(SessionEvent::AppendRefused { error: error.to_string() });
        } else if hello.leaves {
            self.last_hello.said(clock::now());
        }
    }

    /// Until when the process waits with its exit for its last hello, which was handed over and is not known to be in the log; none if it does
    /// not wait.
    #[must_use]
    pub fn awaits_last_hello_until(&self) -> Option<Time> {
        self.last_hello.awaited_until(clock::now())
    }
}
