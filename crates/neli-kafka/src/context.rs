//! librdkafka's errors and log lines, which it reports to our clients besides its answers. This file never shows the value of a secret.

use std::sync::Mutex;

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::access::Access;
use crate::error_class::{self, ErrorClass, plain};
use crate::librdkafka::AdminError;
use crate::rebootstrap::Rebootstrap;
use crate::text::ClientError;
use crate::threads::locked;

/// One line about an error for display: librdkafka's own text, unless that contains a secret.
pub(super) fn explain(error: &KafkaError) -> String {
    if let KafkaError::ClientCreation(reason) = error {
        return error_class::of_own_tls(reason).unwrap_or_else(|| reason.clone());
    }
    let KafkaError::ClientConfig(_, _, key, _) = error else { return error.to_string() };
    // The value, which librdkafka's text may quote, may be secret. Why it is wrong was said when the property was given (`Properties::set`).
    format!("property \"{key}\": librdkafka does not take its value")
}

/// Whether a client could not be made for lack of a thread: its configuration is not the reason.
pub(super) fn is_lack_of_thread(error: &KafkaError) -> bool {
    matches!(error, KafkaError::ClientCreation(reason) if reason.starts_with("Failed to create thread: "))
}

/// Why a client could not be made.
pub(super) fn client_error(error: &KafkaError) -> ClientError {
    let line = explain(error);
    if is_lack_of_thread(error) { ClientError::Shortage(line) } else { ClientError::Refused(line) }
}

/// Receives librdkafka's errors and log lines for one of our clients. It keeps the last text, because rust-rdkafka passes on only an
/// error's code.
pub(super) struct KafkaContext {
    /// What the client is of.
    pub(super) access: Access,
    last_errors: Mutex<LastErrors>,
    /// Gives the client its brokers again. The thread that polls the client calls [`Rebootstrap::after_poll`].
    pub(super) rebootstrap: Rebootstrap,
}

#[derive(Default)]
struct LastErrors {
    last: Option<(RDKafkaErrorCode, String)>,
    trouble: Option<String>,
    /// The probable reason why a broker closes connections before it answers, if that was the last failure.
    closed: Option<String>,
    /// The last log line about a token endpoint that issued no token.
    token: Option<String>,
}

impl KafkaContext {
    /// The context for a client of `access`.
    pub(super) fn new(access: &Access) -> Self {
        Self { access: access.clone(), last_errors: Mutex::default(), rebootstrap: Rebootstrap::new(&access.bootstrap) }
    }

    /// The text of the last error, if its code is `code`; otherwise the text of the code.
    pub(super) fn error_text(&self, code: RDKafkaErrorCode) -> String {
        let last_errors = locked(&self.last_errors);
        let last = last_errors.last.as_ref().filter(|(known, _)| *known == code);
        last.map_or_else(|| plain(code), |(_, words)| words.clone())
    }

    /// Why there is no login token, if this text of librdkafka is about one and a token endpoint was asked; an error if that has refused it.
    pub(super) fn no_token(&self, words: &str) -> Option<Result<String, String>> {
        let last_errors = locked(&self.last_errors);
        self.access.asks_for_tokens().then(|| error_class::of_token(words, last_errors.token.as_deref())).flatten()
    }

    /// What a failed login means before any broker has answered: why there is no token yet, or nothing if another login may succeed.
    ///
    /// # Errors
    ///
    /// One line: the login is refused.
    pub(super) fn login_failed(&self, words: &str) -> Result<Option<String>, String> {
        match self.no_token(words) {
            Some(no_token) => no_token.map(Some),
            None if error_class::is_worth_another_login(words) => Ok(None),
            None => Err(self.of_refused_login(words)),
        }
    }

    fn of_refused_login(&self, words: &str) -> String {
        error_class::of_refused_login(words, self.access.asks_for_tokens(), self.access.has_answered())
    }

    /// The last failure of a connection since the last answer, beginning with host and port. While no broker has ever answered, it is rather that
    /// the client may use another protocol than the port expects.
    pub(super) fn trouble(&self) -> Option<String> {
        let last_errors = locked(&self.last_errors);
        let closed = last_errors.closed.clone().filter(|_| !self.access.has_answered());
        let trouble = || last_errors.trouble.as_deref();
        closed.or_else(|| {
            trouble().map(|trouble| error_class::of_certificate(trouble).unwrap_or_else(|| trouble.to_owned()))
        })
    }

    /// That failure if it explains an error with this code. It explains no answer: it may be that of a broker to which there was no question since.
    pub(super) fn trouble_behind(&self, code: RDKafkaErrorCode) -> Option<String> {
        let is_missing = ErrorClass::from(code).is_missing_answer() || !self.access.has_answered();
        self.trouble().filter(|_| is_missing)
    }

