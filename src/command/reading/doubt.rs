//! Timestamps that may be by another clock than this machine's.

use std::cell::LazyCell;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use neli_kafka::{Source, clock, runs_on_this_machine};
use neli_proto::leadership::Leadership;
use neli_proto::observer::Observer;
use neli_proto::time::Time;

use super::{Reading, read_at};
use crate::report::election::span;
use crate::report::log::spoken;
use crate::text::one_line;

/// The time limit for finding out whether the brokers are on this machine, which avoids longer waits.
const LOOK: Duration = Duration::from_millis(500);

/// How long to listen before the timestamps of the leaders' records count, if they don't count yet; that is explained on a terminal. Each observer
/// comes with whether the timestamps of its election's records are by the broker's clock.
pub(in crate::command) fn doubt<'a>(
    observers: impl IntoIterator<Item = (&'a Observer, bool)>,
    reading: &Reading,
    deadline: Time,
) -> Option<Duration> {
    let is_one_clock = LazyCell::new(|| {
        let Source { access, elections, .. } = &reading.source;
        runs_on_this_machine(access, &elections.topic, deadline.since(clock::now()).min(LOOK))
    });
    // If the timestamps are by this machine's clock, no difference of clocks matters. If candidates write them, those on an embedded broker are.
    let is_sure = |observer: &Observer, is_brokers_time: bool| {
        (is_brokers_time || reading.is_embedded())
            && matches!(observer.leadership(read_at()), Leadership::Overdue { .. } | Leadership::Silent { .. })
            && *is_one_clock
    };
    let doubted = observers.into_iter().filter_map(|(observer, is_brokers_time)| {
        let doubt = observer.doubts_timestamps(read_at())?;
        (!is_sure(observer, is_brokers_time)).then_some((doubt, observer))
    });
    let (doubt, observer) = doubted.max_by_key(|(doubt, _)| *doubt)?;
    say_doubt(observer, doubt);
    Some(doubt)
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
