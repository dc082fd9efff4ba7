//! The topic with the facts of one election's key.

use std::time::Duration;

use neli_kafka::{ElectionId, FactsReading, FactsSettings};
use neli_proto::fact::{self, Account, Place, Runs};
use neli_proto::time::Time;

use crate::calendar::Calendar;
use crate::config::Once;
use crate::http::RunsSnapshot;
use crate::supervise::wall_clock::WallClock;

/// The time after which a reading for which there was no thread is tried again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The topic with the facts of one election's key.
pub(super) struct FactsTopic {
    pub(super) name: String,
    /// The Kafka keys of the records with the key's facts.
    pub(super) keys: [(String, Place); 3],
    pub(super) settings: FactsSettings,
    /// The runs that were read or recorded here.
    pub(super) runs: Runs,
    /// `--window` and `--schedule`: the window according to the wall clock.
    pub(super) wall_clock: Option<WallClock>,
    /// The present or last reading with its number. Events of earlier readings are dropped.
    pub(super) reading: Option<(u32, FactsReading)>,
    /// The number of a reading for which there was no thread, and when it is tried again.
    unstarted: Option<(u32, Time)>,
    pub(super) is_judged: bool,
}

impl FactsTopic {
    pub(super) fn new(election: &ElectionId, once: &Once) -> Self {
        let key = |place| (fact::record_key(&election.key(), once.key(), place), place);
        Self {
            name: format!("{}{}", election.topic, fact::TOPIC_SUFFIX),
            keys: Place::ALL.map(key),
            settings: once.topic_settings(),
            runs: Runs { account: account_of(once), last: None },
            wall_clock: WallClock::of(once),
            reading: None,
            unstarted: None,
            is_judged: false,
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

    pub(super) fn key_at(&self, wanted: Place) -> &str {
        self.keys.iter().find(|(_, place)| *place == wanted).map_or("", |(key, _)| key)
    }
}

/// What the facts say of the schedule, before any run.
fn account_of(once: &Once) -> Account {
    let zone = once.calendar().filter(|_| once.schedule.is_some()).and_then(Calendar::zone_name);
    Account { schedule: once.schedule.clone(), timezone: zone.map(Box::from), ..Account::default() }
}

#[cfg(test)]
mod tests {
    use crate::config::Occasion;

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
        let mut topic = FactsTopic::new(&election, &once);
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
