//! `-X` and `--properties`: librdkafka's properties, except those that the protocol needs.
//! Each of them may be a secret, so no message of this file shows a value.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use neli_kafka::{HEARTBEAT_INTERVAL, MemberTimings, Properties, SESSION_TIMEOUT, is_secret};
use neli_proto::candidate::Elector;
use nix::unistd::{AccessFlags, eaccess};

use crate::cli::parsed_args::{ParsedArgs, Value};
use crate::config::WORDS;
use crate::features;
use crate::text::{quoted, reason};

/// The properties with which OpenSSL reads a file.
const FILES: [&str; 5] =
    ["ssl.ca.location", "ssl.certificate.location", "ssl.crl.location", "ssl.key.location", "ssl.keystore.location"];

/// One property, and its source.
struct Property {
    key: String,
    value: String,
    place: String,
    /// Whether the command line gives it, or its file: then it counts more than what the environment gives.
    is_by_option: bool,
}

impl Property {
    /// `KEY=VALUE` from this source, which a message names before the key.
    fn parse(line: &str, source: &str, is_by_option: bool) -> Option<Self> {
        let (key, value) = line.split_once('=')?;
        let [key, value] = [key, value].map(|part| part.trim().to_owned());
        let place = format!("{source} {}", quoted(OsStr::new(&key)));
        (!key.is_empty()).then_some(Self { key, value, place, is_by_option })
    }

    /// Whether quotes surround the value, as a shell or a YAML file would remove them.
    fn is_in_quotes(&self) -> bool {
        ['"', '\'']
            .iter()
            .any(|quote| self.value.len() > 1 && self.value.starts_with(*quote) && self.value.ends_with(*quote))
    }
}

/// Reads and checks the properties: those of the environment before those of the command line, and of each the file's first. The result has each
/// key once, under one name.
pub(super) fn read(args: &ParsedArgs, warnings: &mut Vec<String>) -> Result<Properties> {
    let mut all = args.value("properties").map_or(Ok(Vec::new()), |file| from_file(&file, warnings))?;
    let from_values = from_values(&args.each("property"))?;
    let exposed = from_values.iter().filter(|property| property.is_by_option && is_secret(&property.key));
    warnings.extend(exposed.map(|property| {
        format!("{}: every user of this machine can read it; put it into a --properties file", property.place)
    }));
    all.extend(from_values);
    all.sort_by_key(|property| property.is_by_option);
    warnings.extend(all.iter().filter(|property| property.is_in_quotes()).map(|property| {
        format!("{}: the quotes around the value are part of it; leave them out if they are not meant", property.place)
    }));
    let mut properties = Properties::default();
    for Property { key, value, place, .. } in all {
        properties.set(&key, &value, &WORDS).map_err(|why| anyhow!("{place}: {why}"))?;
    }
    validate_mechanism(&properties)?;
    validate_files(&properties)?;
    Ok(properties)
}

/// The two durations of the group's protocol fit together (docs/protocol.md, Timing).
pub(super) fn validate_group_timings(properties: &Properties, elector: Elector) -> Result<()> {
    if elector == Elector::Log {
        return Ok(());
    }
    let MemberTimings { heartbeat_interval, session_timeout } = MemberTimings::of(properties);
    if heartbeat_interval <= session_timeout / 3 {
        return Ok(());
    }
    let (heartbeat, session) = (heartbeat_interval.as_millis(), session_timeout.as_millis());
    Err(anyhow!(if properties.find(HEARTBEAT_INTERVAL).is_some() {
        format!(
            "property {HEARTBEAT_INTERVAL} {heartbeat}: must be at most {}, a third of {SESSION_TIMEOUT}",
            session / 3
        )
    } else {
        let shortest = 3 * heartbeat;
        format!("property {SESSION_TIMEOUT} {session}: must be at least {shortest}, three times {HEARTBEAT_INTERVAL}")
    }))
}

fn from_values(values: &[Value]) -> Result<Vec<Property>> {
    let mut properties = Vec::new();
    for (index, value) in values.iter().enumerate() {
        let number = 1 + values.iter().take(index).filter(|other| other.source == value.source).count();
        let source = value.name();
        let line = value.text.to_str().ok_or_else(|| anyhow!("{source}: must be UTF-8"))?;
        let property = Property::parse(line, &source, value.is_option());
        // The typed text may itself be the secret.
        let refusal = || anyhow!("{source}: must be KEY=VALUE, and number {number} is not");
        properties.push(property.ok_or_else(refusal)?);
    }
    Ok(properties)
}

/// In bytes. A device has no end.
const LONGEST_FILE: u64 = 1 << 20;

