//! R0: judges by the topic's configuration whether its log keeps the records that leases depend on.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;
use core::{fmt, iter};

/// A topic that has been missing in all answers for this long is gone. Before that, a broker that has just started may not know it yet.
pub const GONE_AFTER: Duration = Duration::from_secs(5);

/// The least `retention.ms` of a journal: ten times the longest lease.
const LEAST_RETENTION: Duration = Duration::from_secs(600);

/// The facts about the topic that R0 needs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TopicFacts {
    /// The brokers of the partitions in use.
    pub layout: Layout,
    /// The topic's configuration, or why none of it could be read.
    pub settings: Result<TopicSettings, Unread>,
}

/// Why none of a topic's configuration could be read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Unread {
    /// The question has failed, in these words; another one may be answered.
    Failed(String),
    /// This user has no right to it.
    Forbidden,
    /// The brokers do not support the question.
    Unsupported,
}

/// The brokers of the partitions in use.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Layout {
    /// Id of the broker that leads the first of the partitions.
    pub leader: i32,
    /// Ids of the brokers that hold a replica of each partition. An operator may have moved some, or given replicas to some alone.
    pub replicas: BTreeMap<i32, Vec<i32>>,
    /// Ids of the cluster's brokers that are up.
    pub brokers: Vec<i32>,
}

impl Layout {
    /// The number of replicas of the partition that has the fewest.
    pub fn fewest_replicas(&self) -> usize {
        self.replicas.values().map(Vec::len).min().unwrap_or(1)
    }

    /// The brokers that do not lead the first partition.
    pub fn besides_leader(&self) -> impl Iterator<Item = i32> {
        self.brokers.iter().copied().filter(|broker| *broker != self.leader)
    }
}

/// The settings of a topic that R0 judges, as Kafka reports them: the topic's own, or its broker's defaults. A setting that the broker does
/// not show is `None`. For example, Redpanda shows neither `min.insync.replicas` nor `unclean.leader.election.enable`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TopicSettings {
    /// `cleanup.policy`: `delete`, `compact` or `compact,delete`.
    pub cleanup_policy: Option<String>,
    /// `retention.ms`; -1 means for ever.
    pub retention_ms: Option<i64>,
    /// `retention.bytes`; -1 means no limit.
    pub retention_bytes: Option<i64>,
    /// `message.timestamp.type`: `CreateTime` or `LogAppendTime`.
    pub timestamp_type: Option<String>,
    /// `unclean.leader.election.enable`.
    pub unclean_leader_election: Option<bool>,
    /// `min.insync.replicas`.
    pub min_insync_replicas: Option<u32>,
    /// `min.compaction.lag.ms`.
    pub min_compaction_lag_ms: Option<i64>,
}

/// The judged topic and its cluster, for the commands that repair it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct JudgedTopic<'a> {
    /// Bootstrap servers.
    pub bootstrap: &'a str,
    /// The topic.
    pub topic: &'a str,
}

/// The topic that exists under the election's name, if any.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum TopicIdentity {
    /// The topic with this id of 128 bits. A topic that is created again under the same name has another one.
    Id {
        /// The most significant 64 bits.
        high: i64,
        /// The least significant 64 bits.
        low: i64,
    },
    /// There is no such topic.
    #[default]
    Missing,
    /// The topic exists, and the broker has no ids for topics (Kafka before 2.8).
    Unnamed,
}

impl TopicIdentity {
    /// Whether both have ids, and these differ: the topic was created again, or it is that of another cluster.
    #[must_use]
    pub fn is_other_than(self, known: Self) -> bool {
        matches!((self, known), (Self::Id { .. }, Self::Id { .. })) && self != known
    }
}

impl TopicFacts {
    /// Whether the configuration is to be asked for again: what is judged meanwhile is judged without it.
    pub const fn are_incomplete(&self) -> bool {
        matches!(self.settings, Err(Unread::Failed(_)))
    }

