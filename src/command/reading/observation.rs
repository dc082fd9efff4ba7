//! The elections of a command, as far as they were read; the reading goes on for as long as the command asks.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal};
use std::ops::Deref;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use neli_kafka::names::MOST_ROLES;
use neli_kafka::{ElectionId, Elections, FactsTopic, TopicsEvent, clock};
use neli_proto::kafka::TopicsAction;
use neli_proto::leadership::ReadAt;
use neli_proto::listener::{FIRST_SPAN, LogBounds};
use neli_proto::observer::{self, Election, GroupHellos, Judged, JudgedRecord, Observer, ReadTopic, Topics};
use neli_proto::record::{LogRecord, Offset};
use neli_proto::time::Time;

use super::{Changes, Following, FoundElections, Limit, note, pass_on, read_at, to_be_told};
use crate::command::look::Look;
use crate::command::{output, wording};
use crate::report::election::sentence;
use crate::text::{span, spoken};

/// The time limit for reading the claim of the current term separately. The claim only shows since when the leader leads.
const CLAIM_WITHIN: Duration = Duration::from_millis(300);
/// If the roles or the leader are still unknown, the next reading begins this many times further back.
const FURTHER: Offset = 8;
/// At most this many records before the end of partition 0 are searched for a hello whose mapping contains the role.
const FARTHEST: Offset = 100_000;
/// A broker may not know a topic for this long after it was created.
const NEW_WITHIN: Duration = Duration::from_millis(500);
/// The time between two questions while the topic, or the leader of a partition, is missing.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// An election of a command, as far as it was read.
#[derive(Clone, Copy)]
pub(in crate::command) struct Seen<'a> {
    pub(in crate::command) election: &'a ElectionId,
    pub(in crate::command) read: &'a Election,
    pub(in crate::command) other_groups: &'a BTreeSet<String>,
}

impl Deref for Seen<'_> {
    type Target = Election;

    fn deref(&self) -> &Election {
        self.read
    }
}

impl Seen<'_> {
    /// Why no candidate can be asked: no record of the election was read, so its name may be mistyped.
    pub(in crate::command) fn no_record(&self) -> Option<String> {
        (!self.observer().has_read_anything()).then(|| wording::no_record(self.election, self.other_groups))
    }
}

/// A record and its partition; and for a record of one of the elections its place, and what the law says of the record. Nothing if what has come is no
/// record.
pub(in crate::command) type News = (Option<(i32, LogRecord)>, Option<(observer::Place, Judged)>);

/// Elections, and the reading of their topic.
pub(in crate::command) struct Observation {
    pub(in crate::command) found: FoundElections,
    pub(in crate::command) changes: Changes,
    following: Following,
    /// The topic alone, with the elections of the group.
    topics: Topics,
    look: Look,
    /// Whether a topic that does not exist is an empty one.
    is_optional: bool,
    /// Is told each outage and its end, and each problem that does not stop the reading.
    tell: fn(&str),
}

/// The election's place in its topic.
pub(in crate::command) fn in_topic(election: &ElectionId) -> observer::Place {
    let (partition, group, role) = (election.partition, (*election.group).into(), election.label().into());
    observer::Place { partition, group, role }
}

impl Observation {
    /// Reads elections up to the end of each log, from as far back as needed to know the leaders. If the timestamps are not reliable, it reads
    /// for a moment longer. The time limit is for the whole reading. `has_changes`: the changes that are read are wanted too.
    ///
    /// # Errors
    /// As for [`find`](Self::find).
    pub(in crate::command) async fn of_leaders(look: &Look, has_changes: bool) -> Result<Self> {
        let (limit, mut span) = (Limit::of_all(look.timeout), FIRST_SPAN);
        let mut observation = Self::find(look, limit, |_| {}).await?;
        // When the roles were looked for, it was not known whose changes are wanted.
        let mut is_wanted = has_changes;
        while is_wanted || observation.seen().any(|seen| seen.wants_earlier_records()) {
            span = if is_wanted { span } else { span.saturating_mul(FURTHER) };
            observation.begin(span, BTreeMap::new())?;
            observation.read_to_end(limit, |_| {}).await?;
            is_wanted = false;
        }
        observation.listen(limit.due()).await?;
        Ok(observation)
    }

    /// Reads the whole journals, up to their ends when the reading begins.
    ///
    /// # Errors
    /// As for [`find`](Self::find).
    pub(in crate::command) async fn read_history(&mut self) -> Result<()> {
        let limit = Limit::of_each_answer(self.look.timeout);
        self.begin(FIRST_SPAN, self.found.places.iter().map(|place| (place.partition, 0)).collect())?;
        self.read_to_end(limit, |_| {}).await?;
        self.listen(limit.due()).await
    }