fn from_file(file: &Value, warnings: &mut Vec<String>) -> Result<Vec<Property>> {
    let shown = quoted(&file.text);
    let mut content = Vec::new();
    let read = File::open(&file.text).and_then(|opened| opened.take(LONGEST_FILE + 1).read_to_end(&mut content));
    let size = read.map_err(|error| {
        if error.kind() == ErrorKind::NotFound && file.text.as_encoded_bytes().contains(&b'=') {
            // The typed text may itself be the secret.
            return anyhow!("{}: must be a file, and is KEY=VALUE; say --property", file.name());
        }
        file.refuse(format!("can't be read: {}", reason(&error)))
    })?;
    if size as u64 > LONGEST_FILE {
        return Err(file.refuse("must be a file of KEY=VALUE lines, of 1 MiB at most"));
    }
    let content = String::from_utf8(content).map_err(|_| file.refuse("must be UTF-8"))?;
    let mut properties = Vec::new();
    // Some editors begin a file with a byte order mark.
    for (index, line) in content.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let place = format!("{shown} line {}", index + 1);
        let property = Property::parse(line, &format!("{place}:"), file.is_option());
        properties.push(property.ok_or_else(|| anyhow!("{place}: must be KEY=VALUE"))?);
    }
    if properties.iter().any(|property| is_secret(&property.key)) {
        warnings.extend(readable_by_others(file));
    }
    Ok(properties)
}

/// The warning about a file with a secret that every user may read. (Its group is accepted: a service's file is often
/// root's, and readable by the service's group. A pipe is read only once, by this process.)
fn readable_by_others(file: &Value) -> Option<String> {
    let metadata = std::fs::metadata(&file.text).ok().filter(std::fs::Metadata::is_file)?;
    let mode = metadata.permissions().mode() & 0o7777;
    (mode & 0o004 != 0).then(|| {
        format!(
            "{}: holds a secret, and every user of this machine may read it: its mode is {mode:04o}, and 0600 is right, or \
             0640 with a group of its own (chmod o-r)",
            file.shown()
        )
    })
}

/// librdkafka checks a mechanism only when a client is created, and uses Kerberos if none is named.
fn validate_mechanism(properties: &Properties) -> Result<()> {
    let protocol = properties.find("security.protocol").unwrap_or_default().to_lowercase();
    let mechanism = properties.find("sasl.mechanisms");
    if mechanism.is_none() && !protocol.starts_with("sasl_") {
        return Ok(());
    }
    let feature = match mechanism.unwrap_or("GSSAPI").to_uppercase().as_str() {
        "GSSAPI" => features::GSSAPI,
        "OAUTHBEARER" | "SCRAM-SHA-256" | "SCRAM-SHA-512" => features::SSL,
        _ => return Ok(()),
    };
    match mechanism {
        Some(mechanism) if feature.is_built && protocol.starts_with("sasl_") => validate_token(properties, mechanism),
        _ if feature.is_built => Ok(()),
        Some(mechanism) => Err(anyhow!("property sasl.mechanisms {mechanism}: {}", feature.advice())),
        None => Err(anyhow!(
            "property security.protocol {protocol}: needs a property sasl.mechanisms (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, \
             OAUTHBEARER); without one it is GSSAPI, and {}",
            feature.advice()
        )),
    }
}

/// For a file that is missing OpenSSL's reason is `system lib`.
fn validate_files(properties: &Properties) -> Result<()> {
    let is_tls = properties.find("security.protocol").is_some_and(|protocol| protocol.to_lowercase().ends_with("ssl"));
    for key in FILES.iter().filter(|_| is_tls) {
        // `probe` is no file: it stands for the places where systems keep their authorities.
        let Some(path) = properties.find(key).filter(|path| *path != "probe" && !path.is_empty()) else { continue };
        // OpenSSL opens the files of a directory by their names, and does not list them.
        let access = if Path::new(path).is_dir() { AccessFlags::X_OK } else { AccessFlags::R_OK };
        // It is not opened: that would end a pipe.
        if let Err(errno) = eaccess(path, access) {
            bail!("property {key}: the file can't be read: {}", reason(&errno.into()));
        }
    }
    Ok(())
}

/// Without a source of tokens librdkafka waits for ever, and logs nothing.
fn validate_token(properties: &Properties, mechanism: &str) -> Result<()> {
    let is_oidc = properties.find("sasl.oauthbearer.method").is_some_and(|method| method.eq_ignore_ascii_case("oidc"));
    let is_unsigned = properties.find("enable.sasl.oauthbearer.unsecure.jwt").is_some_and(|value| {
        // Read like librdkafka reads it.
        ["true", "t", "1"].iter().any(|yes| value.eq_ignore_ascii_case(yes))
    });
    if is_oidc || is_unsigned || !mechanism.eq_ignore_ascii_case("OAUTHBEARER") {
        return Ok(());
    }
    let needs = "needs a property sasl.oauthbearer.method=oidc, and sasl.oauthbearer.token.endpoint.url";
    let advice = if features::OIDC.is_built { String::new() } else { format!("; {}", features::OIDC.advice()) };
    Err(anyhow!("property sasl.mechanisms {mechanism}: {needs}{advice}"))
}
