//! R0: a log that keeps. Judges what the topic's configuration says.

use std::time::Duration;

/// The least `retention.ms` that a log of leases may have: ten of the longest.
const LEAST_RETENTION: Duration = Duration::from_secs(600);

/// What was found out about the topic.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TopicFacts {
    /// Where the election's partition lies.
    pub layout: Layout,
    /// The topic's configuration; or why it could not be read.
    pub settings: Result<Settings, String>,
}

/// Where the election's partition lies.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Layout {
    /// Replicas of the partition.
    pub replicas: usize,
    /// Brokers of the cluster.
    pub brokers: usize,
}

/// The settings of a topic that R0 judges, as Kafka says them: its own, or its broker's defaults.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    /// `cleanup.policy`: `delete`, `compact` or `compact,delete`.
    pub cleanup_policy: String,
    /// `retention.ms`; -1 is for ever.
    pub retention_ms: i64,
    /// `retention.bytes`; -1 is no limit.
    pub retention_bytes: i64,
    /// `message.timestamp.type`: `CreateTime` or `LogAppendTime`.
    pub timestamp_type: String,
    /// `unclean.leader.election.enable`.
    pub unclean_leader_election: bool,
    /// `min.insync.replicas`.
    pub min_insync_replicas: u32,
}

/// Kafka's id of a topic: another one each time a topic of that name is made.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct TopicId {
    /// The most significant 64 bits.
    pub high: i64,
    /// The least significant 64 bits.
    pub low: i64,
}

/// Which topic stands under the election's name.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum TopicIdentity {
    /// The one with this id.
    Id(TopicId),
    /// None.
    Missing,
    /// There is one, and the broker has no ids for topics (Kafka before 2.8).
    Unnamed,
}

/// What R0 says of a topic.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Judgement {
    /// Whatever may have been cut from the log's head was older than every lease in it: an empty log is vacant.
    pub cut_is_harmless: bool,
    /// What applies, and what it risks; one warning names all.
    pub risks: Vec<String>,
}

/// Judges the topic; a refusal says which setting, its value and what would be right.
///
/// # Errors
///
/// The log may lose records that a lease rests on.
pub fn judge(facts: &TopicFacts) -> Result<Judgement, String> {
    let settings = match &facts.settings {
        Ok(settings) => settings,
        Err(reason) => {
            let risk = format!(
                "its configuration can't be read ({reason}): whether it keeps its records is unknown; allow DESCRIBE_CONFIGS on it"
            );
            let risks = std::iter::once(risk).chain(replication_risk(facts.layout, None)).collect();
            return Ok(Judgement { cut_is_harmless: false, risks });
        }
    };
    if settings.cleanup_policy != "delete" {
        return Err(format!("cleanup.policy={}: must be delete", settings.cleanup_policy));
    }
    let least = i64::try_from(LEAST_RETENTION.as_millis()).unwrap_or(i64::MAX);
    if settings.retention_ms != -1 && settings.retention_ms < least {
        return Err(format!("retention.ms={}: must be -1 or at least {least}", settings.retention_ms));
    }

    let mut risks = Vec::new();
    let broker_clock = settings.timestamp_type == "LogAppendTime";
    if !broker_clock {
        risks.push(format!(
            "message.timestamp.type={}: retention goes by the candidates' clocks, and a clock an hour ahead is refused; LogAppendTime is right",
            settings.timestamp_type
        ));
    }
    if settings.retention_bytes != -1 {
        risks.push(format!(
            "retention.bytes={}: a living leader's records may be cut; -1 is right",
            settings.retention_bytes
        ));
    }
    if settings.unclean_leader_election {
        risks.push(
            "unclean.leader.election.enable=true: records that were read may be lost again, and two jobs run; false is right"
                .to_owned(),
        );
    }
    risks.extend(replication_risk(facts.layout, Some(settings.min_insync_replicas)));
    Ok(Judgement { cut_is_harmless: broker_clock && settings.retention_bytes == -1, risks })
}

/// One broker can't do better; several can.
fn replication_risk(layout: Layout, min_insync: Option<u32>) -> Option<String> {
    if layout.brokers < 2 {
        return None;
    }
    if layout.replicas < 2 {
        return Some("it has one replica: when that broker is lost, so is the election; 3 are right".to_owned());
    }
    let min_insync = min_insync.filter(|least| *least < 2)?;
    Some(format!("min.insync.replicas={min_insync}: records that were read may be lost with one broker; 2 is right"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings {
            cleanup_policy: "delete".into(),
            retention_ms: 86_400_000,
            retention_bytes: -1,
            timestamp_type: "LogAppendTime".into(),
            unclean_leader_election: false,
            min_insync_replicas: 2,
        }
    }

    fn judged(brokers: usize, replicas: usize, change: impl FnOnce(&mut Settings)) -> Result<Judgement, String> {
        let mut settings = settings();
        change(&mut settings);
        judge(&TopicFacts { layout: Layout { replicas, brokers }, settings: Ok(settings) })
    }

    #[test]
    fn the_topic_that_we_make_is_right() {
        assert_eq!(judged(3, 3, |_| {}), Ok(Judgement { cut_is_harmless: true, risks: vec![] }));
        assert_eq!(judged(1, 1, |s| s.min_insync_replicas = 1).unwrap().risks, Vec::<String>::new());
    }

    #[test]
    fn a_log_that_does_not_keep_is_refused() {
        for (change, said) in [
            ((|s: &mut Settings| s.cleanup_policy = "compact".into()) as fn(&mut Settings), "cleanup.policy"),
            (|s| s.cleanup_policy = "compact,delete".into(), "cleanup.policy=compact,delete"),
            (|s| s.retention_ms = 599_999, "retention.ms=599999: must be -1 or at least 600000"),
        ] {
            let refusal = judged(1, 1, change).unwrap_err();
            assert!(refusal.starts_with(said), "{refusal}");
        }
        assert!(judged(1, 1, |s| s.retention_ms = -1).is_ok());
        assert!(judged(1, 1, |s| s.retention_ms = 600_000).is_ok());
    }

    #[test]
    fn each_risk_is_named_and_what_it_risks() {
        for (change, said) in [
            ((|s: &mut Settings| s.timestamp_type = "CreateTime".into()) as fn(&mut Settings), "CreateTime"),
            (|s| s.retention_bytes = 1_000_000, "retention.bytes=1000000"),
            (|s| s.unclean_leader_election = true, "unclean"),
            (|s| s.min_insync_replicas = 1, "min.insync.replicas=1"),
        ] {
            let risks = judged(3, 3, change).unwrap().risks;
            assert_eq!(risks.len(), 1, "{risks:?}");
            assert!(risks[0].contains(said), "{risks:?}");
        }
        assert!(judged(3, 1, |_| {}).unwrap().risks[0].contains("one replica"));
    }

    #[test]
    fn an_empty_log_is_believed_only_where_no_leader_can_have_been_cut() {
        assert!(!judged(1, 1, |s| s.timestamp_type = "CreateTime".into()).unwrap().cut_is_harmless);
        assert!(!judged(1, 1, |s| s.retention_bytes = 1).unwrap().cut_is_harmless);
        let unreadable = TopicFacts { layout: Layout { replicas: 1, brokers: 1 }, settings: Err("denied".into()) };
        let judgement = judge(&unreadable).unwrap();
        assert!(!judgement.cut_is_harmless);
        assert_eq!(judgement.risks.len(), 1);
    }
}
