//! Finds out whether Kafka runs on this machine, and so uses the same wall clock.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::time::Duration;

use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::{BaseConsumer, Consumer};

use crate::access::Access;
use crate::context::KafkaContext;
use crate::names;

/// Whether every broker of the cluster with this topic has an address of this machine. A broker counts as one on another machine if its
/// host name would have to be looked up. So does a cluster that does not answer within `timeout`: a wrong "no" only costs the caller time.
#[must_use]
pub fn runs_on_this_machine(access: &Access, topic: &str, timeout: Duration) -> bool {
    if access.embedded.is_some() {
        return true;
    }
    let context = KafkaContext::new(access);
    let Ok(consumer) = BaseConsumer::<KafkaContext>::from_config_and_context(&access.reader(), context) else {
        return false;
    };
    let Ok(metadata) = consumer.fetch_metadata(Some(topic), timeout) else { return false };
    let host = names::host();
    !metadata.brokers().is_empty() && metadata.brokers().iter().all(|broker| is_here(broker.host(), host.as_deref()))
}

/// Whether a broker's host is this machine, whose host name is `own`.
fn is_here(host: &str, own: Option<&str>) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    match address.parse() {
        Ok(address) => is_own(address),
        Err(_) => host == "localhost" || Some(host) == own,
    }
}

/// Whether an address is one of this machine's: then the kernel would use the same address as the source. No packet is sent.
fn is_own(address: IpAddr) -> bool {
    if address.is_loopback() {
        return true;
    }
    let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let from = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    from.is_ok_and(|from| from.ip() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_and_the_machine_s_own_name_are_this_machine() {
        let here = ["127.0.0.1", "127.0.0.2", "::1", "[::1]", "localhost", "db1"];
        assert!(here.iter().all(|host| is_here(host, Some("db1"))));
        // 192.0.2.0/24 and 2001:db8::/32 are for documentation.
        let elsewhere = ["192.0.2.1", "2001:db8::1", "db2", "db1.example", ""];
        assert!(!elsewhere.iter().any(|host| is_here(host, Some("db1"))));
        assert!(!is_here("db1", None));
    }
}
