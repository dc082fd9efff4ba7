//! The communication between candidate, supervisor and hooks of one node, and the node's status.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod forget;
mod hellos_of_many;
mod hooks;
mod host;
mod many_roles;
mod no_guard;
mod once;
mod once_answers;
mod orders;
mod overlap;
#[path = "../records/mod.rs"]
mod records;
mod roles_at_work;
mod schedule;
mod standing_by;
mod wake_ups;
mod windows;

use std::time::Duration;

use neli_proto::candidate::{self, JobReport, Position};
use neli_proto::guard::{Answer, Order};
use neli_proto::hooks::Hook;
use neli_proto::job::CommandEnd;
use neli_proto::kafka;
use neli_proto::leadership::{Leadership, ReadAt, Request, TermState, Unknown};
use neli_proto::node::{Action, Counts, Event, HookRun, OtherCandidate};
use neli_proto::note::{Note, Refusal, StandbyReason, Waiting};
use neli_proto::record::{Body, JobState, MemberId, Offset, What, Why};
use neli_proto::supervisor::{self, Ending, JobStatus};
use neli_proto::topic::TopicIdentity;

use host::{Host, LEASE, TERM, TSTP_ENDS, by, exits, hooks_in, refusals, sends};
use records::{Written, hello};

/// COMMAND is on a file server that does not answer. The guard does, and heartbeats come back.
#[test]
fn a_job_whose_command_is_not_executed_is_given_up() {
    let mut host = Host::listening(&[]);
    host.answered();
    host.claims();
    host.reads_what_it_sent();
    let led = host.now;
    let mut actions = host.actions();
    while !actions.iter().any(|action| matches!(action, Action::Order(Order::Kill))) {
        assert!(host.now.since(led) < Duration::from_secs(60), "it leads on, and no job runs");
        for action in actions {
            if let Action::Order(Order::Lease(grant)) = action {
                host.answers(Answer::Extended { until: grant.until });
            } else if let Action::Order(Order::Spawn { grant, .. }) = action {
                host.answers(Answer::Accepted { until: grant.until });
            }
        }
        host.reads_what_it_sent();
        host.pass_until_due();
        actions = host.actions();
    }
    assert_eq!(host.now.since(led), Duration::from_secs(30));
    host.ends(JobStatus::Signaled(TERM));
    assert_eq!(releases(host.actions()), ["unhealthy".into()]);
}

/// Why each release is written.
fn releases(actions: Vec<Action>) -> Vec<Box<str>> {
    let why = |action: Action| {
        let Action::Kafka(kafka::Request::Send { record }) = action else { return None };
        if let Body::Release { why, .. } = record.body { why } else { None }
    };
    actions.into_iter().filter_map(why).collect()
}

#[test]
fn the_status_of_a_standby_names_the_leader_and_the_others() {
    let mut host = Host::listening(&[]);
    assert_eq!((host.status().position, host.status().claims_at), (Position::Listening, None));
    host.answered_with(1);
    host.actions();
    let lease_ms = 2_000;
    host.reads(by("db1", Body::Claim { after: -1, lease_ms, overlap: None }));
    let since = host.now;
    host.reads(hello("db1", 0));
    host.reads(hello("db3", 0));
    host.pass(Duration::from_secs(1));
    let status = host.status();
    let leader = status.leader().unwrap();
    assert_eq!((leader.member.as_ref(), leader.shown()), (Some(&MemberId::from("db1")), "db1-name"));
    assert_eq!((leader.term, leader.since, leader.is_self), (0, since, false));
    assert_eq!((leader.lease, leader.last_record.read), (Duration::from_millis(lease_ms), since));
    // Three heartbeats of the default interval, and the time that one needs to be read; R2 adds 1 % and 10 ms to the lease.
    let state = |ms, is_answered| match status
        .leadership(ReadAt { now: since + Duration::from_millis(ms), wall_ms: 0 }, is_answered)
    {
        Leadership::Led { .. } => "led",
        Leadership::Overdue { .. } => "overdue",
        Leadership::Silent { .. } => "silent",
        Leadership::Unknown(Unknown::NotHeard { .. }) => "not heard",
        Leadership::Forgotten | Leadership::NeverLed | Leadership::Released { .. } | Leadership::Unknown(_) => "else",
    };
    assert_eq!([1_399, 1_400, 2_029, 2_030].map(|ms| state(ms, true)), ["led", "overdue", "overdue", "silent"]);
    // While Kafka does not answer, its heartbeats can't be read.
    assert_eq!([1_399, 1_400, 2_030].map(|ms| state(ms, false)), ["led", "not heard", "not heard"]);
    let standby = StandbyReason { leader: Some("db1-name".into()), term: Some(0), why: Some(Waiting::Led) };
    assert_eq!(status.position, Position::Standby(Some(standby)));
    // R2: its own lease plus 1 % and 10 ms.
    assert_eq!(status.claims_at, Some(since + Duration::from_millis(2_030)));
    let member = MemberId::from("db3");
    let age = Duration::from_secs(1);
    assert_eq!(status.standbys, [OtherCandidate { member, name: Some("db3-name".into()), age }]);
    assert_eq!((status.lease_end, status.is_leaving, host.node.is_leaving()), (None, false, false));
    host.now = host.now + Duration::from_secs(80);
    assert_eq!(host.status().standbys, [], "its hello is too old");
}

