//! Which hook runs when: `--on-lead` beside the job's start, `--on-fence` when fenced, `--on-standby` when standing by
//! begins, and at exit after a lead.
//!
//! They run side by side, and nothing waits for them but the exit. `--on-lead` is the guard's to run and to end, with the
//! job's tree; the others are the supervisor's.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::command::{ANSWER_TAKES, CommandEnd};
use crate::record::{Offset, Why};
use crate::time::Time;

/// A hook that runs for longer is killed.
pub const LIMIT: Duration = Duration::from_secs(10);

/// The hooks.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Hook {
    /// `--on-fence`.
    Fence,
    /// `--on-lead`.
    Lead,
    /// `--on-standby`.
    Standby,
}

impl Hook {
    /// Its event, as `NELI_EVENT` has it.
    #[must_use]
    pub const fn event(self) -> &'static str {
        match self {
            Self::Fence => "fence",
            Self::Lead => "lead",
            Self::Standby => "standby",
        }
    }
}

/// Things that happened.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Event {
    /// A hook has ended.
    Ended {
        /// Which.
        hook: Hook,
        /// Its number.
        id: u32,
        /// How.
        end: CommandEnd,
    },
    /// `neli-run` is about to exit.
    Exiting,
    /// The lease ran out, and nothing is left of the job.
    Fenced(Why),
    /// The first run of a lead was ordered.
    Led(Offset),
    /// A term was released, or could not be.
    Released(Why),
    /// Standing by began, or another leads.
    StoodBy,
    /// Another's claim took effect while we led.
    Superseded,
}

/// Things to do.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    /// SIGKILL to this hook and all of its group.
    Kill {
        /// Its number.
        id: u32,
    },
    /// A hook has failed: say so.
    NoteFailure {
        /// Which.
        hook: Hook,
        /// How.
        end: CommandEnd,
    },
    /// Run this hook.
    Run {
        /// Which.
        hook: Hook,
        /// To be said with its end.
        id: u32,
        /// `NELI_WHY`; may be empty.
        why: &'static str,
        /// The term that the lead is or was of, when there was one.
        term: Option<Offset>,
        /// When it is killed.
        kill_at: Time,
    },
}

/// The hooks of one candidate.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Hooks {
    /// Those that were given.
    given: Vec<Hook>,
    phase: Phase,
    /// The last lead's term.
    term: Option<Offset>,
    last_id: u32,
    /// The supervisor's hooks that run, and until when they may.
    running: Vec<(Hook, u32, Time)>,
    /// The guard's hook whose end was not told, and until when it is awaited.
    led: Option<(u32, Time)>,
    actions: VecDeque<Action>,
}

/// What the last hook was told.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Phase {
    /// Nothing yet.
    Begun,
    /// That it leads; and why it does no more, if it does not.
    Led(&'static str),
    /// That it stands by.
    StandingBy,
}

impl Hooks {
    /// Those of a candidate that begins.
    #[must_use]
    pub const fn new(given: Vec<Hook>) -> Self {
        Self {
            given,
            phase: Phase::Begun,
            term: None,
            last_id: 0,
            running: Vec::new(),
            led: None,
            actions: VecDeque::new(),
        }
    }

