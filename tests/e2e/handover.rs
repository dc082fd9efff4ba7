//! The order of the leaders, and handovers without a death.

use std::time::Duration;

use harness::candidate::{Elector, Event, Running};
use harness::election::TestElection;
use harness::journal::Pen;
use harness::kafka::{Kafka, Wired};
use harness::wait;
use nix::sys::signal::Signal;

use crate::{PROGRAM, await_leader, election, with_both_electors};

with_both_electors! {
    /// The others stand by, and their log names the leader.
    fn one_leads_of_three(elector) {
        let election = election(elector);
        let mut candidates = [election.candidate().start(), election.candidate().start(), election.candidate().start()];
        let (leader, term) = await_leader(&mut candidates);
        election.await_witness(term);

        for (index, candidate) in candidates.iter_mut().enumerate().filter(|(index, _)| *index != leader) {
            candidate.await_event("standby");
            candidate.signal(Signal::SIGTERM);
            assert_eq!(candidate.status(), 143, "candidate {index} stood by when it was stopped");
            assert!(candidate.events("job_started").is_empty(), "candidate {index} never led");
        }
        candidates[leader].signal(Signal::SIGTERM);
        assert_eq!(candidates[leader].status(), 0, "the job's own status");
        assert_eq!(election.testimony().spans().len(), 1);
        election.close(candidates);
    }

    /// The successor's job starts when the last process of the old one is gone, also if that takes long.
    fn term_hands_over(elector) {
        let election = election(elector);
        let mut first = election.candidate().job(election.witness().set("--linger-ms", 400).set("--status", 7).command()).start();
        let term = first.await_lead();
        election.await_witness(term);
        let mut second = election.candidate().start();
        second.await_event("standby");

        first.signal(Signal::SIGTERM);
        let next = second.await_lead();
        assert!(next > term);
        election.await_witness(next);
        assert_eq!(first.await_event("stopping").text("why"), "stopped");
        assert_eq!(first.await_event("job_exited").number("status"), 7);
        let released = first.await_release();
        assert_eq!((released.text("why"), released.fields["delivered"].as_bool()), ("stopped", Some(true)));
        let exiting = first.await_event("exiting");
        assert_eq!((exiting.number("status"), exiting.text("from")), (7, "job"));
        assert_eq!(first.status(), 7);

        let spans = election.testimony().spans();
        assert!(spans[&next].0 > spans[&term].1, "{spans:?}");
        election.close([first, second]);
    }

    /// The end of the job ends the lead: then another candidate runs it.
    fn a_job_that_ends_hands_over(elector) {
        let election = election(elector);
        let job = election.witness().set("--end-ms", 300).set("--status", 3);
        let mut first = election.candidate().job(job.command()).start();
        let term = first.await_lead();
        let mut second = election.candidate().start();
        assert_eq!(first.status(), 3);
        assert_eq!(first.await_release().text("why"), "exited");
        assert!(second.await_lead() > term);
        election.close([first, second]);
    }
}

/// A child in its own session outlives the main process: it gets the stop signal too, so the stop timeout is not used up.
#[test]
fn processes_that_the_job_leaves_get_the_stop_signal_too() {
    let election = election(Elector::Log);
    let job = election.witness().with("--session").command();
    let mut first = election.candidate().option("--stop-timeout", "50s").job(job).start();
    let term = first.await_lead();
    wait::until_true("a session", || election.testimony().of(term).any(|line| line.role == "session"));
    first.signal(Signal::SIGTERM);
    assert_eq!(first.await_release().text("why"), "stopped");
    election.assert_gone(term);
    assert!(first.events("job_killed").is_empty());
    assert_eq!(first.status(), 0);
    election.close([first]);
}

/// The journal shows each term's claim, beats and release, all valid under the law.
#[test]
fn the_journal_shows_the_handover() {
    let election = election(Elector::Group);
    let mut first = election.candidate().start();
    let term = first.await_lead();
    election.await_witness(term);
    first.signal(Signal::SIGTERM);
    assert_eq!(first.status(), 0);
    let mut second = election.candidate().start();
    let next = second.await_lead();
    election.await_witness(next);
    election.close([first, second]);

    let verdicts = election.verdicts();
    let effective = |kind: &str| {
        let of_kind = verdicts.iter().filter(|line| line["record"]["kind"] == kind && line["verdict"] == "effective");
        of_kind.cloned().collect::<Vec<_>>()
    };
    let claims: Vec<_> = effective("claim").iter().map(|line| line["offset"].as_u64()).collect();
    assert_eq!(claims, [Some(term), Some(next)]);
    let releases: Vec<_> = effective("release").iter().map(|line| line["record"]["term"].as_u64()).collect();
    assert_eq!(releases, [Some(term), Some(next)]);
    assert!(effective("beat").iter().any(|line| line["record"]["state"] == "running"));
    assert_eq!(verdicts.last().expect("records")["term"], serde_json::Value::Null, "vacant at the end");
    assert!(verdicts.iter().all(|line| line["verdict"] != "nonsense"));
}

