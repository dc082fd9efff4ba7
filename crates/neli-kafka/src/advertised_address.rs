//! Addresses that brokers name (`advertised.listeners`), and that this machine can't reach.

/// The hint about an address that can't be reached and that only a broker has named, since it is not one of `bootstrap`. `trouble` is
/// librdkafka's text.
#[must_use]
pub(super) fn hint(trouble: &str, bootstrap: &str) -> Option<&'static str> {
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
    use super::*;

    /// The most common wrong setting of a broker. A broker of `--brokers` that is down has another reason.
    #[test]
    fn an_address_that_only_a_broker_names_is_explained() {
        let resolve = |broker: &str| format!("{broker}: Failed to resolve 'inside:9092': Name or service not known");
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
