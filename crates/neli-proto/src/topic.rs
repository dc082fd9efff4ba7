//! R0: a log that keeps. Judges what the topic's configuration says.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

/// The least `retention.ms` that a log of leases may have: ten of the longest.
const LEAST_RETENTION: Duration = Duration::from_secs(600);

/// What was found out about the topic.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TopicFacts {
    /// Where the election's partition lies.
    pub layout: Layout,
    /// The topic's configuration; or why none of it could be read.
    pub settings: Result<Settings, String>,
}

/// Where the election's partition lies.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Layout {
    /// Id of the broker that leads it.
    pub leader: i32,
    /// Ids of the brokers that hold a replica of the partition.
    pub replicas: Vec<i32>,
    /// Ids of the cluster's brokers, as far as they are up.
    pub brokers: Vec<i32>,
}

impl Layout {
    /// The brokers that do not lead the partition.
    pub fn besides_leader(&self) -> impl Iterator<Item = i32> {
        self.brokers.iter().copied().filter(|broker| *broker != self.leader)
    }
}

/// The settings of a topic that R0 judges, as Kafka says them: its own, or its broker's defaults. One that is not shown is
/// `None`: Redpanda, for one, shows neither `min.insync.replicas` nor `unclean.leader.election.enable`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Settings {
    /// `cleanup.policy`: `delete`, `compact` or `compact,delete`.
    pub cleanup_policy: Option<String>,
    /// `retention.ms`; -1 is for ever.
    pub retention_ms: Option<i64>,
    /// `retention.bytes`; -1 is no limit.
    pub retention_bytes: Option<i64>,
    /// `message.timestamp.type`: `CreateTime` or `LogAppendTime`.
    pub timestamp_type: Option<String>,
    /// `unclean.leader.election.enable`.
    pub unclean_leader_election: Option<bool>,
    /// `min.insync.replicas`.
    pub min_insync_replicas: Option<u32>,
}

/// Which partition is judged, and where: what a command that mends it has to name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Place<'a> {
    /// Bootstrap servers.
    pub bootstrap: &'a str,
    /// The topic.
    pub topic: &'a str,
    /// The election's partition.
    pub partition: i32,
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
    /// It deletes whole segments from the log's head and nothing else: what is missing in between is a marker (L4).
    pub gaps_are_markers: bool,
    /// What applies, and what it risks; one warning names all.
    pub risks: Vec<String>,
}

/// Judges the topic, each setting by itself; a refusal says which setting, its value and what would be right.
///
/// # Errors
///
/// The log may lose records that a lease rests on.
pub fn judge(facts: &TopicFacts, place: Place<'_>) -> Result<Judgement, String> {
    let Ok(settings) = &facts.settings else {
        return Ok(Judgement { cut_is_harmless: false, gaps_are_markers: false, risks: risks(facts, place) });
    };
    if let Some(refusal) = refusals(settings).into_iter().next() {
        return Err(refusal);
    }
    let gaps_are_markers = settings.cleanup_policy.is_some();
    Ok(Judgement { cut_is_harmless: settings.keep_what_is_young(), gaps_are_markers, risks: risks(facts, place) })
}

/// The settings for which a topic is refused: each with its value, and what would be right.
#[must_use]
pub fn refusals(settings: &Settings) -> Vec<String> {
    let mut refusals = Vec::new();
    if let Some(policy) = settings.cleanup_policy.as_deref().filter(|policy| *policy != "delete") {
        refusals.push(format!("cleanup.policy={policy}: must be delete"));
    }
    let least = i64::try_from(LEAST_RETENTION.as_millis()).unwrap_or(i64::MAX);
    if let Some(retention) = settings.retention_ms.filter(|retention| *retention != -1 && *retention < least) {
        refusals.push(format!("retention.ms={retention}: must be -1 or at least {least}"));
    }
    refusals
}

