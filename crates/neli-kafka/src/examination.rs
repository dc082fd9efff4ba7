//! The questions of `doctor` to Kafka: what would a candidate find? They neither join a group nor write a record.
//!
//! Each question blocks, at most for the time limit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use neli_proto::topic::{TopicFacts, TopicIdentity};
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::metadata::{Metadata, MetadataPartition};

use crate::access::Access;
use crate::bootstrap_servers::{address, admit, ask_servers};
use crate::clock;
use crate::context::{KafkaContext, explain};
use crate::election::Elections;
use crate::error_class::{self, ErrorClass, Layer, code_of, has_no_coordinator, plain};
use crate::librdkafka::{
    AdminError, GroupDescription, NewTopic, Rights, Variation, create_topic, describe_group, describe_topic, settings,
};
use crate::questions::{AnswerLimit, ByBroker, ask_all};
use crate::reading::OTHER_ADDRESSES;
use crate::threads;
use crate::topic::{self, TopicError};

/// The time between two checks for librdkafka's messages.
const LOOK: Duration = Duration::from_millis(20);
/// The time between two questions while a group has no coordinator.
const COORDINATOR_RETRY: Duration = Duration::from_millis(100);
/// The setting that limits the size of a record.
const LONGEST_RECORD: &str = "max.message.bytes";

/// A connection to Kafka.
pub struct Examination {
    consumer: Arc<BaseConsumer<KafkaContext>>,
    /// The addresses of the brokers, by their ids, as one of them tells. It may count on one that has died: what is up, only its own answer shows.
    brokers: BTreeMap<i32, String>,
    /// Those that have not answered.
    silent: BTreeSet<i32>,
    timeout: Duration,
}

/// What this user can see of a topic.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TopicSeen {
    /// Its partitions.
    pub partitions: Vec<PartitionSeen>,
    /// Its id; none if no broker reports it.
    pub identity: Option<TopicIdentity>,
    /// The operations on it that this user is allowed; none if no broker reports them.
    pub rights: Option<Rights>,
    /// The facts that R0 judges; none while a partition has no leader.
    pub facts: Option<TopicFacts>,
    /// The largest record batch that it accepts, in bytes.
    pub longest_record: Option<u64>,
}

/// A partition.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PartitionSeen {
    /// Its number.
    pub number: i32,
    /// Whether it has a leader that has not failed to answer.
    pub is_led: bool,
    /// The number of its replicas.
    pub replicas: usize,
    /// The number of replicas that are in sync, without those on a broker that has not answered.
    pub in_sync: usize,
}

/// Why a fact is unknown.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum NotAnswered {
    /// This user lacks the right to it.
    Forbidden,
    /// Another reason.
    Other(String),
}

impl Examination {
    /// Connects to Kafka. With a topic, it asks for that topic's metadata only; otherwise for those of all topics.
    ///
    /// # Errors
    ///
    /// The layer that fails, and the reason in one line.
    pub fn start(access: &Access, topic: Option<&str>, timeout: Duration) -> Result<Self, (Layer, String)> {
        let consumer = BaseConsumer::from_config_and_context(&access.reader(), KafkaContext::new(access));
        let consumer = consumer.map_err(|error| (Layer::Client, explain(&error)))?;
        let consumer: Arc<BaseConsumer<KafkaContext>> = Arc::new(consumer);
        let (answer, answered) = mpsc::channel();
        let (asked, of_topic) = (Arc::clone(&consumer), topic.map(str::to_owned));
        let ask = move || {
            // The receiver is gone if the reason was clear before the answer came.
            let _ = answer.send(asked.fetch_metadata(of_topic.as_deref(), timeout).map(|metadata| brokers(&metadata)));
        };
        threads::start("neli-asker", ask).map_err(|error| (Layer::Connection, crate::text::reason(&error)))?;
        let begun = clock::now();
        let mut is_all_down = false;
        loop {
            match answered.try_recv() {
                Ok(Ok(brokers)) => {
                    let mut servers = ask_servers(topic, &consumer);
                    let admitted = admit(&mut servers, consumer.client(), begun);
                    admitted.map_err(|why| (Layer::Cluster, why))?;
                    return Ok(Self { consumer, brokers, silent: BTreeSet::new(), timeout });
                }
                Ok(Err(error)) => return Err(no_answer(consumer.context(), code_of(&error))),
                Err(mpsc::TryRecvError::Disconnected) => {
                    return Err(no_answer(consumer.context(), RDKafkaErrorCode::Fail));
                }
                Err(mpsc::TryRecvError::Empty) => {}
            }
            if let Some(Err(error)) = consumer.poll(LOOK) {
                if let Some(unreachable) = permanent(consumer.context(), &error) {
                    return Err(unreachable);
                }
                is_all_down |= error.rdkafka_error_code() == Some(RDKafkaErrorCode::AllBrokersDown);
            }
            if is_all_down && clock::now().since(begun) >= OTHER_ADDRESSES {
                return Err(no_answer(consumer.context(), RDKafkaErrorCode::AllBrokersDown));
            }
        }
    }