/// `--wait 0` leads if there is a vacancy, and exits as soon as another candidate's beat is read.
#[test]
fn nobody_waits_with_wait_0() {
    let election = election(Elector::Log);
    let mut first = election.candidate().option("--wait", "0").option("--name", "first").start();
    let term = first.await_lead();
    election.await_witness(term);
    let mut second = election.candidate().option("--wait", "0").start();
    assert_eq!(second.status(), 75);
    assert!(second.events("claiming").is_empty());
    assert_eq!(second.await_event("exiting").text("why"), "not elected within --wait 0; first leads");
    election.close([first, second]);
}

/// A leader that died without a release sends no beats. `--wait` does not give up during its silence.
#[test]
fn wait_does_not_give_up_during_a_dead_leader_s_silence() {
    let election = election(Elector::Log);
    let mut first = election.candidate().lease("2s").start();
    let term = first.await_lead();
    election.await_witness(term);
    let job = first.await_job();
    crate::death::machine(&mut first, &[job]);
    let mut second = election.candidate().lease("2s").option("--wait", "0").start();
    assert!(second.await_lead() > term);
    election.close([second]);
}

/// `--patience never` is NELI as published: only the member that has the partition claims.
#[test]
fn with_patience_never_the_group_alone_decides() {
    let election = election(Elector::Group);
    let candidate = election.candidate().option("--patience", "never");
    let mut first = candidate.start();
    let term = first.await_lead();
    election.await_witness(term);
    assert!(!first.events("assigned").is_empty(), "it leads because the group said so");
    let mut second = candidate.start();
    second.await_event("standby");
    first.signal(Signal::SIGTERM);
    assert!(second.await_lead() > term);
    assert!(!second.events("assigned").is_empty());
    election.close([first, second]);
}

