//! The election's thread waits here for a future, or for a time on `CLOCK_BOOTTIME`. (tokio's timers stand still while the machine sleeps,
//! and a lease does not.)

use std::future::Future;
use std::io;
use std::os::fd::AsFd;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use neli_kafka::clock::{self, Alarm};
use neli_proto::time::Time;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};

/// Waits for one thread.
#[derive(Debug)]
pub(crate) struct Waiter {
    alarm: Alarm,
    wakeup: Arc<Wakeup>,
}

/// Becomes readable when it is rung.
#[derive(Debug)]
struct Wakeup(EventFd);

impl Waiter {
    /// # Errors
    ///
    /// The kernel has no descriptor to spare.
    pub(crate) fn new() -> io::Result<Self> {
        let wakeup = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        Ok(Self { alarm: Alarm::new()?, wakeup: Arc::new(Wakeup(wakeup)) })
    }

    /// Waits for the future, until `due` at most; `None` when that came first.
    pub(crate) fn wait<T>(&mut self, due: Option<Time>, future: impl Future<Output = T>) -> Option<T> {
        let waker = Waker::from(Arc::clone(&self.wakeup));
        let mut context = Context::from_waker(&waker);
        let mut future = pin!(future);
        // It can't fail on a descriptor that is ours.
        let _ = self.alarm.set(due);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return Some(output);
            }
            if due.is_some_and(|due| clock::now() >= due) {
                self.alarm.acknowledge();
                return None;
            }
            let mut sources =
                [&self.wakeup.0.as_fd(), &self.alarm.as_fd()].map(|fd| PollFd::new(*fd, PollFlags::POLLIN));
            // A needless wake-up does no harm.
            let _ = poll(&mut sources, PollTimeout::NONE);
            let _ = self.wakeup.0.read();
        }
    }
}

impl Wake for Wakeup {
    fn wake(self: Arc<Self>) {
        // It fails only when it has been rung 2^64 times, and then it is readable.
        let _ = self.0.write(1);
    }
}

#[cfg(test)]
mod tests {
    use std::future;
    use std::thread;
    use std::time::Duration;

    use tokio::sync::mpsc;

    use super::*;

    #[test]
    fn an_event_of_another_thread_wakes_it() {
        let (sender, mut received) = mpsc::unbounded_channel();
        let other = thread::spawn(move || sender.send(7).unwrap());
        assert_eq!(Waiter::new().unwrap().wait(None, received.recv()), Some(Some(7)));
        other.join().unwrap();
    }

    #[test]
    fn a_time_ends_the_wait() {
        let due = clock::now() + Duration::from_millis(5);
        let mut waiter = Waiter::new().unwrap();
        assert_eq!(waiter.wait(Some(due), future::pending::<()>()), None);
        assert!(clock::now() >= due);
        assert_eq!(waiter.wait(Some(due), future::pending::<()>()), None, "it has passed");
        assert_eq!(waiter.wait(Some(due), future::ready(1)), Some(1), "what is there comes first");
    }
}
