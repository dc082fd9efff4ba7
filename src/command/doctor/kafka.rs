//! Checks whether Kafka can be reached, and which rights this user has there.

use std::time::Duration;

use neli_kafka::embedded::BrokerFinder;
use neli_kafka::{Access, Examination, Layer, MemberTimings, NotAnswered, SESSION_TIMEOUT};
use neli_proto::assumptions;
use neli_proto::candidate::{Elector, Timings};

use super::findings::CheckOutcome::{Fail, Warn};
use super::findings::{Findings, Fixes};
use super::topic::TopicCheck;
use super::{candidates, topics};
use crate::command::look::access_of;
use crate::config::{Config, EMBEDDED_BY_ADDRESS};
use crate::text::{counted, list, reason, spoken};

/// The assignor of neli-run's members of a consumer group.
const ASSIGNOR: &str = "cooperative-sticky";

/// Kafka's own, for a question that no other topic is for.
const ANY_TOPIC: &str = "__consumer_offsets";

const BROKER_SESSION: &str = "broker.session.timeout.ms";
const SHORTEST_SESSION: &str = "group.min.session.timeout.ms";
const LONGEST_SESSION: &str = "group.max.session.timeout.ms";
const MOST_MEMBERS: &str = "group.max.size";

/// Checks Kafka.
pub(super) fn examine(config: &Config, timeout: Duration, findings: &mut Findings) {
    let Ok(access) = access_of(&config.client) else { return without_embedded_broker(findings) };
    let access = Access { refuses_embedded: Some(EMBEDDED_BY_ADDRESS), ..access };
    let topic = Some(&*config.elections.topic).filter(|topic| !topic.is_empty());
    let mut examination = match Examination::start(&access, topic, timeout) {
        Ok(examination) => examination,
        Err(unreachable) => {
            not_reached(config, &access, &unreachable, findings);
            return findings.skipped("topic", "not checked, nor the checks that follow: Kafka can't be reached");
        }
    };
    reached(config, &access, Layer::Login, findings);
    examination.ask_brokers(topic.unwrap_or(ANY_TOPIC));
    brokers(&examination, &access.bootstrap, timeout, findings);
    if topic.is_none() {
        return findings.skipped("topic", "not checked, nor the checks that follow: --group is not given");
    }
    let fixes = Fixes::of(&config.client, &access.bootstrap);
    if access.embedded.is_none() {
        let look = |(elections, facts)| {
            TopicCheck { elections, facts, examination: &examination, fixes: &fixes, config }.examine(findings)
        };
        // Of the journal, which is the first.
        let to_spare = topics(config).into_iter().map(look).reduce(|journal, _| journal).unwrap_or_default();
        let answer = examination.broker_settings(&[BROKER_SESSION, SHORTEST_SESSION, LONGEST_SESSION, MOST_MEMBERS]);
        let number = |name| number(answer.as_deref().unwrap_or_default(), name);
        let time = |name| number(name).map(Duration::from_millis);
        let lease = (&config.timings, config.lease_shown.as_str());
        outlive_broker(lease, answer.as_ref().map(|_| time(BROKER_SESSION)), to_spare, findings);
        if matches!(config.timings.elector(), Elector::Group(_)) {
            let claims_nothing = config.timings.elector() == Elector::Group(None);
            let most_members = number(MOST_MEMBERS).and_then(|most| usize::try_from(most).ok());
            group(config, &examination, &fixes, most_members, claims_nothing, findings);
            let own = MemberTimings::of(&config.client.properties).session_timeout;
            group_session(own, (time(SHORTEST_SESSION), time(LONGEST_SESSION)), claims_nothing, findings);
        }
    }
    candidates::examine(config, &access, timeout, findings);
}

/// With `--embedded` alone there may be no address.
fn without_embedded_broker(findings: &mut Findings) {
    match BrokerFinder::of_user().and_then(|finder| finder.directory.holder()) {
        Ok(None) => {
            findings.ok("brokers", "no embedded broker runs yet: the first candidate with --embedded starts one");
        }
        Ok(Some(left)) => findings.fail("brokers", left, None),
        Err(error) => findings.fail("brokers", format!("--embedded: {}", reason(&error)), None),
    }
}

