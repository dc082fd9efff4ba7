//! The configuration of a broker: its id, its ports, its settings.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::iter;
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::tls::Authority;
use crate::{accounts, install};

/// The number of partitions of `__consumer_offsets`.
pub(crate) const OFFSETS_PARTITIONS: i32 = 4;

/// A broker's place in its cluster. Its ports stay the same when it is restarted.
#[derive(Debug)]
pub(crate) struct Node {
    id: usize,
    plain: u16,
    accounts: u16,
    /// The port that it advertises for logins without TLS.
    advertised_accounts: u16,
    controller: u16,
    /// Every controller of the cluster, including this one.
    voters: String,
    /// The number of brokers.
    brokers: usize,
    doors: Vec<Door>,
    secure: Option<Secure>,
    heap: &'static str,
    session: &'static str,
    /// A setting that only this broker has, as a line.
    own_setting: &'static str,
    /// Whether records that are older than a topic keeps them are deleted at once, and not within a quarter of a minute.
    deletes_at_once: bool,
    /// Whether a policy judges new topics.
    has_topic_policy: bool,
}

/// A short session with the controller, so that a killed broker can come back soon.
const SHORT_SESSION: &str = "broker.session.timeout.ms=3000\nbroker.heartbeat.interval.ms=500\n";

/// The controller of a broker that lives as long as the test run writes nothing while there is nothing to write: by default it writes a record each
/// half second, for which every broker takes a hundredth of a processor.
pub(crate) const QUIET: &str = "metadata.max.idle.interval.ms=0\n";

/// A session that a broker keeps which gets no processor for a while.
const LONG_SESSION: &str = "broker.session.timeout.ms=60000\n";

/// The ports of the listeners with TLS.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Secure {
    /// The port where every client has all rights.
    plain: u16,
    /// The port where a client must log in by SCRAM.
    accounts: u16,
    /// The port that is advertised for logins by SCRAM.
    advertised_accounts: u16,
    /// The port where a client must have a certificate.
    mutual: u16,
    /// The port where the broker's certificate has expired.
    expired: u16,
}

/// `HOST:PORT` of each listener with TLS.
#[derive(Clone, Debug)]
pub struct SecureAddresses {
    /// The listener where every client has all rights.
    pub plain: String,
    /// The listener where a client must log in by one of [`accounts::SCRAM`].
    pub accounts: String,
    /// The listener where a client must have a certificate, and is the user that the certificate names.
    pub mutual: String,
    /// The listener where the broker's certificate has expired.
    pub expired: String,
}

impl Secure {
    fn ports(self) -> [u16; 4] {
        [self.plain, self.accounts, self.mutual, self.expired]
    }

    /// `,NAME://127.0.0.1:PORT` for each listener.
    fn listeners(ports: [u16; 4]) -> String {
        let names = ["SSL", "SASL_SSL", "MUTUAL", "EXPIRED"];
        iter::zip(names, ports).map(|(name, port)| format!(",{name}://127.0.0.1:{port}")).collect::<Vec<_>>().concat()
    }

    /// The broker's settings for these listeners; `authority` made its keys and certificates.
    fn settings(authority: &Authority) -> String {
        format!(
            "listener.name.sasl_ssl.sasl.enabled.mechanisms={mechanisms}\n\
             listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config={scram}\n\
             listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config={scram}\n\
             ssl.keystore.type=PEM\n\
             ssl.keystore.location={keystore}\n\
             listener.name.mutual.ssl.client.auth=required\n\
             listener.name.mutual.ssl.truststore.type=PEM\n\
             listener.name.mutual.ssl.truststore.location={truststore}\n\
             listener.name.mutual.ssl.principal.mapping.rules=RULE:^CN=(.*)$/$1/\n\
             listener.name.expired.ssl.keystore.type=PEM\n\
             listener.name.expired.ssl.keystore.location={expired}\n",
            mechanisms = accounts::SCRAM.join(","),
            scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;",
            keystore = authority.keystore().display(),
            truststore = authority.certificate().display(),
            expired = authority.expired_keystore().display(),
        )
    }
}