    /// The number of brokers, up or not.
    pub fn brokers(&self) -> usize {
        self.brokers.len()
    }

    /// The ids and the addresses of the brokers that have not answered.
    pub fn silent(&self) -> impl Iterator<Item = (i32, &str)> {
        self.silent.iter().filter_map(|broker| Some((*broker, self.brokers.get(broker)?.as_str())))
    }

    /// Asks every broker for a topic, which need not exist, to note which of them are silent. Each server that speaks Kafka's protocol answers that,
    /// whatever this user may see.
    pub fn ask_brokers(&mut self, topic: &str) {
        let (client, timeout) = (self.consumer.client(), self.timeout);
        let questions: ByBroker = self.brokers.keys().map(|broker| (*broker, BTreeSet::new())).collect();
        let ask = |broker, _: &BTreeSet<i32>| describe_topic(client, topic, Some(broker), timeout, Variation::None);
        let mut silent = BTreeSet::new();
        ask_all(&questions, ask, |broker, _, answer| {
            if answer.is_err_and(|code| ErrorClass::from(code).is_missing_answer()) {
                silent.insert(broker);
            }
        });
        self.silent = silent;
    }

    /// A broker that has not failed to answer.
    fn broker(&self) -> Option<i32> {
        self.brokers.keys().copied().find(|broker| !self.silent.contains(broker))
    }

    fn seen(&self, partition: &MetadataPartition) -> PartitionSeen {
        let answers = |broker: &i32| !self.silent.contains(broker);
        PartitionSeen {
            number: partition.id(),
            is_led: partition.leader() >= 0 && answers(&partition.leader()),
            replicas: partition.replicas().len(),
            in_sync: partition.isr().iter().filter(|broker| answers(broker)).count(),
        }
    }

    /// The topic of these elections, and the operations on it that this user is allowed; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// This user may not see whether it exists, or there is no answer.
    pub fn topic(&self, elections: &Elections) -> Result<Option<TopicSeen>, NotAnswered> {
        let (client, name) = (self.consumer.client(), &elections.topic);
        let unanswered = |code| NotAnswered::Other(plain(code));
        let metadata = client.fetch_metadata(Some(name), self.timeout).map_err(|error| unanswered(code_of(&error)))?;
        let Some(topic) = metadata.topics().iter().find(|topic| topic.name() == name) else { return Ok(None) };
        match topic.error().map(RDKafkaErrorCode::from).map(|code| (ErrorClass::from(code), code)) {
            Some((ErrorClass::UnknownTopic, _)) => return Ok(None),
            Some((ErrorClass::TopicForbidden, _)) => return Err(NotAnswered::Forbidden),
            None | Some((ErrorClass::Moving, _)) => {}
            Some((_, code)) => return Err(unanswered(code)),
        }
        let mut leaders = topic.partitions().iter().map(MetadataPartition::leader);
        let broker = leaders.find(|leader| *leader >= 0 && !self.silent.contains(leader));
        let broker = broker.or_else(|| self.broker()).ok_or_else(no_broker)?;
        let described = describe_topic(client, name, Some(broker), self.timeout, Variation::IncludeRights).ok();
        let facts = topic::facts(client, elections, &mut AnswerLimit::new(self.timeout, self.timeout)).ok();
        let longest = settings(client, Some(name), &[LONGEST_RECORD], broker, self.timeout).unwrap_or_default();
        let longest = longest.into_iter().find(|(setting, _)| setting == LONGEST_RECORD);
        Ok(Some(TopicSeen {
            partitions: topic.partitions().iter().map(|partition| self.seen(partition)).collect(),
            identity: described.map(|described| described.identity),
            rights: described.and_then(|described| described.rights),
            facts,
            longest_record: longest.and_then(|(_, value)| value?.parse().ok()),
        }))
    }

