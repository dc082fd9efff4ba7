//! The Kafka clients of a process, which all its elections share: one producer, one reader of every partition in use, one member of the
//! consumer group.
//!
//! A session reports each event to the election that it concerns, or to the process ([`SessionEvent`]). It decides nothing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::time::Duration;

use neli_proto::hello::{Hello, LAST_HELLO_TAKES};
use neli_proto::kafka::Event;
use neli_proto::precedence::Assignment;
use neli_proto::record::Record;
use neli_proto::time::Time;
use neli_proto::topic::{self, JudgedTopic, TopicFacts, TopicIdentity};
use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::access::Access;
use crate::clock;
use crate::election::{ElectionId, Elections};
use crate::error_class::of_refused_append;
use crate::event::{GroupEvent, KafkaEvent, Refusal, SessionEvent};
use crate::facts::{self, FactsSettings, FactsTopic};
use crate::group::Member;
use crate::producer::Producer;
use crate::questions::REPLACED_AFTER;
use crate::reading::Source;
use crate::text::{ClientError, reason};
use crate::threads::note_started;
use crate::topic::partitions_changed;

pub use router::{KafkaReaders, Router};

mod router;

/// How many events of Kafka may wait for the session. A thread that sends another one waits until there is room.
const EVENTS_WAITING: usize = 1024;
/// How many of them one call of [`Session::poll`] takes.
const READ_AT_ONCE: usize = 64;
/// One producer, one reader and one member of the group for all elections of a process.
pub struct Session {
    /// A record that was not acknowledged is given up this long after it was sent.
    timeout: Duration,
    producer: Producer,
    /// The roles for which the producer was replaced already, if they want that: another role has wanted it.
    behind: BTreeSet<u32>,
    readers: KafkaReaders,
    pub(crate) router: Router,
    /// The topic that has as many partitions as the readers use, once that is known; and how many it was said to have later.
    counted: Option<TopicIdentity>,
    grown_to: i32,
    /// Since when each role waits for the topic to be judged by its configuration; and whether the question is out.
    unjudged: BTreeMap<u32, Time>,
    is_judging: bool,
    /// What was said last of what may lose the topic's records: that its configuration could not be read yet, or what it says.
    told_risks: Option<bool>,
    /// The session timeout of a broker that was reported last.
    broker_timeout: Option<Duration>,
    /// When the question is asked again that could not be for lack of a thread, if so.
    judges_again_at: Option<Time>,
    /// When the readers are replaced, if no broker answers that of all partitions until then; none while one answers.
    readers_replaced_at: Option<Time>,
    /// When the producer and the member are replaced, if the question for the topic's id is open until then; none if there is no such question.
    producer_replaced_at: Option<Time>,
    /// The member of the group, which stands for all roles; none while this process is not in the group.
    member: Option<Member>,
    /// The number of members so far, which is the number of the last one.
    members: u32,
    /// The members that have not left yet.
    leaving_members: u32,
    /// The roles that stand in the group.
    in_group: BTreeSet<u32>,
    /// The roles that this process leads.
    leading: BTreeSet<u32>,
    /// The partitions that the group has assigned to the member; none before the group has settled.
    held: Option<BTreeSet<i32>>,
    group_member: Option<String>,
    /// Why the group does not take the member, if it does not.
    refusal: Option<Refusal>,
    /// When the process tries again to make a member, if it could not.
    joins_again_at: Option<Time>,
    has_unused_partitions: bool,
    /// Until when the last hello is awaited, which was handed over and is not known to be in the log.
    last_hello_until: Option<Time>,
    events: Receiver<KafkaEvent>,
    event_sender: Sender<KafkaEvent>,
    outputs: VecDeque<SessionEvent>,
}

