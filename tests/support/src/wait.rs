//! The only module that reads the clock and sleeps. A test waits for a condition with a time limit, and never for a time.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// The time limit of every wait. It is far above the time of any step, so that a busy machine does not make a test fail.
pub const PATIENCE: Duration = Duration::from_secs(40);

/// Nanoseconds of `CLOCK_BOOTTIME`, the clock of witnesses and leases.
#[must_use]
pub fn now() -> u64 {
    let at = clock_gettime(ClockId::CLOCK_BOOTTIME).expect("every Linux has CLOCK_BOOTTIME");
    u64::try_from(at.tv_sec()).expect("after boot") * 1_000_000_000 + u64::try_from(at.tv_nsec()).expect("after boot")
}

/// Milliseconds since 1970 by this machine's wall clock.
#[must_use]
pub fn wall_ms() -> i64 {
    let at = clock_gettime(ClockId::CLOCK_REALTIME).expect("every Unix has CLOCK_REALTIME");
    at.tv_sec() * 1_000 + at.tv_nsec() / 1_000_000
}

/// The present time plus a duration, in nanoseconds of `CLOCK_BOOTTIME`.
#[must_use]
pub fn after(while_: Duration) -> u64 {
    now() + u64::try_from(while_.as_nanos()).expect("less than 500 years")
}

/// The shortest and the longest pause between two questions.
const PAUSES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(50)];

/// Calls `ask` until it returns a value; `None` if it did not within `bound`. It pauses for a hundredth of the time that has passed, and for as long
/// as the question took: a question may cost more processor time than what is waited for.
pub fn poll_for<T>(bound: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let (begun, end) = (now(), after(bound));
    loop {
        let asked = now();
        if let Some(answer) = ask() {
            return Some(answer);
        }
        let answered = now();
        if answered >= end {
            return None;
        }
        let wanted = (answered - asked).max((answered - begun) / 100);
        pause(Duration::from_nanos(wanted).clamp(PAUSES[0], PAUSES[1]));
    }
}

/// Waits until `ask` returns a value, for at most [`PATIENCE`]; the failure names `what`.
pub fn until<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    poll_for(PATIENCE, ask).unwrap_or_else(|| panic!("not within {PATIENCE:?}: {what}"))
}

/// Waits until a condition holds, for at most [`PATIENCE`].
pub fn until_true(what: &str, mut condition: impl FnMut() -> bool) {
    until(what, || condition().then_some(()));
}

/// Lets time pass, to show that something does *not* happen or that something lasts.
pub fn pause(while_: Duration) {
    #[expect(clippy::disallowed_methods, reason = "the only function that may sleep")]
    std::thread::sleep(while_);
}