    /// The topic as this user could create it. It only asks Kafka, and creates no topic.
    ///
    /// # Errors
    ///
    /// The reason why not, in one line, and the topic as it was refused last.
    pub fn try_to_create<'a>(
        &self,
        elections: &Elections,
        topic: NewTopic<'a>,
    ) -> Result<NewTopic<'a>, (String, NewTopic<'a>)> {
        let client = self.consumer.client();
        let create = |topic: &NewTopic<'a>| match create_topic(client, topic, Variation::ValidateOnly, self.timeout) {
            Err(AdminError { code: RDKafkaErrorCode::TopicAlreadyExists, .. }) => Ok(()),
            outcome => outcome,
        };
        let accepted = topic::create_as_accepted(client, topic, self.broker(), self.timeout, create);
        accepted.map_err(|(error, topic)| {
            let reason = match topic::not_created(error, &elections.topic, self.consumer.context().access.words) {
                TopicError::Refused(error) => error,
                TopicError::Transient(error) => format!("topic \"{}\": {}", topic.name, error.text),
            };
            (reason, topic)
        })
    }

    /// The consumer group of this name, which may not exist.
    ///
    /// # Errors
    ///
    /// This user has no right to it, or the broker does not answer.
    pub fn group(&self, group: &str) -> Result<GroupDescription, NotAnswered> {
        let until = clock::now() + self.timeout;
        loop {
            match describe_group(self.consumer.client(), group, self.timeout) {
                // For the first group of a cluster, Kafka first creates the topic of the groups.
                Err(code) if has_no_coordinator(code) && clock::now() < until => {
                    thread::park_timeout(COORDINATOR_RETRY);
                }
                described => return described.map_err(|code| not_answered(code.into())),
            }
        }
    }

    /// The values of a broker's settings with these names.
    ///
    /// # Errors
    ///
    /// This user has no right to them, or the broker does not answer.
    pub fn broker_settings(&self, names: &[&str]) -> Result<Vec<(String, Option<String>)>, NotAnswered> {
        let broker = self.broker().ok_or_else(no_broker)?;
        let settings = settings(self.consumer.client(), None, names, broker, self.timeout).map_err(not_answered)?;
        // Without the right, the settings are missing from the answer, and there is no error.
        if settings.is_empty() { Err(NotAnswered::Forbidden) } else { Ok(settings) }
    }
}

fn no_broker() -> NotAnswered {
    NotAnswered::Other("no broker answers".to_owned())
}

fn brokers(metadata: &Metadata) -> BTreeMap<i32, String> {
    metadata.brokers().iter().map(|broker| (broker.id(), address(broker))).collect()
}

fn not_answered(error: AdminError) -> NotAnswered {
    let is_forbidden = error.code == RDKafkaErrorCode::ClusterAuthorizationFailed
        || matches!(error.code.into(), ErrorClass::GroupForbidden | ErrorClass::TopicForbidden);
    if is_forbidden { NotAnswered::Forbidden } else { NotAnswered::Other(error.text) }
}

/// The reason if the error is final: a refused login or a certificate that is not accepted. `None` for all other errors.
fn permanent(context: &KafkaContext, error: &KafkaError) -> Option<(Layer, String)> {
    let code = code_of(error);
    let words = context.error_text(code);
    if ErrorClass::from(code) == ErrorClass::Login {
        return context.login_failed(&words).err().map(|why| (Layer::Login, why));
    }
    context.permanent_failure().map(|why| (Layer::Tls, why))
}

fn no_answer(context: &KafkaContext, code: RDKafkaErrorCode) -> (Layer, String) {
    let layer = context.trouble().map_or(Layer::Connection, |why| error_class::layer_of(&why));
    (layer, context.no_answer(&code.into()))
}
