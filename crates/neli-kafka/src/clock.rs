//! The only clock read: `CLOCK_BOOTTIME`, which goes on while the machine sleeps (R8); and the wall clock, for display and for windows
//! of time.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use neli_proto::assumptions::ClockReading;
use neli_proto::time::Time;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{self, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{ClockId, clock_gettime};

/// The present, on `CLOCK_BOOTTIME`.
pub fn now() -> Time {
    Time::from_nanos(nanos_of(ClockId::CLOCK_BOOTTIME))
}

/// Milliseconds since 1970 by the wall clock, which may be set at any time.
pub fn wall_ms() -> u64 {
    nanos_of(ClockId::CLOCK_REALTIME) / 1_000_000
}

/// The time of `CLOCK_MONOTONIC` that is now as far away as this time of the wall clock.
pub(crate) fn monotonic_of_wall(wall: TimeSpec) -> TimeSpec {
    let [wall_now, now] = [ClockId::CLOCK_REALTIME, ClockId::CLOCK_MONOTONIC].map(nanos_of);
    let left = nanos(wall).saturating_sub(wall_now);
    TimeSpec::from_duration(Duration::from_nanos(now.saturating_add(left)))
}

/// The clocks are read this often, and the shortest reading counts: a delay between two reads makes only one reading longer.
const READINGS: usize = 16;

/// Reads the clock that leases use, and the hardware clock, which no service corrects. `CLOCK_MONOTONIC` is read in place of
/// `CLOCK_BOOTTIME`: it has the same rate, and does not jump after a sleep.
pub fn beside_hardware() -> ClockReading {
    let read = || {
        let [before, corrected, after] =
            [ClockId::CLOCK_MONOTONIC_RAW, ClockId::CLOCK_MONOTONIC, ClockId::CLOCK_MONOTONIC_RAW].map(nanos_of);
        ClockReading { before, corrected, after }
    };
    let readings: [ClockReading; READINGS] = std::array::from_fn(|_| read());
    readings.into_iter().min_by_key(ClockReading::width).unwrap_or_else(read)
}

/// The time that Rust's clock, which stands still while the machine sleeps, will show when `left` has passed. For display only.
pub fn instant_in(left: Duration) -> Instant {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads it")]
    let now = Instant::now();
    now + left
}

/// The time that Rust's clock showed at this time in the past. For display only.
pub fn instant_of(time: Time) -> Instant {
    let present = instant_in(Duration::ZERO);
    present.checked_sub(now().since(time)).unwrap_or(present)
}

/// Nanoseconds of a clock that every Linux has had since 2.6.39: reading it can't fail.
fn nanos_of(clock: ClockId) -> u64 {
    clock_gettime(clock).map_or(0, nanos)
}

/// Nanoseconds since a clock's zero; 0 for a time before.
fn nanos(at: TimeSpec) -> u64 {
    let [seconds, nanos] = [at.tv_sec(), at.tv_nsec()].map(|part| u64::try_from(part).unwrap_or(0));
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

// ---- a timer on `CLOCK_BOOTTIME`, which goes on while the machine sleeps (R8) --------------------------------------

/// A timer that becomes readable at a point in time. (tokio's timers stand still while the machine sleeps, and a lease does not.)
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
        let timer = TimerFd::new(timerfd::ClockId::CLOCK_BOOTTIME, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)?;
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

    /// The time has come; unsets the timer, if it is readable. By the clock its time may come a moment before: then it is still set.
    pub fn acknowledge(&mut self) {
        // The count of expirations is of no interest, only that it is read.
        if self.timer.wait().is_ok() {
            self.set_to = None;
        }
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise it becomes readable later, and who waits without a time finds it so again and again.
    #[test]
    fn a_timer_that_is_acknowledged_before_it_is_readable_can_be_unset() {
        let mut alarm = Alarm::new().unwrap();
        alarm.set(Some(now() + Duration::from_secs(3600))).unwrap();
        alarm.acknowledge();
        alarm.set(None).unwrap();
        assert!(alarm.timer.get().unwrap().is_none());
    }
}
