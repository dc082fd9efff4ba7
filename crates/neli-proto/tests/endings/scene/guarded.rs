//! The guard of a scene, and the job that it runs.

use neli_proto::guard::{self, Answer, Guard, Remains};
use neli_proto::node;
use neli_proto::supervisor::Event;

use super::{LEASE, SIGKILL, Scene};

/// The guard's process: the guard as it is shipped, and a job that ends when the scene has it end.
pub(super) struct GuardProcess {
    pub(super) guard: Guard,
    pub(super) run: Option<Run>,
    /// It does not see yet that the job has executed.
    pub(super) holds_start: bool,
    /// It is dead, and what it left is being killed.
    pub(super) is_dead: bool,
}

impl GuardProcess {
    pub(super) fn new() -> Self {
        Self { guard: Guard::new(LEASE), run: None, holds_start: false, is_dead: false }
    }
}

#[derive(Clone, Copy, Default)]
pub(super) struct Run {
    pub(super) main_is_gone: bool,
    /// The main process leaves others behind.
    pub(super) leaves: bool,
    /// It was sent SIGKILL, and is not gone yet.
    pub(super) is_dying: bool,
}

impl Scene {
    pub(super) fn order(&mut self, order: guard::Order) {
        assert!(self.guard.run.is_none() || !matches!(order, guard::Order::Spawn { .. }), "one at a time");
        if !self.guard.is_dead {
            self.tell_guard(guard::Event::Ordered(order));
        }
    }

    pub(super) fn tell_guard(&mut self, event: guard::Event) {
        self.guard.guard.handle(self.now, event);
        self.perform_for_guard();
    }

    pub(super) fn perform_for_guard(&mut self) {
        use guard::Action;
        while let Some(action) = self.guard.guard.poll_action() {
            match action {
                Action::Answer(answer) => self.hear_answer(answer),
                Action::AnswerExited { code, signal, .. } => {
                    let left = self.guard.run.is_some_and(|run| run.leaves);
                    self.hear_answer(Answer::Exited { code, signal, left, foreground: false });
                }
                Action::AnswerStarted => self.hear_answer(Answer::Started { pid: 7 }),
                Action::BeginAnew => self.guard.run = None,
                // That it was done is told once the job is dead: until then nothing more is due.
                Action::Kill(_) => self.guard.run.iter_mut().for_each(|run| run.is_dying = true),
                Action::Start { .. } => {
                    self.spawns += 1;
                    self.guard.run = Some(Run::default());
                    if !self.guard.holds_start {
                        self.guard.guard.handle(self.now, guard::Event::Executed);
                    }
                }
                // There are neither commands nor a terminal, and the supervisor lives as long as its guard.
                Action::AnswerLeftBehind { .. }
                | Action::AnswerStuck
                | Action::End
                | Action::HandOn
                | Action::KillCommand(_)
                | Action::KillMainGroup
                | Action::Learn { .. }
                | Action::Release { .. }
                | Action::RemoveCgroup
                | Action::ShowDeadline { .. }
                | Action::ShowEnd
                | Action::Signal { .. }
                | Action::SignalRest { .. }
                | Action::StartCommand(_)
                | Action::TakeBack => {}
            }
        }
    }

    pub(super) fn hear_answer(&mut self, answer: Answer) {
        self.node.handle(self.now, node::Event::Guard(answer));
    }

    pub(crate) fn say_started(&mut self) {
        self.guard.holds_start = false;
        self.tell_guard(guard::Event::Executed);
        self.perform();
    }

    /// What was sent SIGKILL is gone.
    pub(super) fn die(&mut self) {
        let Some(run) = self.guard.run.filter(|run| run.is_dying) else { return };
        if !run.main_is_gone {
            self.guard.run = Some(Run { leaves: false, ..run });
            self.tell_guard(guard::Event::MainEnded { code: None, signal: Some(SIGKILL) });
        }
        self.tell_guard(guard::Event::Killed { has_seen_all: true });
        self.wait_for_children(false);
    }

    pub(super) fn guard_dies(&mut self) {
        self.guard = GuardProcess { is_dead: true, ..GuardProcess::new() };
        self.hear_of_job(Event::GuardDied);
        self.perform();
    }

    /// The main process ends by itself, or since it was asked to.
    pub(crate) fn main_ends(&mut self, status: u8, left: bool) {
        self.guard.run.iter_mut().for_each(|run| (run.main_is_gone, run.leaves) = (true, left));
        self.tell_guard(guard::Event::MainEnded { code: Some(status.into()), signal: None });
        self.wait_for_children(left);
    }

    /// What the main process left has ended.
    pub(crate) fn gone(&mut self) {
        self.wait_for_children(false);
    }

    pub(super) fn wait_for_children(&mut self, are_left: bool) {
        self.tell_guard(guard::Event::Waited(Remains::seen(are_left, || false)));
        self.perform();
    }
}
