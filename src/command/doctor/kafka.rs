//! Checks whether Kafka can be reached, and which rights this user has there.

use std::time::Duration;

use neli::program::{Access, Brokers, Examination, Layer, MemberTimings, NotAnswered, SESSION_TIMEOUT, Unreachable};
use neli_proto::broker_death;
use neli_proto::candidate::{Elector, Timings};

use super::findings::Findings;
use super::fixes::{Fixes, Resource};
use super::topic::{Subject, TopicKind};
use super::{candidates, topic, topic_of_facts};
use crate::command::reading::access;
use crate::config::{Config, Doctor};

/// The assignor of neli-run's members of a consumer group.
const ASSIGNOR: &str = "cooperative-sticky";

const BROKER_SESSION: &str = "broker.session.timeout.ms";
const SHORTEST_SESSION: &str = "group.min.session.timeout.ms";
const LONGEST_SESSION: &str = "group.max.session.timeout.ms";

/// Checks Kafka.
pub(super) fn examine(doctor: &Doctor, findings: &mut Findings) {
    let config = &doctor.candidate;
    let access = match (access(&config.client), &config.client.brokers) {
        (Ok(access), _) => access,
        (Err(_), Brokers::Embedded) => {
            return findings
                .ok("brokers", "no embedded broker runs yet: the first candidate with --embedded starts one");
        }
        (Err(refusal), Brokers::At(_)) => return findings.fail("brokers", refusal.to_string(), None),
    };
    let topic = doctor.has_group.then_some(config.election.topic.as_str());
    let examination = match Examination::start(&access, topic, doctor.timeout) {
        Ok(examination) => examination,
        Err(unreachable) => {
            not_reached(config, &access, &unreachable, findings);
            return findings.skipped("topic", "not checked, nor the checks that follow: Kafka can't be reached");
        }
    };
    reached(config, &access, Layer::Login, findings);
    let brokers = examination.brokers();
    findings.ok("brokers", format!("{brokers} up ({})", access.bootstrap));
    if !doctor.has_group {
        return findings.skipped("topic", "not checked, nor the checks that follow: --group is not given");
    }
    let fixes = Fixes::of(&config.client, &access.bootstrap);
    if access.embedded.is_none() {
        let journal = Subject { elections: config.elections(), kind: TopicKind::Journal };
        let facts =
            topic_of_facts(config).map(|(elections, wanted)| Subject { elections, kind: TopicKind::Facts(wanted) });
        let look = topic::Look { examination: &examination, fixes: &fixes, config, bootstrap: &access.bootstrap };
        let replicas = look.at(&journal, findings);
        if let Some(facts) = facts {
            look.at(&facts, findings);
        }
        let sessions = Sessions::of(&examination);
        outlive_broker(
            Lease { timings: &config.timings, shown: &config.lease_shown },
            &sessions,
            replicas,
            &fixes,
            findings,
        );
        if matches!(config.timings.elector(), Elector::Group(_)) {
            group(config, &examination, &fixes, findings);
            let own = MemberTimings::of(&config.client.properties).session_timeout;
            group_session(own, &sessions, findings);
        }
    }
    candidates::examine(doctor, &access, findings);
}

/// Reports the layers of the connection that work, up to this one.
fn reached(config: &Config, access: &Access, layer: Layer, findings: &mut Findings) {
    let find = |key| config.client.properties.find(key);
    let protocol = find("security.protocol").unwrap_or("plaintext").to_lowercase();
    if layer < Layer::Login {
        findings.ok("brokers", format!("{}: it accepts connections", access.bootstrap));
    }
    if layer >= Layer::Tls && protocol.ends_with("ssl") {
        findings.ok("tls", "the broker's certificate is accepted");
    }
    if layer == Layer::Login && protocol.starts_with("sasl") {
        let mechanism = find("sasl.mechanisms").unwrap_or("GSSAPI");
        let user = find("sasl.username").map_or_else(String::new, |user| format!(" as {user}"));
        findings.ok("login", format!("{mechanism}{user}"));
    }
}

