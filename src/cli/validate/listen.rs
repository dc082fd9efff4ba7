//! `--listen`.

use anyhow::Result;

use crate::cli::parsed_args::{ParsedArgs, Value};
use crate::config::Listen;

/// The address for HTTP, if one is given. Binding shows later whether it is available.
pub(super) fn validate(args: &ParsedArgs) -> Result<Option<Listen>> {
    let Some(value) = args.value("listen") else { return Ok(None) };
    let (host, port) = host_and_port(value.text()?).ok_or_else(|| refusal(&value))?;
    Ok(Some(Listen { host, port, shown: value.shown() }))
}

fn host_and_port(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse().ok().filter(|_| port.bytes().all(|byte| byte.is_ascii_digit()))?;
    let is_bracketed = host.starts_with('[') && host.ends_with(']');
    let host = if is_bracketed { host.get(1..host.len() - 1)? } else { host };
    let is_plain = host.chars().all(|letter| letter.is_ascii_alphanumeric() || ".-_".contains(letter));
    let is_host = if is_bracketed { host.parse::<std::net::Ipv6Addr>().is_ok() } else { is_plain };
    is_host.then(|| (host.to_owned(), port))
}

fn refusal(value: &Value) -> anyhow::Error {
    value.refuse("must be HOST:PORT, as in 127.0.0.1:9464 or [::1]:9464, or :PORT for all addresses of this machine")
}

#[cfg(test)]
mod tests {
    use super::host_and_port;

    #[test]
    fn a_host_and_a_port() {
        let parsed = |text| host_and_port(text).map(|(host, port)| format!("{host} {port}"));
        for (text, expected) in [
            ("127.0.0.1:9464", "127.0.0.1 9464"),
            ("[::1]:80", "::1 80"),
            (":0", " 0"),
            ("db1.example:65535", "db1.example 65535"),
        ] {
            assert_eq!(parsed(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "",
            "9464",
            ":",
            "localhost",
            "::1:80",
            "[::1]",
            "[x]:80",
            "a b:80",
            "a:65536",
            "a:-1",
            "a:+1",
            "http://a:80",
        ] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }
}
