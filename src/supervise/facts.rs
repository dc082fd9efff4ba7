//! The main loop's part in the topic of facts: reads it, and appends facts. And the window of the wall clock, which the node needs before
//! it judges the recorded facts, and with a schedule while it leads.
//!
//! No kernel timer on the wall clock is used. The clock is read once a second, which costs less than the heartbeat that a leader sends as
//! often, and notices every change of the clock.

use std::time::Duration;

use neli_kafka::{ElectionId, FactsReading, FactsTopic, WantedFacts, clock};
use neli_proto::fact::{Account, Fact, Runs};
use neli_proto::node::{Event, FactsEvent};
use neli_proto::time::{Span, Time, Window};

use crate::calendar::Calendar;
use crate::config::{Occasion, Once};
use crate::http::RunsSnapshot;
use crate::supervise::MainLoop;
use crate::text::reason;

impl MainLoop {
    /// Passes the window of the wall clock to the node, if it has changed or if `anyway`.
    pub(super) fn tell_window(&mut self, role: usize, now: Time, anyway: bool) {
        let wall_clock = self.nodes.roles[role].facts.as_mut().and_then(|facts| facts.wall_clock.as_mut());
        let window = wall_clock.and_then(|wall_clock| wall_clock.look(now, clock::wall_ms(), anyway));
        if let Some(window) = window {
            self.nodes.tell(now, role, Event::Window(window));
        }
    }

    fn facts_event(&mut self, role: usize, now: Time, event: FactsEvent) {
        self.nodes.tell(now, role, Event::Facts(event));
    }

    pub(super) fn read_facts(&mut self, role: usize, id: u32) {
        let Some(facts) = &mut self.nodes.roles[role].facts else { return };
        let wanted = facts.wanted.clone();
        let earlier = facts.begin_reading();
        match self.nodes.session.read_facts(wanted, id, earlier) {
            Ok(reading) => facts.reading = Some((id, reading)),
            Err(error) => {
                let now = clock::now();
                facts.reading_not_started(now, id);
                let error = format!("no thread can be started to read them: {}", reason(&error)).into();
                self.facts_event(role, now, FactsEvent::Unread { error });
            }
        }
    }

    /// Tries to read facts again for which there was no thread.
    pub(super) fn read_unread_facts(&mut self, role: usize, now: Time) {
        let due = self.nodes.roles[role].facts.as_ref().and_then(|facts| facts.due_reading(now));
        if let Some(id) = due {
            self.read_facts(role, id);
        }
    }

    pub(super) fn append_fact(&mut self, role: usize, id: u32, fact: Fact) {
        let Some(facts) = &mut self.nodes.roles[role].facts else { return };
        let fact = facts.runs.written(Fact { at_ms: Some(clock::wall_ms()), ..fact });
        let topic = &facts.wanted.topic;
        let key = topic.key_at(fact.place());
        if let Err(error) = self.nodes.session.append_fact(id, &topic.name, key, &fact.to_bytes()) {
            let error = error.to_string().into();
            self.facts_event(role, clock::now(), FactsEvent::NotAppended { id, error });
        }
    }

    /// Handles the result of a reading or of a sent fact. One counter numbers both.
    pub(super) fn handle_facts(&mut self, role: usize, now: Time, id: u32, event: FactsEvent) {
        let reading = self.nodes.roles[role].facts.as_ref().and_then(|facts| facts.reading.as_ref());
        let is_of_reading =
            matches!(event, FactsEvent::Read { .. } | FactsEvent::Reading { .. } | FactsEvent::Unread { .. });
        // It may be of an earlier one.
        if is_of_reading && reading.is_none_or(|(number, _)| *number != id) {
            return;
        }
        if let FactsEvent::Read { facts, .. } = &event {
            self.nodes.roles[role].facts.iter_mut().for_each(|known| known.runs.read(facts));
            self.tell_window(role, now, true);
        } else if let FactsEvent::Appended { .. } = event {
            // If the outcome of a run is recorded, the next window is that of the clock at this moment.
            self.tell_window(role, now, false);
        }
        self.facts_event(role, now, event);
    }
}

/// The time after which a reading for which there was no thread is tried again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The facts of the election's key.
pub(super) struct KeyFacts {
    wanted: WantedFacts,
    /// The runs that were read or recorded here.
    pub(super) runs: Runs,
    /// `--window` and `--schedule`: the window according to the wall clock.
    pub(super) wall_clock: Option<WallClock>,
    /// The present or last reading with its number. Events of earlier readings are dropped.
    pub(super) reading: Option<(u32, FactsReading)>,
    /// The number of a reading for which there was no thread, and when it is tried again.
    unstarted: Option<(u32, Time)>,
}

impl KeyFacts {
    pub(super) fn new(election: &ElectionId, once: &Once) -> Self {
        Self {
            wanted: WantedFacts { topic: FactsTopic::of(election, once.key()), settings: once.topic_settings() },
            runs: Runs { account: account_of(once), last: None },
            wall_clock: WallClock::of(once),
            reading: None,
            unstarted: None,
        }
    }

    /// Takes the unfinished reading, which has made progress, so that the one that begins now continues it.
    pub(super) fn begin_reading(&mut self) -> Option<FactsReading> {
        self.unstarted = None;
        self.reading.take().map(|(_, reading)| reading)
    }