fn not_reached(config: &Config, access: &Access, Unreachable { layer, why }: &Unreachable, findings: &mut Findings) {
    match layer {
        Layer::Connection => findings.fail("brokers", why, None),
        Layer::Tls => {
            findings.ok("brokers", format!("{}: it accepts connections", access.bootstrap));
            findings.fail("tls", why, None);
        }
        Layer::Login => {
            reached(config, access, Layer::Tls, findings);
            findings.fail("login", why, None);
        }
        Layer::Cluster => {
            reached(config, access, Layer::Login, findings);
            findings.fail("brokers", why, None);
        }
    }
}

/// The time limits in a broker's configuration; `None` if unknown.
struct Sessions {
    /// Why they are unknown.
    not_answered: Option<NotAnswered>,
    broker: Option<Duration>,
    shortest: Option<Duration>,
    longest: Option<Duration>,
}

impl Sessions {
    fn of(examination: &Examination) -> Self {
        let (settings, not_answered) =
            match examination.broker_settings(&[BROKER_SESSION, SHORTEST_SESSION, LONGEST_SESSION]) {
                Ok(settings) => (settings, None),
                Err(not_answered) => (Vec::new(), Some(not_answered)),
            };
        let find = |name: &str| {
            let (_, value) = settings.iter().find(|(setting, _)| setting == name)?;
            value.as_deref()?.parse().ok().map(Duration::from_millis)
        };
        Self {
            not_answered,
            broker: find(BROKER_SESSION),
            shortest: find(SHORTEST_SESSION),
            longest: find(LONGEST_SESSION),
        }
    }
}

/// The lease that a candidate would have.
#[derive(Clone, Copy)]
struct Lease<'a> {
    timings: &'a Timings,
    /// The option as a user would type it.
    shown: &'a str,
}

/// Checks whether the lease is longer than the time of a broker's death. If the topic has a single replica, no lease is long enough.
fn outlive_broker(lease: Lease<'_>, sessions: &Sessions, replicas: usize, fixes: &Fixes, findings: &mut Findings) {
    let check = "broker-session";
    match (&sessions.not_answered, sessions.broker) {
        (Some(NotAnswered::Forbidden), _) => {
            let text = "this user has no right to DESCRIBE_CONFIGS on the cluster: whether the lease outlives a broker's death is not known";
            findings.warn(check, text, Some(fixes.allow(&["DescribeConfigs"], Resource::Cluster)));
        }
        (Some(NotAnswered::Other(why)), _) => findings.skipped(check, format!("brokers' settings are unknown: {why}")),
        (None, None) => findings.skipped(check, format!("no broker reports its {BROKER_SESSION}")),
        (None, Some(_)) if replicas < 2 => {
            findings.ok(check, "one replica: whatever the lease, nobody leads while its broker is away");
        }
        (None, Some(session)) => {
            let Some(warning) = broker_death::warning(lease.timings, session) else {
                let session = session.as_millis();
                return findings.ok(check, format!("the lease outlives a broker's death ({BROKER_SESSION}={session})"));
            };
            findings.warn(check, format!("{}: {warning}", lease.shown), None);
        }
    }
}

fn group(config: &Config, examination: &Examination, fixes: &Fixes, findings: &mut Findings) {
    let name = &config.election.group;
    let allow = || Some(fixes.allow(&["Read"], Resource::Group(name)));
    let description = match examination.group(name) {
        Ok(description) => description,
        Err(NotAnswered::Forbidden) => {
            let text = format!(
                "group \"{name}\": this user has no right to DESCRIBE it; allow READ, which implies it, or use --elect log"
            );
            return findings.fail("group", text, allow());
        }
        Err(NotAnswered::Other(why)) => {
            return findings.warn("group", format!("group \"{name}\": unknown ({why})"), None);
        }
    };
    if description.rights.is_some_and(|rights| !rights.read) {
        let text = format!("group \"{name}\": this user has no right to READ it; allow READ on it, or use --elect log");
        return findings.fail("group", text, allow());
    }
    if is_foreign(description.members, &description.assignor) {
        let text = format!("group \"{name}\": it has members that are no neli-run; choose another --group");
        return findings.fail("group", text, None);
    }
    let members = match description.members {
        0 => "no members".to_owned(),
        1 => "1 member".to_owned(),
        members => format!("{members} members"),
    };
    findings.ok("group", format!("group \"{name}\": {members}; this user may join it"));
}

