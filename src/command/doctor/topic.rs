//! Checks a topic: whether it exists or could be created, which rights this user has to it, and whether it is suitable for elections.

use std::fmt::Display;

use neli_kafka::{Elections, Examination, FactsSettings, NewTopic, NotAnswered, PartitionSeen, Rights, TopicSeen};
use neli_proto::candidate::Elector;
use neli_proto::topic::{self, JudgedTopic, Risk, TopicFacts, TopicIdentity};

use super::findings::{Findings, Fixes};
use super::planned;
use crate::config::Config;
use crate::report::events;
use crate::text::counted;

/// The largest record, including Kafka's own overhead.
const LONGEST_RECORD: u64 = 4_096;

/// The input of a check of a topic.
pub(super) struct TopicCheck<'a> {
    pub(super) elections: Elections,
    /// How the facts of `--once` and similar options must be kept, if it is their topic; otherwise it is the journal.
    pub(super) facts: Option<FactsSettings>,
    pub(super) examination: &'a Examination,
    pub(super) fixes: &'a Fixes,
    pub(super) config: &'a Config,
}

impl TopicCheck<'_> {
    /// Checks a topic; returns how many brokers of each of its partitions may be down, now or once it is created, while Kafka appends records.
    pub(super) fn examine(&self, findings: &mut Findings) -> usize {
        let name = &self.elections.topic;
        let planned = self.planned();
        let replicas = planned.replicas.and_then(|count| usize::try_from(count).ok()).unwrap_or(1).max(1);
        match self.examination.topic(&self.elections) {
            Err(NotAnswered::Forbidden) => {
                let text = about(name, "this user has no right to DESCRIBE it; allow READ and WRITE, which imply it");
                // It may be missing, too.
                let create = self.config.create_topic.then_some("Create");
                let rights: Vec<&str> = ["Read", "Write"].into_iter().chain(create).collect();
                findings.fail("topic", text, Some(self.fixes.allow(&rights, ("--topic", name))));
            }
            Ok(None) => self.missing(planned, findings),
            Err(NotAnswered::Other(why)) => findings.fail("topic", about(name, why), None),
            Ok(Some(seen)) => return self.there(&seen, findings),
        }
        // With three replicas or more a minimum of two is planned.
        replicas.min(2) - 1
    }

    fn planned(&self) -> NewTopic<'_> {
        planned(&self.elections, self.facts, self.examination.brokers())
    }

    fn missing(&self, planned: NewTopic<'_>, findings: &mut Findings) {
        let name = &self.elections.topic;
        let accepted = self.examination.try_to_create(&self.elections, planned);
        let (Ok(topic) | Err((_, topic))) = &accepted;
        let create = Some(self.fixes.create(topic));
        if !self.config.create_topic {
            let text = about(name, "it does not exist; create it, or drop --no-create-topic");
            return findings.fail("topic", text, create);
        }
        match accepted {
            Ok(_) => {
                findings.ok("topic", about(name, "it does not exist yet; a candidate creates it"));
                let rights = "whether this user may READ and WRITE it can be checked once it exists";
                findings.skipped("rights", about(name, rights));
                if self.examination.brokers() == 1 {
                    let fix = "add brokers before a candidate creates it".to_owned();
                    findings.warn("replicas", self.on_one_broker("it would have 1 replica"), Some(fix));
                }
            }
            Err((error, _)) => findings.fail("topic", error, create),
        }
    }

    fn there(&self, seen: &TopicSeen, findings: &mut Findings) -> usize {
        let name = &self.elections.topic;
        let partitions = seen.partitions.len();
        let count = i32::try_from(partitions).unwrap_or(i32::MAX);
        let in_use = self.elections.partitions_in_use(count);
        let used: Vec<&PartitionSeen> =
            seen.partitions.iter().filter(|partition| in_use.contains(&partition.number)).collect();
        leaders(name, &used, partitions, findings);
        // What a candidate says of these at its start.
        let is_for_group = self.facts.is_none() && matches!(self.config.timings.elector(), Elector::Group(_));
        if is_for_group && !self.config.elections.are_many() && partitions > 1 {
            findings.warn("group", events::UNUSED_PARTITIONS, None);
        }
        self.rights(name, seen.rights, findings);
        identity(name, seen.identity, findings);
        if let Some(facts) = &seen.facts {
            self.settings(facts, findings);
        } else {
            findings.skipped("settings", about(name, "unknown: a partition has no leader, or no broker answers"));
        }
        if let Some(longest) = seen.longest_record.filter(|longest| *longest < LONGEST_RECORD) {
            let text = about(name, format!("max.message.bytes={longest}: must be at least {LONGEST_RECORD}"));
            let fix = self.fixes.configure(name, "max.message.bytes", &LONGEST_RECORD.to_string());
            findings.fail("settings", text, Some(fix));
        }
        let least = seen.facts.as_ref().and_then(|facts| facts.settings.as_ref().ok()?.min_insync_replicas);
        let brokers = seen.facts.as_ref().map_or(0, |facts| facts.layout.brokers.len());
        // Where there are more brokers, the check of the settings warns, with the commands that add a replica.
        let on_one_broker = (brokers == 1).then(|| self.on_one_broker("1 replica"));
        let least = least.unwrap_or(1);
        replicas(name, &used, least, on_one_broker, findings);
        used.iter().map(|partition| partition.replicas.saturating_sub(least as usize)).min().unwrap_or(0)
    }

    /// What may follow if the topic's only replica is on the only broker.
    fn on_one_broker(&self, has: &str) -> String {
        let loss = match self.facts {
            None => "two jobs may run for up to a lease",
            Some(_) => "what is done may run again",
        };
        about(&self.elections.topic, format!("{has}: if the only broker loses its disk or its last writes, {loss}"))
    }

    fn rights(&self, name: &str, rights: Option<Rights>, findings: &mut Findings) {
        let Some(rights) = rights else {
            return findings.skipped("rights", about(name, "the broker does not report rights"));
        };
        let needed = [("READ", "Read", rights.read), ("WRITE", "Write", rights.write)];
        for (right, operation, _) in needed.iter().filter(|(.., is_there)| !is_there) {
            let text = about(name, format!("this user has no right to {right} it; allow {right} on it"));
            findings.fail("rights", text, Some(self.fixes.allow(&[operation], ("--topic", name))));
        }
        if rights.read && rights.write {
            findings.ok("rights", about(name, "this user may READ and WRITE it"));
        }
    }

    /// Checks R0 against the topic's settings, and gives the right values.
    fn settings(&self, facts: &TopicFacts, findings: &mut Findings) {
        let name = &self.elections.topic;
        let place = JudgedTopic { bootstrap: &self.fixes.bootstrap, topic: name };
        let (refusals, risks) = match self.facts {
            None => {
                let refusals = facts.settings.as_ref().map(topic::refusals).unwrap_or_default();
                (refusals, topic::risks(facts, place))
            }
            Some(wanted) => match topic::judge_topic_of_facts(facts, (wanted.retention, wanted.window), place) {
                Ok(risks) => (Vec::new(), risks),
                Err(refusal) => (vec![refusal], Vec::new()),
            },
        };
        let planned = self.planned();
        for refusal in &refusals {
            findings.fail("settings", about(name, refusal), self.fix(&planned, refusal));
        }
        for risk in &risks {
            findings.warn("settings", about(name, risk), self.fix(&planned, risk));
        }
        if refusals.is_empty() && risks.is_empty() {
            findings.ok("settings", about(name, "it keeps its records"));
        }
    }

    /// The command that removes this risk, also of one for which the topic is refused.
    fn fix(&self, planned: &NewTopic<'_>, risk: &Risk) -> Option<String> {
        if risk.command.is_some() {
            return risk.command.clone();
        }
        if risk.is_forbidden {
            return Some(self.fixes.allow(&["DescribeConfigs"], ("--topic", planned.name)));
        }
        // A new topic would have the right value.
        let (setting, right) = planned.settings.iter().find(|(name, _)| Some(*name) == risk.setting)?;
        Some(self.fixes.configure(planned.name, setting, right))
    }
}

