//! What the logic wants, done.

use neli_proto::candidate;
use neli_proto::flaw::{Flaw, broken};
use neli_proto::supervisor::{self, Ending};

use super::{Run, notes, translate};
use crate::driver::clock;
use crate::driver::guard::Order;
use crate::exit::ExitStatus;

impl Run {
    /// Performs what the logic wants, until it wants nothing more.
    pub(super) fn perform(&mut self) {
        loop {
            if let Some(action) = self.supervisor.poll_action() {
                self.perform_for_supervisor(action);
            } else if let Some(action) = self.candidate.poll_action() {
                self.perform_for_candidate(action);
            } else if let Some(action) = self.hooks.poll_action() {
                // After what stops or kills: a hook is never in its way.
                self.perform_hook(action);
            } else if self.guard_is_outdated && !self.supervisor.job_may_be_alive() {
                self.renew_guard();
            } else {
                return;
            }
        }
    }

    fn perform_for_candidate(&mut self, action: candidate::Action) {
        use candidate::Action;
        let now = clock::now();
        match action {
            Action::Ask => self.read_anew(),
            Action::Depart(departure) => self.supervisor.handle(now, supervisor::Event::Departed(departure)),
            Action::Extend(right) => self.supervisor.handle(now, supervisor::Event::Extended(right)),
            Action::ForgetTerms => self.guard_is_outdated = true,
            Action::Identify => self.producer.identify(),
            Action::JoinGroup => self.join_group(),
            Action::Kill(loss) => self.supervisor.handle(now, supervisor::Event::Killed(loss)),
            Action::Lead(right) => self.supervisor.handle(now, supervisor::Event::Led(right)),
            Action::LeaveGroup => self.leave_group(),
            Action::LookForEnd => {
                if let Some(reader) = &self.reader {
                    reader.look_for_end();
                }
            }
            Action::Note(note) => self.note_candidate(note),
            Action::ReadFrom(offset) => {
                if let Some(reader) = &self.reader {
                    reader.read_from(offset);
                }
            }
            Action::RenewProducer => self.renew_producer(),
            Action::Send { record } => self.send(now, &record),
            Action::StopJob(why) => self.supervisor.handle(now, supervisor::Event::StoppedFor(why)),
            Action::Suspend => self.session.suspending = true,
        }
    }

    fn note_candidate(&mut self, note: candidate::Note) {
        use candidate::Note;
        match &note {
            Note::Released { term, delivered: true, .. } | Note::Superseded { term, .. } => {
                // Whoever takes a job for done has nobody else kill it.
                if !broken(Flaw::StopTakenForDone) {
                    self.order(&Order::Released { term: *term });
                }
            }
            Note::Claiming { .. }
            | Note::Ended { .. }
            | Note::FenceWarning { .. }
            | Note::Fenced { .. }
            | Note::Leading { .. }
            | Note::ReaderStuck { .. }
            | Note::Released { delivered: false, .. }
            | Note::Resigned { .. }
            | Note::Standby { .. }
            | Note::TopicUnnamed
            | Note::UnusedPartitions => {}
            Note::TopicRemade if self.config.create_topic => {}
            // Who keeps the making of topics to himself is not to find his jobs led by another topic's word.
            Note::TopicRemade => {
                let name = &self.config.election.topic;
                return self.kafka_refuses(
                    clock::now(),
                    format!(
                        "topic {name:?}: it was deleted and made again, and with --no-create-topic the new one is not taken for \
                         the old: see that it is meant, and start neli-run again"
                    ),
                );
            }
        }
        if let Some(event) = translate::cause_for_hooks(&note) {
            self.hooks.handle(clock::now(), event);
        }
        self.logger.event(&notes::of_candidate(note));
    }

    fn perform_for_supervisor(&mut self, action: supervisor::Action) {
        use supervisor::Action;
        match action {
            Action::CheckHealth { id, kill_at } => self.check_health(id, kill_at),
            Action::DieOf { signal, to_group } => self.session.dies_of = Some((signal, to_group)),
            Action::Exit(ending) if self.refused && ending != Ending::Stuck => self.ending = Some(ExitStatus::Refused),
            Action::Exit(ending) => self.ending = Some(translate::status(ending)),
            Action::GiveUpWaiting => {
                self.candidate.give_up(clock::now());
                self.hooks.give_up();
            }
            Action::KillGuard => self.kill_hung_guard(),
            Action::KillOrphans => self.inherit_orphans(),
            Action::LookAtForeground => {
                let event = supervisor::Event::ForegroundSeen(self.session.terminal.foreground());
                self.supervisor.handle(clock::now(), event);
            }
            Action::Note(note) => {
                let guard = self.guard.pid().as_raw();
                self.logger.event(&notes::of_supervisor(note, self.supervisor.term(), &self.policy.stop, guard));
            }
            Action::Order(order) => self.order(&translate::order(order)),
            Action::StartGuard => self.start_guard(),
            Action::Tell(event) => self.candidate.handle(clock::now(), event),
        }
    }
}
