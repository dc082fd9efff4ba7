//! Timestamps that may be by another clock than this machine's.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use neli::program::{clock, runs_on_this_machine};
use neli_proto::observer::{Leadership, Observer};
use neli_proto::time::Time;

use super::{Reading, read_at};
use crate::command::wording::span;
use crate::report::log::spoken;
use crate::text::one_line;

/// The time limit for finding out whether the brokers are on this machine, which avoids longer waits.
const LOOK: Duration = Duration::from_millis(500);

/// How long to listen before the timestamps of the leader's records count, if they don't count yet; that is explained on a terminal.
/// `is_brokers_time`: the records' timestamps are by the broker's clock.
pub(in crate::command) fn doubt(
    observer: &Observer,
    is_brokers_time: bool,
    reading: &Reading,
    deadline: Time,
) -> Option<Duration> {
    let doubt = observer.doubts_timestamps(read_at())?;
    if has_silent_leader_by_this_clock(observer, is_brokers_time, reading, deadline) {
        return None;
    }
    say_doubt(observer, doubt);
    Some(doubt)
}

/// Whether the leader is silent, if the timestamps are by this machine's clock, so that no difference of clocks matters.
fn has_silent_leader_by_this_clock(
    observer: &Observer,
    is_brokers_time: bool,
    reading: &Reading,
    deadline: Time,
) -> bool {
    // If candidates write the timestamps, those on an embedded broker are by this machine's clock.
    let is_ours = is_brokers_time || reading.embedded().is_some();
    is_ours
        && matches!(observer.leadership(read_at()), Leadership::Overdue { .. } | Leadership::Silent { .. })
        && runs_on_this_machine(
            &reading.source.access,
            &reading.source.elections.topic,
            deadline.since(clock::now()).min(LOOK),
        )
}

/// Warns that the newest record lies this far in the future by this machine's clock.
pub(in crate::command) fn warn_of_clock(ahead: Option<Duration>) {
    let Some(ahead) = ahead.map(span) else { return };
    // If stderr is closed, the line is lost.
    let _ = writeln!(
        io::stderr(),
        "neli-run: warning: the newest record's timestamp lies {ahead} in the future: this machine's clock is wrong, or the one that gave \
         it, and ages may be too short; who leads does not depend on it"
    );
}

/// Explains the wait on a terminal: the answer comes when the clocks' difference is known, or when no heartbeat has come.
fn say_doubt(observer: &Observer, doubt: Duration) {
    let Some(leader) = observer.leader().filter(|_| io::stderr().is_terminal()) else { return };
    let (name, within) = (one_line(leader.shown()), spoken(doubt));
    let current = observer.leadership(read_at());
    let age = if let Leadership::Overdue { age, .. } | Leadership::Silent { age, .. } = current {
        format!("{} old (lease {})", span(age), spoken(leader.lease))
    } else {
        "of the future".to_owned()
    };
    let why = "since the broker's clock may differ from this machine's";
    // If stderr is closed, the text is lost.
    let _ = writeln!(io::stderr(), "neli-run: the last heartbeat of {name} is {age}; listening for {within}, {why}");
}