/// A listener for the clients of one location, advertised with a separate address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Door {
    /// The port where the broker listens.
    pub(crate) port: u16,
    /// The port that the broker advertises.
    pub(crate) advertised: u16,
}

impl Node {
    /// The only broker of its cluster.
    pub(crate) fn alone() -> Self {
        let [plain, accounts, controller] = [free_port(), free_port(), free_port()];
        let voters = format!("1@127.0.0.1:{controller}");
        Self {
            id: 1,
            plain,
            accounts,
            advertised_accounts: accounts,
            controller,
            voters,
            brokers: 1,
            doors: Vec::new(),
            secure: None,
            heap: "-Xmx512m",
            session: SHORT_SESSION,
            own_setting: "",
            deletes_at_once: false,
            has_topic_policy: false,
        }
    }

    /// The only broker of its cluster, for the whole test run. It has a long session: it is never killed, and on a busy machine its controller
    /// must not take it for dead, after which no partition would have a leader.
    pub(crate) fn of_the_test_run() -> Self {
        Self { session: LONG_SESSION, own_setting: QUIET, ..Self::alone() }
    }

    /// The same broker with these doors.
    pub(crate) fn with_doors(self, doors: Vec<Door>) -> Self {
        Self { doors, ..self }
    }

    /// The same broker with a policy for new topics (`TopicPolicy.java`).
    pub(crate) fn with_topic_policy(self) -> Self {
        Self { has_topic_policy: true, ..self }
    }

    /// The same broker with TLS listeners as well.
    pub(crate) fn with_tls(self) -> Self {
        let [plain, accounts, mutual, expired] = [free_port(), free_port(), free_port(), free_port()];
        Self { secure: Some(Secure { plain, accounts, advertised_accounts: accounts, mutual, expired }), ..self }
    }

    /// Advertises another port for the listener with logins and without TLS.
    pub(crate) fn with_accounts_advertised_at(self, port: u16) -> Self {
        Self { advertised_accounts: port, ..self }
    }

    /// Advertises another port for the listener with logins and TLS.
    pub(crate) fn with_secure_accounts_advertised_at(mut self, port: u16) -> Self {
        self.secure.as_mut().expect("it has TLS").advertised_accounts = port;
        self
    }

    /// The same broker with Kafka's default session: the controller takes it for dead after 9 s without a heartbeat.
    pub(crate) fn with_default_session(self) -> Self {
        Self { session: "", ..self }
    }

    /// The same broker with this setting, a line.
    pub(crate) fn with_setting(self, own_setting: &'static str) -> Self {
        Self { own_setting, ..self }
    }

    /// The same with a cleaner that looks at compacted topics all the time.
    pub(crate) fn that_deletes_at_once(self) -> Self {
        Self { deletes_at_once: true, ..self }
    }

    /// The brokers of a cluster with small heaps, each with these doors.
    pub(crate) fn cluster(doors: Vec<Vec<Door>>) -> Vec<Self> {
        let brokers = doors.len();
        let controllers: Vec<u16> = doors.iter().map(|_| free_port()).collect();
        let voters: Vec<String> =
            iter::zip(1.., &controllers).map(|(id, port)| format!("{id}@127.0.0.1:{port}")).collect();
        let node = |(id, (controller, doors))| {
            let accounts = free_port();
            Self {
                id,
                plain: free_port(),
                accounts,
                advertised_accounts: accounts,
                controller,
                voters: voters.join(","),
                brokers,
                doors,
                secure: None,
                heap: "-Xmx256m",
                session: SHORT_SESSION,
                own_setting: "",
                deletes_at_once: false,
                has_topic_policy: false,
            }
        };
        iter::zip(1.., iter::zip(controllers, doors)).map(node).collect()
    }

