//! Performs the node's actions.

use neli::program::clock;
use neli_proto::node::{Action, Event};
use neli_proto::supervisor;

use super::{MainLoop, translate};
use crate::report::notes;

impl MainLoop {
    /// Performs what the node wants, until it wants nothing more.
    pub(super) fn perform(&mut self) {
        while let Some(action) = self.role.node.poll_action() {
            self.perform_one(action);
        }
    }

    fn perform_one(&mut self, action: Action) {
        match action {
            Action::DieOf { signal, to_group } => self.session.dies_of = Some((signal, to_group)),
            Action::Exit(ending) => self.ending = Some(translate::status(ending)),
            Action::Identify => self.kafka.session.identify(),
            Action::JoinGroup => self.join_group(),
            Action::KillGuard => self.kill_hung_guard(),
            Action::KillHook { id } => self.role.commands.kill_hook(id),
            Action::KillOrphans => self.inherit_orphans(),
            Action::LeaveGroup { alone } => self.kafka.session.leave_group(self.role.election.role, alone),
            Action::LookAtForeground => {
                let event = supervisor::Event::ForegroundSeen(self.session.terminal.foreground());
                self.role.node.handle(clock::now(), Event::Job(event));
            }
            Action::LookForEnd => self.kafka.session.look_for_end(self.role.election.role),
            Action::Note(note) => {
                let event = notes::of_node(note, &self.config, self.role.job.guard.pid().as_raw());
                self.logger.event(&event);
            }
            Action::Order(order) => self.order(&order),
            Action::ReadAnew => self.read_anew(),
            Action::ReadFrom(offset) => self.kafka.session.read_from(self.role.election.role, offset),
            Action::RenewGuard => self.renew_guard(),
            Action::RenewProducer => self.renew_producer(),
            Action::RunHook(run) => self.run_hook(run),
            Action::Send { record } => self.send(clock::now(), &record),
            Action::StartGuard => self.start_guard(),
            Action::Suspend => self.session.suspending = true,
        }
    }
}
