//! When each hook runs, and with which environment.

use std::time::Duration;

use neli_proto::guard::{Answer, CommandKind, Order, SeenEnd};
use neli_proto::hooks::{Hook, LIMIT};
use neli_proto::job::CommandEnd;
use neli_proto::kafka::Request;
use neli_proto::node::{Action, Event, HookRun, Node};
use neli_proto::note::Note;
use neli_proto::random::Random;
use neli_proto::record::Body;
use neli_proto::restart::{Restart, RestartPolicy};
use neli_proto::supervisor::{self, Ending, JobStatus};

use crate::host::{Host, LEASE, TERM, by, exits, hooks_in};

#[test]
fn hooks_follow_the_lead_and_are_never_before_what_starts_or_kills() {
    let all = [Hook::Fence, Hook::Lead, Hook::Standby];
    let mut host = Host::listening(&all);
    host.answered();
    host.claims();
    host.reads_what_it_sent();
    let actions = host.actions();
    let at = |wanted: &dyn Fn(&Action) -> bool| actions.iter().position(wanted).unwrap();
    let spawned = at(&|action| matches!(action, Action::Order(Order::Spawn { .. })));
    let run = at(&|action| matches!(action, Action::Order(Order::Command { kind: CommandKind::Lead, .. })));
    let (Action::Order(Order::Spawn { grant, .. }), Action::Order(Order::Command { id, .. })) =
        (&actions[spawned], &actions[run])
    else {
        panic!("{actions:?}")
    };
    assert!(spawned < run, "{actions:?}");
    let (term, id) = (grant.term, *id);
    host.answers(Answer::CommandEnded { kind: CommandKind::Lead, id, end: CommandEnd::Exited(1) });
    let failed = Note::HookFailed { hook: Hook::Lead, end: CommandEnd::Exited(1) };
    assert_eq!(host.actions(), [Action::Note(failed)]);
    host.started();
    // This is another candidate's claim, which was judged before ours.
    let after = host.end() - 1;
    host.reads(by("db2", Body::Claim { after, lease_ms: 5_000, overlap: None }));
    let actions = host.actions();
    assert!(actions.contains(&Action::Order(Order::Released { term })), "the term is over: {actions:?}");
    let fence = hooks_in(&actions);
    assert_eq!(fence.iter().map(|run| (run.hook.event(), run.why)).collect::<Vec<_>>(), [("fence", "superseded")]);
    host.ends(JobStatus::Signaled(9));
    assert!(host.actions().contains(&Action::Kafka(Request::ReadAnew)));
    host.answered_with(host.end());
    (0..host.end()).for_each(|offset| host.reads_at(offset));
    let standby = hooks_in(&host.actions());
    let [HookRun { hook: Hook::Standby, .. }] = standby[..] else { panic!("{standby:?}") };
}

#[test]
fn an_exit_waits_only_for_the_hook_and_a_second_stop_kills_it() {
    let mut host = Host::leading(&[Hook::Standby]);
    host.happens(Event::Exiting);
    let actions = host.actions();
    let [HookRun { hook: Hook::Standby, id, .. }] = hooks_in(&actions)[..] else { panic!("{actions:?}") };
    assert!(actions.len() == 1 && host.node.has_running_hooks());
    assert_eq!(host.node.poll_timeout(), Some(host.now + LIMIT), "no beat is due any more");
    host.happens(Event::Signal { signal: TERM, by_terminal: false });
    host.answers(Answer::Gone);
    assert_eq!(host.actions(), []);

    let mut host = Host::listening(&[Hook::Standby]);
    host.answered_with(1);
    host.actions();
    host.reads(by("db1", Body::Claim { after: -1, lease_ms: 5_000, overlap: None }));
    let started = hooks_in(&host.actions());
    let [HookRun { id: running, .. }] = started[..] else { panic!("{started:?}") };
    host.happens(Event::Signal { signal: TERM, by_terminal: false });
    assert_eq!(exits(&host.actions()), [Ending::StoppedBy(TERM)]);
    host.happens(Event::Exiting);
    host.pass(Duration::from_secs(1));
    assert!(host.node.has_running_hooks());
    host.happens(Event::Signal { signal: TERM, by_terminal: false });
    assert_eq!(host.actions(), [Action::KillHook { id: running }]);
    assert!(!host.node.has_running_hooks());
    assert_eq!(id, running, "each node counts its own");
}

#[test]
fn a_hook_gets_the_attempt_of_the_last_run_of_its_term() {
    let mut host = Host::new(&[], true);
    let mut settings = Host::settings(host.now, &[Hook::Standby], true);
    settings.job.restart = RestartPolicy { restart: Restart::Always, delay: Duration::ZERO, limit: None };
    host.node = Node::new(host.now, settings, Random::from_seed(1));
    let mut host = host.listened().led();
    for status in [0, 3, 3] {
        host.ends(JobStatus::Exited(status));
        host.pass(Duration::from_millis(1));
        host.started();
    }
    host.happens(Event::Signal { signal: TERM, by_terminal: false });
    host.ends(JobStatus::Exited(0));
    host.actions();
    host.reads_what_it_sent();
    let runs = hooks_in(&host.actions());
    assert!(matches!(runs[..], [HookRun { hook: Hook::Standby, attempt: 3, .. }]), "{runs:?}");
}

/// The end of a run, as its hook learns it: `NELI_WHY`, the status, the seconds and the attempt.
fn of_runs(actions: &[Action]) -> Vec<(&'static str, JobStatus, u64, u32)> {
    let ended = hooks_in(actions).into_iter().filter_map(|run| Some((run, run.ended?)));
    ended.map(|(run, ended)| (run.why, ended.status, ended.ran.as_secs(), run.attempt)).collect()
}