/// A stop while a claim is in flight: no job starts, and the claim is released if it becomes effective.
#[test]
fn a_stop_while_claiming_starts_nothing() {
    let wired = Wired::take();
    let election = TestElection::new(PROGRAM, wired.kafka(), Elector::Log);
    let mut first = election.candidate().start();
    first.await_lead();
    let mut second = election.candidate().lease("30s").start();
    second.await_event("standby");
    // For each of them the second one waits for half a second. Meanwhile the broker is frozen, so the claim is sent but not answered.
    let hello = |priority: u8| {
        format!(r#"{{"v":1,"kind":"hello","member":"h{priority}","name":"h{priority}","seq":1,"priority":{priority}}}"#)
    };
    let hellos: Vec<String> = (1..=6).map(hello).collect();
    let hellos: Vec<&[u8]> = hellos.iter().map(String::as_bytes).collect();
    Pen::new(&wired.direct(), &election.topic(), &[]).write(&format!("{}/hello", election.key()), &hellos);
    first.signal(Signal::SIGTERM);
    first.status();
    let knows_of_vacancy = |event: &Event| event.fields.get("claim_at").is_some();
    wait::until_true("a standby that waits", || second.events("standby").iter().any(knows_of_vacancy));
    wired.freeze();
    second.await_event("claiming");
    second.signal(Signal::SIGTERM);
    assert!(second.await_event_within("exiting", Duration::from_millis(500)).is_none(), "a claim under way is awaited");
    wired.thaw();
    assert_eq!(second.status(), 143);
    assert_eq!(second.await_release().text("why"), "stopped");
    assert!(second.events("job_started").is_empty());
    // librdkafka may have sent the claim twice, if the machine was busy for long: the second one is void.
    wait::until_true("a journal whose end is vacant", || {
        let verdicts = election.verdicts();
        let last = verdicts.iter().rfind(|line| line["verdict"] == "effective");
        last.is_some_and(|line| line["record"]["kind"] == "release")
    });
}

/// Standbys that join or leave do not affect the job.
#[test]
fn standbys_that_join_and_leave_do_not_affect_the_job() {
    let election = election(Elector::Group);
    let mut leader = election.candidate().start();
    let term = leader.await_lead();
    election.await_witness(term);
    for _ in 0..3 {
        let mut standby = election.candidate().start();
        standby.await_event("standby");
        standby.signal(Signal::SIGTERM);
        assert_eq!(standby.status(), 143);
    }
    assert_eq!(election.testimony().signals().count(), 0);
    assert_eq!(leader.events("job_started").len(), 1);
    assert!(leader.events("revoked").is_empty());
    election.close([leader]);
}

/// If the topic has partitions that no role uses, the group moves partition 0 between members as others join. The leader logs that once,
/// and its job is not affected.
#[test]
fn standbys_that_join_do_not_affect_the_job_with_unused_partitions() {
    for partitions in [2, 3, 12] {
        let election = election(Elector::Group);
        Kafka::shared().create_partitioned_topic(&election.topic(), partitions);
        let mut leader = election.candidate().start();
        let term = leader.await_lead();
        election.await_witness(term);
        leader.await_event("assigned");
        let mut standbys = Vec::new();
        while leader.await_event_within("revoked", Duration::from_secs(6)).is_none() {
            assert!(standbys.len() < 4, "of {partitions} partitions the first was never moved: nothing was tested");
            standbys.push(election.candidate().start());
        }
        let mut last = election.candidate().start();
        last.await_event("standby");
        standbys.push(last);
        assert_eq!(election.testimony().signals().count(), 0, "{partitions} partitions");
        assert_eq!((leader.events("stopping").len(), leader.events("leading").len()), (0, 1));
        let said = |event: &&Event| event.text("message").contains("partitions");
        assert_eq!(leader.events("warning").iter().filter(said).count(), 1, "{leader:?}");
        standbys.push(leader);
        election.close(standbys);
    }
}

/// Each standby can predict which member the group will choose when the leader leaves. That one claims as soon as it reads the release, the
/// others do not, and the group then chooses it.
#[test]
fn many_standbys_predict_the_groups_choice() {
    const HANDOVERS: usize = 8;
    let election = election(Elector::Group);
    let mut first = election.candidate().start();
    first.await_lead();
    first.await_event("assigned");
    let mut crowd: Vec<Running> = (0..HANDOVERS).map(|_| election.candidate().start()).collect();
    for candidate in &mut crowd {
        candidate.await_event("standby");
    }
    crowd.push(first);
    wait::until_true("a group at rest", || Kafka::shared().group_is_stable(&election.group, HANDOVERS + 1));
    wait::until_true("hellos that say who is who in the group", || named(&election) > HANDOVERS);
    let (mut leader, mut foreseen) = (HANDOVERS, 0);
    for left in (1..=HANDOVERS).rev() {
        let mut gone = crowd.swap_remove(leader);
        gone.signal(Signal::SIGTERM);
        let led = |candidate: &Running| !candidate.events("leading").is_empty();
        leader = wait::until("a successor", || crowd.iter().position(led));
        assert_eq!(gone.status(), 0);
        wait::until_true("the group's choice", || {
            crowd.iter().any(|candidate| !candidate.events("assigned").is_empty())
        });
        wait::until_true("a group at rest", || Kafka::shared().group_is_stable(&election.group, left));
        let (leading, assigned) = (crowd[leader].events("leading")[0].at, crowd[leader].events("assigned"));
        foreseen += usize::from(assigned.first().is_some_and(|assigned| leading < assigned.at));
        election.await_witness(crowd[leader].await_lead());
    }
    let claims = election.verdicts().iter().filter(|line| line["record"]["kind"] == "claim").count();
    election.close(crowd);
    // On a busy machine a job may take so long to stop that the group has chosen before.
    assert!(foreseen >= HANDOVERS - 1, "{foreseen} of {HANDOVERS}");
    assert!(claims <= HANDOVERS + 2, "{claims} claims for {} terms", HANDOVERS + 1);
}

/// A member that exits without leaving would hold up the group's next assignment for a session.
#[test]
fn a_leader_that_has_exited_has_left_the_group() {
    let election = election(Elector::Group);
    let mut leader = election.candidate().start();
    leader.await_lead();
    for _ in 0..8 {
        let mut standby = election.candidate().start();
        standby.await_event("standby");
        wait::until_true("a group at rest", || Kafka::shared().group_is_stable(&election.group, 2));
        leader.signal(Signal::SIGTERM);
        assert_eq!(leader.status(), 0);
        assert_eq!(Kafka::shared().group_members(&election.group), 1);
        election.await_witness(standby.await_lead());
        leader = standby;
    }
    election.close([leader]);
}

/// The number of candidates that have sent a hello with their group member id.
fn named(election: &TestElection) -> usize {
    let key = format!("{}/hello", election.key()).into_bytes();
    let records = harness::journal::read(Kafka::shared(), &election.topic());
    let hellos = records.into_iter().filter(|record| record.key == key).filter_map(|record| record.payload);
    let said = hellos.map(|hello| serde_json::from_slice::<serde_json::Value>(&hello).expect("a line of JSON"));
    said.filter(|hello| hello["group_member"].is_string()).count()
}
