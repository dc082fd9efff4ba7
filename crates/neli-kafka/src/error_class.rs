//! The meaning of librdkafka's error codes: there are some two hundred, and few of them change what neli does.

use rdkafka::error::{KafkaError, RDKafkaErrorCode};

/// The meaning of an error.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ErrorClass {
    /// One connection fails, or one answer is missing.
    Connection,
    /// The offset to be read is out of range, or the log was truncated below it.
    Cut,
    /// This user lacks a right to the group.
    GroupForbidden,
    /// The broker rejects our login.
    Login,
    /// The partition has no leader, or its leader has moved; librdkafka is looking for it.
    Moving,
    /// No broker is connected.
    NoBroker,
    /// Any other error.
    Other,
    /// This user lacks a right to the topic.
    TopicForbidden,
    /// A batch can't be decoded: codec, checksum, format or size.
    Undecodable,
    /// librdkafka does not know this partition's leader: the partition may have none for now, or may not exist. The metadata show which.
    UnknownPartition,
    /// The broker does not know this topic or partition.
    UnknownTopic,
}

impl ErrorClass {
    /// Whether there was no answer at all.
    pub(super) const fn is_missing_answer(self) -> bool {
        matches!(self, Self::Connection | Self::Login | Self::NoBroker)
    }
}

impl From<RDKafkaErrorCode> for ErrorClass {
    #[expect(clippy::wildcard_enum_match_arm, reason = "some two hundred codes have no meaning here")]
    fn from(code: RDKafkaErrorCode) -> Self {
        use RDKafkaErrorCode as Code;
        match code {
            // librdkafka drops a broker and the requests to it when it learns that the broker has another id or does not exist.
            Code::BrokerTransportFailure
            | Code::DestroyBroker
            | Code::OperationTimedOut
            | Code::Resolve
            | Code::SSL
            | Code::TimedOutQueue => Self::Connection,
            Code::AutoOffsetReset => Self::Cut,
            Code::GroupAuthorizationFailed => Self::GroupForbidden,
            Code::Authentication | Code::SaslAuthenticationFailed => Self::Login,
            Code::LeaderNotAvailable | Code::NotLeaderForPartition => Self::Moving,
            Code::AllBrokersDown => Self::NoBroker,
            Code::TopicAuthorizationFailed => Self::TopicForbidden,
            Code::BadCompression
            | Code::BadMessage
            | Code::InvalidMessage
            | Code::MessageSizeTooLarge
            | Code::NotImplemented
            | Code::UnsupportedCompressionType => Self::Undecodable,
            Code::UnknownPartition => Self::UnknownPartition,
            Code::UnknownTopic | Code::UnknownTopicOrPartition => Self::UnknownTopic,
            _ => Self::Other,
        }
    }
}

/// Whether a group has no coordinator for now.
pub(super) const fn has_no_coordinator(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode::{CoordinatorLoadInProgress, CoordinatorNotAvailable, NotCoordinator};
    matches!(code, CoordinatorLoadInProgress | CoordinatorNotAvailable | NotCoordinator)
}

/// The code of an error; `Fail` for an error of rust-rdkafka itself, which has none.
pub(super) fn code_of(error: &KafkaError) -> RDKafkaErrorCode {
    error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail)
}

/// librdkafka's text for a code, without the name of the code and of the reporting function.
pub(super) fn plain(code: RDKafkaErrorCode) -> String {
    // `TopicAuthorizationFailed (Broker: Topic authorization failed)`
    let full = code.to_string();
    let words = full.split_once(" (").and_then(|(_, words)| words.strip_suffix(')')).unwrap_or(&full);
    words.trim_start_matches("Broker: ").trim_start_matches("Local: ").to_owned()
}

