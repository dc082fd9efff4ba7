//! The elections of a command, as far as they were read; the reading goes on for as long as the command asks.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::time::Duration;

use anyhow::Result;
use neli_kafka::{ElectionId, IfMissing, KafkaEvent, Source, clock};
use neli_proto::leadership::ReadAt;
use neli_proto::listener::{FIRST_SPAN, LogBounds};
use neli_proto::observer::{Election, Observer, Place};
use neli_proto::record::Offset;
use neli_proto::time::Time;

use super::{Changes, FoundElections, Limit, News, Reading, note, read_at};
use crate::command::look::Look;
use crate::command::{output, wording};
use crate::report::election::sentence;
use crate::text::{span, spoken};

/// The time limit for reading the claim of the current term separately. The claim only shows since when the leader leads.
const CLAIM_WITHIN: Duration = Duration::from_millis(300);
/// If the leader is still unknown, the next reading begins this many times further back.
const FURTHER: Offset = 8;

/// An election of a command, as far as it was read.
#[derive(Clone, Copy)]
pub(in crate::command) struct Seen<'a> {
    pub(in crate::command) election: &'a ElectionId,
    pub(in crate::command) read: &'a Election,
    pub(in crate::command) other_groups: &'a BTreeSet<String>,
}

impl Seen<'_> {
    /// Why no candidate can be asked: no record of the election was read, so its name may be mistyped.
    pub(in crate::command) fn no_record(&self) -> Option<String> {
        (!self.read.observer().has_read_anything()).then(|| wording::no_record(self.election, self.other_groups))
    }
}

/// Elections, and the reading of their topic.
pub(in crate::command) struct Observation {
    pub(in crate::command) found: FoundElections,
    pub(in crate::command) reading: Reading,
    pub(in crate::command) changes: Changes,
}

/// The election's place in its topic.
pub(in crate::command) fn in_topic(election: &ElectionId) -> Place {
    let (partition, group, role) = (election.partition, (*election.group).into(), election.label().into());
    Place { partition, group, role }
}

impl Observation {
    /// Reads elections up to the end of each log, from as far back as needed to know the leaders. If the timestamps are not reliable, it reads
    /// for a moment longer. The time limit is for the whole reading.
    ///
    /// # Errors
    /// As for [`Reading::bounds`].
    pub(in crate::command) async fn of_leaders(look: &Look, mut found: FoundElections) -> Result<Self> {
        let (limit, mut span) = (Limit::of_all(look.timeout), FIRST_SPAN);
        loop {
            let reading = found.read(look)?;
            let mut observation = Self::begin(reading, found, limit, |bounds, _| bounds.last(span)).await?;
            observation.read_to_end(limit).await?;
            if !observation.seen().any(|seen| seen.read.wants_earlier_records()) {
                observation.listen(limit.due()).await?;
                return Ok(observation);
            }
            (span, found) = (span.saturating_mul(FURTHER), observation.found);
        }
    }

    /// Reads the whole journals, up to their ends when the reading begins.
    ///
    /// # Errors
    /// As for [`Reading::bounds`].
    pub(in crate::command) async fn of_history(look: &Look, found: FoundElections) -> Result<Self> {
        let limit = Limit::of_each_answer(look.timeout);
        let from = |bounds: &LogBounds, has_election| if has_election { bounds.start } else { bounds.last(FIRST_SPAN) };
        let mut observation = Self::begin(found.read(look)?, found, limit, from).await?;
        observation.read_to_end(limit).await?;
        observation.listen(limit.due()).await?;
        Ok(observation)
    }

    /// Begins to read each partition from where `from` chooses by its log's bounds, and whether it has one of the elections.
    ///
    /// # Errors
    /// As for [`Reading::bounds`].
    pub(in crate::command) async fn begin(
        mut reading: Reading,
        found: FoundElections,
        limit: Limit,
        from: impl Fn(&LogBounds, bool) -> Offset,
    ) -> Result<Self> {
        for (partition, bounds) in reading.bounds(limit).await? {
            let has_election = found.elections.iter().any(|election| election.partition == partition);
            reading.read_from(partition, bounds, from(&bounds, has_election));
        }
        for election in &found.elections {
            reading.topic.expect(&in_topic(election));
        }
        Ok(Self { found, reading, changes: Changes::new() })
    }

