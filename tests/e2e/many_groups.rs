//! Many elections in one topic and partition.

use std::collections::BTreeSet;

use harness::candidate::{Elector, Running};
use harness::election::TestElection;
use harness::journal::{self, Pen};
use harness::kafka::Kafka;
use nix::sys::signal::Signal;

use crate::election;

const GROUPS: usize = 100;

/// How many candidates start at once. The number is small, because the machine has few processors.
const AT_ONCE: usize = 10;

/// A hundred elections share a partition. Each has its own leader after its first claim, and a handover or an `end` in one of them does not
/// affect any other.
#[test]
fn a_hundred_groups_in_one_partition_ignore_each_other() {
    let shared = election(Elector::Log);
    Kafka::shared().create_topic(&shared.topic(), &[("message.timestamp.type", "LogAppendTime")]);
    let groups: Vec<TestElection> = (0..GROUPS).map(|_| shared.another()).collect();
    let candidate =
        |group: &TestElection| group.candidate().option("--topic", shared.topic()).job(["sleep", "1000"]).start();
    let mut leaders: Vec<Running> = Vec::new();
    for some in groups.chunks(AT_ONCE) {
        let mut started: Vec<Running> = some.iter().map(candidate).collect();
        for leader in &mut started {
            leader.await_job();
        }
        leaders.extend(started);
    }

    let mut successor = candidate(&groups[0]);
    successor.await_event("standby");
    leaders[0].signal(Signal::SIGTERM);
    successor.await_job();
    let end = r#"{"v":1,"kind":"request","what":"end","by":"me","reason":"why"}"#;
    Pen::new(Kafka::shared(), &shared.topic(), &[]).write(&groups[1].key(), &[end.as_bytes()]);
    assert_eq!([leaders[0].status(), leaders[1].status()], [143, 0]);

    // A leader that has read its own release back has read all records before it.
    leaders[0] = successor;
    let others = || (0..GROUPS).filter(|index| *index != 1);
    others().for_each(|index| leaders[index].signal(Signal::SIGTERM));
    for index in others() {
        let leader = &mut leaders[index];
        assert_eq!(leader.status(), 143);
        assert_eq!(["leading", "ended", "fence_warning", "fenced"].map(|event| leader.count(event)), [1, 0, 0, 0]);
        assert_eq!(leader.await_release().text("why"), "stopped");
    }
    let records = journal::read(Kafka::shared(), &shared.topic());
    for (index, group) in groups.iter().enumerate() {
        let of_group = records.iter().filter(|record| record.key == group.key().as_bytes());
        // librdkafka may append a record twice if its answer is late.
        let claims: BTreeSet<&Vec<u8>> =
            of_group.filter_map(|record| record.payload.as_ref()).filter(|line| is_claim(line)).collect();
        assert_eq!(claims.len(), if index == 0 { 2 } else { 1 }, "{}: no claim was void", group.group);
    }
}

fn is_claim(line: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Value>(line).is_ok_and(|record| record["kind"] == "claim")
}