/// Kafka's reason for refusing to append a record, with advice. `None` if the error is not such a refusal: a failed connection, a moved
/// leader, a missing topic, a missing right. `words` is librdkafka's text, or that of [`plain`].
pub(super) fn of_refused_append(words: &str) -> Option<String> {
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
    let advice = if is(Code::MessageSizeTooLarge) {
        "; max.message.bytes must be at least 4096 on the topic"
    } else if is(Code::InvalidTimestamp) {
        "; set this machine's clock right, or message.timestamp.type=LogAppendTime on the topic"
    } else if is(Code::NotEnoughReplicas) || is(Code::NotEnoughReplicasAfterAppend) {
        "; fewer replicas are in sync than the topic's min.insync.replicas: start the brokers that are down"
    } else {
        ""
    };
    Some(format!("{words}{advice}"))
}

/// The steps of connecting to a broker; each one needs the previous one.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Layer {
    /// The client itself: a file of TLS can't be used, for example.
    Client,
    /// The connection.
    Connection,
    /// TLS.
    Tls,
    /// The login.
    Login,
    /// All bootstrap servers belong to one cluster.
    Cluster,
}

/// The step that fails with this error; `trouble` is librdkafka's text or ours.
pub(super) fn layer_of(trouble: &str) -> Layer {
    // `ssl://kafka:9093/bootstrap: Connection refused`
    let words = trouble.split_once(": ").map_or(trouble, |(_, words)| words).to_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
    if trouble.contains(WITHOUT_ANSWER) {
        Layer::Connection
    } else if has(&["sasl", "token endpoint"]) {
        Layer::Login
    } else if has(&["ssl", "tls", "certificate"]) {
        Layer::Tls
    } else {
        Layer::Connection
    }
}

/// The meaning of an error with a certificate, in one line; `None` for any other error. librdkafka does not report why a certificate was
/// not accepted.
pub(super) fn of_certificate(trouble: &str) -> Option<String> {
    // `ssl://kafka:9093/bootstrap: SSL handshake failed: error:0A000086:SSL routines::certificate verify failed: ...`
    let (broker, words) = trouble.split_once(": ")?;
    let message = |what: &str, words: &str| Some(format!("{broker}: {what} ({})", words.trim()));
    if let Some((before, _)) = words.split_once("certificate verify failed") {
        return message(
            "the broker's certificate is not accepted: it has expired, names another host, or is by an authority that \
             ssl.ca.location does not hold",
            &format!("{before}certificate verify failed"),
        );
    }
    let is_alert = words.contains(" alert ") && (words.contains("certificate") || words.contains("unknown ca"));
    let ours = "the broker does not accept our certificate: there is none (ssl.certificate.location, ssl.key.location), it \
                has expired, or is by an authority that the broker does not know";
    if is_alert { message(ours, words) } else { None }
}

/// What is wrong with a file of TLS of our own, in one line; `None` for any other reason why there is no client. OpenSSL's words come last.
pub(super) fn of_own_tls(reason: &str) -> Option<String> {
    // `ssl.key.location failed: ../crypto/x509/x509_cmp.c:403:X509_check_private_key error:05800074:x509 certificate routines::key values mismatch`
    // `Failed to parse ssl.keystore.location PKCS#12 file: /etc/a.p12: error:11800071:PKCS12 routines::mac verify failure`
    let (property, words) = match reason.split_once("ssl.keystore.location PKCS#12 file: ") {
        Some((_, words)) => ("ssl.keystore.location", words),
        None => reason.split_once(" failed: ")?,
    };
    let words = words.find("error:").map_or(words, |at| &words[at..]).trim();
    let what = match property.strip_prefix("ssl.")?.split_once('.')?.0 {
        "key" if words.contains("key values mismatch") => {
            "it is not the key of the certificate in ssl.certificate.location"
        }
        "key" => "it is no private key in PEM format, or ssl.key.password is not its password",
        "ca" | "certificate" => "it has no certificate in PEM format",
        "keystore" => "it is no PKCS#12 file (JKS is another format), or ssl.keystore.password is not its password",
        _ => return None,
    };
    Some(format!("property {property}: {what} ({words})"))
}

/// A part of each line about a connection that is closed without an answer, whatever the reason.
const WITHOUT_ANSWER: &str = ": it closes connections without an answer: ";

