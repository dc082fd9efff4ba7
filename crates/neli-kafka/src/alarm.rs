//! A timer on `CLOCK_BOOTTIME`, which goes on while the machine sleeps (R8).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use neli_proto::time::Time;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

/// A timer that becomes readable at a point in time.
#[derive(Debug)]
pub struct Alarm {
    timer: TimerFd,
    set_to: Option<Time>,
}

impl Alarm {
    /// A timer that is not set.
    ///
    /// # Errors
    ///
    /// The kernel has no descriptor to spare.
    pub fn new() -> io::Result<Self> {
        let timer = TimerFd::new(ClockId::CLOCK_BOOTTIME, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)?;
        Ok(Self { timer, set_to: None })
    }

    /// Sets the timer to `due`, or unsets it. It is readable at once if that time has passed.
    ///
    /// # Errors
    ///
    /// None for a descriptor of our own.
    pub fn set(&mut self, due: Option<Time>) -> io::Result<()> {
        if due == self.set_to {
            return Ok(());
        }
        match due {
            Some(due) => {
                // Zero would unset it.
                let due = TimeSpec::from_duration(Duration::from_nanos(due.as_nanos().max(1)));
                self.timer.set(Expiration::OneShot(due), TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
            }
            None => self.timer.unset()?,
        }
        self.set_to = due;
        Ok(())
    }

    /// The timer has become readable; unsets it.
    pub fn acknowledge(&mut self) {
        // The count of expirations is of no interest, only that it is read.
        let _ = self.timer.wait();
        self.set_to = None;
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}
