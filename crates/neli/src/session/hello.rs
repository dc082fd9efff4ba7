//! The hellos of a process with many roles, and the last one of any process.

use neli_proto::process_hello::ProcessHello;
use neli_proto::time::Time;

use super::Session;
use crate::clock;
use crate::text::ClientError;

impl Session {
    /// Hands over a hello for all roles of this process, and returns at once:
    /// [`SessionEvent::HelloDelivered`](super::SessionEvent::HelloDelivered) follows when it is in the log. If it can't be delivered, no event follows.
    ///
    /// # Errors
    ///
    /// The queue is full, or the hello too large.
    pub fn say_hello(&mut self, hello: &ProcessHello) -> Result<(), ClientError> {
        self.producer.say_hello(&hello.to_bytes())?;
        if hello.leaves {
            self.last_hello.said(clock::now());
        }
        Ok(())
    }

    /// Until when the process waits with its exit for its last hello, which was handed over and is not known to be in the log; none if it does
    /// not wait.
    #[must_use]
    pub fn awaits_last_hello_until(&self) -> Option<Time> {
        self.last_hello.awaited_until(clock::now())
    }
}