/// The possible meanings if a connection is closed before the other side has answered as a broker, or has answered a client without a login. `line`
/// is a line of librdkafka's log or an error of librdkafka; it is an error only if the closing was noticed while sending. `None` if the line is
/// about anything else.
pub(super) fn of_closed_connection(line: &str) -> Option<String> {
    /// A connection that is closed more than this number of milliseconds after it was made has answered before.
    const AT_ONCE_MS: u32 = 2_000;
    /// librdkafka's reasons for a request that it can't send because the other side has closed the connection.
    const WHILE_SENDING: [&str; 3] = ["Broken pipe", "Connection reset by peer", "Disconnected"];
    /// librdkafka's guess if the other side closes the connection during TLS.
    const DURING_TLS: &str = "connecting to a PLAINTEXT broker listener?";
    const NO_TLS: &str = "no TLS (PLAINTEXT, or SASL_PLAINTEXT with a login)";
    // A balancer, a port-forward and a broker at its limit take a connection before they close it, as a port does that expects another protocol.
    let without_answer = |broker: &str, protocol: &str| {
        Some(format!(
            "{broker}{WITHOUT_ANSWER}it expects {protocol} in the property security.protocol, or has reached a limit of connections \
             (max.connections, max.connections.per.ip), or is a balancer or port-forward with no broker behind it"
        ))
    };
    // `[thrd:kafka:9093/bootstrap]: kafka:9093/bootstrap: Disconnected: connection reset by peer (after 1ms in state APIVERSION_QUERY)`
    let line = line.split_once("]: ").map_or(line, |(_, line)| line);
    // `kafka:80/bootstrap: Receive failed: Invalid response size 1213486160 (0..100000000): increase receive.message.max.bytes (after 0ms in state
    // APIVERSION_QUERY)`: the first four bytes of the answer.
    if let Some((broker, size)) = line.split_once(": Receive failed: Invalid response size ") {
        let size: i32 = size.split(' ').next()?.parse().ok()?;
        let begins = size.to_be_bytes().escape_ascii().to_string();
        return Some(format!(
            "{broker}: it answers, but not as a broker: its answer begins with \"{begins}\"; check the port, and the property security.protocol"
        ));
    }
    if let Some((broker, why)) = line.split_once(": SSL handshake failed: ") {
        return why.contains(DURING_TLS).then(|| without_answer(broker, NO_TLS))?;
    }
    // `kafka:9093/bootstrap: Send failed: Broken pipe (after 0ms in state UP)`
    let (broker, words) = match line.split_once(": Send failed: ") {
        Some((_, why)) if !WHILE_SENDING.iter().any(|closed| why.contains(closed)) => return None,
        Some(sending) => sending,
        None => line.split_once(": Disconnected")?,
    };
    let (ms, state) = words.split_once(" (after ")?.1.split_once("ms in state ")?;
    let is_at_once = ms.parse().is_ok_and(|ms: u32| ms < AT_ONCE_MS);
    let (is_tls, is_login) = (broker.contains("ssl://"), broker.contains("sasl_"));
    if state.starts_with("APIVERSION_QUERY") && !is_tls {
        without_answer(broker, "TLS (SSL, or SASL_SSL with a login)")
    } else if state.starts_with("SSL_HANDSHAKE") {
        without_answer(broker, NO_TLS)
    } else if state.starts_with("UP") && !is_login && is_at_once {
        Some(format!(
            "{broker}: it closes each connection at once, as a port does that expects a login; set the property security.protocol (SASL_SSL, or \
             SASL_PLAINTEXT without TLS)"
        ))
    } else {
        None
    }
}

/// The endpoint's answer is shown up to this length in characters, because it may be a page of HTML.
const LONGEST_ANSWER: usize = 200;