    /// The elections, as far as they were read; in the order of the roles' numbers.
    pub(in crate::command) fn seen(&self) -> impl Iterator<Item = Seen<'_>> {
        let topic = &self.reading.topic;
        self.found.elections.iter().filter_map(|election| {
            Some(Seen { election, read: topic.election(&in_topic(election))?, other_groups: topic.other_groups() })
        })
    }

    async fn read_to_end(&mut self, limit: Limit) -> Result<()> {
        while let Some(news) = self.reading.next_before_end(limit).await? {
            self.note_changes(&news);
        }
        Ok(())
    }

    /// The only election, or the first one.
    ///
    /// # Errors
    /// There is none.
    pub(in crate::command) fn first(&self) -> Result<Seen<'_>> {
        self.seen().next().ok_or_else(|| anyhow::anyhow!("no election was read"))
    }

    /// What is read next; `None` if nothing is before `due`, if that is limited.
    ///
    /// # Errors
    /// As for [`Reading::next`].
    pub(in crate::command) async fn next(&mut self, due: Option<Time>) -> Result<Option<News>> {
        let news = self.reading.next(due).await?;
        if let Some(news) = &news {
            self.note_changes(news);
        }
        Ok(news)
    }

    /// The same, or `None` already when a leader has been silent for too long: no record comes of that, so Kafka is asked.
    ///
    /// # Errors
    /// As for [`Reading::next`].
    pub(in crate::command) async fn next_or_silence(&mut self, until: Time) -> Result<Option<News>> {
        let at = read_at();
        self.ask_about_silences(at);
        let due = self.seen().filter_map(|seen| seen.read.silence_due(at)).min();
        self.next(Some(due.map_or(until, |due| due.min(until)))).await
    }

    fn note_changes(&mut self, news: &News) {
        if let (KafkaEvent::ReadForDisplay { record, .. }, Some((place, (_, changes)))) = news
            && let Some(election) = self.reading.topic.election(place)
        {
            for change in changes {
                let sentence = self.found.of_role(place, wording::change(election.observer(), change));
                note(&mut self.changes, record.written_ms.unwrap_or(read_at().wall_ms), sentence);
            }
        }
    }

    /// Asks Kafka at once if a leader has been silent for too long since it answered last.
    pub(in crate::command) fn ask_about_silences(&mut self, at: ReadAt) {
        if self.reading.outage().is_none() && self.seen().any(|seen| seen.read.wants_answer(at)) {
            self.reading.ask();
        }
    }

    /// Notes the leaders' silences, which no record reports.
    pub(in crate::command) fn note_silences(&mut self) {
        let at = read_at();
        self.ask_about_silences(at);
        for election in self.reading.topic.elections_mut() {
            if let Some(sentence) = election.untold_silence(at).map(sentence) {
                note(&mut self.changes, at.wall_ms, self.found.of_role(election.place(), sentence));
            }
        }
    }

    /// Reads on for a moment, if the timestamps don't tell whether the leaders are silent.
    async fn listen(&mut self, deadline: Time) -> Result<()> {
        self.reading.topic.caught_up();
        let observers = self.seen().map(|seen| seen.read.observer());
        let Some(doubt) = doubt(observers, self.reading.is_embedded()) else { return Ok(()) };
        let until = deadline.min(clock::now() + doubt);
        while self.seen().any(|seen| seen.read.observer().doubts_timestamps(read_at()).is_some()) {
            if self.next(Some(until)).await?.is_none() {
                break;
            }
            // Records of other elections show what time it is, too.
            let topic = &mut self.reading.topic;
            topic.latest_ms().into_iter().for_each(|latest_ms| topic.stamped(latest_ms));
        }
        Ok(())
    }

    /// Reads the claim of the only election's current term if it is before the records that were read: its time is the start of the lead.
    pub(in crate::command) async fn learn_claim(&mut self) {
        let [election] = self.found.elections.as_slice() else { return };
        let (place, Source { access, elections, .. }) = (in_topic(election), &self.reading.source);
        let Some(term) = self.reading.topic.election(&place).and_then(Election::unread_claim) else { return };
        // The claim is read over a connection of its own, because on the other one the long fetch for the next record would delay it.
        let of_one = BTreeSet::from([place.partition]);
        let Ok(mut aside) = Reading::start(access, elections.clone(), of_one, IfMissing::Refuse) else { return };
        let limit = Limit::of_all(CLAIM_WITHIN);
        let bounds = aside.bounds(limit).await.unwrap_or_default();
        let Some(bounds) = bounds.get(&place.partition) else { return };
        aside.read_from(place.partition, *bounds, term);
        // If the claim was just deleted, or the broker is slow, the start of the lead stays unknown.
        while let Ok(Some((event, _))) = aside.next_before_end(limit).await {
            if let KafkaEvent::ReadForDisplay { record, .. } = event {
                if let Some(election) = self.reading.topic.election_mut(&place).filter(|_| record.offset == term) {
                    election.learn_claim(term, record.written_ms);
                }
                return;
            }
        }
    }
}