impl Session {
    /// Connects the producer; nothing is read from `source` before `read_anew`. A record that was not acknowledged is given up `timeout` after it
    /// was sent.
    ///
    /// # Errors
    ///
    /// librdkafka's reason about a property, or about a certificate or login that it can't use; never a secret's value.
    pub fn start(source: Source, timeout: Duration) -> Result<Self, ClientError> {
        let (event_sender, events) = mpsc::channel(EVENTS_WAITING);
        let producer = Producer::start(&source.access, &source.elections, timeout, event_sender.clone())?;
        let router = Router::new(source.elections.roles.clone());
        Ok(Self {
            timeout,
            producer,
            behind: BTreeSet::new(),
            readers: KafkaReaders::new(source, event_sender.clone()),
            router,
            counted: None,
            grown_to: 0,
            unjudged: BTreeMap::new(),
            is_judging: false,
            told_risks: None,
            broker_timeout: None,
            judges_again_at: None,
            readers_replaced_at: None,
            producer_replaced_at: None,
            member: None,
            members: 0,
            leaving_members: 0,
            in_group: BTreeSet::new(),
            leading: BTreeSet::new(),
            held: None,
            group_member: None,
            refusal: None,
            joins_again_at: None,
            has_unused_partitions: false,
            last_hello_until: None,
            events,
            event_sender,
            outputs: VecDeque::new(),
        })
    }

    /// How this session connects to Kafka.
    pub const fn access(&self) -> &Access {
        &self.readers.source.access
    }

    /// The topic that has the journals.
    pub(crate) fn topic(&self) -> &str {
        &self.readers.source.elections.topic
    }

    /// The election of a role, once it is known how many partitions the topic has.
    pub fn election(&self, role: u32) -> Option<ElectionId> {
        self.router.partitions().map(|partitions| self.readers.source.elections.election(role, partitions))
    }

    /// Waits until [`poll`](Self::poll) may have something. May be dropped and called again at any time.
    pub async fn wait(&mut self) {
        if !self.outputs.is_empty() {
            return;
        }
        // The session itself has a sender, so the channel is never closed.
        if let Some(event) = self.events.recv().await {
            self.handle_kafka_event(event);
        }
    }

    /// The next event, in their order; `None` if there is none at present, or if many records of other elections were read instead.
    pub fn poll(&mut self) -> Option<SessionEvent> {
        for _ in 0..READ_AT_ONCE {
            if !self.outputs.is_empty() {
                break;
            }
            let event = self.events.try_recv().ok()?;
            self.handle_kafka_event(event);
        }
        self.outputs.pop_front()
    }

    // ---- the journal ------------------------------------------------------------------------------------------------

    /// Reads the role's journal anew: [`Event::Answered`] follows, to be answered by [`read_from`](Self::read_from); and the judgement of
    /// R0, [`Event::TopicJudged`].
    pub(crate) fn read_anew(&mut self, role: u32) {
        let now = clock::now();
        self.router.read_anew(now, role);
        self.follow_router();
        if self.access().embedded.is_some() {
            // Its topics have no settings.
            self.tell(role, Event::TopicJudged { cut_is_harmless: false, gaps_are_markers: false });
        } else {
            self.unjudged.insert(role, now);
            self.judge();
        }
    }

    /// Reads the role's journal from this offset on.
    pub(crate) fn read_from(&mut self, role: u32, offset: i64) {
        self.router.read_from(clock::now(), role, offset);
        self.follow_router();
    }

    /// Asks soon where the log ends.
    pub(crate) fn look_for_end(&mut self, role: u32) {
        self.router.look_for_end(role);
        self.follow_router();
    }

    /// Reads nothing more, for any role.
    pub fn stop_reading(&mut self) {
        self.router.stop();
        self.follow_router();
    }

    /// Hands over a record of the role, and returns at once whether that was possible: its result is reported with its `seq`. If the queue is full,
    /// the record too large, or the topic not known yet, [`SessionEvent::AppendRefused`] and [`Event::Undelivered`] follow.
    pub(crate) fn send(&mut self, role: u32, record: &Record) -> bool {
        let done = match self.election(role) {
            Some(election) => self.producer.send(&election, record.seq, &election.key(), Some(&record.to_bytes())),
            None => Err("the topic is not known yet".to_owned()),
        };
        self.is_handed_over(role, record.seq, done)
    }