    /// The port of its controller, or of its `ZooKeeper`.
    pub(crate) fn controller(&self) -> String {
        self.controller.to_string()
    }

    /// `HOST:PORT` of the listener where every client has all rights.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.plain)
    }

    /// `HOST:PORT` of the listener where a client must log in.
    pub(crate) fn accounts_address(&self) -> String {
        format!("127.0.0.1:{}", self.accounts)
    }

    /// The addresses of the listeners with TLS, if there are any.
    pub(crate) fn secure_addresses(&self) -> Option<SecureAddresses> {
        let [plain, accounts, mutual, expired] = self.secure?.ports().map(|port| format!("127.0.0.1:{port}"));
        Some(SecureAddresses { plain, accounts, mutual, expired })
    }

    pub(crate) fn has_topic_policy(&self) -> bool {
        self.has_topic_policy
    }

    /// Java's option for the heap size.
    pub(crate) fn heap(&self) -> &'static str {
        self.heap
    }

    /// Frees its ports: nothing listens on them any more.
    pub(crate) fn give_back(&self) {
        let mut taken = taken().lock().expect("no panic while it was locked");
        let doors = self.doors.iter().map(|door| door.port);
        let secure = self.secure.into_iter().flat_map(Secure::ports);
        for port in [self.plain, self.accounts, self.controller].into_iter().chain(doors).chain(secure) {
            taken.remove(&port);
        }
    }

    /// `meta.properties` for this broker, made from the file that was formatted for the first one.
    pub(crate) fn identity(&self, formatted: &str) -> String {
        let line = |line: &str| match line.split_once('=') {
            Some(("node.id", _)) => format!("node.id={}\n", self.id),
            // The directory id is a random number in base64. With another digit it is another number.
            Some(("directory.id", id)) if self.id > 1 => {
                let digit = if id.starts_with(char::from(b'a' + u8::try_from(self.id).expect("a small number"))) {
                    'Z'
                } else {
                    char::from(b'a' + u8::try_from(self.id).expect("a small number"))
                };
                format!("directory.id={digit}{}\n", &id[1..])
            }
            _ => format!("{line}\n"),
        };
        formatted.lines().map(line).collect()
    }

    /// `server.properties`. Kafka's default limits are not changed, with one exception: the broker's session, because a killed broker must
    /// wait for it before it may start again (unless Kafka's default is wanted). Settings that cost memory are kept small.
    pub(crate) fn settings(&self, data: &Path, authority: Option<&Authority>) -> String {
        let Self {
            id,
            plain,
            accounts,
            advertised_accounts,
            controller,
            voters,
            brokers,
            doors,
            secure,
            heap: _,
            session,
            own_setting,
            deletes_at_once,
            has_topic_policy,
        } = self;
        let policy = if *has_topic_policy { "create.topic.policy.class.name=TopicPolicy\n" } else { "" };
        let cleaner = if *deletes_at_once { "log.cleaner.backoff.ms=100\n" } else { "" };
        let replicas = brokers.min(&3);
        let in_sync = if *replicas == 3 { 2 } else { 1 };
        let (mut listeners, mut advertised, mut protocols) = (String::new(), String::new(), String::new());
        for (number, Door { port, advertised: address }) in iter::zip(1.., doors) {
            let _ = write!(listeners, ",DOOR_{number}://127.0.0.1:{port}");
            let _ = write!(advertised, ",DOOR_{number}://127.0.0.1:{address}");
            let _ = write!(protocols, ",DOOR_{number}:PLAINTEXT");
        }
        let mut last = String::new();
        if let (Some(secure), Some(authority)) = (secure, authority) {
            listeners += &Secure::listeners(secure.ports());
            let [plain, _, mutual, expired] = secure.ports();
            advertised += &Secure::listeners([plain, secure.advertised_accounts, mutual, expired]);
            protocols += ",SSL:SSL,SASL_SSL:SASL_SSL,MUTUAL:SSL,EXPIRED:SSL";
            last = Secure::settings(authority);
        }
        let (part, authorizer) = if install::has_own_controller() {
            let _ = write!(listeners, ",CONTROLLER://127.0.0.1:{controller}");
            let part = format!(
                "process.roles=broker,controller\nnode.id={id}\ncontroller.quorum.voters={voters}\n\
                 controller.listener.names=CONTROLLER\n"
            );
            (part, "org.apache.kafka.metadata.authorizer.StandardAuthorizer")
        } else {
            assert_eq!(*brokers, 1, "each broker has a ZooKeeper of its own");
            (
                format!("broker.id={id}\nzookeeper.connect=127.0.0.1:{controller}\n"),
                "kafka.security.authorizer.AclAuthorizer",
            )
        };
        // Every listener has this number of threads.
        let threads = if *brokers == 1 && secure.is_none() { 2 } else { 1 };
        format!(
            "{part}\
             listeners=PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{accounts}{listeners}\n\
             advertised.listeners=PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{advertised_accounts}{advertised}\n\
             listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT{protocols}\n\
             inter.broker.listener.name=PLAINTEXT\n\
             sasl.enabled.mechanisms=PLAIN,OAUTHBEARER\n\
             listener.name.sasl_plaintext.plain.sasl.jaas.config={jaas}\n\
             listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config={bearer}\n\
             authorizer.class.name={authorizer}\n\
             super.users=User:ANONYMOUS\n\
             {session}\
             {own_setting}\
             log.dirs={data}\n\
             offsets.topic.num.partitions={OFFSETS_PARTITIONS}\n\
             offsets.topic.replication.factor={replicas}\n\
             transaction.state.log.num.partitions=4\n\
             transaction.state.log.replication.factor={replicas}\n\
             transaction.state.log.min.isr={in_sync}\n\
             share.coordinator.state.topic.num.partitions=1\n\
             share.coordinator.state.topic.replication.factor={replicas}\n\
             share.coordinator.state.topic.min.isr={in_sync}\n\
             num.network.threads={threads}\n\
             num.io.threads=4\n\
             log.cleaner.dedupe.buffer.size=4194304\n\
             {cleaner}\
             {policy}\
             {last}",
            jaas = accounts::jaas(),
            // Kafka's default check of unsigned tokens: the user's name and the expiry.
            bearer = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
            data = data.display(),
        )
    }
}