    /// Finds the role of `--role`, or otherwise all roles of the group, by the hellos of the candidates. `tell` gets why Kafka does not answer, at
    /// once.
    ///
    /// # Errors
    /// There is no such role; Kafka refuses permanently, the log can't be read, or there is [`NoAnswer`](crate::exit::NoAnswer) in time.
    pub(in crate::command) async fn find(look: &Look, limit: Limit, tell: fn(&str)) -> Result<Self> {
        let (mut span, none) = (FIRST_SPAN, GroupHellos::default());
        let mut observation = Self { tell, ..Self::start(look.clone(), span)? };
        loop {
            observation.read_to_end(limit, |_| {}).await?;
            let read = observation.read().ok_or_else(|| anyhow!("no topic was read"))?;
            let (election, hellos) = (&look.election, read.topic().hellos_of(&look.election.group).unwrap_or(&none));
            let is_found = match &election.role_name {
                Some(role) => hellos.find(role).is_some(),
                None => !hellos.mappings().is_empty(),
            };
            let of_hellos = |(partition, ..): &(i32, LogBounds, Offset)| *partition == Elections::PARTITION_OF_HELLOS;
            let is_whole = read.topic().begins().find(of_hellos).is_none_or(|(_, bounds, from)| from == bounds.start);
            if is_found || is_whole || span >= FARTHEST {
                observation.found =
                    FoundElections::of(election, hellos, read.partitions().try_into().unwrap_or(i32::MAX))?;
                observation.expect_elections();
                return Ok(observation);
            }
            span = FARTHEST.min(span.saturating_mul(FURTHER));
            observation.begin(span, BTreeMap::new())?;
        }
    }

    /// Begins to read the facts of this journal's elections, so many records before the end. Must be called within a runtime.
    ///
    /// # Errors
    /// The process has no free thread or descriptor.
    pub(in crate::command) fn of_facts(look: &Look, span: Offset) -> Result<Self> {
        let topic = FactsTopic::of(&look.election, None).name;
        // No group is called so: no record of a fact is an election's.
        let election = ElectionId { topic, group: String::new(), ..look.election.clone() };
        Ok(Self { is_optional: true, ..Self::start(Look { election, ..look.clone() }, span)? })
    }

    fn start(look: Look, span: Offset) -> Result<Self> {
        let (following, topics) = begun(&look, span, BTreeMap::new())?;
        let (changes, found) = (Changes::new(), FoundElections::default());
        Ok(Self { found, changes, following, topics, look, is_optional: false, tell: |_| {} })
    }

    /// Reads the topic anew: so many records before the end of each log, or from these offsets of some partitions.
    ///
    /// # Errors
    /// The process has no free thread or descriptor.
    pub(in crate::command) fn begin(&mut self, span: Offset, from: BTreeMap<i32, Offset>) -> Result<()> {
        // Over another connection: on this one a question waits for the fetch of what comes next.
        (self.following, self.topics) = begun(&self.look, span, from)?;
        self.changes.clear();
        Ok(())
    }

    /// The topic, once it is known.
    fn read(&self) -> Option<&ReadTopic> {
        self.topics.topic(&self.look.election.topic)
    }

    /// An election, as far as it was read.
    pub(in crate::command) fn election(&self, place: &observer::Place) -> Option<&Election> {
        self.read()?.topic().election(place)
    }

    /// The same, to note what no record says of it.
    pub(in crate::command) fn election_mut(&mut self, place: &observer::Place) -> Option<&mut Election> {
        self.topics.topics_mut().next()?.1.election_mut(place)
    }

    /// The bounds of all logs when the reading began.
    pub(in crate::command) fn bounds(&self) -> BTreeMap<i32, LogBounds> {
        let begins = self.read().into_iter().flat_map(|read| read.topic().begins());
        begins.map(|(partition, bounds, _)| (partition, bounds)).collect()
    }

    /// Why no broker answers now, or none that leads a partition of the elections.
    pub(in crate::command) fn outage(&self) -> Option<&str> {
        let read = self.read();
        let trouble = |place: &observer::Place| read?.trouble(Some(place.partition));
        let is_all = self.found.places.iter().all(|place| trouble(place).is_some());
        let of_partition = || self.found.places.iter().find_map(trouble).filter(|_| is_all);
        self.topics.outage().map(|(_, why)| why).or_else(of_partition)
    }

    /// Whether the embedded broker is read.
    pub(in crate::command) const fn is_embedded(&self) -> bool {
        self.look.access.embedded.is_some()
    }

