//! The bootstrap servers: whether the list is one that librdkafka takes, and whether they belong to one cluster.

use std::collections::BTreeSet;
use std::net::{Ipv6Addr, TcpStream, ToSocketAddrs as _};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::time::Duration;
use std::{iter, thread};

use neli_proto::time::Time;
use rdkafka::client::Client;
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::metadata::MetadataBroker;

use crate::access::Access;
use crate::clock;
use crate::cluster::ONE_CLUSTER;
use crate::context::KafkaContext;
use crate::election::Properties;
use crate::librdkafka::{cluster_id, topic_identity};
use crate::questions::{LONGEST, RETRY};
use crate::threads::{self, locked};

/// Checks the list, and returns it without spaces.
///
/// librdkafka only logs an entry that it can't parse, and ignores it and all that follow. The election would then wait for ever, so each
/// entry is parsed here first.
///
/// # Errors
///
/// What would be right.
pub fn validate(list: &str, properties: &Properties) -> Result<String, String> {
    let entries: Vec<&str> = list.split(',').map(str::trim).collect();
    let security = properties.find("security.protocol").unwrap_or("plaintext");
    for entry in &entries {
        validate_entry(entry, security)?;
    }
    Ok(entries.join(","))
}

const PROTOCOLS: [&str; 4] = ["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"];

fn validate_entry(entry: &str, security: &str) -> Result<(), String> {
    if entry.is_empty() {
        return Err("must be HOST:PORT,.. and has an empty entry".to_owned());
    }
    let address = match entry.split_once("://") {
        None => entry,
        Some((protocol, address)) => {
            validate_protocol(entry, protocol, security)?;
            address
        }
    };
    let Some((host, port)) = address.rsplit_once(':').filter(|_| !address.ends_with(']')) else {
        return Err(format!("must be HOST:PORT,.. and '{entry}' has no port"));
    };
    if !is_host(host) {
        let of_ipv6 = if host.contains(':') { " (an IPv6 address stands in brackets: [::1]:9092)" } else { "" };
        return Err(format!("must be HOST:PORT,.. and '{host}' is no host{of_ipv6}"));
    }
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || !port.parse::<u16>().is_ok_and(|port| port > 0) {
        return Err(format!("must be HOST:PORT,.. with a port of 1 to 65535, not '{port}'"));
    }
    Ok(())
}

/// librdkafka ignores an entry whose protocol is not that of `security.protocol`.
fn validate_protocol(entry: &str, protocol: &str, security: &str) -> Result<(), String> {
    let protocol = protocol.to_ascii_lowercase();
    if !PROTOCOLS.contains(&protocol.as_str()) {
        return Err(format!("must be HOST:PORT,.. and '{entry}' begins with none of {}", PROTOCOLS.join(", ")));
    }
    if !security.eq_ignore_ascii_case(&protocol) {
        return Err(format!("'{entry}' needs the property security.protocol={protocol}, which is {security}"));
    }
    Ok(())
}

fn is_host(host: &str) -> bool {
    if let Some(address) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        let (address, zone) = address.split_once('%').unwrap_or((address, "0"));
        return address.parse::<Ipv6Addr>().is_ok() && !zone.is_empty();
    }
    // Letters of any script: a resolver may know such names.
    !host.is_empty() && host.chars().all(|character| character.is_alphanumeric() || "-._".contains(character))
}

// ---- whether they belong to one cluster ----------------------------------------------------------------------------
//
// librdkafka connects to any of them, and from then on to the brokers that this one names. If the list names servers of two clusters, each
// client of each candidate is in one of the two by chance. So each server that the cluster does not name as its broker is asked by a client of
// its own.

/// The servers must have answered within twice the time that the first answer to this process took, and this: a server that is down keeps no
/// candidate from its election.
const ALLOWANCE: Duration = Duration::from_secs(1);
/// A server that takes connections is not down, but slow: it is waited for this many times [`RETRY`] more.
const SLOW: usize = 20;
/// The time limit of a connection that only shows whether a server can be reached.
const CONNECTED: Duration = Duration::from_secs(5);
/// After this time all brokers of a cluster know a topic that was made anew.
const TOPIC_KNOWN: Duration = Duration::from_millis(500);