/// R2: a claim that Kafka has refused is followed by none for a lease.
#[test]
fn after_a_refused_claim_the_status_shows_when_the_next_one_is_sent() {
    let mut host = Host::listening(&[]);
    host.answered_with(1);
    host.actions();
    host.reads(by("db1", Body::Claim { after: -1, lease_ms: 2_000, overlap: None }));
    host.claims();
    let (sent, seq) = (host.now, host.sent.last().and_then(Written::seq).unwrap());
    host.elects(candidate::Event::Undelivered { seq, may_be_in_log: false });
    assert_eq!(host.status().claims_at, Some(sent + LEASE));
}

/// `neli_standbys`, and the alert that uses it, must not count a dead leader.
#[test]
fn a_leader_whose_silence_led_to_a_claim_is_no_standby() {
    let mut host = Host::listening(&[]);
    host.answered_with(1);
    host.actions();
    host.reads(hello("db1", 0));
    host.reads(by("db1", Body::Claim { after: 0, lease_ms: 2_000, overlap: None }));
    host.reads(hello("db3", 0));
    host.pass(Duration::from_secs(4));
    let after = Offset::try_from(host.log.len()).expect("a short log") - 1;
    host.reads(by("db3", Body::Claim { after, lease_ms: 2_000, overlap: None }));
    assert_eq!(host.status().leader().and_then(|leader| leader.member.clone()), Some(MemberId::from("db3")));
    assert_eq!(host.status().standbys, []);
    host.reads(hello("db1", 1));
    assert_eq!(host.status().standbys.len(), 1);
}

#[test]
fn the_status_counts_records_and_states_why_there_is_no_leader() {
    let mut host = Host::listening(&[]);
    assert_eq!(host.status().term_state, TermState::Unread);
    host.answered_with(0);
    assert_eq!(host.status().term_state, TermState::NeverLed);
    host.actions();
    host.reads(by("db1", Body::Claim { after: -1, lease_ms: 2_000, overlap: None }));
    host.reads(by("db2", Body::Claim { after: -1, lease_ms: 2_000, overlap: None }));
    host.reads(by("db3", Body::Claim { after: -1, lease_ms: 2_000, overlap: None }));
    assert_eq!(host.status().counts, Counts { terms: 1, void_claims: 2, void_in_a_row: 2 });
    let release = Body::Release {
        term: 0,
        seen: 2,
        why: Some("stopped".into()),
        exit: None,
        late_ms: None,
        group_member: None,
        once: None,
        successor: None,
    };
    host.reads(by("db1", release));
    let status = host.status();
    assert_eq!(status.counts, Counts { terms: 1, void_claims: 2, void_in_a_row: 0 });
    let release = status.release().unwrap();
    assert_eq!((release.term, release.shown(), release.how.why.as_deref()), (0, "db1-name", Some("stopped")));
    assert_eq!((status.leader(), release.how.request.as_ref()), (None, None));
}

/// The page and `/status` name the operator, as the commands do.
#[test]
fn the_status_names_who_asked_the_leader_to_stand_down_and_why() {
    let mut host = Host::listening(&[]);
    host.answered_with(0);
    host.actions();
    host.reads(by("db1", Body::Claim { after: -1, lease_ms: 2_000, overlap: None }));
    let request =
        Body::Request { what: What::Resign, term: Some(0), by: None, reason: Some("patching".into()), successor: None };
    host.reads(by("ann", request));
    let (why, exit, late_ms, group_member, once, successor) = (Some("resigned".into()), None, None, None, None, None);
    host.reads(by("db1", Body::Release { term: 0, seen: 1, why, exit, late_ms, group_member, once, successor }));
    let ann = Request { by: Some("ann-name".into()), reason: Some("patching".into()) };
    assert_eq!(host.status().release().and_then(|release| release.how.request.clone()), Some(ann));
}