/// What is found of the topic of this name.
fn about(name: &str, found: impl Display) -> String {
    format!("topic \"{name}\": {found}")
}

/// Checks whether each partition in use has a leader that answers. The topic has this number of partitions.
fn leaders(name: &str, used: &[&PartitionSeen], partitions: usize, findings: &mut Findings) {
    match used.iter().find(|partition| !partition.is_led) {
        Some(PartitionSeen { number, .. }) => {
            let text = format!("partition {number} has no leader that answers: start the brokers that hold it");
            findings.fail("topic", about(name, text), None);
        }
        None => findings.ok("topic", about(name, counted(partitions as u64, "partition"))),
    }
}

/// Checks whether a topic that was deleted and created again can be distinguished from the old one.
fn identity(name: &str, identity: Option<TopicIdentity>, findings: &mut Findings) {
    match identity {
        Some(TopicIdentity::Id { .. }) => findings.ok("topic-id", about(name, "it has an id")),
        Some(TopicIdentity::Unnamed) => {
            let text = "it has no id (Kafka before 2.8): neli-run does not notice when it is deleted and made again";
            findings.warn("topic-id", about(name, text), None);
        }
        Some(TopicIdentity::Missing) | None => findings.skipped("topic-id", about(name, "its id is unknown")),
    }
}