/// The ports that brokers of this process use, or will use again.
fn taken() -> &'static Mutex<HashSet<u16>> {
    static TAKEN: OnceLock<Mutex<HashSet<u16>>> = OnceLock::new();
    TAKEN.get_or_init(Mutex::default)
}

/// A free port, below those that the kernel gives to clients, so that it is still free after a restart.
pub(crate) fn free_port() -> u16 {
    bound_port().0
}

/// The same, with a listener that keeps it from other processes.
pub(crate) fn bound_port() -> (u16, TcpListener) {
    let mut taken = taken().lock().expect("no panic while it was locked");
    let free = iter::repeat_with(candidate_port).filter(|port| !taken.contains(port));
    let mut bound = free.filter_map(|port| Some((port, TcpListener::bind(("127.0.0.1", port)).ok()?)));
    let (port, listener) = bound.next().expect("one of thousands");
    drop(bound);
    taken.insert(port);
    (port, listener)
}

/// A port to try, another one at each call. The process id determines the first, so that parallel test runs try different ones.
fn candidate_port() -> u16 {
    const LOWEST: u16 = 15_000;
    const COUNT: u16 = 15_000;
    static STEP: AtomicU16 = AtomicU16::new(0);
    let process = u16::try_from(std::process::id() * 37 % u32::from(COUNT)).expect("less than COUNT");
    LOWEST + (process + STEP.fetch_add(1, Ordering::Relaxed)) % COUNT
}
