//! What the node wants, done.

use neli::clock;
use neli_proto::node::{Action, Event};
use neli_proto::supervisor;

use super::{Run, translate};
use crate::guard::Order;
use crate::report::notes;

impl Run {
    /// Performs what the node wants, until it wants nothing more.
    pub(super) fn perform(&mut self) {
        while let Some(action) = self.node.poll_action() {
            self.perform_one(action);
        }
    }

    fn perform_one(&mut self, action: Action) {
        match action {
            Action::CheckHealth { id, kill_at } => self.check_health(id, kill_at),
            Action::DieOf { signal, to_group } => self.session.dies_of = Some((signal, to_group)),
            Action::Exit(ending) => self.ending = Some(translate::status(ending)),
            Action::Identify => self.producer.identify(),
            Action::JoinGroup => self.join_group(),
            Action::KillGuard => self.kill_hung_guard(),
            Action::KillHook { id } => self.kill_hook(id),
            Action::KillOrphans => self.inherit_orphans(),
            Action::LeaveGroup { alone } => self.leave_group(alone),
            Action::LookAtForeground => {
                let event = supervisor::Event::ForegroundSeen(self.session.terminal.foreground());
                self.node.handle(clock::now(), Event::Job(event));
            }
            Action::LookForEnd => {
                if let Some(reader) = &self.reader {
                    reader.look_for_end();
                }
            }
            Action::Note(note) => {
                let event = notes::of_node(note, &self.config, self.guard.pid().as_raw());
                self.logger.event(&event);
            }
            Action::Order(order) => self.order(&order.into()),
            Action::ReadAnew => self.read_anew(),
            Action::ReadFrom(offset) => {
                if let Some(reader) = &self.reader {
                    reader.read_from(offset);
                }
            }
            Action::Released { term } => self.order(&Order::Released { term }),
            Action::RenewGuard => self.renew_guard(),
            Action::RenewProducer => self.renew_producer(),
            Action::RunHook(run) => self.run_hook(run),
            Action::Send { record } => self.send(clock::now(), &record),
            Action::StartGuard => self.start_guard(),
            Action::Suspend => self.session.suspending = true,
        }
    }
}
