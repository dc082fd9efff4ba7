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

/// Why Kafka refuses to append a record, in Kafka's words and with what to do about it; `None` for what is no refusal: a
/// connection that fails, a leader that has moved, a topic that is gone, a right that is missing. `words` are librdkafka's,
/// or those of [`plain`].
#[must_use]
pub fn of_refused_append(words: &str) -> Option<String> {
    use RDKafkaErrorCode as Code;
    let words = words.trim_start_matches("Broker: ");
    let said_elsewhere = [
        Code::FencedLeaderEpoch,
        Code::LeaderNotAvailable,
        Code::NetworkException,
        Code::NotLeaderForPartition,
        Code::TopicAuthorizationFailed,
        Code::UnknownLeaderEpoch,
        Code::UnknownTopicOrPartition,
    ];
    if words.starts_with("Local: ") || said_elsewhere.into_iter().any(|code| plain(code) == words) {
        return None;
    }
    let is = |code| plain(code) == words;
    let advice = match () {
        () if is(Code::MessageSizeTooLarge) => "; max.message.bytes must be at least 4096 on the topic",
        () if is(Code::InvalidTimestamp) => {
            "; set this machine's clock right, or message.timestamp.type=LogAppendTime on the topic"
        }
        () if is(Code::NotEnoughReplicas) || is(Code::NotEnoughReplicasAfterAppend) => {
            "; fewer replicas are in sync than the topic's min.insync.replicas: bring the brokers back that are down"
        }
        () => "",
    };
    Some(format!("{words}{advice}"))
}

/// What a trouble with a certificate means, in one line; `None` for any other trouble. librdkafka does not say why a
/// certificate was not accepted.
#[must_use]
pub fn of_certificate(trouble: &str) -> Option<String> {
    // `ssl://kafka:9093/bootstrap: SSL handshake failed: error:0A000086:SSL routines::certificate verify failed: ...`
    let (broker, words) = trouble.split_once(": ")?;
    let told = |what: &str, words: &str| Some(format!("{broker}: {what} ({})", words.trim()));
    if let Some((before, _)) = words.split_once("certificate verify failed") {
        return told(
            "the broker's certificate is not accepted: it has expired, names another host, or is by an authority that \
             ssl.ca.location does not hold",
            &format!("{before}certificate verify failed"),
        );
    }
    let is_alert = words.contains(" alert ") && (words.contains("certificate") || words.contains("unknown ca"));
    let ours = "the broker does not accept our certificate: there is none (ssl.certificate.location, ssl.key.location), it \
                has expired, or is by an authority that the broker does not know";
    if is_alert { told(ours, words) } else { None }
}

/// Whether a login that failed may succeed when it is tried again: librdkafka gives the same code when the connection was
/// lost in the middle of it.
#[must_use]
pub fn is_worth_another_login(words: &str) -> bool {
    words.contains("handshake failed: Local: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_said_in_words() {
        assert_eq!(plain(RDKafkaErrorCode::TopicAuthorizationFailed), "Topic authorization failed");
        assert_eq!(plain(RDKafkaErrorCode::AllBrokersDown), "All broker connections are down");
    }

    #[test]
    fn a_refusal_is_told_from_other_reasons_not_to_append() {
        let told = of_refused_append("Broker: Not enough in-sync replicas").unwrap();
        assert!(told.starts_with("Not enough in-sync replicas; ") && told.contains("min.insync.replicas"), "{told}");
        for code in [RDKafkaErrorCode::MessageSizeTooLarge, RDKafkaErrorCode::InvalidTimestamp] {
            assert!(of_refused_append(&plain(code)).unwrap().contains("; "), "{code}");
        }
        let policy = plain(RDKafkaErrorCode::PolicyViolation);
        assert_eq!(of_refused_append(&policy), Some(policy));
        for words in ["Broker: Not leader for partition", "Local: Timed out", "Broker: Topic authorization failed"] {
            assert_eq!(of_refused_append(words), None);
        }
    }

    #[test]
    fn a_trouble_with_a_certificate_is_told_from_others() {
        let theirs = "ssl://kafka:9093/bootstrap: SSL handshake failed: error:0A000086:SSL routines::certificate verify \
                      failed: broker certificate could not be verified, verify that ssl.ca.location is correctly configured";
        let told = of_certificate(theirs).unwrap();
        assert!(told.starts_with("ssl://kafka:9093/bootstrap: the broker's certificate is not accepted"), "{told}");
        assert!(told.ends_with("SSL routines::certificate verify failed)"), "{told}");
        for alert in ["sslv3 alert bad certificate", "tlsv13 alert certificate required", "tlsv1 alert unknown ca"] {
            let told =
                of_certificate(&format!("ssl://kafka:9093/1: Receive failed: error:0A000416:SSL routines::{alert}"));
            assert!(told.is_some_and(|told| told.contains("our certificate") && told.contains(alert)), "{alert}");
        }
        for other in ["kafka:9093/1: Connect to ipv4#10.0.0.1:9093 failed: Connection refused", "no answer"] {
            assert_eq!(of_certificate(other), None);
        }
    }

    #[test]
    fn a_login_that_was_cut_off_is_told_from_one_that_was_refused() {
        let cut_off = "SASL PLAIN mechanism handshake failed: Local: Timed out: broker's supported mechanisms: ";
        assert!(is_worth_another_login(cut_off));
        for refused in [
            "SASL GSSAPI mechanism handshake failed: Broker: Unsupported SASL mechanism: broker's supported mechanisms: PLAIN",
            "SASL authentication error: Authentication failed: Invalid username or password",
        ] {
            assert!(!is_worth_another_login(refused), "{refused}");
        }
    }
}