    /// The elections, as far as they were read; in the order of the roles' numbers.
    pub(in crate::command) fn seen(&self) -> impl Iterator<Item = Seen<'_>> {
        let topic = self.read().map(ReadTopic::topic);
        self.found.elections.iter().filter_map(move |election| {
            let (read, other_groups) = (topic?.election(&in_topic(election))?, topic?.other_groups());
            Some(Seen { election, read, other_groups })
        })
    }

    /// The only election, or the first one.
    ///
    /// # Errors
    /// There is none.
    pub(in crate::command) fn first(&self) -> Result<Seen<'_>> {
        self.seen().next().ok_or_else(|| anyhow!("no election was read"))
    }

    /// There is an election of each role, whether there is a record of it or not.
    fn expect_elections(&mut self) {
        let Some((_, topic)) = self.topics.topics_mut().next() else { return };
        for place in &self.found.places {
            topic.expect(place);
        }
    }

    /// Whether all partitions with elections were read up to the ends that they had when the reading began.
    pub(in crate::command) fn is_at_end(&self) -> bool {
        self.read().is_some_and(|read| read.is_live() && read.partitions() > 0) && self.trouble().is_none()
    }

    /// Why the partition of an election, or that of the hellos, can't be read now.
    fn trouble(&self) -> Option<&str> {
        let partitions = self.found.places.iter().map(|place| place.partition).chain([Elections::PARTITION_OF_HELLOS]);
        let read = self.read()?;
        { partitions }.find_map(|partition| read.trouble(Some(partition)))
    }

    /// Reads on up to the ends of the logs, and passes on the records.
    ///
    /// # Errors
    /// Kafka refuses permanently, the log can't be read, or there is [`NoAnswer`](crate::exit::NoAnswer) in time.
    pub(in crate::command) async fn read_to_end(
        &mut self,
        limit: Limit,
        mut handle: impl FnMut(&LogRecord),
    ) -> Result<()> {
        let (mut due, mut missing_since) = (limit.due(), None);
        while !self.is_at_end() {
            let is_missing = self.topics.is_complete() && self.read().is_none();
            if is_missing && self.is_optional {
                return Ok(());
            } else if is_missing && clock::now().since(*missing_since.get_or_insert_with(clock::now)) >= NEW_WITHIN {
                bail!(self.following.reader.missing(&self.look.election.topic));
            }
            // For a moment a topic that was just made is missing, has no partitions, or these no leaders.
            let is_stuck = self.topics.is_complete();
            let until = if is_stuck { due.min(clock::now() + ASK_AGAIN) } else { due };
            if let Some((record, _)) = self.next(Some(until)).await? {
                if let Some((_, record)) = &record {
                    handle(record);
                }
                due = if is_stuck { due } else { limit.due() };
            } else if clock::now() >= due {
                bail!(self.following.no_answer(limit, self.outage().or(self.trouble())));
            } else {
                self.following.reader.perform(TopicsAction::Ask);
            }
        }
        Ok(())
    }

    /// What comes next; `None` if nothing comes before `due`, if that is limited.
    ///
    /// # Errors
    /// Kafka refuses permanently, or the log can't be read or was cut.
    pub(in crate::command) async fn next(&mut self, due: Option<Time>) -> Result<Option<News>> {
        let event = self.following.next_event(due).await?;
        event.map(|event| self.handle(event)).transpose()
    }

    /// Handles what there is already.
    ///
    /// # Errors
    /// As for [`next`](Self::next).
    pub(in crate::command) async fn catch_up(&mut self) -> Result<()> {
        while self.next(Some(clock::now())).await?.is_some() {}
        Ok(())
    }

    fn handle(&mut self, event: TopicsEvent) -> Result<News> {
        let at = read_at();
        let TopicsEvent::Read { reading, topic, partition, record } = event else {
            self.handle_answer(at, event)?;
            return Ok((None, None));
        };
        let judged = self.topics.read(at, (reading, &topic), partition, &record);
        let own = judged.filter(|of_record| self.found.places.contains(of_record.election.place()));
        let own = own.map(|JudgedRecord { judged, election, .. }| {
            for change in &judged.changes {
                let sentence = wording::change(election.observer(), change);
                let sentence = self.found.of_role(election.place(), sentence);
                note(&mut self.changes, record.written_ms.unwrap_or(at.wall_ms), sentence);
            }
            (election.place().clone(), judged)
        });
        Ok((Some((partition, record)), own))
    }

    /// Handles what is no record.
    fn handle_answer(&mut self, at: ReadAt, event: TopicsEvent) -> Result<()> {
        let topic = &self.look.election.topic;
        if let TopicsEvent::Undecodable(why) = &event {
            bail!("{why}");
        } else if let (TopicsEvent::Down(_), true) = (&event, self.is_embedded()) {
            bail!("the embedded broker is gone, and its journal with it");
        }
        if let Some(line) = to_be_told(&self.topics, &event) {
            (self.tell)(&line);
        }
        let (was_known, trouble) = (self.read().is_some(), self.trouble().map(str::to_owned));
        pass_on(&mut self.topics, at, event)?;
        self.following.perform(&mut self.topics);
        match self.read() {
            Some(read) if read.is_another() => bail!(cut(topic)),
            Some(read) => read.trouble(None).map_or(Ok(()), |why| Err(anyhow!("{why}")))?,
            None if was_known => bail!(cut(topic)),
            None => {}
        }
        if let Some(why) = self.trouble().filter(|why| Some(*why) != trouble.as_deref()) {
            (self.tell)(&format!("warning: {why}"));
        }
        self.expect_elections();
        Ok(())
    }

    /// Asks Kafka at once if a leader has been silent for too long since it answered last.
    pub(in crate::command) fn ask_about_silences(&mut self, at: ReadAt) {
        self.topics.ask_about_silences(at);
        self.following.perform(&mut self.topics);
    }

    /// Notes the leaders' silences, which no record reports.
    pub(in crate::command) fn note_silences(&mut self) {
        let at = read_at();
        self.ask_about_silences(at);
        let Some((_, topic)) = self.topics.topics_mut().next() else { return };
        for place in &self.found.places {
            let election = topic.election_mut(place);
            if let Some(sentence) = election.and_then(|election| election.untold_silence(at)).map(sentence) {
                note(&mut self.changes, at.wall_ms, self.found.of_role(place, sentence));
            }
        }
    }

    /// Reads on for a moment, if the timestamps don't tell whether the leaders are silent.
    async fn listen(&mut self, deadline: Time) -> Result<()> {
        let observers = self.seen().map(|seen| seen.read.observer());
        let Some(doubt) = doubt(observers, self.is_embedded()) else { return Ok(()) };
        let until = deadline.min(clock::now() + doubt);
        while self.seen().any(|seen| seen.observer().doubts_timestamps(read_at()).is_some()) {
            if self.next(Some(until)).await?.is_none() {
                break;
            }
            // Records of other elections show what time it is, too.
            self.topics.note_latest();
        }
        Ok(())
    }

    /// Reads the claim of the only election's current term if it is before the records that were read: its time is the start of the lead.
    pub(in crate::command) async fn learn_claim(&mut self) {
        let [election] = self.found.elections.as_slice() else { return };
        let (place, until) = (in_topic(election), clock::now() + CLAIM_WITHIN);
        let Some(term) = self.election(&place).and_then(Election::unread_claim) else { return };
        // The claim is read over a connection of its own, because on the other one the long fetch for the next record would delay it.
        let topic: Box<str> = self.look.election.topic.as_str().into();
        let Ok(mut aside) = Following::start(&self.look.access, [&*topic], None) else { return };
        aside.reader.perform(TopicsAction::ReadFrom { topic, partition: place.partition, offset: term, reading: 0 });
        // If the claim was just deleted, or the broker is slow, the start of the lead stays unknown.
        while let Ok(Some(event)) = aside.next_event(Some(until)).await {
            if let TopicsEvent::Read { record, .. } = event {
                if let Some(election) = self.election_mut(&place).filter(|_| record.offset == term) {
                    election.learn_claim(term, record.written_ms);
                }
                return;
            }
        }
    }
}