/// Why a token endpoint (`sasl.oauthbearer.method=oidc`) gave no login token, according to librdkafka's error text; `None` if the text is about
/// something else. It is one line: the endpoint, its answer or why there was no answer, and what to check; an error if the endpoint has refused
/// the request, otherwise another request may succeed. `logged` is librdkafka's last log line about a token endpoint: it contains the endpoint's
/// address and the answer's status, which the error lacks.
pub(super) fn of_token(words: &str, logged: Option<&str>) -> Option<Result<String, String>> {
    let reason = words.strip_prefix("Failed to acquire SASL OAUTHBEARER token: ")?;
    let shown: String = reason.chars().take(LONGEST_ANSWER).collect();
    // `... token from "https://login.example.com/token": {"error":"invalid_client"} (401)`
    let logged = logged.filter(|line| line.contains(&shown)).and_then(|line| line.split_once(FROM_ENDPOINT));
    let (url, answer) = logged.and_then(|(_, rest)| rest.split_once("\": ")).unwrap_or_default();
    let status: Option<u16> = answer.rsplit_once(" (").and_then(|(_, tail)| tail.strip_suffix(')')?.parse().ok());
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let answer = status.map_or_else(|| shown.clone(), |status| format!("status {status}, {shown}"));
    // librdkafka repeats the request after these three statuses, so they are not refusals. Neither are statuses of 500 and above, which
    // mean a failure of the endpoint.
    let is_refusal = status.is_some_and(|status| (400..500).contains(&status) && ![408, 425, 429].contains(&status));
    let advice = if is_refusal {
        "sasl.oauthbearer.client.id, sasl.oauthbearer.client.secret, sasl.oauthbearer.scope and \
         sasl.oauthbearer.token.endpoint.url"
    } else {
        "that it runs, and sasl.oauthbearer.token.endpoint.url"
    };
    let why = format!("no token from the token endpoint{}: {answer}; check {advice}", host(url));
    Some(if is_refusal { Err(why) } else { Ok(why) })
}

/// A part of librdkafka's log line about a token endpoint that gave no token.
pub(super) const FROM_ENDPOINT: &str = " token from \"";

/// A blank, and host and port of a URL. The user's name, the password and the query are left out, because they may be secrets.
fn host(url: &str) -> String {
    let authority =
        url.split_once("://").map_or("", |(_, rest)| rest).split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    if host.is_empty() { String::new() } else { format!(" {host}") }
}

/// The line about a login that the broker refuses, with librdkafka's reason and advice. `was_accepted`: an earlier login
/// of this client was.
pub(super) fn of_refused_login(words: &str, asks_for_tokens: bool, was_accepted: bool) -> String {
    let advice = if asks_for_tokens {
        "that the broker accepts this provider's tokens, and sasl.oauthbearer.scope"
    } else if words.contains("Request not valid in current SASL state") {
        "security.protocol and the port: this listener asks for no login"
    } else if was_accepted {
        "sasl.username and sasl.password, which were read at the start: after a change this process has to be started again"
    } else {
        "sasl.mechanisms, sasl.username and sasl.password"
    };
    format!("{words}; check {advice}")
}

