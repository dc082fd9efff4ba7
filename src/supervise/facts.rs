//! The main loop's part in the topic of facts: reads it, and appends facts. And the window of the wall clock, which the node needs before
//! it judges the recorded facts, and with a schedule while it leads.
//!
//! No kernel timer on the wall clock is used. The clock is read once a second, which costs less than the heartbeat that a leader sends as
//! often, and notices every change of the clock.

use std::io;
use std::sync::mpsc;
use std::time::Duration;

use neli_kafka::{ElectionId, FactsTopic, Session, clock};
use neli_proto::fact::{Account, Fact, Facts};
use neli_proto::node::{Event, FactsEvent};
use neli_proto::time::{Time, Window};

use crate::calendar::{Calendar, is_start};
use crate::config::Once;
use crate::supervise::MainLoop;

impl MainLoop {
    /// Passes the window of the wall clock to the node, if it has changed or if `anyway`.
    pub(super) fn tell_window(&mut self, role: usize, now: Time, anyway: bool) {
        let facts = self.nodes.roles[role].facts.as_mut();
        if let Some(window) = facts.and_then(|facts| facts.look(now, clock::wall_ms(), anyway)) {
            self.nodes.tell(now, role, Event::Window(window));
        }
    }

    pub(super) fn read_facts(&mut self, role: usize, id: u32) {
        if let Some(facts) = &mut self.nodes.roles[role].facts {
            facts.reading = id;
            // An error means that Kafka has refused, and that this was reported.
            facts.reader.iter().for_each(|reader| _ = reader.send(id));
        }
    }

    pub(super) fn append_fact(&mut self, role: usize, id: u32, fact: Fact) {
        let Some(facts) = &mut self.nodes.roles[role].facts else { return };
        let fact = facts.runs.written(clock::wall_ms(), fact);
        let key = facts.topic.key_at(fact.place());
        if let Err(error) = self.nodes.session.append_fact(id, &facts.topic.name, key, &fact.to_bytes()) {
            let error = error.into();
            self.tell(role, Event::Facts(FactsEvent::NotAppended { id, error }));
        }
    }

    /// Handles the result of a reading or of a sent fact. One counter numbers both.
    pub(super) fn handle_facts(&mut self, role: usize, now: Time, id: u32, event: FactsEvent) {
        let reading = self.nodes.roles[role].facts.as_ref().map(|facts| facts.reading);
        let is_of_reading =
            matches!(event, FactsEvent::Read { .. } | FactsEvent::Reading { .. } | FactsEvent::Unread { .. });
        // It may be of an earlier one.
        if is_of_reading && reading != Some(id) {
            return;
        }
        if let FactsEvent::Read { facts, .. } = &event {
            self.nodes.roles[role].facts.iter_mut().for_each(|known| known.read(facts));
            self.tell_window(role, now, true);
        } else if let FactsEvent::Appended { .. } = event {
            // If the outcome of a run is recorded, the next window is that of the clock at this moment.
            self.tell_window(role, now, false);
        }
        self.nodes.tell(now, role, Event::Facts(event));
    }
}

/// The longest delay until a changed clock is noticed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The facts of the election's key, and with windows that of the wall clock.
pub(super) struct KeyFacts {
    topic: FactsTopic,
    /// The runs that were read or recorded here.
    runs: Account,
    /// Whether the runs of before were read.
    was_read: bool,
    /// `--window` and `--schedule`.
    calendar: Option<Calendar>,
    /// The window that was last passed to the node.
    window_shown: Option<Window>,
    /// With a schedule: when to read the clock again, while the node leads.
    pub(super) look_at: Option<Time>,
    /// `None` once this process exits.
    reader: Option<mpsc::Sender<u32>>,
    /// The number of the present or last reading. Events of earlier readings are dropped.
    reading: u32,
}

impl KeyFacts {
    /// # Errors
    ///
    /// There is no thread for the reader.
    pub(super) fn new(session: &Session, election: &ElectionId, once: &Once) -> io::Result<Self> {
        let topic = FactsTopic::of(election, once.key());
        let zone = once.calendar.as_ref().filter(|_| once.schedule.is_some()).and_then(Calendar::zone_name);
        let (schedule, timezone) = (once.schedule.clone(), zone.map(Box::from));
        Ok(Self {
            reader: Some(session.facts_reader(topic.clone(), once.topic_settings(), once.schedule.is_some())?),
            topic,
            runs: Account { schedule, timezone, ..Account::default() },
            was_read: false,
            calendar: once.calendar.clone(),
            window_shown: None,
            look_at: once.schedule.as_ref().map(|_| Time::ZERO),
            reading: 0,
        })
    }

    fn read(&mut self, facts: &Facts) {
        self.runs.read(facts);
        self.was_read = true;
    }

    /// The recorded runs; `None` until those of before were read.
    pub(super) fn known_runs(&self) -> Option<&Account> {
        self.was_read.then_some(&self.runs)
    }

    /// When the next window begins: by the node, or else by the wall clock.
    pub(super) fn next_window_ms(&self, by_node_ms: Option<u64>) -> Option<u64> {
        let next_ms = by_node_ms.or_else(|| Some(self.window_shown.as_ref()?.span.until_ms));
        next_ms.filter(|next_ms| is_start(*next_ms))
    }

    /// When the second window without a success is over, after the one that has succeeded last, or else after the first one that a candidate has seen.
    pub(super) fn success_due_ms(&self) -> Option<u64> {
        let runs = self.known_runs()?;
        let success = runs.success.as_ref().and_then(|success| success.window);
        self.calendar.as_ref()?.next_starts(success.or(runs.first)?.until_ms).nth(1)
    }

    /// The present window, if the node must get it: if it has changed, or if `anyway`.
    fn look(&mut self, now: Time, wall_ms: u64, anyway: bool) -> Option<Window> {
        let calendar = self.calendar.as_ref()?;
        let is_same =
            |window_shown: &Window| window_shown.span.from_ms <= wall_ms && wall_ms < window_shown.span.until_ms;
        let is_new = !self.window_shown.as_ref().is_some_and(is_same);
        let window =
            if is_new { self.window_shown.insert(calendar.window(wall_ms)) } else { self.window_shown.as_ref()? };
        self.runs.first.get_or_insert(window.span);
        let left = Duration::from_millis(window.span.until_ms.saturating_sub(wall_ms));
        self.look_at.iter_mut().for_each(|at| *at = now + left.min(LOOK_EVERY));
        (is_new || anyway).then(|| window.clone())
    }

    pub(super) fn stop_reading(&mut self) {
        self.reader = None;
    }
}
