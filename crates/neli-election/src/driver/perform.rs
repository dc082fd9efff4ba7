//! What the library's thread does with the nodes' actions and the session's events, and with the actions of the guards of the tasks.

use std::mem;
use std::sync::Arc;

use neli_kafka::{Host, Nodes, SessionEvent, clock};
use neli_proto::candidate;
use neli_proto::guard::{Action as GuardAction, Order};
use neli_proto::node::{Action, Event as NodeEvent};
use neli_proto::note::Note;
use neli_proto::record::Offset;
use neli_proto::time::Time;

use super::Driver;
use super::role::{Held, Role};
use super::{LastCall, Settings};
use crate::error::Reason;
use crate::event::Event;
use crate::lease::{Commands, Lease, Tenure};
use crate::task_guard::STOP;

impl Host for Driver {
    type Role = Role;

    fn nodes(&mut self) -> &mut Nodes<Role> {
        &mut self.nodes
    }

    fn perform_one(&mut self, role: usize, action: Action) {
        // The guard is in this thread and answers each order: it is never taken for dead. There are no hooks and no key, there is no terminal, and
        // nothing suspends the node.
        if let Action::Exit(ending) = action {
            let error = self.nodes.roles[role].error_of(ending);
            self.end(role, error);
        } else if let Action::Note(note) = action {
            self.handle_note(role, note);
        } else if let Action::Order(order) = action {
            if let Order::Stop { kill_at, .. } = order {
                self.begin_stop(role, kill_at);
            }
            self.nodes.roles[role].guard.obey(clock::now(), order);
            self.perform_of_guard(role);
        } else if action == Action::RenewGuard {
            // The node asks for it only when no task is alive.
            self.nodes.roles[role].guard.renew();
        }
    }

    fn end_actions(&mut self, role: usize) {
        self.nodes.roles[role].publish(self.nodes.may_claim());
    }

    fn show(&mut self, note: Note) {
        if let Some(Event::Warning { message }) = Event::of(&note) {
            self.warn(&message);
        }
    }

    fn note_event(&mut self, now: Time, role: usize, event: &mut candidate::Event) {
        if matches!(event, candidate::Event::Delivered { .. }) {
            self.refused_appends.end();
        }
        self.nodes.roles[role].note(now, event);
    }

    fn handle_process_event(&mut self, now: Time, event: SessionEvent) {
        // The library has no keys. With risks the topic is fit nevertheless, and `neli-run doctor` names them.
        if let SessionEvent::AppendRefused { error } = event {
            // One warning for each kind of refusal, and again every 30 s: librdkafka tries again many times a second.
            self.refused_appends.begin(now, error);
        } else if let SessionEvent::Outage { error } = event {
            self.nodes.roles.iter().for_each(|role| role.set_trouble(error.as_deref()));
            if let Some(error) = error {
                self.warn(&format!("Kafka does not answer: {error}"));
            }
        } else if let SessionEvent::Group { refusal } = event {
            match refusal {
                Some(refusal) => self.group.begin(now, refusal),
                None => drop(self.group.end(now)),
            }
        } else if let SessionEvent::HelloDelivered = event {
            self.refused_appends.end();
        } else if let SessionEvent::Warning(message) = event {
            self.warn(&message);
        }
    }
}

impl Driver {
    /// Tells the tasks under the lead why it ends, before the guard gets the order to stop them. Without a callback, the guard drops them at
    /// `kill_at`; with one they are dropped at the stop timeout, and the callback follows.
    fn begin_stop(&mut self, role: usize, kill_at: Time) {
        let role = &mut self.nodes.roles[role];
        let Some(why) = role.node.stops_for() else { return };
        let Some(held) = role.held.as_mut().filter(|held| held.tenure.ends().is_none()) else { return };
        held.tenure.stop(Reason::of(why));
        let Settings { before_release, stop_timeout, .. } = &self.settings;
        held.drop_at = before_release.is_some().then(|| kill_at.min(clock::now() + *stop_timeout));
    }