fn restarting(delay: Duration) -> Host {
    let mut host = Host::new(&[], true);
    let mut settings = Host::settings(host.now, &[Hook::Exit], true);
    settings.job.restart = RestartPolicy { restart: Restart::Always, delay, limit: None };
    host.node = Node::new(host.now, settings, Random::from_seed(1));
    host.listened().led()
}

#[test]
fn each_run_has_a_hook_behind_it_and_none_waits_for_it() {
    let mut host = restarting(Duration::ZERO);
    host.actions();
    let mut ended = Vec::new();
    for status in [JobStatus::Exited(0), JobStatus::Exited(3), JobStatus::Signaled(11)] {
        host.ends(status);
        ended.extend(of_runs(&host.actions()));
        host.pass(Duration::from_millis(1));
        host.started();
    }
    let expected = [(JobStatus::Exited(0), 1), (JobStatus::Exited(3), 1), (JobStatus::Signaled(11), 2)];
    assert_eq!(ended, expected.map(|(status, attempt)| ("exited", status, 0, attempt)));
    // The release comes first, and waits for no hook.
    host.happens(Event::Signal { signal: TERM, by_terminal: false });
    host.ends(JobStatus::Exited(143));
    let actions = host.actions();
    let at = |wanted: &dyn Fn(&Action) -> bool| actions.iter().position(wanted).unwrap();
    let is_release = |action: &Action| matches!(action, Action::Kafka(Request::Send { record }) if matches!(record.body, Body::Release { .. }));
    assert!(at(&is_release) < at(&|action| matches!(action, Action::RunHook(_))), "{actions:?}");
    assert_eq!(of_runs(&actions), [("stopped", JobStatus::Exited(143), 0, 3)]);
    assert!(host.node.has_running_hooks(), "the exit waits");
}

/// With `--settle`, or a schedule whose next window has not come.
#[test]
fn a_lead_that_ends_before_its_first_run_was_a_lead() {
    let mut host = Host::settling(&[Hook::Lead, Hook::Standby], LEASE);
    host.happens(Event::Signal { signal: TERM, by_terminal: false });
    let mut actions = host.actions();
    host.reads_what_it_sent();
    actions.extend(host.actions());
    let runs = hooks_in(&actions);
    let is_whole = matches!(runs[..], [HookRun { hook: Hook::Standby, why: "stopped", term: Some(_), attempt: 1, .. }]);
    assert!(is_whole, "{runs:?}");
}

/// The guard has killed the job at its deadline while this process was stopped, and this process reads that later.
#[test]
fn a_run_that_the_guard_has_killed_did_not_end_by_itself() {
    for (killed_by, why) in [(9, "stopped"), (11, "exited")] {
        let mut host = Host::new(&[], true);
        let settings = Host::settings(host.now, &[Hook::Exit], true);
        host.node = Node::new(host.now, settings, Random::from_seed(1));
        let mut host = host.listened().led();
        host.actions();
        host.now = host.now + LEASE;
        let (status, ended_at) = (JobStatus::Signaled(killed_by), host.now);
        host.answers(Answer::Exited { status, ended_at, left: false, foreground: false });
        host.answers(Answer::Fenced { term: host.node.supervisor().term().unwrap(), end: None });
        assert_eq!(of_runs(&host.actions()), [(why, status, LEASE.as_secs(), 1)]);
    }
}

/// A hook is not run before nothing is left of its run, and a guard that dies leaves no status.
#[test]
fn a_run_that_leaves_processes_is_not_over() {
    let mut host = restarting(Duration::from_secs(1));
    host.actions();
    let ended_at = host.now;
    host.answers(Answer::Exited { status: JobStatus::Exited(5), ended_at, left: true, foreground: false });
    assert_eq!(of_runs(&host.actions()), [], "runs the hook of a run that is not over");
    host.job(supervisor::Event::GuardDied);
    assert_eq!(of_runs(&host.actions()), []);
    host.job(supervisor::Event::OrphansGone(SeenEnd { gone_at: host.now, lived_at: None }));
    assert_eq!(of_runs(&host.actions()), [("exited", JobStatus::Exited(5), 0, 1)]);

    let mut host = restarting(Duration::from_secs(1));
    host.job(supervisor::Event::GuardDied);
    host.job(supervisor::Event::OrphansGone(SeenEnd { gone_at: host.now, lived_at: None }));
    assert_eq!(of_runs(&host.actions()), [], "nobody knows how it ended");
}

/// A job that is run again at once does not fill the machine with its hooks.
#[test]
fn of_too_many_hooks_of_runs_the_oldest_is_killed() {
    let mut host = restarting(Duration::ZERO);
    let (mut begun, mut killed, mut said) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..10 {
        host.ends(JobStatus::Exited(0));
        let actions = host.actions();
        begun.extend(hooks_in(&actions).into_iter().map(|run| run.id));
        killed.extend(
            actions.iter().filter_map(|action| if let Action::KillHook { id } = action { Some(*id) } else { None }),
        );
        said.extend(actions.into_iter().filter(|action| matches!(action, Action::Note(Note::HookFailed { .. }))));
        host.pass(Duration::from_millis(1));
        host.started();
    }
    assert_eq!((begun.len(), killed), (10, begun[..2].to_vec()));
    let replaced = Action::Note(Note::HookFailed { hook: Hook::Exit, end: CommandEnd::Replaced });
    assert_eq!(said, [replaced.clone(), replaced], "they did not take too long");
}