/// Reports how many brokers answer, and which do not: Kafka may still count on one that has died.
fn brokers(examination: &Examination, bootstrap: &str, timeout: Duration, findings: &mut Findings) {
    let silent: Vec<String> = examination.silent().map(|(broker, address)| format!("{broker} ({address})")).collect();
    let all = examination.brokers();
    let answering = all - silent.len();
    if silent.is_empty() {
        return findings.ok("brokers", format!("{all} up ({bootstrap})"));
    }
    let (silent, within) = (list(silent), spoken(timeout));
    let text = format!("{answering} of {all} up: no answer within {within} from broker {silent}");
    let fix = Some("start it, or let this machine reach that address; see --timeout".to_owned());
    if answering == 0 { findings.fail("brokers", text, fix) } else { findings.warn("brokers", text, fix) }
}

/// Reports the layers of the connection that work, up to this one.
fn reached(config: &Config, access: &Access, layer: Layer, findings: &mut Findings) {
    let find = |key| config.client.properties.find(key);
    let protocol = find("security.protocol").unwrap_or("plaintext").to_lowercase();
    if layer < Layer::Login {
        findings.ok("brokers", format!("{}: it accepts connections", access.bootstrap));
    }
    if layer >= Layer::Tls && protocol.ends_with("ssl") {
        trusted(find("enable.ssl.certificate.verification"), find("ssl.endpoint.identification.algorithm"), findings);
    }
    if layer == Layer::Login && protocol.starts_with("sasl") {
        let mechanism = find("sasl.mechanisms").unwrap_or("GSSAPI");
        let user = find("sasl.username").map_or_else(String::new, |user| format!(" as {user}"));
        findings.ok("login", format!("{mechanism}{user}"));
    }
}

/// Reports whom the TLS of this client trusts, by two of its properties.
fn trusted(verification: Option<&str>, identification: Option<&str>, findings: &mut Findings) {
    let is = |value: Option<&str>, off: &[&str]| value.is_some_and(|value| off.contains(&&*value.to_lowercase()));
    let (text, fix) = if is(verification, &["false", "f", "0"]) {
        ("no certificate is verified", "leave out enable.ssl.certificate.verification; ssl.ca.location=FILE")
    } else if is(identification, &["none"]) {
        ("a certificate may be that of another host", "leave out ssl.endpoint.identification.algorithm")
    } else {
        return findings.ok("tls", "the broker's certificate is accepted");
    };
    let text = format!("{text}: whoever is on the way to Kafka can read all that is sent, and answer in its place");
    findings.warn("tls", text, Some(fix.to_owned()));
}

fn not_reached(config: &Config, access: &Access, (layer, why): &(Layer, String), findings: &mut Findings) {
    let (works, check) = match layer {
        Layer::Client => return findings.fail(if why.contains("ssl.") { "tls" } else { "brokers" }, why, None),
        Layer::Connection => {
            // Why a connection is closed at once is said with what to do.
            let is_closed = why.contains("closes connections without an answer");
            let fix = "start Kafka there, let this machine reach that address, or correct --brokers; see --timeout";
            return findings.fail("brokers", why, (!is_closed).then(|| fix.to_owned()));
        }
        Layer::Tls => (Layer::Connection, "tls"),
        Layer::Login => (Layer::Tls, "login"),
        Layer::Cluster => (Layer::Login, "brokers"),
    };
    reached(config, access, works, findings);
    findings.fail(check, why, None);
}

/// A number in a broker's configuration; `None` if it is unknown.
fn number(settings: &[(String, Option<String>)], name: &str) -> Option<u64> {
    let (_, value) = settings.iter().find(|(setting, _)| setting == name)?;
    value.as_deref()?.parse().ok()
}