/// Asks each bootstrap server for its cluster, in a thread of its own, unless the cluster names that server as its broker. `consumer` is one of
/// the process; once it is dropped, nothing is asked any more. The result is that of [`Access::admit`]. `None` if there is no server to be asked,
/// or if they were asked a short time ago.
pub(super) fn ask_servers(
    topic: Option<&str>,
    consumer: &Arc<BaseConsumer<KafkaContext>>,
) -> Option<mpsc::Receiver<()>> {
    let access = &consumer.context().access;
    if access.embedded.is_some() || !locked(&access.cluster).begin_question(&access.bootstrap) {
        return None;
    }
    let (open, is_open) = mpsc::channel();
    let (cluster, topic, consumer) = (Arc::clone(&access.cluster), topic.map(str::to_owned), Arc::downgrade(consumer));
    let ask = move || {
        find_other(topic.as_deref(), &consumer);
        locked(&cluster).is_asking = false;
        drop(open);
    };
    // Without a thread they are asked later.
    let started = threads::start("neli-servers", ask);
    locked(&access.cluster).is_asking &= started.is_ok();
    Some(is_open)
}

/// Whether an answer to this client's question of `asked` is of this process's cluster. The first time it waits until the question to the bootstrap
/// servers is closed.
///
/// # Errors
///
/// One line: it is of another cluster, or the bootstrap servers are.
pub(super) fn admit(
    servers: &mut Option<mpsc::Receiver<()>>,
    client: &Client<KafkaContext>,
    asked: Time,
) -> Result<(), String> {
    let access = &client.context().access;
    if let Some(is_open) = servers.take() {
        let took = clock::now().since(asked);
        let limits = iter::once(took * 2 + ALLOWANCE).chain(iter::repeat_n(RETRY, SLOW));
        for limit in limits {
            let is_closed = is_open.recv_timeout(limit) != Err(RecvTimeoutError::Timeout);
            if is_closed || locked(&access.cluster).slow == 0 {
                break;
            }
        }
    }
    access.admit(client)
}

/// Looks for a bootstrap server of another cluster than the consumer's, until one was found or each has answered or can't be reached.
fn find_other(topic: Option<&str>, consumer: &Weak<BaseConsumer<KafkaContext>>) {
    let (consumer, brokers): (_, BTreeSet<String>) = loop {
        let Some(consumer) = consumer.upgrade() else { return };
        match consumer.fetch_metadata(topic, LONGEST) {
            Ok(metadata) => break (consumer, metadata.brokers().iter().map(address).collect()),
            Err(_) => drop(consumer),
        }
        thread::park_timeout(RETRY);
    };
    let (access, id) = (&consumer.context().access, cluster_id(consumer.client()));
    let (unknown, id) = {
        let mut cluster = locked(&access.cluster);
        // An embedded broker among them is no reason not to look: that there are two clusters is told first.
        if cluster.admit(id).is_err() {
            return;
        }
        (cluster.asked, cluster.slow) = (Some(clock::now()), 0);
        let mut unknown = cluster.unknown(&access.bootstrap);
        let is_named = |server: &mut String| brokers.contains(&without_protocol(server).to_lowercase());
        cluster.known.extend(unknown.extract_if(.., is_named));
        (unknown, cluster.id.clone())
    };
    let (sender, answers) = mpsc::channel();
    for server in unknown {
        let (access, topic, sender) = (access.clone(), topic.map(str::to_owned), sender.clone());
        let ask = move || {
            if accepts_connections(without_protocol(&server)) {
                locked(&access.cluster).slow += 1;
                let answered = ask_alone(&access, &server, topic.as_deref());
                // If nobody receives it, another server was refused.
                let _ = sender.send(answered.map(|consumer| (server, consumer)));
            }
        };
        // Without a thread this server is asked later.
        let _ = threads::start("neli-server", ask);
    }
    drop(sender);
    for answer in answers {
        let of_server = answer.as_ref().map(|(server, of_server)| (server, of_server.client()));
        let refusal =
            of_server.and_then(|(server, of_server)| refusal(server, of_server, id.as_ref(), topic, consumer.client()));
        let mut cluster = locked(&access.cluster);
        if let Some(refusal) = refusal {
            return cluster.refuse(refusal);
        }
        cluster.slow -= 1;
        cluster.known.extend(answer.map(|(server, _)| server));
    }
}