    /// Returns whether a record was handed over. Reports why it was not, unless that is a missing right, which is refused.
    fn is_handed_over(&mut self, role: u32, seq: Option<u64>, done: Result<(), String>) -> bool {
        let Err(words) = done else { return true };
        self.outputs.extend(of_refused_append(&words).map(|error| SessionEvent::AppendRefused { error }));
        if let Some(seq) = seq {
            self.tell(role, Event::Undelivered { seq, may_be_in_log: false });
        }
        false
    }

    /// Asks for the id of the topic with this name until there is an answer: [`Event::TopicIdentified`], for all roles.
    pub(crate) fn identify(&mut self) {
        self.producer.identify(self.router.partitions());
        if self.access().embedded.is_none() {
            self.producer_replaced_at.get_or_insert_with(|| clock::now() + REPLACED_AFTER);
        }
    }

    /// Replaces the producer that the role knows, unless it was replaced for another role already.
    ///
    /// After a topic was deleted and created again, a producer may never reach the partitions' new leaders, because it remembers the old ones
    /// (librdkafka's issue 4898). A new producer remembers nothing.
    ///
    /// If it can't be made, for lack of a thread for example, the one before goes on until another replacement is wanted.
    pub(crate) fn renew_producer(&mut self, role: u32) {
        if !self.behind.remove(&role) && self.replace_producer() {
            self.behind = self.readers.source.elections.roles.clone().filter(|other| *other != role).collect();
        }
    }

    /// Replaces the producer. Returns whether that was possible.
    fn replace_producer(&mut self) -> bool {
        let Source { access, elections, .. } = &self.readers.source;
        match Producer::start(access, elections, self.timeout, self.event_sender.clone()) {
            Ok(producer) => self.producer = producer,
            Err(error) => {
                let warning = format!("the journal's producer can't be replaced; the one before goes on: {error}");
                self.outputs.push_back(SessionEvent::Warning(warning));
                return false;
            }
        }
        // Questions to the old producer will not be answered, whichever role asked them.
        self.is_judging = false;
        self.judge();
        self.identify();
        true
    }

    // ---- how it works -----------------------------------------------------------------------------------------------

    fn tell(&mut self, role: u32, event: Event) {
        self.outputs.push_back(SessionEvent::Election { role, event });
    }