#[test]
fn a_node_is_caught_up_when_it_has_read_up_to_the_end_at_its_query() {
    let mut host = Host::listening(&[]);
    assert!(!host.node.is_caught_up());
    host.answered_with(1);
    assert!(!host.node.is_caught_up());
    host.reads(by("db1", Body::Claim { after: -1, lease_ms: 2_000, overlap: None }));
    assert!(host.node.is_caught_up());
}

#[test]
fn the_status_of_a_leader_from_its_claim_to_its_release() {
    let mut host = Host::listening(&[]);
    host.answered();
    host.claims();
    let lease_end = host.now + LEASE;
    assert_eq!((host.status().position, host.status().claims_at), (Position::Claiming, None));
    assert_eq!((host.status().leader(), host.status().lease_end), (None, None));

    host.reads_what_it_sent();
    let status = host.status();
    let leader = status.leader().unwrap();
    assert!(leader.is_self);
    assert_eq!((leader.since, status.lease_end), (host.now, Some(lease_end)));
    let shown = |now| status.leadership(ReadAt { now, wall_ms: 0 }, false);
    assert!(shown(host.now).is_led() && !shown(lease_end).is_led(), "also if Kafka does not answer");

    host.pass(Duration::from_millis(20));
    host.started();
    let running = host.status();
    let job = JobReport { state: JobState::Running, pid: Some(7), attempt: 1, since: host.now };
    assert_eq!(running.position, Position::Leading { term: leader.term, job, stopping: None });
    assert_eq!((running.claims_at, running.leader().map(|leader| leader.since)), (None, Some(leader.since)));

    host.happens(Event::Signal { signal: TERM, by_terminal: false });
    let status = host.status();
    assert!(status.is_leaving && host.node.is_leaving());
    let Position::Leading { stopping, .. } = status.position else { panic!("{status:?}") };
    assert_eq!(stopping, Some(Why::Stopped));

    host.ends(JobStatus::Exited(3));
    let status = host.status();
    assert_eq!(status.position, Position::Releasing { term: leader.term });
    host.actions();
    host.reads_what_it_sent();
    assert_eq!(host.status().position, Position::Departed);
    assert_eq!(exits(&host.actions()), [Ending::Job(JobStatus::Exited(3))]);
}

#[test]
fn nothing_is_claimed_in_a_topic_that_is_not_judged() {
    let mut host = Host::new(&[], true);
    host.identified(TopicIdentity::Unnamed);
    host.answered();
    let actions = host.actions();
    assert!(!actions.iter().any(|action| sends(action, "claim")), "{actions:?}");
    assert_eq!((host.node.poll_timeout(), host.status().claims_at), (None, None));
}

#[test]
fn a_refusal_by_kafka_ends_a_candidate_without_a_term_at_once_and_is_reported_once() {
    let mut host = Host::listening(&[]);
    host.actions();
    host.happens(Event::Refused("no".into()));
    let actions = host.actions();
    assert_eq!((refusals(&actions), exits(&actions)), (vec![Refusal::Said("no".into())], vec![Ending::Refused]));
    host.happens(Event::Refused("no again".into()));
    assert_eq!(host.actions(), []);
}

#[test]
fn kafkas_refusal_stops_a_job_in_order() {
    let mut host = Host::leading(&[]);
    host.happens(Event::Refused("no".into()));
    let actions = host.actions();
    assert!(exits(&actions).is_empty() && !refusals(&actions).is_empty());
    assert!(actions.iter().any(|action| matches!(action, Action::Order(Order::Stop { .. }))), "{actions:?}");
    host.ends(JobStatus::Exited(0));
    host.actions();
    host.reads_what_it_sent();
    assert_eq!(exits(&host.actions()), [Ending::Refused]);
}

#[test]
fn a_process_that_can_not_be_killed_is_reported_even_if_kafka_refuses() {
    let mut host = Host::leading(&[]);
    host.happens(Event::Refused("no".into()));
    host.actions();
    host.answers(Answer::Stuck { pids: vec![7] });
    assert_eq!(exits(&host.actions()), [Ending::Stuck]);
}

#[test]
fn a_refused_candidate_awaits_its_claim_for_a_lease_and_releases_it() {
    let mut host = Host::listening(&[]);
    host.answered();
    host.claims();
    let mut other = host.clone();
    host.happens(Event::Refused("no".into()));
    assert_eq!(exits(&host.actions()), []);
    host.reads_what_it_sent();
    assert!(host.actions().iter().any(|action| sends(action, "release")));
    host.reads_what_it_sent();
    assert_eq!(exits(&host.actions()), [Ending::Refused]);

    other.happens(Event::Refused("no".into()));
    assert_eq!(exits(&other.actions()), []);
    other.pass(LEASE);
    assert_eq!(exits(&other.actions()), [Ending::Refused], "Kafka does not answer any more");
}

