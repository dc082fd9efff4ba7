//! Whether this user may join the consumer group, asked of its coordinator before a member's join is answered.
//!
//! The coordinator refuses a join only after the member has connected and found the coordinator. A lone candidate does not wait for that, and
//! its job would have started by then. A description of the group contains the user's rights to it, even if the group does not exist.
//!
//! The question has a client of its own, which ends with it: in librdkafka a question to a coordinator that can't be reached can't be taken back.

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
use crate::kafka::error_class::ErrorClass;
use crate::kafka::group::refusal;
use crate::kafka::librdkafka::{GroupDescription, Rights, describe_group, topic_identity};

/// How long a client waits for its answer. The candidate does not wait that long.
const ANSWER: Duration = Duration::from_secs(16);
/// The limit of a question whose answer does not matter.
const REACHED_WITHIN: Duration = Duration::from_secs(2);
/// Between two questions while the group has no coordinator.
const RETRY: Duration = Duration::from_millis(50);

/// A question about the right to the group, asked by a thread of its own. Dropping it ends the thread once the present question is over.
pub(super) struct GroupQuestion {
    answer: mpsc::Receiver<Answer>,
    is_dropped: Arc<AtomicBool>,
}

/// The coordinator's answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Answer {
    /// The user may join, or the coordinator does not say.
    MayJoin,
    /// It refuses for good: one line that names the right.
    Refused(String),
}

impl GroupQuestion {
    /// Asks again and again until there is an answer.
    ///
    /// # Errors
    ///
    /// The machine has no thread to spare.
    pub(super) fn ask(access: &Access, elections: &Elections) -> Result<Self, std::io::Error> {
        let (sender, answer) = mpsc::channel();
        let is_dropped = Arc::new(AtomicBool::new(false));
        let (access, elections, is_over) = (access.clone(), elections.clone(), Arc::clone(&is_dropped));
        thread::Builder::new().name("neli-group-right".to_owned()).spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let context = KafkaContext::new(&access);
                // The reader and the producer have the same configuration, and report what is wrong with it.
                let Ok(client) = BaseConsumer::from_config_and_context(&access.reader(None), context) else { return };
                let client: Arc<BaseConsumer<KafkaContext>> = Arc::new(client);
                reach_broker(&client, &elections.topic);
                let description = describe_group(client.client(), &elections.group, ANSWER);
                if let Some(answer) = answer_of(&description, &elections.group) {
                    // If the candidate does not wait any more, a forbidden join is still refused by the coordinator.
                    let _ = sender.send(answer);
                    return;
                }
                thread::park_timeout(RETRY);
            }
        })?;
        Ok(Self { answer, is_dropped })
    }

    /// The answer, if it comes within this time.
    pub(super) fn wait(self, time: Duration) -> Option<Answer> {
        self.answer.recv_timeout(time).ok()
    }
}

impl Drop for GroupQuestion {
    fn drop(&mut self) {
        self.is_dropped.store(true, Ordering::Relaxed);
    }
}

/// Asks the controller something beside the question: librdkafka then connects to it at once. Otherwise it closes its first connection when it has
/// learnt which brokers there are, and takes another one only 11 ms later.
fn reach_broker(client: &Arc<BaseConsumer<KafkaContext>>, topic: &str) {
    let (client, topic) = (Arc::clone(client), topic.to_owned());
    // What comes of it does not matter. Without this thread the answer takes a little longer.
    let _ = thread::Builder::new().name("neli-reach".to_owned()).spawn(move || {
        let _ = topic_identity(client.client(), &topic, None, REACHED_WITHIN);
    });
}

/// The answer in a description of the group, or in its error; `None` if the question is to be asked again.
fn answer_of(description: &Result<GroupDescription, RDKafkaErrorCode>, group: &str) -> Option<Answer> {
    use RDKafkaErrorCode::{CoordinatorLoadInProgress, CoordinatorNotAvailable, NotCoordinator};
    let refused = match description {
        // A broker that tells rights lists DESCRIBE here, since the user has just described the group. Without it, the broker tells none.
        Ok(GroupDescription { rights: Some(Rights { describe: true, read: false, .. }), .. }) => {
            refusal(RDKafkaErrorCode::GroupAuthorizationFailed, "READ", group)
        }
        Ok(_) => None,
        Err(CoordinatorLoadInProgress | CoordinatorNotAvailable | NotCoordinator) => return None,
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

    /// Brokers before 2.3 do not tell rights, and others of other makes may tell none.
    #[test]
    fn a_broker_that_tells_no_rights_refuses_nobody() {
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
