use alloc::vec;

use super::*;

const PLACE: JudgedTopic<'_> = JudgedTopic { bootstrap: "kafka:9092", topic: "g.neli" };

fn settings() -> TopicSettings {
    TopicSettings {
        cleanup_policy: Some("delete".into()),
        retention_ms: Some(86_400_000),
        retention_bytes: Some(-1),
        timestamp_type: Some("LogAppendTime".into()),
        unclean_leader_election: Some(false),
        min_insync_replicas: Some(2),
        min_compaction_lag_ms: Some(3_600_000),
    }
}

fn layout(brokers: i32, replicas: i32) -> Layout {
    Layout { leader: 1, replicas: [(0, (1..=replicas).collect())].into(), brokers: (1..=brokers).collect() }
}

fn facts(brokers: i32, replicas: i32, change: impl FnOnce(&mut TopicSettings)) -> TopicFacts {
    let mut settings = settings();
    change(&mut settings);
    TopicFacts { layout: layout(brokers, replicas), settings: Ok(settings) }
}

fn judged(brokers: i32, replicas: i32, change: impl FnOnce(&mut TopicSettings)) -> Result<Vec<Risk>, Risk> {
    judge(&facts(brokers, replicas, change), PLACE)
}

#[test]
fn the_topic_that_neli_run_creates_has_no_risk() {
    assert_eq!(judged(3, 3, |_| {}), Ok(vec![]));
    let facts = facts(3, 3, |_| {});
    assert!(facts.cut_is_harmless() && facts.gaps_are_markers());
    assert_eq!(judged(1, 1, |s| s.min_insync_replicas = Some(1)).unwrap(), []);
}

