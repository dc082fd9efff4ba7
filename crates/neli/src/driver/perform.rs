//! Performs the nodes' actions, and what the guards of the tasks decide.

use std::mem;
use std::sync::Arc;

use neli_proto::candidate;
use neli_proto::guard::Answer;
use neli_proto::many_roles::ManyRoles;
use neli_proto::node::{Action, Event as NodeEvent, Note, Refusal};
use neli_proto::record::{Offset, Record};
use neli_proto::supervisor;
use neli_proto::time::Time;

use super::role::Held;
use super::{Commands, Driver};
use crate::clock;
use crate::event::Event;
use crate::lease::{Lease, Tenure};
use crate::reason::Reason;
use crate::task_guard::Effect;

impl Driver {
    /// Performs what the nodes want to which something has happened, until they want nothing more.
    pub(super) fn perform(&mut self) {
        while let Some(at) = self.touched.pop_first() {
            self.perform_effects(at);
            while let Some(action) = self.roles[at].node.poll_action() {
                self.perform_one(at, action);
            }
            let role = &self.roles[at];
            self.session.set_leads(role.election.role, role.node.leads().is_some());
            role.publish();
            self.timeouts.set(at, self.roles[at].poll_timeout());
        }
    }

    fn perform_one(&mut self, at: usize, action: Action) {
        let (now, role) = (clock::now(), self.roles[at].election.role);
        match action {
            Action::Exit(ending) => {
                let error = self.roles[at].error_of(ending);
                self.end(at, error);
            }
            Action::Identify => self.session.identify(),
            Action::JoinGroup => self.join_group(role),
            Action::LeaveGroup { alone } => self.session.leave_group(role, alone),
            Action::LookForEnd => self.session.look_for_end(role),
            Action::Note(note) => self.handle_note(at, note),
            Action::Order(order) => {
                self.roles[at].guard.obey(now, order);
                self.perform_effects(at);
            }
            Action::ReadAnew => self.session.read_anew(role),
            Action::ReadFrom(offset) => self.session.read_from(role, offset),
            // No task is alive.
            Action::RenewGuard => self.roles[at].guard.renew(),
            Action::RenewProducer => {
                if let Err(error) = self.session.renew_producer(role) {
                    self.end_all(&error.into());
                }
            }
            Action::Send { record } => self.send(at, now, &record),
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

    /// What can't be handed over is as good as not delivered.
    fn send(&mut self, at: usize, now: Time, record: &Record) {
        if self.session.send(self.roles[at].election.role, record).is_err() {
            self.election_event(at, now, candidate::Event::Undelivered { seq: record.seq.unwrap_or_default() });
        }
    }

    fn join_group(&mut self, role: u32) {
        if self.many.as_ref().is_some_and(|many| !ManyRoles::uses_group(many)) {
            return;
        }
        if let Err(error) = self.session.join_group(role) {
            self.end_all(&error.into());
        }
    }

    fn handle_note(&mut self, at: usize, note: Note) {
        let role = &mut self.roles[at];
        if let Some(event) = Event::of(&note) {
            role.tell(event);
        }
        match note {
            Note::Job { note: supervisor::Note::Stopping { why, timeout }, .. } => {
                // What the guard is ordered next.
                if let Some(held) = &mut role.held {
                    held.tenure.stop(Reason::of(why));
                    let within = self.stop_timeout.min(timeout);
                    held.drop_at = self.before_release.is_some().then(|| clock::now() + within);
                }
            }
            // What runs is stopped in order, and then the node ends.
            Note::Refused(Refusal::Said(error)) => role.refusal = error.into(),
            Note::Refused(Refusal::TopicRemade) => {
                "the topic was deleted and made again, and is not taken for the old one where create_topic is false"
                    .clone_into(&mut role.refusal);
            }
            Note::Election(candidate::Note::Ended { .. }) => role.is_election_over = true,
            Note::Election(_) | Note::HookFailed { .. } | Note::Job { .. } | Note::Milestone(_) | Note::Once(_) => {}
        }
    }

    /// Does what the guard of a role has decided.
    pub(super) fn perform_effects(&mut self, at: usize) {
        while let Some(effect) = self.roles[at].guard.poll_effect() {
            match effect {
                Effect::Answer(answer) => self.answer(at, answer),
                Effect::Begin { term, until } => self.begin(at, term, until),
                Effect::End => {
                    self.roles[at].end_lead(Reason::Expired);
                    self.roles[at].abort_last();
                    self.end_if_idle(at);
                }
                Effect::Extend { until } => self.roles[at].held.iter().for_each(|held| held.tenure.extend(until)),
                Effect::Stop => self.end_if_idle(at),
            }
        }
    }

    fn answer(&mut self, at: usize, answer: Answer) {
        let now = clock::now();
        self.call(at, now, |node| node.handle(now, NodeEvent::Guard(answer)));
    }

    /// The lease is held.
    fn begin(&mut self, at: usize, term: Offset, until: Time) {
        let commands = Commands::new(at, self.command_sender.clone());
        let role = &mut self.roles[at];
        let tenure = Arc::new(Tenure::new(term, until, role.label.clone(), commands));
        let untaken_until = Some(clock::now() + self.lease);
        role.held = Some(Held {
            tenure,
            untaken_until,
            drop_at: None,
            last: None,
            is_last_begun: self.before_release.is_none(),
        });
        role.tell(Event::Acquired { term });
    }

    /// Begins what is awaited before the release, or tells the guard that nothing is left: once no task runs and none will.
    pub(super) fn end_if_idle(&mut self, at: usize) {
        let role = &mut self.roles[at];
        let alarm = role.panic_alarm();
        let Some(held) = &mut role.held else { return };
        let Some(nothing) = held.tenure.no_task() else { return };
        self.touched.insert(at);
        if !mem::replace(&mut held.is_last_begun, true)
            && let (Some(last), Ok(task)) = (&self.before_release, held.tenure.begin_last())
        {
            let reason = held.tenure.ends().unwrap_or(Reason::Resigned);
            let (lease, callback) = (Lease::new(Arc::clone(&held.tenure)), Arc::clone(&last.callback));
            held.drop_at = Some(clock::now() + last.limit);
            // The callback itself is called there, too: it may spawn, block or panic, and this thread sends the heartbeats.
            held.last = Some(self.runtime.spawn(async move {
                // Dropped after everything else.
                let _task = task;
                let _alarm = alarm;
                callback(lease, reason).await;
            }));
            return;
        }
        held.tenure.end(Reason::Resigned);
        role.held = None;
        role.guard.ended(clock::now(), &nothing);
    }
}