/// Whether a failed login may succeed at another attempt: librdkafka has one code for a refused login and for a connection that was lost
/// during the login.
pub(super) fn is_worth_another_login(words: &str) -> bool {
    words.contains("handshake failed: Local: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_a_description() {
        assert_eq!(plain(RDKafkaErrorCode::TopicAuthorizationFailed), "Topic authorization failed");
        assert_eq!(plain(RDKafkaErrorCode::AllBrokersDown), "All broker connections are down");
    }

    #[test]
    fn a_broker_that_was_given_up_counts_as_a_lost_connection() {
        assert_eq!(ErrorClass::from(RDKafkaErrorCode::DestroyBroker), ErrorClass::Connection);
    }

    #[test]
    fn a_refusal_is_distinguished_from_other_failures_to_append() {
        let message = of_refused_append("Broker: Not enough in-sync replicas").unwrap();
        assert!(
            message.starts_with("Not enough in-sync replicas; ") && message.contains("min.insync.replicas"),
            "{message}"
        );
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
    fn a_certificate_error_is_distinguished() {
        let theirs = "ssl://kafka:9093/bootstrap: SSL handshake failed: error:0A000086:SSL routines::certificate verify \
                      failed: broker certificate could not be verified, verify that ssl.ca.location is correctly configured";
        let message = of_certificate(theirs).unwrap();
        assert!(
            message.starts_with("ssl://kafka:9093/bootstrap: the broker's certificate is not accepted"),
            "{message}"
        );
        assert!(message.ends_with("SSL routines::certificate verify failed)"), "{message}");
        for alert in ["sslv3 alert bad certificate", "tlsv13 alert certificate required", "tlsv1 alert unknown ca"] {
            let message =
                of_certificate(&format!("ssl://kafka:9093/1: Receive failed: error:0A000416:SSL routines::{alert}"));
            assert!(
                message.is_some_and(|message| message.contains("our certificate") && message.contains(alert)),
                "{alert}"
            );
        }
        for other in ["kafka:9093/1: Connect to ipv4#10.0.0.1:9093 failed: Connection refused", "no answer"] {
            assert_eq!(of_certificate(other), None);
        }
    }

    #[test]
    fn an_error_in_a_file_of_our_own_says_what_to_check() {
        let mismatch = "ssl.key.location failed: ../crypto/x509/x509_cmp.c:403:X509_check_private_key error:05800074:x509 certificate \
                        routines::key values mismatch";
        assert_eq!(
            of_own_tls(mismatch).as_deref(),
            Some(
                "property ssl.key.location: it is not the key of the certificate in ssl.certificate.location (error:05800074:x509 \
                 certificate routines::key values mismatch)"
            )
        );
        let file = "../ssl/ssl_rsa.c:385:SSL_CTX_use_PrivateKey_file error:0A080009:SSL routines::PEM lib";
        for (reason, said) in [
            (format!("ssl.key.location failed: {file}"), "ssl.key.password"),
            (format!("ssl.certificate.location failed: {file}"), "PEM format"),
            (format!("ssl.ca.pem failed: {file}"), "PEM format"),
            (format!("Failed to parse ssl.keystore.location PKCS#12 file: /a.p12: {file}"), "ssl.keystore.password"),
            (format!("Error reading ssl.keystore.location PKCS#12 file: /a.jks: {file}"), "JKS"),
        ] {
            assert!(of_own_tls(&reason).is_some_and(|line| line.contains(said) && !line.contains("../")), "{reason}");
        }
        for other in ["ssl.cipher.suites failed: no cipher match", "`ssl.keystore.password` is mandatory"] {
            assert_eq!(of_own_tls(other), None);
        }
    }

    #[test]
    fn a_listener_that_asks_for_no_login_is_no_wrong_password() {
        let words = "SASL PLAIN mechanism handshake failed: Broker: Request not valid in current SASL state: broker's supported mechanisms:  \
                     (after 8ms in state AUTH_HANDSHAKE)";
        let line = of_refused_login(words, false, false);
        assert!(line.contains("; check security.protocol and the port") && !line.contains("sasl.password"), "{line}");
    }

    #[test]
    fn a_connection_that_is_closed_at_once_is_distinguished() {
        let logged = |words: &str| of_closed_connection(&format!("[thrd:a:1/bootstrap]: {words}"));
        let tls = "a:1/bootstrap: Disconnected: connection reset by peer (after 1ms in state APIVERSION_QUERY)";
        let message = logged(tls).unwrap();
        assert!(
            message.starts_with("a:1/bootstrap: it closes connections without an answer: it expects TLS (SSL, "),
            "{message}"
        );
        for cause in ["security.protocol", "max.connections", "port-forward"] {
            assert!(message.contains(cause), "{message}");
        }
        let during_tls = "ssl://a:1/bootstrap: SSL handshake failed: Disconnected: connecting to a PLAINTEXT broker listener? (after 2ms in \
                          state SSL_HANDSHAKE)";
        let without_guess =
            "ssl://a:1/bootstrap: Disconnected: SSL connection closed by peer (after 1ms in state SSL_HANDSHAKE)";
        assert_eq!(logged(without_guess), logged(during_tls));
        let message = logged(during_tls).unwrap();
        assert!(
            message.starts_with("ssl://a:1/bootstrap: it closes connections without an answer: it expects no TLS ("),
            "{message}"
        );
        assert_eq!(layer_of(&message), Layer::Connection);
        let of_tls = "ssl://a:1/bootstrap: SSL handshake failed: error:0A00010B:SSL routines::wrong version number (after 2ms in state SSL_HANDSHAKE)";
        assert_eq!(logged(of_tls), None);
        let message = logged(tls).unwrap();
        assert!(logged(&format!("sasl_plaintext://{tls}")).is_some());
        let login =
            logged("a:1/bootstrap: Disconnected (after 3ms in state UP, 1 identical error(s) suppressed)").unwrap();
        assert!(login.contains("expects a login; "), "{login}");
        assert_eq!((layer_of(&message), layer_of(&login)), (Layer::Connection, Layer::Login));
        // The connection was closed while a request was being sent.
        for why in ["Broken pipe", "Connection reset by peer"] {
            let sending = format!("a:1/bootstrap: Send failed: {why} (after 0ms in state UP)");
            assert_eq!(logged(&sending).as_ref(), Some(&login), "{why}");
        }
        let tls_sending =
            "ssl://a:1/bootstrap: Send failed: Disconnected: connection reset by peer (after 0ms in state UP)";
        assert!(logged(tls_sending).unwrap().starts_with("ssl://a:1/bootstrap: it closes each connection at once, "));
        let refused =
            "a:1/bootstrap: Connect to ipv4#10.0.0.1:9093 failed: Connection refused (after 0ms in state CONNECT)";
        let later = "a:1/bootstrap: Disconnected (after 60000ms in state UP)";
        let unreached = "a:1/bootstrap: Send failed: No route to host (after 0ms in state UP)";
        for other in [refused, later, unreached, &format!("ssl://{tls}"), &format!("sasl_ssl://{tls}")] {
            assert_eq!(logged(other), None);
        }
        assert_eq!(layer_of(&format!("sasl_ssl://{refused}")), Layer::Connection);
    }

    #[test]
    fn an_answer_of_another_service_is_named() {
        let named = |size: i32| {
            let line = format!(
                "Receive failed: Invalid response size {size} (0..100000000): increase receive.message.max.bytes (after 0ms in state UP)"
            );
            of_closed_connection(&format!("[thrd:a:80/bootstrap]: a:80/bootstrap: {line}")).unwrap()
        };
        let begins = "a:80/bootstrap: it answers, but not as a broker: its answer begins with ";
        let http = named(1_213_486_160);
        assert!(http.starts_with(&format!("{begins}\"HTTP\"; check the port")), "{http}");
        // A negative size.
        let bytes = named(-2_063_597_568);
        assert!(bytes.starts_with(&format!("{begins}\"\\x85\\x00\\x00\\x00\"; ")), "{bytes}");
        assert_eq!(layer_of(&http), Layer::Connection);
    }

    #[test]
    fn a_token_endpoints_answer_is_reported() {
        let words = "Failed to acquire SASL OAUTHBEARER token: {\"error\":\n \"invalid_client\"}";
        let logged = |status: &str| {
            format!(
                "[thrd:background]: Failed to retrieve OIDC token from \"https://me:hunter2@login:8443/token?key=hunter2\": \
                 {{\"error\":\n \"invalid_client\"}} ({status})"
            )
        };
        let refused = of_token(words, Some(&logged("401"))).unwrap().unwrap_err();
        let beginning =
            "no token from the token endpoint login:8443: status 401, {\"error\": \"invalid_client\"}; check ";
        assert!(refused.starts_with(beginning) && refused.contains("client.secret"), "{refused:?}");
        for status in ["503", "429", "-1"] {
            assert!(of_token(words, Some(&logged(status))).unwrap().is_ok(), "{status}");
        }
        // This log line is about another failure than this error.
        let unknown = of_token("Failed to acquire SASL OAUTHBEARER token: Response is not JSON", Some(&logged("401")));
        let unknown = unknown.unwrap().unwrap();
        assert!(unknown.starts_with("no token from the token endpoint: Response is not JSON; "), "{unknown:?}");
        let page = format!("Failed to acquire SASL OAUTHBEARER token: {}", "\u{e9}".repeat(1000));
        assert!(of_token(&page, None).unwrap().unwrap().len() < 700);
        assert_eq!(of_token("SASL authentication error: Authentication failed", Some(&logged("401"))), None);
    }

    #[test]
    fn a_login_that_was_cut_off_is_distinguished_from_a_refused_one() {
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