#[test]
fn the_brokers_besides_the_leader_are_all_others() {
    let layout = Layout { leader: 2, replicas: [(0, vec![2])].into(), brokers: vec![1, 2, 3] };
    assert_eq!(layout.besides_leader().collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn a_log_that_does_not_keep_its_records_is_refused() {
    for (change, said) in [
        (
            (|s: &mut TopicSettings| s.cleanup_policy = Some("compact".into())) as fn(&mut TopicSettings),
            "cleanup.policy",
        ),
        (|s| s.cleanup_policy = Some("compact,delete".into()), "cleanup.policy=compact,delete"),
        (|s| s.retention_ms = Some(599_999), "retention.ms=599999: must be -1 or at least 600000"),
    ] {
        let refusal = judged(1, 1, change).unwrap_err();
        let (name, refusal) = (refusal.setting.unwrap(), refusal.to_string());
        assert!(refusal.starts_with(said) && refusal.starts_with(&format!("{name}=")), "{name}: {refusal}");
    }
    let both = TopicSettings { cleanup_policy: Some("compact".into()), retention_ms: Some(1), ..settings() };
    assert_eq!(refusals(&both).len(), 2, "each is told");
    assert!(judged(1, 1, |s| s.retention_ms = Some(-1)).is_ok());
    assert!(judged(1, 1, |s| s.retention_ms = Some(600_000)).is_ok());
}

#[test]
fn a_topic_of_facts_must_be_compacted_and_keep_each_fact_for_the_wanted_time() {
    let judged = |change: &dyn Fn(&mut TopicSettings)| {
        let mut settings = TopicSettings { cleanup_policy: Some("compact,delete".into()), ..settings() };
        change(&mut settings);
        let facts = TopicFacts { layout: layout(3, 3), settings: Ok(settings) };
        judge_topic_of_facts(&facts, (Duration::from_secs(86_400), Some(Duration::from_secs(3_600))), PLACE)
    };
    assert_eq!(judged(&|_| {}), Ok(vec![]));
    assert_eq!(judged(&|s| s.cleanup_policy = Some("compact".into())), Ok(vec![]));
    let deleted = judged(&|s| s.cleanup_policy = Some("delete".into()));
    assert_eq!(deleted.unwrap_err().to_string(), "cleanup.policy=delete: must be compact or compact,delete");
    let short = judged(&|s| s.retention_ms = Some(86_399_999)).unwrap();
    assert!(warning(&short).starts_with("retention.ms=86399999: a key is forgotten"), "{short:?}");
    assert_eq!(judged(&|s| s.min_compaction_lag_ms = Some(3_600_000)), Ok(vec![]));
    let soon = judged(&|s| s.min_compaction_lag_ms = Some(0)).unwrap();
    let said = warning(&soon);
    assert!(
        said.starts_with("min.compaction.lag.ms=0: a late record") && said.contains("(3600000) or more"),
        "{soon:?}"
    );
    let unclean = judged(&|s| s.unclean_leader_election = Some(true)).unwrap();
    assert!(warning(&unclean).starts_with("unclean.leader.election.enable=true: a fact may be lost"), "{unclean:?}");
}

#[test]
fn each_warning_names_the_risk_and_what_may_be_lost() {
    for (change, said) in [
        (
            (|s: &mut TopicSettings| s.timestamp_type = Some("CreateTime".into())) as fn(&mut TopicSettings),
            "CreateTime",
        ),
        (|s| s.retention_bytes = Some(1_000_000), "retention.bytes=1000000"),
        (|s| s.unclean_leader_election = Some(true), "unclean"),
        (|s| s.min_insync_replicas = Some(1), "min.insync.replicas=1"),
    ] {
        let risks = judged(3, 3, change).unwrap();
        assert_eq!(risks.len(), 1, "{risks:?}");
        let (setting, text) = (risks[0].setting.unwrap(), risks[0].to_string());
        assert!(text.contains(said) && text.starts_with(&format!("{setting}=")), "{setting}: {text}");
        assert_eq!(warning(&risks), text);
    }
}

#[test]
fn a_single_replica_among_several_brokers_is_fixed_by_the_printed_command() {
    let risks = judged(3, 1, |s| s.min_insync_replicas = Some(1)).unwrap();
    assert_eq!(risks.len(), 1, "{risks:?}");
    let said = warning(&risks);
    assert!(said.starts_with("it has one replica, though there are 3 brokers"), "{said}");
    let command = "echo '{\"version\":1,\"partitions\":[{\"topic\":\"g.neli\",\"partition\":0,\"replicas\":[1,2,3]}]}' | \
                   kafka-reassign-partitions.sh --bootstrap-server kafka:9092 --execute --reassignment-json-file \
                   /dev/stdin && kafka-configs.sh --bootstrap-server kafka:9092 --alter --topic g.neli --add-config \
                   min.insync.replicas=2";
    assert!(said.ends_with(&format!("without that broker nobody can lead; to fix it: {command}")), "{said}");
    assert!(!risks[0].to_string().contains("kafka-"), "the command stands apart");
    let elsewhere = TopicFacts {
        layout: Layout { leader: 2, replicas: [(0, vec![2])].into(), brokers: vec![1, 2] },
        settings: Ok(settings()),
    };
    let risks = judge(&elsewhere, PLACE).unwrap();
    let said = warning(&risks);
    assert!(said.contains("[2,1]") && !said.contains("kafka-configs"), "{said}");
}

/// A graceful stop of one broker would stop every job.
#[test]
fn a_minimum_of_all_replicas_is_a_risk() {
    let said = |brokers, replicas, least| {
        let risks = judged(brokers, replicas, |s| s.min_insync_replicas = Some(least)).unwrap();
        assert_eq!(risks.len(), 1, "{risks:?}");
        warning(&risks)
    };
    let all = said(3, 3, 3);
    assert!(all.starts_with("min.insync.replicas=3 with 3 replicas: while ") && !all.contains("to fix it"), "{all}");
    let two = said(3, 2, 2);
    assert!(two.starts_with("min.insync.replicas=2 with 2 replicas: while ") && two.contains("[1,2,3]"), "{two}");
    assert_eq!(judged(2, 2, |_| {}).unwrap(), [], "two brokers can't do better");
    let one_down = Layout { brokers: vec![1, 2], ..layout(3, 3) };
    let facts =
        TopicFacts { layout: one_down, settings: Ok(TopicSettings { min_insync_replicas: Some(3), ..settings() }) };
    assert_eq!(judge(&facts, PLACE).unwrap().len(), 1, "there is a third, which is down");
    let mut facts = self::facts(3, 3, |settings| settings.min_insync_replicas = Some(3));
    facts.layout.replicas.extend([(1, vec![1, 2]), (2, vec![1, 2, 3, 4])]);
    assert!(warning(&judge(&facts, PLACE).unwrap()).contains(" of partitions 0, 1: while"), "partition 2 has one more");
}

/// After a fix of one partition the others still have one replica: stopping their broker stops their roles.
#[test]
fn each_partition_with_too_few_replicas_is_named_and_fixed() {
    let mut facts = facts(3, 3, |_| {});
    facts.layout.replicas.extend([(1, vec![2]), (2, vec![3, 1]), (4, vec![1])]);
    let risks = judge(&facts, PLACE).unwrap();
    assert_eq!(risks.len(), 1, "{risks:?}");
    assert!(
        risks[0].to_string().starts_with("it has one replica of partitions 1, 4, though there are 3 "),
        "{risks:?}"
    );
    let command = risks[0].command.as_deref().unwrap();
    let fixed = |partition, replicas| {
        command.contains(&format!("{{\"topic\":\"g.neli\",\"partition\":{partition},\"replicas\":[{replicas}]}}"))
    };
    assert!(fixed(1, "2,1,3") && fixed(2, "3,1,2") && fixed(4, "1,2,3"), "{command}");
    assert!(!command.contains("\"partition\":0"), "{command}");
    let mut of_many = facts.clone();
    of_many.layout.replicas.extend((5..100).map(|partition| (partition, vec![1])));
    let said = warning(&judge(&of_many, PLACE).unwrap());
    assert!(said.len() < 1_000 && said.contains("`neli-run doctor` prints the command"), "{said}");
    facts.layout.replicas.retain(|_, replicas| replicas.len() == 1);
    assert!(warning(&judge(&facts, PLACE).unwrap()).starts_with("it has one replica, though"), "all of them");
}

#[test]
fn visible_settings_are_judged_even_if_others_are_hidden() {
    let compacted = TopicSettings { cleanup_policy: Some("compact".into()), ..TopicSettings::default() };
    let facts = TopicFacts { layout: layout(3, 3), settings: Ok(compacted) };
    assert_eq!(judge(&facts, PLACE).unwrap_err().to_string(), "cleanup.policy=compact: must be delete");
    let short = judged(3, 3, |s| (s.cleanup_policy, s.retention_ms) = (None, Some(1)));
    assert_eq!(short.unwrap_err().to_string(), "retention.ms=1: must be -1 or at least 600000");

    // Redpanda shows these values.
    let hidden = |s: &mut TopicSettings| (s.min_insync_replicas, s.unclean_leader_election) = (None, None);
    assert!(self::facts(3, 3, hidden).cut_is_harmless(), "neither says what is deleted");
    let risks = judged(3, 3, hidden).unwrap();
    assert_eq!(risks.len(), 1, "{risks:?}");
    let named = "does not show min.insync.replicas, unclean.leader.election.enable:";
    assert!(risks[0].to_string().contains(named), "{risks:?}");
    let clock = |s: &mut TopicSettings| (s.min_insync_replicas, s.timestamp_type) = (None, Some("CreateTime".into()));
    let two = judged(3, 3, clock).unwrap();
    assert_eq!(two.len(), 2);
    assert_eq!(warning(&two), format!("{}; {}", two[0], two[1]));

    let all = judged(1, 1, |s| *s = TopicSettings::default()).unwrap();
    let named = "does not show cleanup.policy, message.timestamp.type, min.insync.replicas, retention.bytes, retention.ms, \
                 unclean.leader.election.enable:";
    assert!(all.len() == 1 && all[0].to_string().contains(named), "{all:?}");
}

#[test]
fn settings_that_decide_about_an_empty_log_must_be_visible() {
    for hide in [
        (|s: &mut TopicSettings| s.cleanup_policy = None) as fn(&mut TopicSettings),
        |s| s.retention_ms = None,
        |s| s.retention_bytes = None,
        |s| s.timestamp_type = None,
    ] {
        assert!(!facts(1, 1, hide).cut_is_harmless());
    }
}

#[test]
fn an_empty_log_is_vacant_only_if_no_leader_s_record_can_have_been_cut() {
    assert!(!facts(1, 1, |s| s.timestamp_type = Some("CreateTime".into())).cut_is_harmless());
    assert!(!facts(1, 1, |s| s.retention_bytes = Some(1)).cut_is_harmless());
}

#[test]
fn settings_that_could_not_be_read_are_asked_for_again_unless_that_was_refused() {
    for (why, said, is_asked_again) in [
        (Unread::Failed("Request timed out".into()), "(Request timed out; a candidate asks again)", true),
        (Unread::Forbidden, "allow DESCRIBE_CONFIGS", false),
        (Unread::Unsupported, "do not support", false),
    ] {
        let is_forbidden = why == Unread::Forbidden;
        let facts = TopicFacts { layout: layout(1, 1), settings: Err(why) };
        assert!(!facts.cut_is_harmless());
        assert_eq!(facts.are_incomplete(), is_asked_again);
        let unread = judge(&facts, PLACE).unwrap();
        assert!(unread.len() == 1 && unread[0].is_forbidden == is_forbidden, "{unread:?}");
        let text = unread[0].to_string();
        assert!(text.contains(said) && text.contains("DESCRIBE_CONFIGS") == is_forbidden, "{text}");
        assert_eq!(judge_topic_of_facts(&facts, (Duration::ZERO, None), PLACE), Ok(unread));
    }
}
