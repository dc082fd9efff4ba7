//! What the main loop does with the nodes' actions and the session's events, besides what every host does.

use std::ffi::OsString;

use neli_kafka::{Host, Nodes, SessionEvent, clock};
use neli_proto::candidate::Event;
use neli_proto::kafka::Request;
use neli_proto::leadership::ReadAt;
use neli_proto::node::{self, Action};
use neli_proto::note::{Note, Refusal};
use neli_proto::precedence::Assignment;
use neli_proto::record::Body;
use neli_proto::time::Time;
use neli_proto::{assumptions, supervisor};

use crate::exit::ExitStatus;
use crate::report::events;
use crate::report::log::Event as LogEvent;
use crate::report::notes::{self, Moment};
use crate::supervise::MainLoop;
use crate::supervise::role::Role;

/// The role with a key: `--once` is for one election, the only one of the process.
const ROLE_WITH_KEY: usize = 0;

impl Host for MainLoop {
    type Role = Role;

    fn nodes(&mut self) -> &mut Nodes<Role> {
        &mut self.nodes
    }

    fn perform_one(&mut self, role: usize, action: Action) {
        match action {
            Action::AppendFact { id, fact } => self.append_fact(role, id, fact),
            Action::DieOf { signal, to_group } => self.dies_of(role, signal, to_group),
            Action::Exit(ending) => self.role_ended(role, ExitStatus::Ending(ending)),
            Action::KillGuard => self.kill_guard(role),
            Action::KillHook { id } => self.nodes.roles[role].hooks.kill(|running| *running == id),
            Action::KillOrphans => self.inherit_orphans(role),
            Action::LookAtForeground => {
                let event = supervisor::Event::ForegroundSeen(self.shell.terminal.foreground());
                self.tell(role, node::Event::Job(event));
            }
            Action::Note(note) => self.note(role, &note),
            Action::Order(order) => self.order(role, &order),
            Action::ReadFacts { id } => self.read_facts(role, id),
            Action::RenewGuard => self.renew_guard(role),
            Action::RunHook(run) => self.run_hook(role, run),
            Action::StartGuard => self.start_guard(role),
            // Every host does those in the same way.
            Action::Kafka(_) => {}
        }
    }

    fn end_actions(&mut self, role: usize) {
        if self.nodes.roles[role].node.is_caught_up() {
            self.settling.begin(clock::now());
        }
        if self.nodes.has_many_roles() {
            let of = &mut self.nodes.roles[role];
            if of.part_with_idle_guard(self.guard_starts.waits(role)) {
                self.guard_starts.remove(role);
                self.job_event(role, supervisor::Event::HasGuard(false));
            } else if of.node.supervisor().awaits_guard() {
                self.need_guard(role);
            }
        }
        self.publisher.iter_mut().for_each(|publisher| publisher.has_changed(role));
    }

    fn uses_kafka(&self) -> bool {
        !self.broker_has_ended()
    }

    fn request(&mut self, role: usize, request: &Request) {
        if self.broker_has_ended() {
            // A release would reach nobody, and is not waited for.
            if let Request::Send { record } = request
                && let Body::Release { .. } = record.body
            {
                self.forget_journal(role);
            }
            return;
        }
        if let Request::ReadAnew | Request::RenewProducer = request {
            // The reserve is lent until the log's bounds are known: at the limit of open files the client would have no descriptor to
            // connect with.
            self.reserve_of_client.lend();
        }
        let now = clock::now();
        let is_done = self.nodes.request(role, request);
        let Request::Send { record } = request else { return };
        if let Some(publisher) = self.publisher.as_mut().filter(|_| is_done) {
            publisher.sent(role, now, record);
        }
        if let Body::Claim { .. } = record.body {
            // A standby has no guard; it is started while the claim is in flight.
            self.need_guard(role);
        }
    }

    fn show(&mut self, note: Note) {
        self.logger.event(&notes::event(&note, self.moment(0)));
    }

