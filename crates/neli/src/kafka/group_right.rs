//! Asks the group's coordinator whether this user may join the consumer group, before a member's join is answered.
//!
//! The coordinator refuses a join only after the member has connected and found the coordinator. A lone candidate does not wait for that,
//! and would have started its job by then. The description of a group contains the user's rights to it, even if the group does not exist.
//!
//! The question has a client of its own, because librdkafka can't cancel a question to a coordinator that it can't reach: the question ends
//! with its client.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::RDKafkaErrorCode;

use crate::election::Elections;
use crate::kafka::access::Access;
use crate::kafka::context::KafkaContext;
use crate::kafka::error_class::{ErrorClass, has_no_coordinator};
use crate::kafka::group::refusal;
use crate::kafka::librdkafka::{GroupDescription, Rights, describe_group, topic_identity};

/// How long the client waits for its answer. The candidate waits for less.
const ANSWER: Duration = Duration::from_secs(16);
/// The time limit of a question that only makes librdkafka connect.
const REACHED_WITHIN: Duration = Duration::from_secs(2);
/// The time between two questions while the group has no coordinator.
const RETRY: Duration = Duration::from_millis(50);

/// A question about the right to the group, asked by a thread of its own. Dropping it ends the thread after the question in flight.
pub(super) struct GroupQuestion {
    answer: mpsc::Receiver<Answer>,
    is_dropped: Arc<AtomicBool>,
}

/// The coordinator's answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Answer {
    /// The user may join, or the coordinator does not report the user's rights.
    MayJoin,
    /// The user may not join: one line that names the missing right.
    Refused(String),
}

impl GroupQuestion {
    /// Asks until there is an answer.
    ///
    /// # Errors
    ///
    /// The thread can't be started.
    pub(super) fn ask(access: &Access, elections: &Elections) -> Result<Self, std::io::Error> {
        let (sender, answer) = mpsc::channel();
        let is_dropped = Arc::new(AtomicBool::new(false));
        let (access, elections, is_over) = (access.clone(), elections.clone(), Arc::clone(&is_dropped));
        thread::Builder::new().name("neli-group-right".to_owned()).spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let context = KafkaContext::new(&access);
                // The reader and the producer have the same configuration, and report its errors.
                let Ok(client) = BaseConsumer::from_config_and_context(&access.reader(None), context) else { return };
                let client: Arc<BaseConsumer<KafkaContext>> = Arc::new(client);
                reach_broker(&client, &elections.topic);
                let description = describe_group(client.client(), &elections.group, ANSWER);
                if let Some(answer) = answer_of(&description, &elections.group) {
                    // An error means that the candidate does not wait any more. If the join is forbidden, the coordinator refuses it later.
                    let _ = sender.send(answer);
                    return;
                }
                thread::park_timeout(RETRY);
            }
        })?;
        Ok(Self { answer, is_dropped })
    }

    /// Waits for the answer, at most for this time.
    pub(super) fn wait(self, time: Duration) -> Option<Answer> {
        self.answer.recv_timeout(time).ok()
    }
}

impl Drop for GroupQuestion {
    fn drop(&mut self) {
        self.is_dropped.store(true, Ordering::Relaxed);
    }
}

/// Sends a question to the controller, so that librdkafka connects to it at once. Otherwise librdkafka closes its first connection when it
/// has learnt which brokers exist, and opens another one only 11 ms later.
fn reach_broker(client: &Arc<BaseConsumer<KafkaContext>>, topic: &str) {
    let (client, topic) = (Arc::clone(client), topic.to_owned());
    // The answer is not used. If there is no thread, the group's description only takes a little longer.
    let _ = thread::Builder::new().name("neli-reach".to_owned()).spawn(move || {
        let _ = topic_identity(client.client(), &topic, None, REACHED_WITHIN);
    });
}

/// The answer according to a description of the group, or to its error; `None` if the question must be repeated.
fn answer_of(description: &Result<GroupDescription, RDKafkaErrorCode>, group: &str) -> Option<Answer> {
    let refused = match description {
        // A broker that reports rights includes DESCRIBE here, since the user has just described the group. A list without DESCRIBE means
        // that the broker reports none.
        Ok(GroupDescription { rights: Some(Rights { describe: true, read: false, .. }), .. }) => {
            refusal(RDKafkaErrorCode::GroupAuthorizationFailed, "READ", group)
        }
        Ok(_) => None,
        Err(code) if has_no_coordinator(*code) => return None,
        Err(code) if matches!((*code).into(), ErrorClass::Connection | ErrorClass::NoBroker) => return None,
        Err(code) => refusal(*code, "DESCRIBE", group),
    };
    Some(refused.map_or(Answer::MayJoin, Answer::Refused))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(rights: Option<Rights>) -> Option<Answer> {
        answer_of(&Ok(GroupDescription { rights, members: 0, assignor: String::new() }), "g")
    }

    #[test]
    fn a_group_is_refused_for_the_right_that_is_missing() {
        let refused = |right: &str| {
            let line = format!(
                "group \"g\": this user has no right to {right} it; allow READ on it (which implies DESCRIBE), or use --elect log"
            );
            Some(Answer::Refused(line))
        };
        let describe = Rights { describe: true, ..Rights::default() };
        assert_eq!(described(Some(describe)), refused("READ"));
        assert_eq!(described(Some(Rights { read: true, ..describe })), Some(Answer::MayJoin));
        let forbidden = RDKafkaErrorCode::GroupAuthorizationFailed;
        assert_eq!(answer_of(&Err(forbidden), "g"), refused("DESCRIBE"));
    }

    /// Brokers before 2.3 do not report rights, and other implementations of Kafka may report an empty list.
    #[test]
    fn a_broker_that_reports_no_rights_refuses_no_user() {
        assert_eq!(described(None), Some(Answer::MayJoin));
        assert_eq!(described(Some(Rights::default())), Some(Answer::MayJoin));
        assert_eq!(answer_of(&Err(RDKafkaErrorCode::UnsupportedFeature), "g"), Some(Answer::MayJoin));
    }

    #[test]
    fn a_group_without_a_coordinator_is_asked_for_again() {
        for code in [RDKafkaErrorCode::CoordinatorNotAvailable, RDKafkaErrorCode::OperationTimedOut] {
            assert_eq!(answer_of(&Err(code), "g"), None);
        }
    }
}
