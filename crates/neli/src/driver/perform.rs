//! Performs the node's actions, and what the guard of the tasks decides.

use neli_proto::candidate;

use super::{
    Action, Answer, Arc, Driver, Effect, Event, Held, Lease, NodeEvent, Note, Offset, Reason, Refusal, Tenure, Time,
    clock, supervisor,
};

impl Driver {
    /// Performs what the node wants, until it wants nothing more.
    pub(super) fn perform(&mut self) {
        self.perform_effects();
        while let Some(action) = self.node.poll_action() {
            self.perform_one(action);
        }
    }

    fn perform_one(&mut self, action: Action) {
        let now = clock::now();
        match action {
            Action::Exit(ending) => self.end_by(ending),
            Action::Identify => self.session.identify(),
            Action::JoinGroup => {
                if let Err(error) = self.session.join_group() {
                    self.end(error.into());
                }
            }
            Action::LeaveGroup { alone } => self.session.leave_group(alone),
            Action::LookForEnd => self.session.look_for_end(),
            Action::Note(note) => self.handle_note(note),
            Action::Order(order) => {
                self.guard.obey(now, order);
                self.perform_effects();
            }
            Action::ReadAnew => self.session.read_anew(),
            Action::ReadFrom(offset) => self.session.read_from(offset),
            // No task is alive.
            Action::RenewGuard => self.guard.renew(),
            Action::RenewProducer => {
                if let Err(error) = self.session.renew_producer() {
                    self.end(error.into());
                }
            }
            Action::Send { record } => {
                if let Some(event) = self.session.send(&record) {
                    self.node.handle(now, event);
                }
            }
            // The guard is in this thread and answers each order: it is never taken for dead. There are no hooks and no key, there is
            // no terminal, and nothing suspends the node.
            Action::AppendFact { .. }
            | Action::DieOf { .. }
            | Action::KillGuard
            | Action::KillHook { .. }
            | Action::KillOrphans
            | Action::LookAtForeground
            | Action::ReadFacts { .. }
            | Action::RunHook(_)
            | Action::StartGuard
            | Action::Suspend => {}
        }
    }

    fn handle_note(&mut self, note: Note) {
        if let Some(event) = Event::of(&note) {
            self.tell(event);
        }
        match note {
            Note::Job { note: supervisor::Note::Stopping { why, .. }, .. } => {
                // What the guard is ordered next.
                self.held.iter().for_each(|held| held.tenure.stop(Reason::of(why)));
            }
            // What runs is stopped in order, and then the node ends.
            Note::Refused(Refusal::Said(error)) => self.refusal = error.into(),
            Note::Refused(Refusal::TopicRemade) => {
                "the topic was deleted and made again, and is not taken for the old one where create_topic is false"
                    .clone_into(&mut self.refusal);
            }
            Note::Election(candidate::Note::Ended { .. }) => self.is_election_over = true,
            Note::Election(_) | Note::HookFailed { .. } | Note::Job { .. } | Note::Milestone(_) | Note::Once(_) => {}
        }
    }

    /// Does what the guard has decided.
    pub(super) fn perform_effects(&mut self) {
        while let Some(effect) = self.guard.poll_effect() {
            match effect {
                Effect::Answer(answer) => self.answer(answer),
                Effect::Begin { term, until } => self.begin(term, until),
                Effect::End => {
                    self.end_held(Reason::Expired);
                    self.abort_last();
                    self.end_if_idle();
                }
                Effect::Extend { until } => self.held.iter().for_each(|held| held.tenure.extend(until)),
                Effect::Stop => self.end_if_idle(),
            }
        }
    }

    fn answer(&mut self, answer: Answer) {
        self.node.handle(clock::now(), NodeEvent::Guard(answer));
    }

    /// The lease is held.
    fn begin(&mut self, term: Offset, until: Time) {
        let tenure = Arc::new(Tenure::new(term, until, self.command_sender.clone()));
        let untaken_until = Some(clock::now() + self.lease);
        self.held = Some(Held { tenure, untaken_until, last: None, is_last_begun: self.before_release.is_none() });
        self.tell(Event::Acquired { term });
    }

    /// Begins what is awaited before the release, or tells the guard that nothing is left: once no task runs and none will.
    pub(super) fn end_if_idle(&mut self) {
        let Some(held) = &mut self.held else { return };
        let Some(nothing) = held.tenure.no_task() else { return };
        if !std::mem::replace(&mut held.is_last_begun, true)
            && let (Some(last), Ok(task)) = (&self.before_release, held.tenure.begin_last())
        {
            let reason = held.tenure.ends().unwrap_or(Reason::Resigned);
            let last = last(Lease::new(Arc::clone(&held.tenure)), reason);
            held.last = Some(self.runtime.spawn(async move {
                let _task = task;
                last.await;
            }));
            return;
        }
        held.tenure.end(Reason::Resigned);
        self.held = None;
        self.guard.ended(clock::now(), &nothing);
    }

    fn abort_last(&self) {
        self.held.iter().filter_map(|held| held.last.as_ref()).for_each(tokio::task::JoinHandle::abort);
    }
}