/// Begins to read the topic of these elections.
fn begun(look: &Look, span: Offset, from: BTreeMap<i32, Offset>) -> Result<(Following, Topics)> {
    let Look { election, access, .. } = look;
    let following = Following::start(access, [election.topic.as_str()], None)?;
    Ok((following, Topics::new(span, MOST_ROLES).of_group(&election.group, from)))
}

fn cut(topic: &str) -> String {
    format!("topic {topic}: its history was cut or made anew meanwhile; run the command again")
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

    use super::*;

    /// An election whose leader, with a lease of a second, was heard three seconds ago, when Kafka answered last.
    pub(in crate::command) struct HeardBefore(ElectionId, Topic, BTreeSet<String>);

    impl HeardBefore {
        pub(in crate::command) fn new() -> Self {
            let election = ElectionId { group: "g".into(), topic: "t".into(), partition: 0, role: 0, role_name: None };
            let (now, ago) = (read_at(), Duration::from_secs(3));
            let at = ReadAt { now: now.now - ago, wall_ms: now.wall_ms - 3_000 };
            let mut topic = Topic::new(1).of_group("g");
            topic.begin(at, 0, LogBounds { asked: at.now, start: 0, end: 0 }, 0);
            topic.expect(&in_topic(&election));
            topic.caught_up();
            let claim = br#"{"v":1,"kind":"claim","member":"m","name":"m","seq":1,"after":-1,"lease_ms":1000}"#;
            let (key, value) = (Some(Box::from(&b"g/0"[..])), Some(Box::from(&claim[..])));
            let record = LogRecord { offset: 0, key, value, written_ms: Some(at.wall_ms), is_brokers_time: true };
            topic.read(at, 0, &record);
            topic.was_read_to_end(0, at.now);
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