/// A program with the library that leaves all roles drops the handle of each, which is another reason, `left`
/// after `departed`; it may be stopped besides.
#[test]
fn a_claim_in_flight_is_released_with_the_first_reason_for_leaving() {
    let mut host = Host::listening(&[]);
    host.answered();
    host.claims();
    for why in [Why::Departed, Why::Left, Why::Stopped] {
        host.happens(Event::StandDown { why, leaving: true });
    }
    host.reads_what_it_sent();
    assert_eq!(releases(host.actions()), ["departed".into()]);
}

/// Kafka's events in the same turn of the loop come after the refusal and before the exit. A claim that is sent then could not be
/// released any more.
#[test]
fn a_refused_candidate_claims_nothing_more() {
    let mut host = Host::listening(&[]);
    host.happens(Event::Refused("no".into()));
    assert_eq!(exits(&host.actions()), [Ending::Refused]);
    host.answered();
    host.pass(LEASE);
    assert_eq!(host.actions(), []);
}

#[test]
fn a_topic_that_was_created_again_is_refused_if_the_settings_require_it() {
    let id = |low| TopicIdentity::Id { high: 0, low };
    for accepts in [true, false] {
        let mut host = Host::new(&[], accepts);
        host.identified(id(1));
        host.elects(candidate::Event::TopicJudged { cut_is_harmless: true, gaps_are_markers: true });
        host.answered();
        host.actions();
        host.pass(Duration::from_secs(30));
        host.identified(id(2));
        let actions = host.actions();
        let is_renewed = actions.contains(&Action::RenewGuard);
        if accepts {
            assert!(actions.contains(&Action::Note(Note::TopicRemade)), "{actions:?}");
            assert!(is_renewed && exits(&actions).is_empty());
        } else {
            assert_eq!((refusals(&actions), exits(&actions)), (vec![Refusal::TopicRemade], vec![Ending::Refused]));
        }
    }
}

/// The old guard kills the job of the old history by its deadline, so the guard is not replaced before all processes of the job have
/// ended.
#[test]
fn the_guard_is_replaced_when_no_job_is_alive() {
    let mut host = Host::leading(&[]);
    let term = host.node.supervisor().term().unwrap();
    host.elects(candidate::Event::HistoryCut);
    let actions = host.actions();
    assert!(actions.contains(&Action::Order(Order::Kill)) && !actions.contains(&Action::RenewGuard), "{actions:?}");
    assert!(
        actions.contains(&Action::Kafka(kafka::Request::ReadAnew))
            && actions.contains(&Action::Kafka(kafka::Request::RenewProducer)),
        "{actions:?}"
    );
    host.ends(JobStatus::Signaled(9));
    let actions = host.actions();
    let released = actions.iter().position(|action| *action == Action::Order(Order::Released { term })).unwrap();
    let renewed = actions.iter().position(|action| *action == Action::RenewGuard).unwrap();
    assert!(released < renewed, "nothing of the old history is released: {actions:?}");
    host.pass(Duration::from_millis(1));
    assert!(!host.actions().contains(&Action::RenewGuard), "once");
}

#[test]
fn the_guard_is_informed_of_delivered_releases_only() {
    for delivered in [true, false] {
        let mut host = Host::leading(&[]);
        let term = host.node.leads().unwrap();
        host.happens(Event::StandDown { why: Why::Unhealthy, leaving: false });
        host.ends(JobStatus::Exited(0));
        assert!(!host.actions().contains(&Action::Order(Order::Released { term })));
        if delivered {
            host.reads_what_it_sent();
        } else {
            host.pass(LEASE * 3);
        }
        let actions = host.actions();
        assert_eq!(actions.contains(&Action::Order(Order::Released { term })), delivered, "{actions:?}");
        let is_noted = actions
            .iter()
            .any(|action| matches!(action, Action::Note(Note::Released { delivered: so, .. }) if *so == delivered));
        assert!(is_noted, "{actions:?}");
    }
}

#[test]
fn a_terminal_that_only_the_job_lost_ends_a_leader() {
    let mut host = Host::listening(&[]);
    host.answered_with(1);
    host.happens(Event::JobsTerminalGone);
    assert!(!host.status().is_leaving);
    let mut host = Host::leading(&[]);
    host.happens(Event::JobsTerminalGone);
    assert!(host.status().is_leaving);
}