/// What applies to a topic, and what it risks.
#[must_use]
pub fn risks(facts: &TopicFacts, place: Place<'_>) -> Vec<String> {
    let settings = match &facts.settings {
        Ok(settings) => settings,
        Err(reason) => {
            let risk = format!(
                "its configuration can't be read ({reason}): whether it keeps its records is unknown; allow DESCRIBE_CONFIGS on it"
            );
            return core::iter::once(risk).chain(replication_risk(&facts.layout, None, place)).collect();
        }
    };
    let mut risks = Vec::new();
    if let Some(clock) = settings.timestamp_type.as_deref().filter(|clock| *clock != "LogAppendTime") {
        risks.push(format!(
            "message.timestamp.type={clock}: retention goes by the candidates' clocks, and a clock an hour ahead is refused; LogAppendTime is right"
        ));
    }
    if let Some(bytes) = settings.retention_bytes.filter(|bytes| *bytes != -1) {
        risks.push(format!("retention.bytes={bytes}: a living leader's records may be cut; -1 is right"));
    }
    if settings.unclean_leader_election == Some(true) {
        risks.push(
            "unclean.leader.election.enable=true: records that were read may be lost again, and two jobs run; false is right"
                .to_owned(),
        );
    }
    risks.extend(replication_risk(&facts.layout, settings.min_insync_replicas, place));
    let hidden = settings.hidden();
    if !hidden.is_empty() {
        risks.push(format!(
            "the broker does not show {}: whether it keeps its records is judged by the other settings alone",
            hidden.join(", ")
        ));
    }
    risks
}

/// Judges the topic of facts, which is to keep each for `retention`: what is only a risk, for one warning.
///
/// # Errors
///
/// It loses facts that a key's next run rests on.
pub fn judge_topic_of_facts(facts: &TopicFacts, retention: Duration, place: Place<'_>) -> Result<Vec<String>, String> {
    let Ok(settings) = &facts.settings else {
        return Ok(vec!["its configuration can't be read: whether it keeps its facts is unknown".to_owned()]);
    };
    let policy = settings.cleanup_policy.as_deref();
    if let Some(policy) = policy.filter(|policy| !policy.split(',').any(|part| part.trim() == "compact")) {
        return Err(format!("cleanup.policy={policy}: must be compact or compact,delete"));
    }
    let mut risks = Vec::new();
    let wanted = i64::try_from(retention.as_millis()).unwrap_or(i64::MAX);
    let forgets = policy.is_some_and(|policy| policy.contains("delete"));
    if let Some(kept) = settings.retention_ms.filter(|kept| forgets && (0..wanted).contains(kept)) {
        risks.push(format!(
            "retention.ms={kept}: a key is forgotten, and runs again, earlier than --once-retention says ({wanted})"
        ));
    }
    if settings.unclean_leader_election == Some(true) {
        risks.push(
            "unclean.leader.election.enable=true: a fact may be lost, and its key run again; false is right".to_owned(),
        );
    }
    risks.extend(replication_risk(&facts.layout, settings.min_insync_replicas, place));
    Ok(risks)
}

impl Settings {
    /// The names of those that the broker does not show.
    fn hidden(&self) -> Vec<&'static str> {
        let shown = [
            ("cleanup.policy", self.cleanup_policy.is_some()),
            ("message.timestamp.type", self.timestamp_type.is_some()),
            ("min.insync.replicas", self.min_insync_replicas.is_some()),
            ("retention.bytes", self.retention_bytes.is_some()),
            ("retention.ms", self.retention_ms.is_some()),
            ("unclean.leader.election.enable", self.unclean_leader_election.is_some()),
        ];
        shown.into_iter().filter_map(|(name, is_shown)| (!is_shown).then_some(name)).collect()
    }

    /// Whether what was cut from the log's head is certainly older than the least retention: each setting that decides it was
    /// shown, and is right.
    fn keep_what_is_young(&self) -> bool {
        self.cleanup_policy.is_some()
            && self.retention_ms.is_some()
            && self.retention_bytes == Some(-1)
            && self.timestamp_type.as_deref() == Some("LogAppendTime")
    }
}

/// One broker can't do better; several can.
fn replication_risk(layout: &Layout, min_insync: Option<u32>, place: Place<'_>) -> Option<String> {
    if layout.brokers.len() < 2 {
        return None;
    }
    if layout.replicas.len() < 2 {
        return Some(format!(
            "it has one replica, though there are {} brokers (it was made while one was up, or told so): when that broker \
             is lost, so is the election; to mend it: {}",
            layout.brokers.len(),
            more_replicas(layout, place)
        ));
    }
    let min_insync = min_insync.filter(|least| *least < 2)?;
    Some(format!("min.insync.replicas={min_insync}: records that were read may be lost with one broker; 2 is right"))
}