/// Asks this bootstrap server alone, which the cluster does not name as its broker, and returns the client; `None` if it does not answer.
fn ask_alone(access: &Access, server: &str, topic: Option<&str>) -> Option<BaseConsumer<KafkaContext>> {
    let access = Access { bootstrap: server.to_owned(), ..access.clone() };
    let consumer = BaseConsumer::from_config_and_context(&access.reader(), KafkaContext::new(&access));
    let consumer: BaseConsumer<KafkaContext> = consumer.ok()?;
    consumer.fetch_metadata(topic, LONGEST).ok()?;
    Some(consumer)
}

/// The line about a server, which `of_server` is a client of, if it is of another cluster than `client`, which is in the cluster with the id
/// `known`. Many clusters have the id that an image or a manual gives to each; so with equal ids the topics are compared by theirs.
fn refusal(
    server: &str,
    of_server: &Client<KafkaContext>,
    known: Option<&String>,
    topic: Option<&str>,
    client: &Client<KafkaContext>,
) -> Option<String> {
    if let (Some(id), Some(known)) = (cluster_id(of_server), known)
        && id != *known
    {
        return Some(format!(
            "bootstrap servers of two clusters: {server} belongs to cluster \"{id}\", and the first that answered to \"{known}\"; {ONE_CLUSTER}"
        ));
    }
    let topic = topic?;
    let differ = || {
        let identity = |client| topic_identity(client, topic, None, LONGEST).ok();
        matches!((identity(of_server), identity(client)), (Some(theirs), Some(ours)) if theirs.is_other_than(ours))
    };
    let differ_for_good = differ() && {
        thread::park_timeout(TOPIC_KNOWN);
        differ()
    };
    differ_for_good.then(|| {
        let id = known.map(String::as_str).unwrap_or_default();
        format!(
            "bootstrap servers of two clusters: {server} has another topic \"{topic}\" than the first that answered, though both clusters have \
             the id \"{id}\"; {ONE_CLUSTER}"
        )
    })
}

pub(crate) fn address(broker: &MetadataBroker) -> String {
    let host = broker.host().to_lowercase();
    if host.contains(':') { format!("[{host}]:{}", broker.port()) } else { format!("{host}:{}", broker.port()) }
}

fn without_protocol(server: &str) -> &str {
    server.split_once("://").map_or(server, |(_, address)| address)
}

/// Whether a port takes connections. librdkafka reports a failed connection only after a while, since a host may have several addresses.
fn accepts_connections(address: &str) -> bool {
    let Some((host, port)) = address.rsplit_once(':') else { return false };
    let (Ok(port), host) = (port.parse::<u16>(), host.trim_matches(['[', ']'])) else { return false };
    let Ok(mut addresses) = (host, port).to_socket_addrs() else { return false };
    addresses.any(|address| TcpStream::connect_timeout(&address, CONNECTED).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_valid_librdkafka_property_is_accepted() {
        for entry in ["localhost:9092", "10.0.0.1:1", "kafka-1.example.com:65535", "[::1]:9092", "[fe80::1%eth0]:9092"]
        {
            assert_eq!(validate_entry(entry, "plaintext"), Ok(()), "{entry}");
        }
        assert_eq!(validate_entry("SASL_SSL://kafka:9093", "sasl_ssl"), Ok(()));
    }

    #[test]
    fn an_address_that_librdkafka_ignores_is_refused() {
        let refused = [
            "",
            "localhost",
            "localhost:",
            "localhost:0",
            "localhost:65536",
            "localhost:+1",
            ":9092",
            "::1:9092",
            "[::1]",
            "[::g]:9092",
            "a b:9092",
            "http://a:9092",
            "ssl://a:9092",
            "a:9092/topic",
            "://a:1",
        ];
        for entry in refused {
            assert!(validate_entry(entry, "plaintext").is_err(), "{entry}");
        }
    }
}