/// Checks whether the lease, which is given with its option as a user would type it, is longer than the time of a broker's death. If Kafka
/// needs every broker of a partition, no lease is long enough.
fn outlive_broker(
    (timings, shown): (&Timings, &str),
    session: Result<Option<Duration>, &NotAnswered>,
    to_spare: usize,
    findings: &mut Findings,
) {
    let check = "broker-session";
    match session {
        Err(NotAnswered::Forbidden) => {
            // The right shows all of the cluster's settings, which is too much for this alone.
            let text = format!(
                "whether the lease outlives a broker's death is not known: without DESCRIBE_CONFIGS on the cluster choose it by the \
                 brokers' {BROKER_SESSION} (see docs/operating.md)"
            );
            findings.warn(check, text, None);
        }
        Err(NotAnswered::Other(why)) => findings.skipped(check, format!("brokers' settings are unknown: {why}")),
        Ok(None) => findings.skipped(check, format!("no broker reports its {BROKER_SESSION}")),
        Ok(Some(_)) if to_spare == 0 => {
            findings.ok(check, "whatever the lease, nobody leads while a broker of its partition is down");
        }
        Ok(Some(session)) => {
            let Some(warning) = assumptions::warning(timings, session) else {
                let session = session.as_millis();
                return findings.ok(check, format!("the lease outlives a broker's death ({BROKER_SESSION}={session})"));
            };
            findings.warn(check, format!("{shown}: {warning}"), None);
        }
    }
}

/// Reports why the group would refuse a candidate, and what that means. With `--patience never` it `claims_nothing`.
fn refused(claims_nothing: bool, check: &'static str, why: &str, fix: Option<String>, findings: &mut Findings) {
    let (outcome, then) = if claims_nothing {
        (Fail, "claims nothing (--patience never)")
    } else {
        (Warn, "has no precedence, and leads as with --elect log")
    };
    findings.add(outcome, check, &format!("{why}; a candidate here {then}"), fix);
}

/// What a join of the group would meet.
fn group(
    config: &Config,
    examination: &Examination,
    fixes: &Fixes,
    most_members: Option<usize>,
    claims_nothing: bool,
    findings: &mut Findings,
) {
    let name = &config.elections.group;
    let lacks = |right: &str| {
        let allow = fixes.allow(&["Read"], ("--group", name));
        (format!("this user has no right to {right}, or use --elect log"), Some(allow))
    };
    let (why, fix) = match examination.group(name) {
        Err(NotAnswered::Forbidden) => lacks("DESCRIBE it; allow READ, which implies it"),
        Err(NotAnswered::Other(why)) => {
            return findings.warn("group", format!("group \"{name}\": unknown ({why})"), None);
        }
        Ok(group) if group.rights.is_some_and(|rights| !rights.read) => lacks("READ it; allow READ on it"),
        Ok(group) => match join(group.members, &group.assignor, most_members) {
            Ok(members) => return findings.ok("group", format!("group \"{name}\": {members}; this user may join it")),
            Err(why) => (why, None),
        },
    };
    refused(claims_nothing, "group", &format!("group \"{name}\": {why}"), fix, findings);
}

/// The number of a group's members; or why it would refuse another one. While the group rebalances, its assignor is unknown.
fn join(members: usize, assignor: &str, most_members: Option<usize>) -> Result<String, String> {
    let shown = if members == 0 { "no members".to_owned() } else { counted(members as u64, "member") };
    if members > 0 && !["", ASSIGNOR].contains(&assignor) {
        Err(format!(
            "it has {shown} with the assignor {assignor}, which is another program's: it refuses candidates (Inconsistent group \
             protocol), or assigns their partition to that program; choose another --group, which no other program has as its group.id"
        ))
    } else if most_members.is_some_and(|most| members >= most) {
        Err(format!(
            "it has {shown}, which is all that {MOST_MEMBERS} of the broker allows, and refuses others; raise that, or use --elect log"
        ))
    } else {
        Ok(shown)
    }
}

