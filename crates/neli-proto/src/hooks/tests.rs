use alloc::vec;

use super::*;

const ALL: [Hook; 3] = [Hook::Fence, Hook::Lead, Hook::Standby];

/// The hooks that run, and the reasons.
fn run(hooks: &mut Hooks, happens: impl FnOnce(&mut Hooks)) -> Vec<(Hook, &'static str)> {
    happens(hooks);
    let run = |action| {
        let Action::RunHook(HookRun { hook, why, .. }) = action else {
            return matches!(action, Action::Order(_)).then_some((Hook::Lead, ""));
        };
        Some((hook, why))
    };
    actions(hooks).into_iter().filter_map(run).collect()
}

fn failed(hook: Hook, end: CommandEnd) -> Action {
    Action::Note(Note::HookFailed { hook, end })
}

fn actions(hooks: &mut Hooks) -> Vec<Action> {
    core::iter::from_fn(|| hooks.poll_action()).collect()
}

#[test]
fn standing_by_begins_once_and_again_after_each_lead() {
    let mut hooks = Hooks::new(ALL.to_vec());
    assert_eq!(run(&mut hooks, |hooks| hooks.stood_by(Time::ZERO)), [(Hook::Standby, "")]);
    assert_eq!(run(&mut hooks, |hooks| hooks.stood_by(Time::ZERO)), [], "another leads now");
    assert_eq!(run(&mut hooks, |hooks| hooks.led(Time::ZERO, 5)), [(Hook::Lead, "")]);
    assert_eq!(run(&mut hooks, |hooks| hooks.released(Time::ZERO, Why::Resigned)), [(Hook::Standby, "resigned")]);
    assert_eq!(run(&mut hooks, |hooks| hooks.stood_by(Time::ZERO)), []);
    assert_eq!(run(&mut hooks, |hooks| hooks.exiting(Time::ZERO)), []);
}

#[test]
fn a_fence_is_followed_by_standing_by() {
    let mut hooks = Hooks::new(ALL.to_vec());
    run(&mut hooks, |hooks| hooks.led(Time::ZERO, 5));
    assert_eq!(
        run(&mut hooks, |hooks| hooks.fenced(Time::ZERO, Why::GuardDied.as_str())),
        [(Hook::Fence, "guard-died")]
    );
    assert_eq!(run(&mut hooks, |hooks| hooks.released(Time::ZERO, Why::GuardDied)), [(Hook::Standby, "guard-died")]);
}

#[test]
fn a_superseded_leader_releases_nothing_and_stands_by() {
    for next in [Hooks::stood_by, Hooks::exiting] {
        let mut hooks = Hooks::new(ALL.to_vec());
        run(&mut hooks, |hooks| hooks.led(Time::ZERO, 5));
        assert_eq!(run(&mut hooks, |hooks| hooks.fenced(Time::ZERO, "superseded")), [(Hook::Fence, "superseded")]);
        assert_eq!(run(&mut hooks, |hooks| next(hooks, Time::ZERO)), [(Hook::Standby, "superseded")]);
    }
}

#[test]
fn without_a_lead_no_hook_runs_at_the_exit() {
    let mut hooks = Hooks::new(ALL.to_vec());
    assert_eq!(run(&mut hooks, |hooks| hooks.released(Time::ZERO, Why::ClaimExpired)), []);
    assert_eq!(run(&mut hooks, |hooks| hooks.exiting(Time::ZERO)), []);
}

#[test]
fn a_hook_that_is_not_configured_is_neither_run_nor_awaited() {
    let mut hooks = Hooks::new(vec![Hook::Lead]);
    assert_eq!(run(&mut hooks, |hooks| hooks.stood_by(Time::ZERO)), []);
    assert_eq!(run(&mut hooks, |hooks| hooks.led(Time::ZERO, 5)), [(Hook::Lead, "")]);
    assert!(hooks.is_idle(), "the guard's ends with the tree");
}

#[test]
fn a_hook_has_ten_seconds() {
    let mut hooks = Hooks::new(ALL.to_vec());
    hooks.stood_by(Time::ZERO);
    let [Action::RunHook(HookRun { id, .. })] = actions(&mut hooks)[..] else { panic!() };
    let kill_at = Time::ZERO + LIMIT;
    assert_eq!(hooks.poll_timeout(), Some(kill_at));
    hooks.handle_timeout(kill_at - Duration::from_nanos(1));
    assert_eq!(actions(&mut hooks), []);
    hooks.handle_timeout(kill_at);
    let timed_out = failed(Hook::Standby, CommandEnd::TimedOut);
    assert_eq!(actions(&mut hooks), [Action::KillHook { id }, timed_out]);
    assert!(hooks.is_idle(), "whether or not it can be killed");
    hooks.ended(id, CommandEnd::Signaled(9));
    assert_eq!(actions(&mut hooks), [], "that was said");
}

