//! Performs the nodes' actions.

use std::ffi::OsString;

use neli_kafka::clock;
use neli_proto::node::{Action, Event, HookRun};
use neli_proto::note::{Note, Refusal};
use neli_proto::record::Body;
use neli_proto::supervisor;

use crate::guard::Order;
use crate::process::tail::Tail;
use crate::report::events;
use crate::report::notes::{self, Moment};
use crate::supervise::main_loop::MainLoop;
use crate::supervise::role::Role;
use crate::supervise::translate;

impl MainLoop {
    /// Performs the actions of all nodes that had an event, until there are no more.
    pub(super) fn perform(&mut self) {
        loop {
            self.log_notes();
            let Some(at) = self.nodes.next_touched() else { return };
            while let Some(action) = self.nodes.poll_action(at) {
                self.perform_one(at, action);
            }
            self.nodes.note_lead(at);
            if self.nodes.roles[at].node.is_caught_up() {
                self.settling.begin(clock::now());
            }
            if self.nodes.roles[at].part_with_idle_guard() {
                self.guard_starts.remove(at);
            }
            self.publisher.iter_mut().for_each(|publisher| publisher.has_changed(at));
            let timeout = self.nodes.roles[at].poll_timeout();
            self.nodes.set_timeout(at, timeout);
        }
    }

    fn perform_one(&mut self, at: usize, action: Action) {
        match action {
            Action::AppendFact { id, fact } => self.append_fact(at, id, fact),
            Action::DieOf { signal, to_group } => self.shell.dies_of = Some((signal, to_group)),
            Action::Exit(ending) => self.role_ended(at, translate::status(ending)),
            Action::Identify
            | Action::JoinGroup
            | Action::LeaveGroup { .. }
            | Action::LookForEnd
            | Action::ReadAnew
            | Action::ReadFrom(_)
            | Action::RenewProducer => self.perform_in_kafka(at, &action),
            Action::KillGuard => self.kill_guard(at),
            Action::KillHook { id } => self.nodes.roles[at].commands.kill_hook(id),
            Action::KillOrphans => self.inherit_orphans(at),
            Action::LookAtForeground => {
                let event = supervisor::Event::ForegroundSeen(self.shell.terminal.foreground());
                self.tell(at, Event::Job(event));
            }
            Action::Note(note) => self.note(at, &note),
            Action::Order(order) => self.order(at, &order),
            Action::ReadFacts { id } => self.read_facts(at, id),
            Action::RenewGuard => self.renew_guard(at),
            Action::RunHook(run) => self.run_hook(at, run),
            Action::Send { ref record } => {
                self.perform_in_kafka(at, &action);
                if let Body::Claim { .. } = record.body {
                    // A standby has no guard; it is started while the claim is in flight.
                    self.need_guard(at);
                }
            }
            Action::StartGuard => self.start_guard(at),
            Action::Suspend => self.shell.suspending = true,
        }
    }

    /// Logs a note; only once if it is about the process and not the role, and not a release that has no journal.
    fn note(&mut self, at: usize, note: &Note) {
        self.publisher.iter_mut().for_each(|publisher| publisher.count(at, note));
        let is_left_out = if *note == Note::TopicUnnamed {
            at > 0
        } else if let Note::Refused(Refusal::Said(error)) = note {
            self.nodes.roles.len() > 1 && self.refusal.replace(error.clone()).as_ref() == Some(error)
        } else {
            // Nobody is left who would wait for such a release.
            matches!(note, Note::Released { .. }) && self.broker_has_ended()
        };
        if !is_left_out {
            self.nodes.roles[at].logger.event(&notes::event(note, self.moment(at)));
        }
        if let Note::Restarting { .. } = note
            && let Some(signal) = self.shell.take_container_signal()
        {
            self.nodes.roles[at].logger.event(&events::container_signal(signal));
        }
    }

    /// What is known beside a note of this role.
    pub(super) fn moment(&self, at: usize) -> Moment<'_> {
        let (config, role) = (&self.config, &self.nodes.roles[at]);
        Moment {
            topic: &config.election.topic,
            command: config.command.first().map(OsString::as_os_str).unwrap_or_default(),
            stop_signal: config.stop_signal,
            timings: &config.timings,
            guard: role.job.as_ref().map_or(0, |job| job.guard.pid().as_raw()),
            now: clock::now(),
            wall_ms: clock::wall_ms(),
            lease_end: role.node.lease_end(),
            awaits: role.node.awaits(),
        }
    }

    /// Makes the guard run the health command. The command's output comes to this process, which passes it on to stderr, so that the
    /// command is not blocked if stderr is not read.
    pub(super) fn check_health(&mut self, at: usize, id: u32, order: &Order) {
        let Role { job: Some(job), commands, .. } = &mut self.nodes.roles[at] else { return };
        match Tail::new() {
            Ok((tail, input)) => {
                job.send_with(order, input);
                commands.health_ordered(id, tail);
            }
            // Without a free descriptor its output is lost, but its status is still reported.
            Err(_) => job.send(order),
        }
    }

    pub(super) fn run_hook(&mut self, at: usize, run: HookRun) {
        let Role { job, commands, election, .. } = &mut self.nodes.roles[at];
        let event = if let Some(job) = job {
            commands.start(run, &job.config)
        } else {
            // A hook has no term to release.
            let release = serde_json::Value::Null;
            commands.start(run, &self.job_maker.guard_config(&self.config, election, release))
        };
        if let Some(event) = event {
            self.tell(at, event);
        }
    }
}
