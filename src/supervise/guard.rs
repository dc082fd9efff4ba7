//! What the loop does with a guard, for the supervisor: orders go out, answers come in, and another one is started.

use std::io;

use neli::program::clock;
use neli_proto::node;
use neli_proto::supervisor::Event;

use super::{MainLoop, start};
use crate::guard::{Answer, CommandKind, Order, Received};
use crate::report::notes;
use crate::text::reason;

impl MainLoop {
    pub(super) fn order(&mut self, order: &Order) {
        match order {
            Order::Spawn { .. } => {
                self.session.terminal.forget_job();
                if self.role.job.config.foreground {
                    self.session.terminal.about_to_hand_on();
                }
            }
            Order::HandOn => drop(self.session.terminal.about_to_hand_on()),
            Order::Command { kind: CommandKind::Health, .. } => return self.check_health(order),
            Order::Command { kind: CommandKind::Lead, .. }
            | Order::Kill
            | Order::Lease(_)
            | Order::Over { .. }
            | Order::Released { .. }
            | Order::Signal { .. }
            | Order::Stop { .. }
            | Order::TakeBack => {}
        }
        self.role.job.send(order);
    }

    pub(super) fn handle_answers(&mut self) {
        loop {
            // The job's descriptor comes with the news of its start, and must not be lost for want of a number.
            self.reserve.give_up();
            let received = self.role.job.guard.receive();
            self.reserve.fill();
            match received {
                Ok(Some(received)) => self.handle_answer(received),
                // Its death is shown by SIGCHLD: end of file is reason to kill, never to release.
                Ok(None) => return self.role.job.guard_fell_silent(),
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
                Err(_) => return,
            }
        }
    }

    fn handle_answer(&mut self, Received { answer, descriptor, is_descriptor_lost }: Received) {
        self.note_terminal(&answer);
        if let Answer::Started { pid } = answer {
            self.role.job.main = descriptor;
            if is_descriptor_lost {
                return self.started_without_descriptor(pid);
            }
        }
        if let Answer::LeftBehind { processes, count, killed } = &answer {
            self.logger.event(&notes::of_left_behind(processes, *count, *killed));
        }
        let event = if let Answer::CommandEnded { kind: CommandKind::Health, id, end } = answer {
            self.role.commands.health_ended(id, end, &self.stderr)
        } else {
            node::Event::Guard(answer)
        };
        self.role.node.handle(clock::now(), event);
        self.perform();
    }

    /// Without its descriptor a job can't be killed once its guard is dead: that is no run.
    fn started_without_descriptor(&mut self, pid: i32) {
        self.job_event(Event::StartedUnseen { pid: u32::try_from(pid).unwrap_or_default() });
        self.perform();
    }

    /// Something has happened to the job.
    pub(super) fn job_event(&mut self, event: Event) {
        self.role.node.handle(clock::now(), node::Event::Job(event));
    }

    /// A new guard remembers no term, and knows the address that the embedded broker has now.
    pub(super) fn renew_guard(&mut self) {
        self.role.job.config.release = start::means_of_release(&self.config, self.kafka.session.access());
        self.start_guard();
    }

    pub(super) fn start_guard(&mut self) {
        self.reserve.give_up();
        let started = self.role.job.start_guard();
        self.reserve.fill();
        if let Err(error) = started {
            self.refuse(format!("the guard can't be started again: {}", reason(&error)));
        }
    }
}