#[test]
fn a_failure_is_reported_but_an_end_with_the_job_is_not_a_failure() {
    let mut hooks = Hooks::new(ALL.to_vec());
    for (end, is_failure) in [(CommandEnd::Abandoned, false), (CommandEnd::Exited(3), true), (CommandEnd::NoTime, true)]
    {
        hooks.led(Time::ZERO, 5);
        let [Action::Order(Order::Command { id, .. })] = actions(&mut hooks)[..] else { panic!() };
        hooks.ended(id, end.clone());
        let noted = is_failure.then(|| failed(Hook::Lead, end));
        assert_eq!(actions(&mut hooks), Vec::from_iter(noted));
        assert_eq!(hooks.poll_timeout(), None);
    }
}

#[test]
fn a_hook_of_the_guard_has_failed_if_its_end_is_not_reported_in_time() {
    let mut hooks = Hooks::new(ALL.to_vec());
    hooks.led(Time::ZERO, 5);
    let [Action::Order(Order::Command { id, kill_at, .. })] = actions(&mut hooks)[..] else { panic!() };
    let until = kill_at + ANSWER_TAKES;
    assert_eq!(hooks.poll_timeout(), Some(until));
    hooks.handle_timeout(until - Duration::from_nanos(1));
    assert_eq!(actions(&mut hooks), []);
    hooks.handle_timeout(until);
    let unanswered = failed(Hook::Lead, CommandEnd::Unanswered);
    assert_eq!(actions(&mut hooks), [unanswered]);
    hooks.ended(id, CommandEnd::Exited(3));
    assert_eq!(actions(&mut hooks), [], "that was said");

    hooks.led(until, 6);
    hooks.fenced(until, Why::GuardDied.as_str());
    actions(&mut hooks);
    hooks.handle_timeout(until + LIMIT + ANSWER_TAKES);
    assert!(
        !actions(&mut hooks)
            .iter()
            .any(|action| matches!(action, Action::Note(Note::HookFailed { hook: Hook::Lead, .. })))
    );
}

#[test]
fn hooks_that_run_in_parallel_end_independently() {
    let mut hooks = Hooks::new(ALL.to_vec());
    hooks.led(Time::ZERO, 5);
    hooks.fenced(Time::ZERO, "superseded");
    hooks.stood_by(Time::ZERO);
    let [_, Action::RunHook(fence), Action::RunHook(standby)] = actions(&mut hooks)[..] else { panic!() };
    assert_eq!([fence.hook, standby.hook], [Hook::Fence, Hook::Standby]);
    let (fence, standby) = (fence.id, standby.id);
    let end = CommandEnd::Exited(3);
    hooks.ended(fence, end.clone());
    assert_eq!(actions(&mut hooks), [failed(Hook::Fence, end.clone())]);
    assert!(!hooks.is_idle());
    hooks.ended(fence, end);
    assert_eq!(actions(&mut hooks), [], "that was said");
    hooks.handle_timeout(Time::ZERO + LIMIT);
    assert_eq!(actions(&mut hooks)[0], Action::KillHook { id: standby });
}

#[test]
fn the_end_of_an_earlier_leads_hook_is_not_taken_for_that_of_the_current_one() {
    let mut hooks = Hooks::new(ALL.to_vec());
    let mut lead = |term| {
        hooks.led(Time::ZERO, term);
        let [Action::Order(Order::Command { id, .. })] = actions(&mut hooks)[..] else { panic!() };
        id
    };
    let [earlier, current] = [5, 6].map(&mut lead);
    for (id, is_news) in [(earlier, false), (current, true)] {
        hooks.ended(id, CommandEnd::Exited(3));
        assert_eq!(!actions(&mut hooks).is_empty(), is_news);
    }
}

#[test]
fn giving_up_the_wait_kills_them() {
    let mut hooks = Hooks::new(ALL.to_vec());
    hooks.stood_by(Time::ZERO);
    let [Action::RunHook(HookRun { id, .. })] = actions(&mut hooks)[..] else { panic!() };
    hooks.give_up();
    assert_eq!(actions(&mut hooks), [Action::KillHook { id }]);
    assert!(hooks.is_idle());
}