    fn note_event(&mut self, now: Time, role: usize, event: &mut Event) {
        let of = &mut self.nodes.roles[role];
        if let Event::AssignmentChanged(Assignment::Own) = event {
            of.logger.event(&events::assigned(of.election.partition));
        } else if let Event::Revoked | Event::AssignmentChanged(Assignment::Unknown) = event {
            of.logger.event(&events::revoked(*event != Event::Revoked, of.node.leads_on_if_revoked()));
        } else if let Event::Answered { .. } = event {
            self.reserve_of_client.take_back();
            // By now it is known how many partitions the topic has, and so in which one the role is.
            if let Some(election) = self.nodes.session.election(of.election.role) {
                of.election = election;
            }
        }
        if let Some(publisher) = &mut self.publisher {
            publisher.read(role, now, event);
        }
    }

    fn handle_process_event(&mut self, now: Time, event: SessionEvent) {
        if let SessionEvent::BrokerSession(session) = event {
            // The lease may be shorter than a broker's death takes.
            if let Some(warning) = assumptions::warning(&self.config.timings, session) {
                self.logger.warn(format!("{}: {warning}", self.config.lease_shown));
            }
        } else if let SessionEvent::Created { topic, replicas, brokers } = event {
            self.logger.event(&events::topic_created(&topic, replicas, brokers));
        } else if let SessionEvent::Debug(message) = event {
            self.logger.event(&LogEvent::debug(message));
        } else if let SessionEvent::Facts { id, event } = event {
            self.handle_facts(ROLE_WITH_KEY, now, id, event);
        } else if let SessionEvent::Warning(message) = event {
            self.logger.warn(message);
        }
    }
}

impl MainLoop {
    /// Logs a note; only once if it is about the process and not the role, and not a release that has no journal.
    fn note(&mut self, role: usize, note: &Note) {
        self.nodes.roles[role].tally.note(note);
        let is_left_out = if *note == Note::TopicUnnamed {
            role > 0
        } else if let Note::Refused(refusal) = note
            && *refusal != Refusal::TopicRemade
        {
            self.nodes.roles.len() > 1 && self.refusal.replace(refusal.clone()).as_ref() == Some(refusal)
        } else {
            // Nobody is left who would wait for such a release.
            matches!(note, Note::Released { .. }) && self.broker_has_ended()
        };
        if !is_left_out {
            self.nodes.roles[role].logger.event(&notes::event(note, self.moment(role)));
        }
        if let Note::Restarting { .. } = note
            && let Some(signal) = self.shell.take_container_signal()
        {
            self.nodes.roles[role].logger.event(&events::container_signal(signal));
        }
    }

    /// What is known beside a note of this role.
    fn moment(&self, role: usize) -> Moment<'_> {
        let (config, role) = (&self.config, &self.nodes.roles[role]);
        let candidate = role.node.candidate();
        let (now, wall_ms) = (clock::now(), clock::wall_ms());
        Moment {
            topic: &config.elections.topic,
            command: config.command.first().map(OsString::as_os_str).unwrap_or_default(),
            stop_signal: config.job.stop.signal,
            timings: &config.timings,
            guard: role.job.as_ref().map_or(0, |job| job.guard.pid().as_raw()),
            guard_end: role.job.as_ref().and_then(|job| job.guard.end),
            was_guard_killed: role.job.as_ref().is_some_and(|job| job.is_killed_alive),
            now,
            wall_ms,
            lease_end: candidate.lease_end(),
            claims_at: candidate.claims_at(),
            leadership: candidate.leadership(now),
            is_leader_silent: candidate.leader().is_some_and(|leader| leader.is_silent(ReadAt { now, wall_ms })),
        }
    }

    // ---- --embedded -------------------------------------------------------------------------------------------------

    pub(super) fn broker_has_ended(&self) -> bool {
        self.broker.is_some() && self.broker_end.is_none()
    }

    /// Ends the process. A job that runs is stopped in order, as far as its lease permits: until nothing of it is left, this process and the
    /// guard keep the next broker from starting.
    pub(super) fn end_with_broker(&mut self) {
        self.broker_end = None;
        let error = "the embedded broker has ended, and its journal with it, so this candidate ends too; start the candidates again, and the \
                     first one starts a new broker";
        self.nodes.tell_all(&node::Event::Refused(error.into()));
        for role in 0..self.nodes.roles.len() {
            if self.nodes.roles[role].node.leads().is_none() {
                self.forget_journal(role);
            }
        }
    }

    fn forget_journal(&mut self, role: usize) {
        self.tell(role, node::Event::Election(Event::HistoryCut));
    }
}