    /// What to do next.
    #[must_use]
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), unless something happens before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        let led = self.led.map(|(_, until)| until);
        self.running.iter().map(|(.., kill_at)| *kill_at).chain(led).min()
    }

    /// Does what is due by now. Early calls do nothing.
    pub fn handle_timeout(&mut self, now: Time) {
        for (hook, id, _) in self.running.extract_if(.., |(.., kill_at)| now >= *kill_at) {
            self.actions.push_back(Action::Kill { id });
            self.actions.push_back(Action::NoteFailure { hook, end: CommandEnd::TimedOut });
        }
        if self.led.take_if(|(_, until)| now >= *until).is_some() {
            self.actions.push_back(Action::NoteFailure { hook: Hook::Lead, end: CommandEnd::Unanswered });
        }
    }

    /// Takes in what happened.
    pub fn handle(&mut self, now: Time, event: Event) {
        // Where none was given there is nothing to remember.
        if self.given.is_empty() {
            return;
        }
        match event {
            Event::Ended { hook, id, end } => {
                let is_leads = self.led.take_if(|(awaited, _)| hook == Hook::Lead && *awaited == id).is_some();
                let is_news = is_leads || self.running.iter().any(|(_, running, _)| *running == id);
                self.running.retain(|(_, running, _)| *running != id);
                if is_news && end.is_failure() {
                    self.actions.push_back(Action::NoteFailure { hook, end });
                }
            }
            Event::Exiting => {
                if let Phase::Led(why) = self.phase {
                    self.stand_by(now, why);
                }
            }
            Event::Fenced(why) => self.fence(now, why.as_str()),
            Event::Led(term) => {
                (self.phase, self.term) = (Phase::Led(""), Some(term));
                self.run(now, Hook::Lead, "");
            }
            Event::Released(why) => {
                // A claim that came back too late was no lead.
                if let Phase::Led(_) = self.phase {
                    self.stand_by(now, why.as_str());
                }
            }
            Event::StoodBy => match self.phase {
                Phase::Begun => self.stand_by(now, ""),
                Phase::Led(why) => self.stand_by(now, why),
                Phase::StandingBy => {}
            },
            Event::Superseded => self.fence(now, "superseded"),
        }
    }

    /// Gives up waiting for hooks: those that run are killed.
    pub fn give_up(&mut self) {
        let killed = self.running.drain(..).map(|(_, id, _)| Action::Kill { id });
        self.actions.extend(killed);
    }

    /// Whether no hook of the supervisor's runs.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    fn fence(&mut self, now: Time, why: &'static str) {
        // It was ended with the job.
        self.led = None;
        self.phase = Phase::Led(why);
        self.run(now, Hook::Fence, why);
    }

    fn stand_by(&mut self, now: Time, why: &'static str) {
        self.led = None;
        self.phase = Phase::StandingBy;
        self.run(now, Hook::Standby, why);
    }

    fn run(&mut self, now: Time, hook: Hook, why: &'static str) {
        if !self.given.contains(&hook) {
            return;
        }
        self.last_id += 1;
        let (id, kill_at) = (self.last_id, now + LIMIT);
        match hook {
            Hook::Fence | Hook::Standby => self.running.push((hook, id, kill_at)),
            Hook::Lead => self.led = Some((id, kill_at + ANSWER_TAKES)),
        }
        self.actions.push_back(Action::Run { hook, id, why, term: self.term, kill_at });
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    const ALL: [Hook; 3] = [Hook::Fence, Hook::Lead, Hook::Standby];

    /// What runs, and why.
    fn run(hooks: &mut Hooks, event: Event) -> Vec<(Hook, &'static str)> {
        hooks.handle(Time::ZERO, event);
        actions(hooks)
            .into_iter()
            .filter_map(|action| match action {
                Action::Run { hook, why, .. } => Some((hook, why)),
                Action::Kill { .. } | Action::NoteFailure { .. } => None,
            })
            .collect()
    }

    fn actions(hooks: &mut Hooks) -> Vec<Action> {
        core::iter::from_fn(|| hooks.poll_action()).collect()
    }

    #[test]
    fn standing_by_begins_once_and_again_after_each_lead() {
        let mut hooks = Hooks::new(ALL.to_vec());
        assert_eq!(run(&mut hooks, Event::StoodBy), [(Hook::Standby, "")]);
        assert_eq!(run(&mut hooks, Event::StoodBy), [], "another leads now");
        assert_eq!(run(&mut hooks, Event::Led(5)), [(Hook::Lead, "")]);
        assert_eq!(run(&mut hooks, Event::Released(Why::Resigned)), [(Hook::Standby, "resigned")]);
        assert_eq!(run(&mut hooks, Event::StoodBy), []);
        assert_eq!(run(&mut hooks, Event::Exiting), []);
    }

    #[test]
    fn a_fence_is_followed_by_standing_by() {
        let mut hooks = Hooks::new(ALL.to_vec());
        run(&mut hooks, Event::Led(5));
        assert_eq!(run(&mut hooks, Event::Fenced(Why::GuardDied)), [(Hook::Fence, "guard-died")]);
        assert_eq!(run(&mut hooks, Event::Released(Why::GuardDied)), [(Hook::Standby, "guard-died")]);
    }

    #[test]
    fn whoever_is_superseded_releases_nothing_and_stands_by() {
        for next in [Event::StoodBy, Event::Exiting] {
            let mut hooks = Hooks::new(ALL.to_vec());
            run(&mut hooks, Event::Led(5));
            assert_eq!(run(&mut hooks, Event::Superseded), [(Hook::Fence, "superseded")]);
            assert_eq!(run(&mut hooks, next), [(Hook::Standby, "superseded")]);
        }
    }

    #[test]
    fn whoever_never_led_exits_without_a_word() {
        let mut hooks = Hooks::new(ALL.to_vec());
        assert_eq!(run(&mut hooks, Event::Released(Why::ClaimExpired)), []);
        assert_eq!(run(&mut hooks, Event::Exiting), []);
    }

    #[test]
    fn what_was_not_given_is_neither_run_nor_awaited() {
        let mut hooks = Hooks::new(vec![Hook::Lead]);
        assert_eq!(run(&mut hooks, Event::StoodBy), []);
        assert_eq!(run(&mut hooks, Event::Led(5)), [(Hook::Lead, "")]);
        assert!(hooks.is_idle(), "the guard's ends with the tree");
    }

    #[test]
    fn a_hook_has_ten_seconds() {
        let mut hooks = Hooks::new(ALL.to_vec());
        hooks.handle(Time::ZERO, Event::StoodBy);
        let [Action::Run { id, kill_at, .. }] = actions(&mut hooks)[..] else { panic!() };
        assert_eq!(kill_at, Time::ZERO + LIMIT);
        assert_eq!(hooks.poll_timeout(), Some(kill_at));
        hooks.handle_timeout(kill_at - Duration::from_nanos(1));
        assert_eq!(actions(&mut hooks), []);
        hooks.handle_timeout(kill_at);
        let timed_out = Action::NoteFailure { hook: Hook::Standby, end: CommandEnd::TimedOut };
        assert_eq!(actions(&mut hooks), [Action::Kill { id }, timed_out]);
        assert!(hooks.is_idle(), "whether or not it can be killed");
        hooks.handle(kill_at, Event::Ended { hook: Hook::Standby, id, end: CommandEnd::Signaled(9) });
        assert_eq!(actions(&mut hooks), [], "that was said");
    }

    #[test]
    fn a_failure_is_said_and_an_end_with_the_job_is_none() {
        let mut hooks = Hooks::new(ALL.to_vec());
        for (end, is_failure) in [(CommandEnd::Abandoned, false), (CommandEnd::Exited(3), true)] {
            hooks.handle(Time::ZERO, Event::Led(5));
            let [Action::Run { hook, id, .. }] = actions(&mut hooks)[..] else { panic!() };
            hooks.handle(Time::ZERO, Event::Ended { hook, id, end: end.clone() });
            let noted = is_failure.then_some(Action::NoteFailure { hook, end });
            assert_eq!(actions(&mut hooks), Vec::from_iter(noted));
            assert_eq!(hooks.poll_timeout(), None);
        }
    }

    #[test]
    fn a_hook_of_the_guards_has_failed_when_its_end_is_not_told_in_time() {
        let mut hooks = Hooks::new(ALL.to_vec());
        hooks.handle(Time::ZERO, Event::Led(5));
        let [Action::Run { id, kill_at, .. }] = actions(&mut hooks)[..] else { panic!() };
        let until = kill_at + ANSWER_TAKES;
        assert_eq!(hooks.poll_timeout(), Some(until));
        hooks.handle_timeout(until - Duration::from_nanos(1));
        assert_eq!(actions(&mut hooks), []);
        hooks.handle_timeout(until);
        let unanswered = Action::NoteFailure { hook: Hook::Lead, end: CommandEnd::Unanswered };
        assert_eq!(actions(&mut hooks), [unanswered]);
        hooks.handle(until, Event::Ended { hook: Hook::Lead, id, end: CommandEnd::Exited(3) });
        assert_eq!(actions(&mut hooks), [], "that was said");

        hooks.handle(until, Event::Led(6));
        hooks.handle(until, Event::Fenced(Why::GuardDied));
        actions(&mut hooks);
        hooks.handle_timeout(until + LIMIT + ANSWER_TAKES);
        assert!(
            !actions(&mut hooks).iter().any(|action| matches!(action, Action::NoteFailure { hook: Hook::Lead, .. }))
        );
    }

    #[test]
    fn hooks_that_run_side_by_side_end_each_for_itself() {
        let mut hooks = Hooks::new(ALL.to_vec());
        for event in [Event::Led(5), Event::Superseded, Event::StoodBy] {
            hooks.handle(Time::ZERO, event);
        }
        let [_, Action::Run { hook: Hook::Fence, id: fence, .. }, Action::Run { hook: Hook::Standby, id: standby, .. }] =
            actions(&mut hooks)[..]
        else {
            panic!()
        };
        let end = CommandEnd::Exited(3);
        hooks.handle(Time::ZERO, Event::Ended { hook: Hook::Fence, id: fence, end: end.clone() });
        assert_eq!(actions(&mut hooks), [Action::NoteFailure { hook: Hook::Fence, end: end.clone() }]);
        assert!(!hooks.is_idle());
        hooks.handle(Time::ZERO, Event::Ended { hook: Hook::Fence, id: fence, end });
        assert_eq!(actions(&mut hooks), [], "that was said");
        hooks.handle_timeout(Time::ZERO + LIMIT);
        assert_eq!(actions(&mut hooks)[0], Action::Kill { id: standby });
    }

    #[test]
    fn the_end_of_an_earlier_leads_hook_is_not_taken_for_that_of_the_current_one() {
        let mut hooks = Hooks::new(ALL.to_vec());
        let mut lead = |term| {
            hooks.handle(Time::ZERO, Event::Led(term));
            let [Action::Run { id, .. }] = actions(&mut hooks)[..] else { panic!() };
            id
        };
        let [earlier, current] = [5, 6].map(&mut lead);
        for (id, is_news) in [(earlier, false), (current, true)] {
            hooks.handle(Time::ZERO, Event::Ended { hook: Hook::Lead, id, end: CommandEnd::Exited(3) });
            assert_eq!(!actions(&mut hooks).is_empty(), is_news);
        }
    }

    #[test]
    fn who_gives_up_waiting_kills_them() {
        let mut hooks = Hooks::new(ALL.to_vec());
        hooks.handle(Time::ZERO, Event::StoodBy);
        let [Action::Run { id, .. }] = actions(&mut hooks)[..] else { panic!() };
        hooks.give_up();
        assert_eq!(actions(&mut hooks), [Action::Kill { id }]);
        assert!(hooks.is_idle());
    }
}