/// Checks whether the brokers accept the group session that a candidate asks for.
fn group_session(
    own: Duration,
    bounds: (Option<Duration>, Option<Duration>),
    claims_nothing: bool,
    findings: &mut Findings,
) {
    let (own_ms, (shortest, longest)) = (own.as_millis(), bounds);
    let refuses = [
        (SHORTEST_SESSION, shortest.filter(|shortest| own < *shortest)),
        (LONGEST_SESSION, longest.filter(|longest| own > *longest)),
    ];
    if let Some((setting, bound)) = refuses.into_iter().find_map(|(setting, bound)| Some((setting, bound?.as_millis())))
    {
        let why = format!("{SESSION_TIMEOUT}={own_ms} is refused: {setting}={bound}");
        refused(claims_nothing, "group-session", &why, Some(format!("-X {SESSION_TIMEOUT}={bound}")), findings);
    } else if bounds != (None, None) {
        findings.ok("group-session", format!("{SESSION_TIMEOUT}={own_ms} is taken"));
    }
}

#[cfg(test)]
mod tests {
    use neli_proto::candidate::Durations;

    use super::*;
    use crate::command::doctor::findings::page_of;

    #[test]
    fn tls_that_verifies_nothing_is_a_warning() {
        let of = |verification, identification| page_of(|findings| trusted(verification, identification, findings));
        assert!(of(None, None).starts_with("ok    tls  "));
        assert!(of(Some("true"), Some("https")).starts_with("ok    tls  "));
        assert!(of(Some("False"), None).starts_with("WARN  tls  no certificate is verified: "));
        assert!(of(None, Some("none")).starts_with("WARN  tls  a certificate may be that of another host: "));
    }

    #[test]
    fn a_session_that_the_brokers_refuse_costs_the_precedence() {
        let of = |ms, claims_nothing| {
            let bounds = (Some(Duration::from_secs(6)), Some(Duration::from_secs(60)));
            page_of(|findings| group_session(Duration::from_millis(ms), bounds, claims_nothing, findings))
        };
        let short = of(3_000, false);
        assert!(short.starts_with("WARN  group-session  session.timeout.ms=3000 is refused: group.min."), "{short}");
        assert!(short.contains("no precedence"), "{short}");
        let never = of(70_000, true);
        assert!(never.starts_with("FAIL  group-session  ") && never.contains("-X session.timeout.ms=60000"), "{never}");
        let fits = of(6_000, false);
        assert!(fits.starts_with("ok    group-session  "), "{fits}");
    }

    #[test]
    fn a_lease_that_the_death_of_a_broker_would_end_is_a_warning() {
        let durations = |seconds: u64| Durations {
            lease: Duration::from_secs(seconds),
            heartbeat_interval: Duration::from_millis(500),
            kill_margin: Duration::from_millis(100),
            fence_warning: Duration::ZERO,
            preempt_after: None,
            overlap: None,
        };
        let of = |seconds, to_spare, session| {
            let timings = Timings::new(durations(seconds), Elector::Log).unwrap();
            page_of(|findings| outlive_broker((&timings, "--lease 5"), session, to_spare, findings))
        };
        let known = Ok(Some(Duration::from_secs(9)));
        assert!(of(5, 1, known).starts_with("WARN  broker-session  --lease 5: "), "{}", of(5, 1, known));
        assert!(of(30, 1, known).starts_with("ok    broker-session  the lease outlives"), "{}", of(30, 1, known));
        let none = of(30, 0, known);
        assert!(none.starts_with("ok    broker-session  whatever the lease, "), "{none}");
        let unknown = of(5, 1, Err(&NotAnswered::Forbidden));
        assert!(unknown.contains("DESCRIBE_CONFIGS") && !unknown.contains("fix: "), "{unknown}");
    }

    #[test]
    fn a_join_is_refused_by_members_of_another_kind_and_by_a_full_group() {
        assert_eq!(join(0, "range", Some(1)), Ok("no members".to_owned()));
        assert_eq!(join(2, ASSIGNOR, Some(3)), Ok("2 members".to_owned()));
        assert_eq!(join(1, "", None), Ok("1 member".to_owned()), "it rebalances");
        let foreign = join(2, "range", None).unwrap_err();
        assert!(foreign.contains("2 members with the assignor range"), "{foreign}");
        let full = join(3, ASSIGNOR, Some(3)).unwrap_err();
        assert!(full.contains("3 members") && full.contains("group.max.size"), "{full}");
    }
}