    pub(crate) fn handle_kafka_event(&mut self, event: KafkaEvent) {
        match event {
            KafkaEvent::Delivered { role, seq } => self.tell(role, Event::Delivered { seq }),
            KafkaEvent::Group { member, event } => self.handle_group_event(member, event),
            KafkaEvent::Identified { asked, identity, count, partitions } => {
                self.producer_replaced_at = None;
                self.identified(asked, identity, count, &partitions);
            }
            KafkaEvent::NotDelivered { role, seq, may_be_in_log, .. } => {
                self.tell(role, Event::Undelivered { seq, may_be_in_log });
            }
            KafkaEvent::Partitions(partitions) => self.found(partitions),
            KafkaEvent::Process(event) => {
                if let SessionEvent::BrokerSession(session) = event
                    && self.broker_timeout.replace(session) == Some(session)
                {
                    return;
                } else if let SessionEvent::HelloDelivered = event {
                    self.last_hello_until = None;
                } else if let SessionEvent::Outage { error } = &event {
                    let at = self.readers_replaced_at.unwrap_or_else(|| clock::now() + REPLACED_AFTER);
                    self.readers_replaced_at = error.is_some().then_some(at);
                }
                self.outputs.push_back(event);
            }
            KafkaEvent::Read { reading, partition, offset, record } => {
                self.router.read(clock::now(), reading, partition, offset, record);
                self.follow_router();
            }
            // A session's readers don't read for display.
            KafkaEvent::ReadForDisplay { .. } => {}
            KafkaEvent::Reading { reading, partition, event } => {
                self.router.handle(clock::now(), reading, partition, &event);
                self.follow_router();
                // The answer to the regular question about the log. One about the configuration may have failed.
                if let Event::Answered { .. } = event {
                    self.judge();
                }
            }
            KafkaEvent::Topic { asked, facts } => self.judged(asked, &facts),
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        let again_at = [self.readers.poll_timeout(), self.judges_again_at, self.joins_again_at];
        [self.readers_replaced_at, self.producer_replaced_at].into_iter().chain(again_at).flatten().min()
    }

    /// Tries again what could not be done, and replaces the clients that have had no answer for long.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        let is_due = |at: Option<Time>| at.is_some_and(|at| now >= at);
        if is_due(self.readers.poll_timeout()) {
            self.follow_router();
        }
        if is_due(self.judges_again_at) {
            self.judge();
        }
        if is_due(self.joins_again_at) {
            self.join();
        }
        if is_due(self.readers_replaced_at) {
            self.readers_replaced_at = Some(now + REPLACED_AFTER);
            self.router.renew_all(now);
            self.follow_router();
        }
        if is_due(self.producer_replaced_at) {
            self.producer_replaced_at = Some(now + REPLACED_AFTER);
            if self.replace_producer() {
                self.behind.clear();
            }
            self.replace_member();
        }
    }

    /// Does what the router wants of the readers, and reports its events.
    fn follow_router(&mut self) {
        self.readers.follow(&mut self.router);
        self.outputs.extend(std::iter::from_fn(|| self.router.poll()));
    }
}

// ---- what a session does with the topic of facts -------------------------------------------------------------------

impl Session {
    /// Starts a reader of the topic of facts: [`SessionEvent::Facts`] follows for each number that it is sent. `reads_at_once`: it also reads, and
    /// judges, the topic now, since the first of these may be long after. It ends when the sender is dropped, or when Kafka has refused.
    ///
    /// # Errors
    ///
    /// The machine has no thread to spare.
    pub fn facts_reader(
        &self,
        topic: FactsTopic,
        settings: FactsSettings,
        reads_at_once: bool,
    ) -> io::Result<std::sync::mpsc::Sender<u32>> {
        facts::start_reader(self.readers.source.clone(), topic, settings, self.event_sender.clone(), reads_at_once)
    }

    /// Hands over a fact under this key, and returns at once: its result is reported with `id`.
    ///
    /// # Errors
    ///
    /// The queue is full, or the fact too large; then nothing more is reported for this `id`.
    pub fn append_fact(&self, id: u32, topic: &str, key: &str, payload: &[u8]) -> Result<(), String> {
        self.producer.append_fact(id, topic, key, payload)
    }
}

// ---- hellos ---------------------------------------------------------------------------------------------------------

impl Session {
    /// Hands over a hello for all roles of this process, and returns at once whether that was possible. That of a candidate with a single role has
    /// a sequence number, and its result is reported as that of a record. Of any other, and of the last one, only the delivery is reported, by
    /// [`SessionEvent::HelloDelivered`].
    pub(crate) fn say_hello(&mut self, hello: &Hello) -> bool {
        let seq = hello.seq.filter(|_| !hello.leaves);
        let elections = &self.readers.source.elections;
        // With one partition each role is in that of the hellos.
        let first = elections.election(elections.roles.start, 1);
        let done = self.producer.send(&first, seq, &first.hello_key(), Some(&hello.to_bytes()));
        if hello.leaves && done.is_ok() {
            self.last_hello_until = Some(clock::now() + LAST_HELLO_TAKES);
        }
        self.is_handed_over(first.role, seq, done)
    }

    /// Until when the process waits with its exit for its last hello; none if it does not wait.
    pub fn awaits_last_hello_until(&self) -> Option<Time> {
        self.last_hello_until.filter(|until| clock::now() < *until)
    }
}