    /// Whether every record that may have been cut from the log's head was older than every lease in it, so that an empty log is vacant.
    pub fn cut_is_harmless(&self) -> bool {
        self.settings.as_ref().is_ok_and(TopicSettings::keep_recent_records)
    }

    /// Whether a topic that R0 does not refuse deletes only whole segments from the log's head, so that a missing offset in between is a marker (L4).
    pub fn gaps_are_markers(&self) -> bool {
        self.settings.as_ref().is_ok_and(|settings| settings.cleanup_policy.is_some())
    }
}

/// Judges the topic by R0, each setting independently. Returns the risks that apply; one warning names all of them.
///
/// # Errors
///
/// The log may lose records that a lease depends on: the setting, its value and the right value.
pub fn judge(facts: &TopicFacts, place: JudgedTopic<'_>) -> Result<Vec<Risk>, Risk> {
    let refusal = facts.settings.iter().flat_map(refusals).next();
    refusal.map_or_else(|| Ok(risks(facts, place)), Err)
}

/// The risks for which a topic is refused.
pub fn refusals(settings: &TopicSettings) -> Vec<Risk> {
    let least = whole_millis(LEAST_RETENTION);
    let policy = settings.cleanup_policy.as_ref().filter(|policy| *policy != "delete");
    let retention = settings.retention_ms.filter(|retention| *retention != -1 && *retention < least);
    let policy =
        policy.map(|policy| Risk::of_setting("cleanup.policy", format!("cleanup.policy={policy}: must be delete")));
    let retention = retention.map(|retention| {
        Risk::of_setting("retention.ms", format!("retention.ms={retention}: must be -1 or at least {least}"))
    });
    policy.into_iter().chain(retention).collect()
}

/// The other risks that apply to a topic.
pub fn risks(facts: &TopicFacts, place: JudgedTopic<'_>) -> Vec<Risk> {
    let settings = match &facts.settings {
        Ok(settings) => settings,
        Err(reason) => return unread(facts, reason, place),
    };
    let clock = settings.timestamp_type.as_ref().filter(|clock| *clock != "LogAppendTime");
    let mut risks = Vec::from_iter(clock.map(|clock| {
        let text = format!(
            "message.timestamp.type={clock}: retention goes by the candidates' clocks, and a clock an hour ahead is \
             refused; LogAppendTime is right"
        );
        Risk::of_setting("message.timestamp.type", text)
    }));
    risks.extend(settings.retention_bytes.filter(|bytes| *bytes != -1).map(|bytes| {
        let text = format!("retention.bytes={bytes}: a living leader's records may be cut; -1 is right");
        Risk::of_setting("retention.bytes", text)
    }));
    let text =
        "unclean.leader.election.enable=true: records that were read may be lost, and two jobs may run; false is right";
    risks.extend(settings.unclean_election(text));
    risks.extend(replication_risk(&facts.layout, settings.min_insync_replicas, place));
    risks.extend(settings.hidden());
    risks
}

/// The risks of a topic whose settings can't be read.
fn unread(facts: &TopicFacts, why: &Unread, place: JudgedTopic<'_>) -> Vec<Risk> {
    let reason = match why {
        Unread::Failed(words) => &format!("{words}; a candidate asks again"),
        Unread::Forbidden => "not shown to this user; allow DESCRIBE_CONFIGS on it",
        Unread::Unsupported => "the brokers do not support the question",
    };
    let text = format!("its configuration can't be read ({reason}): whether it keeps its records is unknown");
    let unread = Risk { is_forbidden: *why == Unread::Forbidden, ..Risk::of(text) };
    iter::once(unread).chain(replication_risk(&facts.layout, None, place)).collect()
}

