//! Bootstrap servers, as librdkafka takes them.

use std::net::Ipv6Addr;

use crate::election::Properties;

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
    let Some((host, port)) = address.rsplit_once(':') else {
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
