//! Performs the nodes' actions.

use neli::program::clock;
use neli_proto::candidate;
use neli_proto::node::{Action, Event, Note, Refusal};
use neli_proto::record::Body;
use neli_proto::supervisor;

use super::{MainLoop, translate};
use crate::report::notes::{self, Moment};

impl MainLoop {
    /// Performs what the nodes want to which something has happened, until they want nothing more.
    pub(super) fn perform(&mut self) {
        while let Some(at) = self.touched.pop_first() {
            while let Some(action) = self.roles[at].node.poll_action() {
                self.perform_one(at, action);
            }
            let role = &self.roles[at];
            self.kafka.session.set_leads(role.number(), role.node.leads().is_some());
            if self.roles[at].part_with_idle_guard() {
                self.guard_starts.is_over(at);
            }
            self.publisher.iter_mut().for_each(|publisher| publisher.has_changed(at));
            self.timeouts.set(at, self.roles[at].poll_timeout());
        }
    }

    fn perform_one(&mut self, at: usize, action: Action) {
        let role = self.roles[at].number();
        match action {
            Action::AppendFact { id, fact } => self.append_fact(at, id, fact),
            Action::DieOf { signal, to_group } => self.session.dies_of = Some((signal, to_group)),
            Action::Exit(ending) => self.role_ended(at, translate::status(ending)),
            Action::Identify => self.kafka.session.identify(),
            Action::JoinGroup => self.join_group(role),
            Action::KillGuard => self.kill_hung_guard(at),
            Action::KillHook { id } => self.roles[at].commands.kill_hook(id),
            Action::KillOrphans => self.inherit_orphans(at),
            Action::LeaveGroup { alone } => self.kafka.session.leave_group(role, alone),
            Action::LookAtForeground => {
                let event = supervisor::Event::ForegroundSeen(self.session.terminal.foreground());
                self.tell(at, Event::Job(event));
            }
            Action::LookForEnd => self.kafka.session.look_for_end(role),
            Action::Note(note) => self.note(at, note),
            Action::Order(order) => self.order(at, &order),
            Action::ReadAnew => self.read_anew(at),
            Action::ReadFacts { id } => self.read_facts(at, id),
            Action::ReadFrom(offset) => self.kafka.session.read_from(role, offset),
            Action::RenewGuard => self.renew_guard(at),
            Action::RenewProducer => self.renew_producer(role),
            Action::RunHook(run) => self.run_hook(at, run),
            Action::Send { record } => {
                self.send(at, clock::now(), &record);
                if let Body::Claim { .. } = record.body {
                    // A role that is stood by for has none; this one is started while the claim is on its way.
                    self.need_guard(at);
                }
            }
            Action::StartGuard => self.start_guard(at),
            Action::Suspend => self.session.suspending = true,
        }
    }

    /// Logs it; once, where it is about the process and not the role.
    fn note(&mut self, at: usize, note: Note) {
        self.publisher.iter_mut().for_each(|publisher| publisher.count(at, &note));
        let is_repeated = match &note {
            Note::Election(candidate::Note::TopicUnnamed | candidate::Note::UnusedPartitions) => at > 0,
            Note::Refused(Refusal::Said(error)) => {
                self.roles.len() > 1 && self.refusal.replace(error.clone()).as_ref() == Some(error)
            }
            Note::Election(_)
            | Note::HookFailed { .. }
            | Note::Job { .. }
            | Note::Milestone(_)
            | Note::Once(_)
            | Note::Refused(Refusal::TopicRemade) => false,
        };
        if !is_repeated {
            let role = &self.roles[at];
            let guard = role.job.as_ref().map_or(0, |job| job.guard.pid().as_raw());
            let (lease_end, awaits) = (role.node.lease_end(), role.node.awaits());
            let moment = Moment { now: clock::now(), wall_ms: clock::wall_ms(), lease_end, awaits };
            role.logger.event(&notes::of_node(note, moment, &self.config, guard));
        }
    }
}