/// Checks how many replicas each partition has, and how many of them are in sync. `on_one_broker`: the warning if a replica is the only one,
/// where there is no other broker.
fn replicas(name: &str, used: &[&PartitionSeen], least: u32, on_one_broker: Option<String>, findings: &mut Findings) {
    let behind = used.iter().filter(|partition| partition.in_sync < partition.replicas);
    let Some(PartitionSeen { number, replicas, in_sync, .. }) = behind.min_by_key(|partition| partition.in_sync) else {
        let Some(worst) = used.iter().min_by_key(|partition| partition.replicas) else { return };
        let (number, count) = (worst.number, worst.replicas);
        if count > 1 {
            let least = if used.iter().all(|partition| partition.replicas == count) { "" } else { "at least " };
            return findings.ok("replicas", about(name, format!("{least}{count} replicas, all in sync")));
        }
        let Some(warning) = on_one_broker else {
            let text = format!("partition {number} has one replica: without its broker nobody can lead there");
            return findings.warn("replicas", about(name, text), None);
        };
        let fix = "add brokers, and a replica on each; the next start then prints the commands".to_owned();
        return findings.warn("replicas", warning, Some(fix));
    };
    let text = format!("partition {number} has {in_sync} of {replicas} replicas in sync on brokers that answer");
    let text = about(name, text);
    let fix = Some("start the brokers that are down".to_owned());
    if *in_sync < usize::try_from(least).unwrap_or(1) {
        let text = format!("{text}, and min.insync.replicas={least}: Kafka appends nothing");
        findings.fail("replicas", text, fix);
    } else {
        findings.warn("replicas", text, fix);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::output::Style;

    const PLAIN: Style = Style { is_coloured: false, columns: None };

    #[test]
    fn a_partition_without_a_leader_fails() {
        let report = |is_led: &[bool]| {
            let partition = |(number, is_led): (usize, &bool)| PartitionSeen {
                number: i32::try_from(number).unwrap(),
                is_led: *is_led,
                replicas: 3,
                in_sync: 3,
            };
            let partitions: Vec<PartitionSeen> = is_led.iter().enumerate().map(partition).collect();
            let mut findings = Findings::default();
            leaders("g.neli", &partitions.iter().collect::<Vec<_>>(), is_led.len(), &mut findings);
            findings.text(PLAIN)
        };
        assert_eq!(report(&[true, true]), "ok    topic  topic \"g.neli\": 2 partitions\n");
        let missing =
            "FAIL  topic  topic \"g.neli\": partition 1 has no leader that answers: start the brokers that hold it\n";
        assert_eq!(report(&[true, false]), missing);
    }

    #[test]
    fn a_topic_without_an_id_is_a_warning_and_an_unknown_id_is_skipped() {
        let report = |seen: Option<TopicIdentity>| {
            let mut findings = Findings::default();
            identity("g.neli", seen, &mut findings);
            findings.text(PLAIN)
        };
        assert!(report(Some(TopicIdentity::Unnamed)).starts_with("WARN  topic-id  topic \"g.neli\": it has no id "));
        let unknown = report(None);
        assert!(unknown.contains("topic-id  topic \"g.neli\": its id is unknown"), "{unknown}");
        assert_eq!(report(Some(TopicIdentity::Missing)), unknown);
    }

    #[test]
    fn replicas_that_are_behind_are_reported_and_too_few_fail() {
        let report_each = |all: &[usize], on_one_broker: Option<&str>, in_sync: &[usize]| {
            let partition = |(number, (in_sync, replicas)): (usize, (&usize, &usize))| PartitionSeen {
                number: i32::try_from(number).unwrap(),
                is_led: true,
                replicas: *replicas,
                in_sync: *in_sync,
            };
            let partitions: Vec<PartitionSeen> = in_sync.iter().zip(all).enumerate().map(partition).collect();
            let mut findings = Findings::default();
            let on_one_broker = on_one_broker.map(ToOwned::to_owned);
            replicas("g.neli", &partitions.iter().collect::<Vec<_>>(), 2, on_one_broker, &mut findings);
            findings.text(Style { is_coloured: false, columns: None })
        };
        let report_of = |all, on_one_broker, in_sync: &[usize]| report_each(&[all; 2], on_one_broker, in_sync);
        let report = |in_sync: &[usize]| report_of(3, None, in_sync);
        assert!(report_of(1, Some("1 replica"), &[1]).starts_with("WARN  replicas  1 replica\n"));
        assert_eq!(
            report_of(3, Some("1 replica"), &[3]),
            "ok    replicas  topic \"g.neli\": 3 replicas, all in sync\n"
        );
        let single = report_each(&[3, 1], None, &[3, 1]);
        assert!(single.starts_with("WARN  replicas  topic \"g.neli\": partition 1 has one replica: "), "{single}");
        let two = report_each(&[3, 2], None, &[3, 2]);
        assert_eq!(two, "ok    replicas  topic \"g.neli\": at least 2 replicas, all in sync\n");
        assert_eq!(report(&[3, 3]), "ok    replicas  topic \"g.neli\": 3 replicas, all in sync\n");
        assert!(
            report(&[3, 2])
                .starts_with("WARN  replicas  topic \"g.neli\": partition 1 has 2 of 3 replicas in sync on ")
        );
        assert!(report(&[1, 2]).starts_with(
            "FAIL  replicas  topic \"g.neli\": partition 0 has 1 of 3 replicas in sync on brokers that answer, and min."
        ));
    }
}