/// The commands that give the partition up to three replicas, for a shell with Kafka's own tools: the broker that has it stays
/// the preferred leader.
fn more_replicas(layout: &Layout, place: Place<'_>) -> String {
    let Place { bootstrap, topic, partition } = place;
    let others = layout.brokers.iter().filter(|id| !layout.replicas.contains(id));
    let replicas: Vec<String> = layout.replicas.iter().chain(others).take(3).map(ToString::to_string).collect();
    let assign = format!(
        "echo '{{\"version\":1,\"partitions\":[{{\"topic\":\"{topic}\",\"partition\":{partition},\"replicas\":[{}]}}]}}' | \
         kafka-reassign-partitions.sh --bootstrap-server {bootstrap} --execute --reassignment-json-file /dev/stdin",
        replicas.join(",")
    );
    if replicas.len() < 3 {
        return assign;
    }
    format!(
        "{assign} && kafka-configs.sh --bootstrap-server {bootstrap} --alter --topic {topic} --add-config \
         min.insync.replicas=2"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place<'_> = Place { bootstrap: "kafka:9092", topic: "g.neli", partition: 0 };

    fn settings() -> Settings {
        Settings {
            cleanup_policy: Some("delete".into()),
            retention_ms: Some(86_400_000),
            retention_bytes: Some(-1),
            timestamp_type: Some("LogAppendTime".into()),
            unclean_leader_election: Some(false),
            min_insync_replicas: Some(2),
        }
    }

    fn layout(brokers: i32, replicas: i32) -> Layout {
        Layout { leader: 1, replicas: (1..=replicas).collect(), brokers: (1..=brokers).collect() }
    }

    fn judged(brokers: i32, replicas: i32, change: impl FnOnce(&mut Settings)) -> Result<Judgement, String> {
        let mut settings = settings();
        change(&mut settings);
        judge(&TopicFacts { layout: layout(brokers, replicas), settings: Ok(settings) }, PLACE)
    }

    #[test]
    fn the_topic_that_we_make_is_right() {
        assert_eq!(
            judged(3, 3, |_| {}),
            Ok(Judgement { cut_is_harmless: true, gaps_are_markers: true, risks: vec![] })
        );
        assert_eq!(judged(1, 1, |s| s.min_insync_replicas = Some(1)).unwrap().risks, Vec::<String>::new());
    }

    #[test]
    fn a_log_that_does_not_keep_is_refused() {
        for (change, said) in [
            ((|s: &mut Settings| s.cleanup_policy = Some("compact".into())) as fn(&mut Settings), "cleanup.policy"),
            (|s| s.cleanup_policy = Some("compact,delete".into()), "cleanup.policy=compact,delete"),
            (|s| s.retention_ms = Some(599_999), "retention.ms=599999: must be -1 or at least 600000"),
        ] {
            let refusal = judged(1, 1, change).unwrap_err();
            assert!(refusal.starts_with(said), "{refusal}");
        }
        let both = Settings { cleanup_policy: Some("compact".into()), retention_ms: Some(1), ..settings() };
        assert_eq!(refusals(&both).len(), 2, "each is told");
        assert!(judged(1, 1, |s| s.retention_ms = Some(-1)).is_ok());
        assert!(judged(1, 1, |s| s.retention_ms = Some(600_000)).is_ok());
    }

    #[test]
    fn a_topic_of_facts_is_compacted_and_keeps_each_as_long_as_is_wanted() {
        let judged = |change: &dyn Fn(&mut Settings)| {
            let mut settings = Settings { cleanup_policy: Some("compact,delete".into()), ..settings() };
            change(&mut settings);
            let facts = TopicFacts { layout: layout(3, 3), settings: Ok(settings) };
            judge_topic_of_facts(&facts, Duration::from_secs(86_400), PLACE)
        };
        assert_eq!(judged(&|_| {}), Ok(vec![]));
        assert_eq!(judged(&|s| s.cleanup_policy = Some("compact".into())), Ok(vec![]));
        let deleted = judged(&|s| s.cleanup_policy = Some("delete".into()));
        assert_eq!(deleted, Err("cleanup.policy=delete: must be compact or compact,delete".to_owned()));
        let short = judged(&|s| s.retention_ms = Some(86_399_999)).unwrap();
        assert!(short[0].starts_with("retention.ms=86399999: a key is forgotten"), "{short:?}");
        assert_eq!(judged(&|s| s.unclean_leader_election = Some(true)).unwrap().len(), 1);
    }

    #[test]
    fn each_risk_is_named_and_what_it_risks() {
        for (change, said) in [
            ((|s: &mut Settings| s.timestamp_type = Some("CreateTime".into())) as fn(&mut Settings), "CreateTime"),
            (|s| s.retention_bytes = Some(1_000_000), "retention.bytes=1000000"),
            (|s| s.unclean_leader_election = Some(true), "unclean"),
            (|s| s.min_insync_replicas = Some(1), "min.insync.replicas=1"),
        ] {
            let risks = judged(3, 3, change).unwrap().risks;
            assert_eq!(risks.len(), 1, "{risks:?}");
            assert!(risks[0].contains(said), "{risks:?}");
        }
    }

    #[test]
    fn one_replica_of_several_brokers_can_be_mended_by_the_command_that_is_said() {
        let risks = judged(3, 1, |s| s.min_insync_replicas = Some(1)).unwrap().risks;
        assert_eq!(risks.len(), 1, "{risks:?}");
        assert!(risks[0].starts_with("it has one replica, though there are 3 brokers"), "{risks:?}");
        let command = "echo '{\"version\":1,\"partitions\":[{\"topic\":\"g.neli\",\"partition\":0,\"replicas\":[1,2,3]}]}' | \
                       kafka-reassign-partitions.sh --bootstrap-server kafka:9092 --execute --reassignment-json-file \
                       /dev/stdin && kafka-configs.sh --bootstrap-server kafka:9092 --alter --topic g.neli --add-config \
                       min.insync.replicas=2";
        assert!(risks[0].ends_with(command), "{risks:?}");
        let elsewhere = TopicFacts {
            layout: Layout { leader: 2, replicas: vec![2], brokers: vec![1, 2] },
            settings: Ok(settings()),
        };
        let risks = judge(&elsewhere, PLACE).unwrap().risks;
        assert!(risks[0].contains("[2,1]") && !risks[0].contains("kafka-configs"), "{risks:?}");
    }

    #[test]
    fn what_is_shown_is_judged_whatever_else_is_hidden() {
        let compacted = Settings { cleanup_policy: Some("compact".into()), ..Settings::default() };
        let facts = TopicFacts { layout: layout(3, 3), settings: Ok(compacted) };
        assert_eq!(judge(&facts, PLACE), Err("cleanup.policy=compact: must be delete".to_owned()));
        let short = judged(3, 3, |s| (s.cleanup_policy, s.retention_ms) = (None, Some(1)));
        assert_eq!(short, Err("retention.ms=1: must be -1 or at least 600000".to_owned()));

        // As Redpanda has it.
        let hidden = |s: &mut Settings| (s.min_insync_replicas, s.unclean_leader_election) = (None, None);
        let judgement = judged(3, 3, hidden).unwrap();
        assert!(judgement.cut_is_harmless, "neither says what is deleted");
        assert_eq!(judgement.risks.len(), 1, "{judgement:?}");
        let named = "does not show min.insync.replicas, unclean.leader.election.enable:";
        assert!(judgement.risks[0].contains(named), "{judgement:?}");
        let clock = |s: &mut Settings| (s.min_insync_replicas, s.timestamp_type) = (None, Some("CreateTime".into()));
        assert_eq!(judged(3, 3, clock).unwrap().risks.len(), 2);
    }

    #[test]
    fn what_decides_whether_an_empty_log_is_believed_must_have_been_shown() {
        for hide in [
            (|s: &mut Settings| s.cleanup_policy = None) as fn(&mut Settings),
            |s| s.retention_ms = None,
            |s| s.retention_bytes = None,
            |s| s.timestamp_type = None,
        ] {
            assert!(!judged(1, 1, hide).unwrap().cut_is_harmless);
        }
    }

    #[test]
    fn an_empty_log_is_believed_only_where_no_leader_can_have_been_cut() {
        assert!(!judged(1, 1, |s| s.timestamp_type = Some("CreateTime".into())).unwrap().cut_is_harmless);
        assert!(!judged(1, 1, |s| s.retention_bytes = Some(1)).unwrap().cut_is_harmless);
        let unreadable = TopicFacts { layout: layout(1, 1), settings: Err("denied".into()) };
        let judgement = judge(&unreadable, PLACE).unwrap();
        assert!(!judgement.cut_is_harmless);
        assert_eq!(judgement.risks.len(), 1);
    }
}
