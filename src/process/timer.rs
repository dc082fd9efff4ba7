//! One alarm on `CLOCK_BOOTTIME`, which goes on while the machine sleeps (R8); tokio's timers stand still in a suspend.

use std::io;
use std::time::Duration;

use neli_proto::time::Time;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::process::ready::Ready;

/// The main loop's alarm.
pub(crate) struct Timer {
    alarm: TimerFd,
    ready: Ready,
    set: Option<Time>,
}

impl Timer {
    /// An alarm that is not set.
    ///
    /// # Errors
    ///
    /// The kernel has no descriptor to spare.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
        let alarm = TimerFd::new(ClockId::CLOCK_BOOTTIME, flags)?;
        Ok(Self { ready: Ready::of(&alarm)?, alarm, set: None })
    }

    /// Sets it anew; `None` is never.
    pub(crate) fn set(&mut self, at: Option<Time>) {
        if self.set == at {
            return;
        }
        self.set = at;
        let timer = &self.alarm;
        // A time that is over goes off at once; zero would disarm. Neither call can fail on a descriptor that is ours.
        let _ = match at {
            Some(at) => {
                let at = Duration::from_nanos(at.as_nanos().max(1));
                timer.set(Expiration::OneShot(TimeSpec::from_duration(at)), TimerSetTimeFlags::TFD_TIMER_ABSTIME)
            }
            None => timer.unset(),
        };
    }

    /// Waits until it goes off.
    pub(crate) async fn due(&mut self) {
        self.ready.wait().await;
        // The count of expirations is of no interest, only that it is taken.
        let _ = self.alarm.wait();
        self.set = None;
    }
}