    /// The reason for a missing answer, in one line: the last failure of a connection, or else what this error means.
    pub(super) fn no_answer(&self, error: &AdminError) -> String {
        let access = &self.access;
        self.trouble_behind(error.code).unwrap_or_else(|| {
            let why = if access.asks_for_tokens() && !access.has_answered() {
                // librdkafka connects to no broker before it has a token, and retries a failing endpoint for 50 s without a report.
                "no answer; no broker is asked before the token endpoint has given a token"
            } else if error.code == RDKafkaErrorCode::UnsupportedFeature && !access.has_answered() {
                "it does not answer as a broker: this may be the port of a controller (KRaft), which no client may use; take that of a \
                 broker's listener"
            } else if matches!(error.code.into(), ErrorClass::Connection | ErrorClass::NoBroker) {
                "no answer"
            } else {
                &error.text
            };
            format!("{}: {why}", access.bootstrap)
        })
    }

    /// If no broker has answered yet: the line about a certificate that is not accepted, since then no broker will ever answer. Later the
    /// same error is temporary, because some of the brokers may have another certificate.
    pub(super) fn permanent_failure(&self) -> Option<String> {
        let last_errors = locked(&self.last_errors);
        let trouble = last_errors.trouble.as_deref().filter(|_| !self.access.has_answered());
        trouble.and_then(error_class::of_certificate)
    }

    /// Forgets the last failure, because a broker has answered.
    pub(super) fn forget_trouble(&self) {
        let mut last_errors = locked(&self.last_errors);
        (last_errors.trouble, last_errors.closed) = (None, None);
    }
}

impl ClientContext for KafkaContext {
    fn log(&self, _level: RDKafkaLogLevel, _facility: &str, line: &str) {
        // The log line comes before the error that it explains.
        if line.contains(error_class::FROM_ENDPOINT) {
            locked(&self.last_errors).token = Some(line.to_owned());
        }
        if let Some(closed) = error_class::of_closed_connection(line) {
            locked(&self.last_errors).closed = Some(closed);
        }
        if let Some(log_callback) = &self.access.log_callback {
            log_callback(line);
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let Some(code) = error.rdkafka_error_code() else { return };
        if code == RDKafkaErrorCode::AllBrokersDown {
            self.rebootstrap.all_down();
        }
        let no_token = self.no_token(reason);
        let mut last_errors = locked(&self.last_errors);
        if let Some(Ok(why) | Err(why)) = no_token {
            (last_errors.trouble, last_errors.closed) = (Some(why), None);
        } else if matches!(code.into(), ErrorClass::Connection | ErrorClass::Login) {
            // The rest of the line is the duration, which differs each time.
            let trouble = reason.split(" (after ").next().unwrap_or(reason);
            let hint = hint(trouble, &self.access.bootstrap).unwrap_or_default();
            let is_refused =
                ErrorClass::from(code) == ErrorClass::Login && !error_class::is_worth_another_login(trouble);
            let trouble = if is_refused { self.of_refused_login(trouble) } else { format!("{trouble}{hint}") };
            last_errors.trouble = Some(trouble);
            // A connection that was closed while sending causes an error besides the log line.
            last_errors.closed = error_class::of_closed_connection(reason);
        }
        last_errors.last = Some((code, reason.to_owned()));
    }
}

impl ConsumerContext for KafkaContext {}

// ---- addresses that brokers name (`advertised.listeners`), and that this machine can't reach -----------------------

/// The hint about an address that can't be reached and that only a broker has named, since it is not one of `bootstrap`. `trouble` is
/// librdkafka's text.
fn hint(trouble: &str, bootstrap: &str) -> Option<&'static str> {
    // `ssl://kafka-1:9093/1: Failed to resolve 'kafka-1:9093': Name or service not known`
    let (broker, words) = trouble.split_once(": ")?;
    let without_protocol = |address: &str| address.rsplit_once("://").map_or(address, |(_, rest)| rest).to_lowercase();
    let (address, id) = broker.rsplit_once('/')?;
    let is_named_by_broker = id.parse::<u32>().is_ok();
    let address = without_protocol(address);
    let is_given = bootstrap.split(',').any(|given| without_protocol(given.trim()) == address);
    let is_unreachable = words.starts_with("Failed to resolve ") || words.starts_with("Connect to ");
    (is_named_by_broker && is_unreachable && !is_given)
        .then_some(" (a broker names this address: advertised.listeners)")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use rdkafka::ClientConfig;
    use rdkafka::types::RDKafkaConfRes;

    use super::*;
    use crate::election::Properties;

    /// A connection that is closed while a request is sent causes a log line and an error; one that is closed later causes only a log
    /// line.
    #[test]
    fn a_connection_closed_while_sending_is_one_that_is_closed_at_once() {
        let access = Access::at("a:1", &Properties::default());
        let trouble_after = |line: &str| {
            let context = KafkaContext::new(&access);
            context.log(RDKafkaLogLevel::Error, "FAIL", &format!("[thrd:a:1/bootstrap]: {line}"));
            let code = RDKafkaErrorCode::BrokerTransportFailure;
            context.error(KafkaError::Global(code), line);
            context.error(KafkaError::Global(RDKafkaErrorCode::AllBrokersDown), "1/1 brokers are down");
            context.trouble().unwrap()
        };
        let closed = trouble_after("a:1/bootstrap: Send failed: Broken pipe (after 0ms in state UP)");
        assert!(closed.contains("closes each connection at once") && closed.contains("expects a login"), "{closed}");
        let refused = "a:1/bootstrap: Connect to ipv4#10.0.0.1:1 failed: Connection refused";
        assert_eq!(trouble_after(&format!("{refused} (after 0ms in state CONNECT)")), refused);
    }