    fn handle_note(&mut self, role: usize, note: Note) {
        let role = &mut self.nodes.roles[role];
        if let Some(event) = Event::of(&note) {
            role.tell(event);
        }
        if let Note::Refused(refusal) = note {
            // The node stops the tasks in order before it ends.
            role.refusal = Some(refusal);
        } else if let Note::Ended { .. } = note {
            role.is_election_over = true;
        }
    }

    /// Performs the actions of a role's guard. There is no process with an exit status, no terminal and no command; and the supervisor is in
    /// this thread, and never gone.
    pub(super) fn perform_of_guard(&mut self, role: usize) {
        while let Some(action) = self.nodes.roles[role].guard.poll_action() {
            if let GuardAction::Answer(answer) = action {
                self.nodes.tell(clock::now(), role, NodeEvent::Guard(answer));
            } else if let GuardAction::Start { term, until, .. } = action {
                self.begin(role, term, until);
            } else if let GuardAction::KillMainGroup | GuardAction::ShowEnd = action {
                self.nodes.roles[role].end_lead(Reason::Expired);
                self.nodes.roles[role].abort_last();
                self.end_if_idle(role);
            } else if let GuardAction::ShowDeadline { until, .. } = action {
                self.nodes.roles[role].held.iter().for_each(|held| held.tenure.extend(until));
            } else if let GuardAction::Signal { signal: STOP, .. } = action {
                self.end_if_idle(role);
            }
        }
    }

    /// Begins a lead, and offers it to the program.
    fn begin(&mut self, role: usize, term: Offset, until: Time) {
        let commands = Commands::new(role, self.command_sender.clone());
        let role = &mut self.nodes.roles[role];
        let tenure = Arc::new(Tenure::new(term, until, role.label.clone(), commands));
        let untaken_until = Some(clock::now() + self.settings.node.timings.lease);
        let is_last_begun = self.settings.before_release.is_none();
        role.held = Some(Held { tenure, untaken_until, drop_at: None, last: None, is_last_begun });
        role.tell(Event::Acquired { term });
    }

    /// If the end of the lead has begun and no task runs: begins the callback before the release, or tells the guard that nothing is left.
    pub(super) fn end_if_idle(&mut self, role: usize) {
        let held = self.nodes.roles[role].held.as_ref();
        let Some(nothing) = held.and_then(|held| held.tenure.no_task()) else { return };
        self.nodes.touch(role);
        let of_role = &mut self.nodes.roles[role];
        let Some(held) = &mut of_role.held else { return };
        let last = self.settings.before_release.as_ref().filter(|_| !mem::replace(&mut held.is_last_begun, true));
        if let Some((last, Ok(task))) = last.map(|last| (last, held.tenure.begin_last())) {
            let reason = held.tenure.ends().unwrap_or(Reason::Resigned);
            let (lease, callback) = (Lease::new(Arc::clone(&held.tenure)), Arc::clone(&last.callback));
            held.drop_at = Some(clock::now() + last.limit);
            // The callback is called in the runtime as well: it may spawn, block or panic, and this thread sends the heartbeats.
            let call = async move { lease.run_last(async { callback(lease.clone(), reason).await }).await };
            let commands = Commands::new(role, self.command_sender.clone());
            held.last = Some(LastCall::spawn(&self.settings.runtime, task, commands, call));
            return;
        }
        let is_skipped = last.is_some() && held.tenure.ends() != Some(Reason::Expired);
        held.tenure.end(Reason::Resigned);
        of_role.held = None;
        if is_skipped {
            of_role.report_warning(
                "the callback of before_release was not called: a task under the lead ended only after the stop timeout and the limit, \
                 or when the lease was over",
            );
        }
        of_role.guard.ended(clock::now(), &nothing);
        self.perform_of_guard(role);
    }
}