// ---- the topic: its number of partitions, its id, and its settings for R0 -------------------------------------------

impl Session {
    /// A reading that was not given the number of partitions has found it.
    fn found(&mut self, partitions: i32) {
        match self.router.partitions() {
            Some(known) if known != partitions => self.refuse_count(known, partitions),
            Some(_) => {}
            None => {
                self.router.found(partitions);
                // Later readers need not find it.
                self.readers.source.partitions = Some(partitions);
            }
        }
    }

    /// With another number of partitions a role is in another partition, and two candidates with different numbers could both lead it.
    fn refuse_count(&mut self, known: i32, partitions: i32) {
        let error = partitions_changed(&self.readers.source.elections.topic, known, partitions);
        self.outputs.push_back(SessionEvent::Refused { role: None, error });
    }

    /// Whether the roles stay in their partitions, now that the topic has this number of them. They do if partitions were added to the same topic,
    /// because all running candidates keep the number that they began with. They don't in a topic that was created again: candidates that start
    /// use its number.
    fn stays(&mut self, identity: TopicIdentity, count: i32) -> bool {
        let elections = &self.readers.source.elections;
        let Some(known) = self.router.partitions().filter(|_| elections.roles.end > 1) else { return true };
        if identity == TopicIdentity::Missing {
            return true;
        }
        if count == known {
            self.counted = Some(identity);
            return true;
        }
        if self.counted != Some(identity) {
            self.refuse_count(known, count);
            return false;
        }
        let moves = |role| Elections::partition_of(role, known) != Elections::partition_of(role, count);
        // A smaller number comes from a broker that has not learnt of the new partitions yet.
        if count > known.max(self.grown_to) && elections.roles.clone().any(moves) {
            self.grown_to = count;
            let warning = format!(
                "topic \"{}\" had {known} partitions and has {count} now: each role stays in its partition while \
                 this process runs, and candidates that start now may be refused, because they look for roles in \
                 the new ones; to use the new ones, stop all \
                 candidates, and start them again",
                elections.topic
            );
            self.outputs.push_back(SessionEvent::Warning(warning));
        }
        true
    }

    fn identified(&mut self, asked: Time, identity: TopicIdentity, count: i32, partitions: &[i32]) {
        if !self.stays(identity, count) {
            return;
        }
        // A missing topic concerns every partition.
        let concerns = |partition| identity == TopicIdentity::Missing || partitions.contains(&partition);
        let counted = self.router.partitions().unwrap_or(1);
        for role in self.readers.source.elections.roles.clone() {
            if concerns(Elections::partition_of(role, counted)) {
                self.tell(role, Event::TopicIdentified { asked, identity });
            }
        }
    }

    /// Asks for the topic's settings for R0, once for all roles that wait for them.
    fn judge(&mut self) {
        if self.is_judging || self.unjudged.is_empty() {
            self.judges_again_at = None;
            return;
        }
        let asked = self.producer.judge();
        self.note_question(clock::now(), asked);
    }

    /// Without a thread the question is asked again later: until it is answered, no role of this process can lead.
    fn note_question(&mut self, now: Time, asked: io::Result<()>) {
        self.is_judging = asked.is_ok();
        if let Some(error) = note_started(&mut self.judges_again_at, now, asked) {
            let warning = format!("the topic's settings can't be asked for, for lack of a thread: {}", reason(&error));
            self.outputs.push_back(SessionEvent::Warning(warning));
        }
    }

    /// An answer does not count for a role whose reading began after the question was asked: it may be about an earlier topic of this name.
    fn judged(&mut self, asked: Time, facts: &TopicFacts) {
        self.is_judging = false;
        let (answered, later): (Vec<u32>, Vec<u32>) =
            self.unjudged.keys().partition(|role| self.unjudged[role] <= asked);
        for role in answered {
            if !facts.are_incomplete() {
                self.unjudged.remove(&role);
            }
            self.judge_for(role, facts);
        }
        if !later.is_empty() {
            self.judge();
        }
    }