/// Judges the topic of facts, which must keep each fact for `retention`, and of windows of this length also one that a later fact replaces.
/// Returns the risks, for one warning.
///
/// # Errors
///
/// The topic loses facts that a key's next run depends on.
pub fn judge_topic_of_facts(
    facts: &TopicFacts,
    (retention, window): (Duration, Option<Duration>),
    place: JudgedTopic<'_>,
) -> Result<Vec<Risk>, Risk> {
    let settings = match &facts.settings {
        Ok(settings) => settings,
        Err(reason) => return Ok(unread(facts, reason, place)),
    };
    let policy = settings.cleanup_policy.as_deref();
    if let Some(policy) = policy.filter(|policy| !policy.split(',').any(|part| part.trim() == "compact")) {
        let text = format!("cleanup.policy={policy}: must be compact or compact,delete");
        return Err(Risk::of_setting("cleanup.policy", text));
    }
    let wanted = whole_millis(retention);
    let forgets = policy.is_some_and(|policy| policy.contains("delete"));
    let retention = settings.retention_ms.filter(|actual| forgets && (0..wanted).contains(actual));
    let mut risks = Vec::from_iter(retention.map(|actual| {
        let text = format!(
            "retention.ms={actual}: a key is forgotten, and runs again, earlier than --once-retention says ({wanted})"
        );
        Risk::of_setting("retention.ms", text)
    }));
    let lag = settings.min_compaction_lag_ms.zip(window.map(whole_millis)).filter(|(actual, wanted)| actual < wanted);
    risks.extend(lag.map(|(actual, wanted)| {
        let text = format!(
            "min.compaction.lag.ms={actual}: a late record of an earlier window's run may hide that the present window is done, and it \
             runs again; a window's length ({wanted}) or more is right"
        );
        Risk::of_setting("min.compaction.lag.ms", text)
    }));
    let text = "unclean.leader.election.enable=true: a fact may be lost, and its key may run again; false is right";
    risks.extend(settings.unclean_election(text));
    risks.extend(replication_risk(&facts.layout, settings.min_insync_replicas, place));
    Ok(risks)
}

fn whole_millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

impl TopicSettings {
    /// The settings that the broker does not show.
    fn hidden(&self) -> Option<Risk> {
        let shown = [
            ("cleanup.policy", self.cleanup_policy.is_some()),
            ("message.timestamp.type", self.timestamp_type.is_some()),
            ("min.insync.replicas", self.min_insync_replicas.is_some()),
            ("retention.bytes", self.retention_bytes.is_some()),
            ("retention.ms", self.retention_ms.is_some()),
            ("unclean.leader.election.enable", self.unclean_leader_election.is_some()),
        ];
        let names = shown.into_iter().filter_map(|(name, is_shown)| (!is_shown).then_some(name));
        let names = names.collect::<Vec<_>>().join(", ");
        let text = format!(
            "the broker does not show {names}: whether it keeps its records is judged by the other settings alone"
        );
        (!names.is_empty()).then(|| Risk::of(text))
    }

    fn unclean_election(&self, text: &str) -> Option<Risk> {
        let is_on = self.unclean_leader_election == Some(true);
        is_on.then(|| Risk::of_setting("unclean.leader.election.enable", text.into()))
    }

    /// Whether every record that was cut from the log's head was certainly older than the least retention: the broker shows each setting
    /// that decides it, and each value is right.
    fn keep_recent_records(&self) -> bool {
        self.cleanup_policy.is_some()
            && self.retention_ms.is_some()
            && self.retention_bytes == Some(-1)
            && self.timestamp_type.as_deref() == Some("LogAppendTime")
    }
}

/// The risk of too few replicas, or of a minimum in sync that is missed without one broker. A cluster with one broker, or with two, can't do better,
/// so it is not warned about.
fn replication_risk(layout: &Layout, min_insync: Option<u32>, place: JudgedTopic<'_>) -> Option<Risk> {
    let brokers = layout.brokers.len();
    if brokers < 2 {
        return None;
    }
    let fewest = layout.fewest_replicas();
    if fewest < 2 {
        let text = format!(
            "it has one replica{}, though there are {brokers} brokers (it was created while one was up, or by \
             hand): without that broker nobody can lead",
            of_partitions_with_fewer_than(2, layout)
        );
        return Some(Risk { command: Some(more_replicas(layout, place)), ..Risk::of(text) });
    }
    let least = min_insync?;
    if least < 2 {
        let text =
            format!("min.insync.replicas={least}: records that were read may be lost with one broker; 2 is right");
        return Some(Risk::of_setting("min.insync.replicas", text));
    }
    if fewest > least as usize || brokers.max(fewest) < 3 {
        return None;
    }
    let text = format!(
        "min.insync.replicas={least} with {fewest} replicas{}: while one of their brokers is down, nobody can lead; a minimum of 2 with \
         3 replicas is right",
        of_partitions_with_fewer_than(least as usize + 1, layout)
    );
    let command = (fewest < 3).then(|| more_replicas(layout, place));
    Some(Risk { command, ..Risk::of_setting("min.insync.replicas", text) })
}