    /// As after a change of a password or an expiry of a certificate, and a restart of the broker.
    #[test]
    fn a_login_or_certificate_that_was_accepted_says_what_to_do() {
        let context = KafkaContext::new(&Access::at("a:1", &Properties::default()));
        context.access.answered.store(true, Ordering::Relaxed);
        let trouble_after = |code: RDKafkaErrorCode, line: &str| {
            context.error(KafkaError::Global(code), &format!("{line} (after 3ms in state AUTH_REQ)"));
            context.trouble().unwrap()
        };
        let line =
            "sasl_plaintext://a:1/1: SASL authentication error: Authentication failed: Invalid username or password";
        let login = trouble_after(RDKafkaErrorCode::Authentication, line);
        assert!(
            login.starts_with(line) && login.contains("sasl.password") && login.contains("started again"),
            "{login}"
        );
        let lost = "sasl_plaintext://a:1/1: SASL handshake failed: Local: Broker transport failure";
        assert_eq!(trouble_after(RDKafkaErrorCode::Authentication, lost), lost);
        let line = "ssl://a:1/1: SSL handshake failed: error:0A000416:SSL routines::sslv3 alert certificate unknown";
        let certificate = trouble_after(RDKafkaErrorCode::SSL, line);
        assert!(certificate.contains("our certificate") && certificate.contains("it has expired"), "{certificate}");
    }

    /// A broker that leads none of the partitions may have been restarted hours ago.
    #[test]
    fn an_answer_with_an_error_is_not_explained_by_an_earlier_failure_of_a_connection() {
        let context = KafkaContext::new(&Access::at("a:1", &Properties::default()));
        let transport = RDKafkaErrorCode::BrokerTransportFailure;
        context.error(KafkaError::Global(transport), "b:1/1: Connect to ipv4#10.0.0.1:1 failed: Connection refused");
        let because = |code: RDKafkaErrorCode| context.no_answer(&code.into());
        let storage = RDKafkaErrorCode::KafkaStorageError;
        assert!(because(storage).contains("Connection refused"), "nothing has answered yet");
        context.access.answered.store(true, Ordering::Relaxed);
        for missing in [transport, RDKafkaErrorCode::TimedOutQueue] {
            assert!(because(missing).contains("Connection refused"));
        }
        assert_eq!(because(storage), format!("a:1: {}", plain(storage)));
    }

    #[test]
    fn an_error_names_the_property_and_never_shows_a_secret() {
        let explained = |key: &str, value: &str| {
            let mut config = ClientConfig::new();
            explain(&config.set(key, value).create_native_config().err().unwrap())
        };
        assert!(!explained("nonsense", "hunter2").contains("hunter2"));
        assert!(explained("socket.timeout.ms", "soon").contains("socket.timeout.ms"));
        // As librdkafka refuses them in a build without TLS.
        for key in ["ssl.key.password", "sasl.oauthbearer.client.secret"] {
            let why = format!(
                "Configuration property \"{key}\" not supported in this build: OpenSSL not available at build time"
            );
            let refused = RDKafkaConfRes::RD_KAFKA_CONF_INVALID;
            let error = KafkaError::ClientConfig(refused, why, key.to_owned(), "hunter2".to_owned());
            assert!(!explain(&error).contains("hunter2"));
        }
    }

    #[test]
    fn a_lack_of_threads_is_distinguished_from_a_wrong_configuration() {
        let is_lack = |reason: &str| {
            let error = KafkaError::ClientCreation(reason.to_owned());
            matches!(client_error(&error), ClientError::Shortage(line) if line == reason)
        };
        assert!(is_lack("Failed to create thread: Resource temporarily unavailable (11)"));
        assert!(!is_lack("ssl.ca.location failed: No such file or directory"));
    }

    mod advertised_address {
        use super::*;

        /// The most common wrong setting of a broker. A broker of `--brokers` that is down has another reason.
        #[test]
        fn an_address_that_only_a_broker_names_is_explained() {
            let resolve =
                |broker: &str| format!("{broker}: Failed to resolve 'inside:9092': Name or service not known");
            let connect = |broker: &str| format!("{broker}: Connect to ipv4#127.0.0.1:9092 failed: Connection refused");
            for (trouble, is_explained) in [
                (resolve("inside:9092/1"), true),
                (connect("sasl_ssl://localhost:9092/2"), true),
                (connect("outside:9092/1"), false),
                (connect("ssl://OTHER:9093/1"), false),
                (connect("outside:9092/bootstrap"), false),
                ("inside:9092/1: Disconnected".to_owned(), false),
            ] {
                let hint = hint(&trouble, "outside:9092, SSL://other:9093");
                assert_eq!(hint.is_some(), is_explained, "{trouble}");
            }
        }
    }
}