/// Whether the members of a group are not candidates. While the group rebalances, its assignor is unknown.
fn is_foreign(members: usize, assignor: &str) -> bool {
    members > 0 && !["", ASSIGNOR].contains(&assignor)
}

/// Checks whether the brokers accept the group session that a candidate asks for.
fn group_session(own: Duration, sessions: &Sessions, findings: &mut Findings) {
    let ms = |duration: Duration| duration.as_millis();
    let refused =
        |setting: &str, bound: Duration| format!("{SESSION_TIMEOUT}={} is refused: {setting}={}", ms(own), ms(bound));
    let fix = |bound: Duration| Some(format!("-X {SESSION_TIMEOUT}={}", ms(bound)));
    match (sessions.shortest, sessions.longest) {
        (Some(shortest), _) if own < shortest => {
            findings.fail("group-session", refused(SHORTEST_SESSION, shortest), fix(shortest));
        }
        (_, Some(longest)) if own > longest => {
            findings.fail("group-session", refused(LONGEST_SESSION, longest), fix(longest));
        }
        (None, None) => {}
        _ => findings.ok("group-session", format!("{SESSION_TIMEOUT}={} is taken", ms(own))),
    }
}

#[cfg(test)]
mod tests {
    use neli::program::{Client, Properties};
    use neli_proto::candidate::Durations;

    use super::*;
    use crate::command::doctor::findings::page_of;

    fn sessions(broker: u64, shortest: u64, longest: u64) -> Sessions {
        let [broker, shortest, longest] = [broker, shortest, longest].map(|ms| Some(Duration::from_millis(ms)));
        Sessions { not_answered: None, broker, shortest, longest }
    }

    #[test]
    fn a_session_that_the_brokers_refuse_fails() {
        let of = |ms| {
            page_of(|findings| group_session(Duration::from_millis(ms), &sessions(9_000, 6_000, 60_000), findings))
        };
        assert!(
            of(3_000).starts_with("FAIL  group-session  session.timeout.ms=3000 is refused: group.min."),
            "{}",
            of(3_000)
        );
        assert!(of(70_000).contains("-X session.timeout.ms=60000"), "{}", of(70_000));
        assert!(of(6_000).starts_with("ok    group-session  "), "{}", of(6_000));
    }

    #[test]
    fn a_lease_that_the_death_of_a_broker_would_end_is_a_warning() {
        let client = Client { brokers: Brokers::At("a:1".to_owned()), properties: Properties(Vec::new()) };
        let fixes = Fixes::of(&client, "a:1");
        let durations = |seconds: u64| Durations {
            lease: Duration::from_secs(seconds),
            heartbeat_interval: Duration::from_millis(500),
            kill_margin: Duration::from_millis(100),
            fence_warning: Duration::ZERO,
            claim_delay: Duration::ZERO,
            preempt_after: None,
            overlap: None,
        };
        let of = |seconds, replicas, sessions: &Sessions| {
            let timings = Timings::new(durations(seconds), Elector::Log).unwrap();
            let lease = Lease { timings: &timings, shown: "--lease 5" };
            page_of(|findings| outlive_broker(lease, sessions, replicas, &fixes, findings))
        };
        let known = sessions(9_000, 6_000, 60_000);
        assert!(of(5, 3, &known).starts_with("WARN  broker-session  --lease 5: "), "{}", of(5, 3, &known));
        assert!(of(30, 3, &known).starts_with("ok    broker-session  the lease outlives"), "{}", of(30, 3, &known));
        assert!(of(5, 1, &known).starts_with("ok    broker-session  one replica"), "{}", of(5, 1, &known));
        let forbidden = Sessions { not_answered: Some(NotAnswered::Forbidden), ..sessions(0, 0, 0) };
        assert!(of(5, 3, &forbidden).contains("DESCRIBE_CONFIGS"), "{}", of(5, 3, &forbidden));
    }

    #[test]
    fn members_of_another_kind_are_foreign() {
        assert!(is_foreign(1, "range"));
        assert!(!is_foreign(0, "range") && !is_foreign(2, ASSIGNOR) && !is_foreign(1, ""));
    }
}
