//! The one timer of the guard. It runs on `CLOCK_BOOTTIME`, which counts a suspend (R8).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use neli_proto::time::Time;

/// A timer that becomes readable at a point in time.
#[derive(Debug)]
pub(super) struct Alarm {
    timer: TimerFd,
    set_to: Option<Time>,
}

impl Alarm {
    /// A timer that is not set.
    pub(super) fn new() -> io::Result<Self> {
        let timer = TimerFd::new(ClockId::CLOCK_BOOTTIME, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)?;
        Ok(Self { timer, set_to: None })
    }

    /// Sets it to `due`, or to nothing. A point that has passed is readable at once.
    pub(super) fn set(&mut self, due: Option<Time>) -> io::Result<()> {
        if due == self.set_to {
            return Ok(());
        }
        match due {
            Some(due) => self.timer.set(Expiration::OneShot(timespec(due)), TimerSetTimeFlags::TFD_TIMER_ABSTIME)?,
            None => self.timer.unset()?,
        }
        self.set_to = due;
        Ok(())
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

/// Never all zero, which would unset the timer.
fn timespec(at: Time) -> TimeSpec {
    let nanos = at.as_nanos().max(1);
    let seconds = i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX);
    TimeSpec::new(seconds, (nanos % 1_000_000_000).cast_signed())
}
