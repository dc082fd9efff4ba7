//! `--embedded`: the journal is lost with the broker, so its candidates end with it.

use std::fs::File;
use std::{future, io};

use neli::program::embedded::FoundBroker;
use neli_proto::candidate;
use neli_proto::node::{Action, Event};
use neli_proto::record::Body;
use nix::unistd::Pid;

use crate::process::ready::Ready;
use crate::supervise::main_loop::MainLoop;

/// The broker that this candidate has found or started.
pub(super) struct EmbeddedBroker {
    end: Ready,
    has_ended: bool,
    /// The processes that this candidate has started for it: children that are not part of a job.
    pub(super) started: Vec<Pid>,
    /// No new broker begins while this process holds it.
    _lock: File,
}

impl EmbeddedBroker {
    pub(super) fn new(found: FoundBroker) -> io::Result<Self> {
        let FoundBroker { connection, lock, started, .. } = found;
        let end = connection.end().map(|end| Ready::of(&end)).transpose()?;
        let end = end.ok_or(io::ErrorKind::NotConnected)?;
        let started = started.iter().map(|child| Pid::from_raw(child.id().cast_signed())).collect();
        Ok(Self { end, has_ended: false, started, _lock: lock })
    }
}

/// Waits for the broker's end, once.
pub(super) async fn ended(broker: Option<&EmbeddedBroker>) {
    match broker {
        Some(broker) if !broker.has_ended => broker.end.wait().await,
        Some(_) | None => future::pending().await,
    }
}

impl MainLoop {
    pub(super) fn warn_of_trial(&self) {
        let access = self.nodes.session.access();
        if access.embedded.is_some() {
            self.logger.warn(format!(
                "--embedded is for a trial on this one machine: its broker, at {}, keeps nothing",
                access.bootstrap
            ));
        }
    }

    pub(super) fn broker_has_ended(&self) -> bool {
        self.broker.as_ref().is_some_and(|broker| broker.has_ended)
    }

    /// Ends the process. A job that runs is stopped in order, as far as its lease permits: until nothing of it is left, this process and the
    /// guard keep the next broker from starting.
    pub(super) fn end_with_broker(&mut self) {
        self.broker.iter_mut().for_each(|broker| broker.has_ended = true);
        let error = "the embedded broker has ended, and its journal with it, so this candidate ends too; start the candidates again, and the \
                     first one starts a new broker";
        self.nodes.tell_all(&Event::Refused { error: error.into() });
        for at in 0..self.nodes.roles.len() {
            if self.nodes.roles[at].node.leads().is_none() {
                self.forget_journal(at);
            }
        }
    }

    /// A release would reach nobody, and is not waited for.
    pub(super) fn perform_without_broker(&mut self, at: usize, action: &Action) {
        if let Action::Send { record } = action
            && let Body::Release { .. } = record.body
        {
            self.forget_journal(at);
        }
    }

    fn forget_journal(&mut self, at: usize) {
        self.tell(at, Event::Election(candidate::Event::HistoryCut));
    }
}
