//! What librdkafka's error codes mean to us: of some two hundred, the few that change what we do.

use rdkafka::error::RDKafkaErrorCode;

/// What an error means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Meaning {
    /// One connection fails, or one answer doesn't come.
    Connection,
    /// The offset to be read is out of range, or the log was truncated below it.
    Cut,
    /// This user may not do that to the group.
    GroupForbidden,
    /// The broker does not accept who we say we are.
    Login,
    /// The partition has no leader, or another one than we thought: librdkafka is finding out.
    Moving,
    /// No broker is connected.
    NoBroker,
    /// None of these.
    Other,
    /// This user may not do that to the topic.
    TopicForbidden,
    /// A batch can't be decoded: codec, checksum, format or size.
    Undecodable,
    /// The broker knows no such topic or partition.
    UnknownTopic,
}

impl From<RDKafkaErrorCode> for Meaning {
    fn from(code: RDKafkaErrorCode) -> Self {
        use RDKafkaErrorCode as Code;
        let is = |codes: &[Code]| codes.contains(&code);
        if is(&[Code::BrokerTransportFailure, Code::OperationTimedOut, Code::Resolve, Code::SSL]) {
            Self::Connection
        } else if is(&[Code::AutoOffsetReset]) {
            Self::Cut
        } else if is(&[Code::GroupAuthorizationFailed]) {
            Self::GroupForbidden
        } else if is(&[Code::Authentication, Code::SaslAuthenticationFailed]) {
            Self::Login
        } else if is(&[Code::LeaderNotAvailable, Code::NotLeaderForPartition]) {
            Self::Moving
        } else if is(&[Code::AllBrokersDown]) {
            Self::NoBroker
        } else if is(&[Code::TopicAuthorizationFailed]) {
            Self::TopicForbidden
        } else if is(&[
            Code::BadCompression,
            Code::BadMessage,
            Code::InvalidMessage,
            Code::MessageSizeTooLarge,
            Code::NotImplemented,
            Code::UnsupportedCompressionType,
        ]) {
            Self::Undecodable
        } else if is(&[Code::UnknownPartition, Code::UnknownTopic, Code::UnknownTopicOrPartition]) {
            Self::UnknownTopic
        } else {
            Self::Other
        }
    }
}

/// A code in librdkafka's words for it, without the name of the code and of who reported it.
#[must_use]
pub fn plain(code: RDKafkaErrorCode) -> String {
    // `TopicAuthorizationFailed (Broker: Topic authorization failed)`
    let full = code.to_string();
    let words = full.split_once(" (").and_then(|(_, words)| words.strip_suffix(')')).unwrap_or(&full);
    words.trim_start_matches("Broker: ").trim_start_matches("Local: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_said_in_words() {
        assert_eq!(plain(RDKafkaErrorCode::TopicAuthorizationFailed), "Topic authorization failed");
        assert_eq!(plain(RDKafkaErrorCode::AllBrokersDown), "All broker connections are down");
    }
}