    /// R0, in each reading of a role.
    fn judge_for(&mut self, role: u32, facts: &TopicFacts) {
        let Source { access, elections, .. } = &self.readers.source;
        let place = JudgedTopic { bootstrap: &access.bootstrap, topic: &elections.topic };
        match topic::judge(facts, place) {
            Ok(risks) => {
                // Each role's reading is judged, and each time that it begins.
                let are_incomplete = facts.are_incomplete();
                if !risks.is_empty() && self.told_risks.replace(are_incomplete) != Some(are_incomplete) {
                    let warning = format!("topic {:?}: {}", elections.topic, topic::warning(&risks));
                    self.outputs.push_back(SessionEvent::Warning(warning));
                }
                let (cut_is_harmless, gaps_are_markers) = (facts.cut_is_harmless(), facts.gaps_are_markers());
                self.tell(role, Event::TopicJudged { cut_is_harmless, gaps_are_markers });
            }
            Err(refusal) => {
                let error = format!("topic {:?}: {refusal}", elections.topic);
                self.outputs.push_back(SessionEvent::Refused { role: Some(role), error });
            }
        }
    }
}

// ---- the membership in the consumer group: one member stands for all roles of the process ---------------------------

/// The time between two tries to make a member.
const JOINED_AGAIN_AFTER: Duration = Duration::from_secs(5);

impl Session {
    /// Adds the role to the group. The process joins the group with its first role.
    pub(crate) fn join_group(&mut self, role: u32) {
        self.in_group.insert(role);
        if self.member.is_some() {
            self.tell_standing(role);
        } else {
            self.join();
        }
    }

    /// Removes the role from the group. The process leaves the group with its last role. `alone`: no other candidate waits for it there.
    pub(crate) fn leave_group(&mut self, role: u32, alone: bool) {
        self.in_group.remove(&role);
        if self.in_group.is_empty() {
            self.leave(alone);
        }
    }

    /// Sets whether this process leads the role. While it leads any role, its member does not wait for a rebalance.
    pub(crate) fn set_leads(&mut self, role: u32, leads: bool) {
        let has_changed = if leads { self.leading.insert(role) } else { self.leading.remove(&role) };
        if has_changed {
            self.tell_member_whether_it_leads();
        }
    }

    /// Whether a member has not left yet. If the process ends before, the other members' next rebalance waits for a whole session.
    pub const fn is_leaving_group(&self) -> bool {
        self.leaving_members > 0
    }

    /// Joins the group. Without a thread or a client for a member this is tried again later: no election depends on the group.
    fn join(&mut self) {
        let Source { access, elections, .. } = &self.readers.source;
        let in_use = elections.partitions_in_use(self.router.partitions().unwrap_or(1));
        (self.held, self.group_member, self.has_unused_partitions) = (None, None, false);
        self.members += 1;
        match Member::join(access, elections, in_use, self.members, self.event_sender.clone()) {
            Ok(member) => {
                (self.member, self.joins_again_at) = (Some(member), None);
                self.set_refusal(None);
                self.tell_member_whether_it_leads();
            }
            Err(error) => {
                self.joins_again_at = Some(clock::now() + JOINED_AGAIN_AFTER);
                let line = format!("group \"{}\": it can't be joined: {error}", elections.group);
                self.set_refusal(Some(Refusal { words: error, line }));
            }
        }
    }

    /// Reports whether the group takes the member, if that has changed.
    fn set_refusal(&mut self, refusal: Option<Refusal>) {
        if self.refusal != refusal {
            self.refusal.clone_from(&refusal);
            let (line, words) = refusal.map(|Refusal { line, words }| (line, words.into_boxed_str())).unzip();
            self.tell_members(|_| Some(Event::GroupRefuses { words: words.clone() }));
            self.outputs.push_back(SessionEvent::Group { refusal: line });
        }
    }