/// Names the partitions with fewer replicas than this, unless all have fewer.
fn of_partitions_with_fewer_than(count: usize, layout: &Layout) -> String {
    let fewer = layout.replicas.iter().filter(|(_, replicas)| replicas.len() < count);
    let numbers: Vec<String> = fewer.map(|(partition, _)| partition.to_string()).collect();
    if numbers.len() == layout.replicas.len() {
        return String::new();
    }
    format!(" of partition{} {}", if numbers.len() == 1 { "" } else { "s" }, numbers.join(", "))
}

/// The commands that give each partition up to three replicas, for a shell with Kafka's own tools. The broker that leads a partition by preference
/// now goes on to do so.
fn more_replicas(layout: &Layout, place: JudgedTopic<'_>) -> String {
    let JudgedTopic { bootstrap, topic } = place;
    let wanted = layout.brokers.len().min(3);
    let too_few = layout.replicas.iter().filter(|(_, replicas)| replicas.len() < wanted);
    let partition = |(partition, replicas): (&i32, &Vec<i32>)| {
        let others = layout.brokers.iter().filter(|id| !replicas.contains(id));
        let replicas: Vec<String> = replicas.iter().chain(others).take(wanted).map(ToString::to_string).collect();
        format!("{{\"topic\":\"{topic}\",\"partition\":{partition},\"replicas\":[{}]}}", replicas.join(","))
    };
    let assign = format!(
        "echo '{{\"version\":1,\"partitions\":[{}]}}' | \
         kafka-reassign-partitions.sh --bootstrap-server {bootstrap} --execute --reassignment-json-file /dev/stdin",
        too_few.map(partition).collect::<Vec<_>>().join(",")
    );
    if wanted < 3 {
        return assign;
    }
    format!(
        "{assign} && kafka-configs.sh --bootstrap-server {bootstrap} --alter --topic {topic} --add-config \
         min.insync.replicas=2"
    )
}

// ---- why a topic may lose records -----------------------------------------------------------------------------------

/// A property of a topic that may lose records. For some a topic is [refused](refusals).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Risk {
    /// The setting to alter, under Kafka's name for it.
    pub setting: Option<&'static str>,
    /// The commands that give its partitions more replicas, for a shell with Kafka's own tools, if it has one replica.
    pub command: Option<String>,
    /// Whether this user has no right to its settings.
    pub is_forbidden: bool,
    text: String,
}

impl Risk {
    /// The risk with this text: the value, what may be lost, and the right value.
    fn of(text: String) -> Self {
        Self { text, ..Self::default() }
    }

    fn of_setting(name: &'static str, text: String) -> Self {
        Self { setting: Some(name), ..Self::of(text) }
    }
}

/// Shows its text, without the command.
impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// One warning about all risks, with the commands.
pub fn warning(risks: &[Risk]) -> String {
    /// A longer line of the log is cut, and so would be the command of many partitions.
    const LONGEST: usize = 1_500;
    let text = |risk: &Risk| match &risk.command {
        Some(command) if command.len() > LONGEST => {
            format!("{risk}; `neli-run doctor` prints the command that fixes it")
        }
        Some(command) => format!("{risk}; to fix it: {command}"),
        None => risk.to_string(),
    };
    risks.iter().map(text).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests;