    /// Without a thread the reading is tried again later: a standby claims nothing before it has read the facts.
    pub(super) fn reading_not_started(&mut self, now: Time, id: u32) {
        self.unstarted = Some((id, now + AGAIN_AFTER));
    }

    /// When a reading is tried again.
    pub(super) fn reads_again_at(&self) -> Option<Time> {
        self.unstarted.map(|(_, at)| at)
    }

    /// The number of the reading that is due.
    pub(super) fn due_reading(&self, now: Time) -> Option<u32> {
        self.unstarted.filter(|(_, at)| now >= *at).map(|(id, _)| id)
    }

    /// The runs, for those who watch this process.
    pub(super) fn runs(&self, next_window_ms: Option<u64>) -> RunsSnapshot {
        let wall_clock = self.wall_clock.as_ref();
        RunsSnapshot {
            runs: self.runs.clone(),
            next_window_ms: next_window_ms.or_else(|| wall_clock?.next_window_ms()),
            success_due_ms: wall_clock.and_then(|wall_clock| {
                let success = self.runs.account.success.as_ref().and_then(|success| success.window);
                wall_clock.success_due_ms(success)
            }),
        }
    }

    pub(super) fn stop_reading(&mut self) {
        (self.reading, self.unstarted) = (None, None);
    }
}

/// What the facts say of the schedule, before any run.
fn account_of(once: &Once) -> Account {
    let zone = once.occasion.calendar().filter(|_| once.schedule.is_some()).and_then(Calendar::zone_name);
    Account { schedule: once.schedule.clone(), timezone: zone.map(Box::from), ..Account::default() }
}

/// The longest delay until a changed clock is noticed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The window of the wall clock, and when it is read.
#[derive(Debug)]
pub(super) struct WallClock {
    calendar: Calendar,
    /// Whether it is read while the node leads, as with a schedule.
    is_followed: bool,
    /// The window that was last passed to the node.
    window_shown: Option<Window>,
    /// When to read the clock again.
    look_at: Time,
    /// The first window that it has shown.
    first_shown: Option<Span>,
}

impl WallClock {
    /// The wall clock with the calendar of these windows; `None` without windows.
    pub(super) fn of(once: &Once) -> Option<Self> {
        let is_followed = matches!(once.occasion, Occasion::Schedule(..));
        once.occasion.calendar().map(|calendar| Self::new(calendar.clone(), is_followed))
    }

    const fn new(calendar: Calendar, is_followed: bool) -> Self {
        Self { calendar, is_followed, window_shown: None, look_at: Time::ZERO, first_shown: None }
    }

    /// When to read the clock again, while the node leads.
    pub(super) fn look_at(&self) -> Option<Time> {
        self.is_followed.then_some(self.look_at)
    }

    /// When the next window begins, in milliseconds since 1970.
    pub(super) fn next_window_ms(&self) -> Option<u64> {
        Some(self.window_shown.as_ref()?.span.until_ms)
    }

    /// When the second window without a success is over, after the one that has succeeded last, or else after the first one that was shown.
    pub(super) fn success_due_ms(&self, success: Option<Span>) -> Option<u64> {
        self.calendar.next_starts(success.or(self.first_shown)?.until_ms).nth(1)
    }

    /// The present window, if the node must get it: if it has changed, or if `anyway`.
    pub(super) fn look(&mut self, now: Time, wall_ms: u64, anyway: bool) -> Option<Window> {
        let is_same =
            |window_shown: &Window| window_shown.span.from_ms <= wall_ms && wall_ms < window_shown.span.until_ms;
        let is_new = !self.window_shown.as_ref().is_some_and(is_same);
        let window = if is_new {
            self.window_shown.insert(self.calendar.window(wall_ms))
        } else {
            self.window_shown.as_ref()?
        };
        self.first_shown.get_or_insert(window.span);
        let left = Duration::from_millis(window.span.until_ms.saturating_sub(wall_ms));
        self.look_at = now + left.min(LOOK_EVERY);
        (is_new || anyway).then(|| window.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_without_a_thread_is_tried_again_until_another_begins() {
        let election = ElectionId { group: "g".into(), topic: "t".into(), role: 0, role_name: None, partition: 0 };
        let once = Once {
            occasion: Occasion::Key("k".into()),
            schedule: None,
            retries: 0,
            done_status: 0,
            retention: Duration::from_secs(3_600),
        };
        let mut topic = KeyFacts::new(&election, &once);
        let now = Time::ZERO + Duration::from_secs(7);
        topic.reading_not_started(now, 3);
        assert_eq!((topic.reads_again_at(), topic.due_reading(now)), (Some(now + AGAIN_AFTER), None));
        assert_eq!(topic.due_reading(now + AGAIN_AFTER), Some(3));
        assert!(topic.begin_reading().is_none());
        assert_eq!((topic.reads_again_at(), topic.due_reading(now + AGAIN_AFTER)), (None, None));
        topic.reading_not_started(now, 4);
        topic.stop_reading();
        assert_eq!(topic.reads_again_at(), None, "a process that exits reads no facts");
    }
}