/// How long to listen before the timestamps of the leaders' records count, if they don't count yet; that is explained on a terminal.
pub(super) fn doubt<'a>(observers: impl Iterator<Item = &'a Observer>, is_embedded: bool) -> Option<Duration> {
    // An embedded broker and all of its candidates have this machine's clock.
    let is_sure = |observer: &Observer| is_embedded && observer.leadership(read_at()).silent_for().is_some();
    let doubted = observers.filter_map(|observer| {
        let doubt = observer.doubts_timestamps(read_at())?;
        (!is_sure(observer)).then_some((doubt, observer))
    });
    let (doubt, observer) = doubted.max_by_key(|(doubt, _)| *doubt)?;
    say_doubt(observer, doubt);
    Some(doubt)
}

/// Warns that the newest record of these elections lies in the future by this machine's clock, if so.
pub(in crate::command) fn warn_of_clock<'a>(observers: impl IntoIterator<Item = &'a Observer>) {
    let at = read_at();
    let ahead = observers.into_iter().filter_map(|observer| observer.is_ahead_by(at)).max();
    let Some(ahead) = ahead.map(span) else { return };
    output::say(&format!(
        "warning: the newest record's timestamp lies {ahead} in the future: this machine's clock is wrong, or the one that gave \
         it, and ages may be too short; who leads does not depend on it"
    ));
}

/// Explains the wait on a terminal: the answer comes when the clocks' difference is known, or when no heartbeat has come.
fn say_doubt(observer: &Observer, doubt: Duration) {
    let Some(leader) = observer.leader().filter(|_| io::stderr().is_terminal()) else { return };
    let (name, within) = (leader.shown(), spoken(doubt));
    let old = |age| format!("{} old (lease {})", span(age), spoken(leader.lease));
    let age = observer.leadership(read_at()).silent_for().map_or_else(|| "of the future".to_owned(), old);
    let why = "since the broker's clock may differ from this machine's";
    output::say(&format!("the last heartbeat of {name} is {age}; listening for {within}, {why}"));
}

#[cfg(test)]
pub(in crate::command) mod tests {
    use neli_proto::observer::Topic;
    use neli_proto::record::LogRecord;

    use super::*;

    /// An election whose leader, with a lease of a second, was heard three seconds ago, when Kafka answered last.
    pub(in crate::command) struct HeardBefore(ElectionId, Topic, BTreeSet<String>);

    impl HeardBefore {
        pub(in crate::command) fn new() -> Self {
            let election = ElectionId { group: "g".into(), topic: "t".into(), partition: 0, role: 0, role_name: None };
            let (now, ago) = (read_at(), Duration::from_secs(3));
            let at = ReadAt { now: now.now - ago, wall_ms: now.wall_ms - 3_000 };
            let mut topic = Topic::of_group("g");
            topic.begin(at, 0, LogBounds { asked: at.now, start: 0, end: 0 }, 0);
            topic.expect(&in_topic(&election));
            topic.caught_up();
            let claim = br#"{"v":1,"kind":"claim","member":"m","name":"m","seq":1,"after":-1,"lease_ms":1000}"#;
            let (key, value) = (Some(Box::from(&b"g/0"[..])), Some(Box::from(&claim[..])));
            let record = LogRecord { offset: 0, key, value, written_ms: Some(at.wall_ms), is_brokers_time: true };
            topic.read(at, 0, &record);
            topic.answered(at.now, 0, LogBounds { asked: at.now, start: 0, end: 1 }).expect("it is not cut");
            Self(election, topic, BTreeSet::new())
        }

        /// The same with this hello, which was read now.
        pub(in crate::command) fn with_hello(mut self, hello: &[u8]) -> Self {
            let (at, key, value) = (read_at(), Some(Box::from(&b"g/0/hello"[..])), Some(Box::from(hello)));
            let record = LogRecord { offset: 1, key, value, written_ms: Some(at.wall_ms), is_brokers_time: true };
            self.1.read(at, 0, &record);
            self
        }

        pub(in crate::command) fn seen(&self) -> Seen<'_> {
            let Self(election, topic, other_groups) = self;
            Seen { election, read: topic.election(&in_topic(election)).expect("it is read"), other_groups }
        }
    }
}