#[test]
fn a_stop_by_a_key_ends_in_its_signal_unless_refused() {
    const INT: i32 = 2;
    for is_refused in [false, true] {
        let mut host = Host::leading(&[]);
        if is_refused {
            host.happens(Event::Refused("no".into()));
        }
        host.happens(Event::Signal { signal: INT, by_terminal: true });
        host.ends(JobStatus::Exited(0));
        host.actions();
        host.reads_what_it_sent();
        let actions = host.actions();
        let dies = actions.contains(&Action::DieOf { signal: INT, to_group: false });
        let ending = if is_refused { Ending::Refused } else { Ending::StoppedBy(INT) };
        assert_eq!((dies, exits(&actions)), (!is_refused, vec![ending]));
    }
}

#[test]
fn a_suspended_node_waits_for_its_hook_and_goes_on_from_the_beginning() {
    let mut host = Host::leading(&[Hook::Standby]);
    host.job(supervisor::Event::SuspendSignal { continuable: true });
    host.ends(JobStatus::Exited(0));
    host.actions();
    host.reads_what_it_sent();
    let actions = host.actions();
    let [HookRun { id, .. }] = hooks_in(&actions)[..] else { panic!("{actions:?}") };
    assert!(!host.node.is_suspended(), "the hook is not stopped amid its work");
    host.happens(Event::HookEnded { id, end: CommandEnd::Exited(0) });
    assert!(host.node.is_suspended());
    host.happens(Event::Signal { signal: TSTP_ENDS, by_terminal: false });
    assert!(!host.node.is_suspended() && host.actions().contains(&Action::Kafka(kafka::Request::ReadAnew)));
}

/// A program that routes requests to the leader would send them to former ones.
#[test]
fn while_the_journal_is_read_again_no_former_leader_is_shown() {
    let mut host = Host::listening(&[]);
    host.answered_with(2);
    host.actions();
    for (member, after) in [("db1", -1), ("db2", 0)] {
        host.reads(by(member, Body::Claim { after, lease_ms: 2_000, overlap: None }));
        host.pass(Duration::from_secs(3));
    }
    let mut host = host.led();
    host.job(supervisor::Event::SuspendSignal { continuable: true });
    host.ends(JobStatus::Exited(0));
    host.actions();
    host.reads_what_it_sent();
    host.reads(by("db3", Body::Claim { after: host.end() - 1, lease_ms: 2_000, overlap: None }));
    host.happens(Event::Signal { signal: TSTP_ENDS, by_terminal: false });
    assert!(host.actions().contains(&Action::Kafka(kafka::Request::ReadAnew)));
    host.identified(TopicIdentity::Unnamed);
    host.answered_with(host.end());
    for offset in 0..host.end() {
        host.reads_at(offset);
        let shown = host.status().leader().and_then(|leader| leader.member.clone());
        assert_eq!(shown, Some(MemberId::from("db3")), "at {offset}");
    }
}

/// A heartbeat that was in flight while Kafka was away is appended after its lease: nobody leads, and each candidate waits for that lease again.
#[test]
fn a_leader_whose_lease_is_over_says_that_nobody_leads_and_when_it_claims() {
    let mut host = Host::leading(&[]);
    host.pass(Duration::from_secs(1));
    host.actions();
    let late = std::mem::take(&mut host.sent);
    host.pass(LEASE);
    host.ends(JobStatus::Signaled(9));
    while !host.actions().contains(&Action::Kafka(kafka::Request::ReadAnew)) {
        host.pass_until_due();
    }
    host.identified(TopicIdentity::Unnamed);
    host.answered_with(host.end());
    for offset in 0..host.end() {
        host.reads_at(offset);
    }
    for beat in late {
        host.reads(beat);
    }
    let status = host.status();
    assert!(matches!(status.position, Position::Standby(_)), "{status:?}");
    let shown = |is_answered| status.leadership(ReadAt { now: host.now, wall_ms: 0 }, is_answered);
    assert!(matches!(shown(false), Leadership::Unknown(Unknown::LeaseOver { is_answered: false })));
    let Leadership::Silent { leader, claimable_in, .. } = shown(true) else { panic!("{:?}", shown(true)) };
    assert!(leader.is_self && !claimable_in.is_zero());
    assert_eq!(status.claims_at, Some(host.now + claimable_in));
}

#[test]
fn a_leave_of_the_group_states_whether_others_are_known() {
    for others in [0, 1] {
        let mut host = Host::listening(&[]);
        host.answered();
        if others > 0 {
            let other = hello("db3", 0);
            host.elects(candidate::Event::ReadHello { offset: 0, hello: Box::new(other) });
        }
        assert_eq!(host.node.is_alone(host.now), others == 0);
    }
}