    fn tell_member_whether_it_leads(&self) {
        if let Some(member) = &self.member {
            let holds = self.held.as_ref().is_some_and(|held| !held.is_empty());
            member.set_leads(!self.leading.is_empty() || holds);
        }
    }

    fn leave(&mut self, alone: bool) {
        self.joins_again_at = None;
        self.set_refusal(None);
        if let Some(member) = self.member.take() {
            self.leaving_members += 1;
            member.leave(alone);
        }
    }

    /// A new member joins, with a client that can perhaps connect to the coordinator.
    fn replace_member(&mut self) {
        if self.member.is_some() {
            self.leave(true);
            self.join();
        }
    }

    fn handle_group_event(&mut self, member: u32, event: GroupEvent) {
        // What a former member has reported before it left no longer counts.
        let is_current = self.member.is_some() && member == self.members;
        match event {
            GroupEvent::Left => self.leaving_members = self.leaving_members.saturating_sub(1),
            _ if !is_current => {}
            GroupEvent::Assigned { partitions } => self.assigned(&partitions),
            GroupEvent::Named { id } => {
                self.group_member = Some(id.clone());
                self.tell_members(|_| Some(Event::Named { id: id.as_str().into() }));
            }
            GroupEvent::Refused(refusal) => self.set_refusal(Some(refusal)),
            GroupEvent::Revoked { partitions, lost } => {
                if let Some(held) = &mut self.held {
                    held.retain(|partition| !partitions.contains(partition));
                }
                self.tell_member_whether_it_leads();
                let event = if lost { Event::AssignmentChanged(Assignment::Unknown) } else { Event::Revoked };
                self.tell_members(|of| partitions.contains(&of).then(|| event.clone()));
            }
            // A member that is refused has no id either, though the coordinator answers it.
            GroupEvent::Unanswered if self.refusal.is_some() => {}
            GroupEvent::Unanswered => self.replace_member(),
            GroupEvent::UnusedPartitions => {
                self.has_unused_partitions = true;
                self.tell_members(|_| Some(Event::UnusedPartitions));
            }
        }
    }

    fn assigned(&mut self, added: &BTreeSet<i32>) {
        self.set_refusal(None);
        let before = self.held.take().unwrap_or_default();
        self.tell_members(|of| match (before.contains(&of), added.contains(&of)) {
            (true, _) => None,
            (false, true) => Some(Event::AssignmentChanged(Assignment::Own)),
            (false, false) => Some(Event::AssignmentChanged(Assignment::Elsewhere)),
        });
        self.held = Some(before.union(added).copied().collect());
        self.tell_member_whether_it_leads();
    }

    /// Reports to each role in the group what has changed for its partition.
    fn tell_members(&mut self, event: impl Fn(i32) -> Option<Event>) {
        let count = self.router.partitions().unwrap_or(1);
        for role in self.in_group.clone() {
            if let Some(event) = event(Elections::partition_of(role, count)) {
                self.tell(role, event);
            }
        }
    }

    /// If the process is already in the group, a role that is added gets the last report again.
    fn tell_standing(&mut self, role: u32) {
        let partition = Elections::partition_of(role, self.router.partitions().unwrap_or(1));
        let assignment = self.held.as_ref().map(|held| {
            Event::AssignmentChanged(if held.contains(&partition) { Assignment::Own } else { Assignment::Elsewhere })
        });
        let name = self.group_member.as_deref().map(|id| Event::Named { id: id.into() });
        let unused = self.has_unused_partitions.then_some(Event::UnusedPartitions);
        let words = self.refusal.as_ref().map(|refusal| refusal.words.as_str().into());
        let refusal = words.map(|words| Event::GroupRefuses { words: Some(words) });
        for event in [name, unused, assignment, refusal].into_iter().flatten() {
            self.tell(role, event);
        }
    }
}

#[cfg(test)]
mod tests;
