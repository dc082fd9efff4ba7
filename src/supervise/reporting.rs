//! What the main loop shows of its state: to the service manager, and over HTTP by snapshots, which it publishes after each change, and once a second as a
//! sign of life.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use neli_kafka::{Nodes, clock};
use neli_proto::candidate::{Event, Position};
use neli_proto::hooks::{self, Hook};
use neli_proto::leadership::ReadAt;
use neli_proto::record::{Body, Record};
use neli_proto::reminder::Troubles;
use neli_proto::time::Time;
use nix::unistd::Pid;

use crate::config::Config;
use crate::http::{self, About, AnswerSource, Board, Echoes, Histogram, RoleSnapshot, Site, Snapshot};
use crate::report::election::{of_roles, of_status, of_trouble, present_trouble};
use crate::report::events;
use crate::supervise::MainLoop;
use crate::supervise::facts::KeyFacts;
use crate::supervise::role::Role;

impl MainLoop {
    /// Reports changes, and sends the messages that are due. It is called once a turn, so that a loop that hangs sends no watchdog message.
    pub(super) fn report(&mut self) {
        if !self.notifier.has_receiver() {
            return;
        }
        let now = clock::now();
        let trouble = present_trouble(&self.nodes.troubles);
        self.notifier.silent_at = None;
        let (doing, is_leaving) = match self.nodes.roles.as_slice() {
            [role] => {
                let status = role.node.status(now);
                let at = ReadAt { now, wall_ms: clock::wall_ms() };
                let current = status.leadership(at, self.nodes.troubles.is_answered());
                self.notifier.silent_at = current.changes_in().map(|left| now + left);
                (of_status(&status, current, at.wall_ms), status.is_leaving)
            }
            roles => {
                let led = roles.iter().filter(|role| role.node.leads().is_some()).map(|role| role.election.label());
                (of_roles(&led.collect::<Vec<_>>(), roles.len()), roles.iter().all(|role| role.node.is_leaving()))
            }
        };
        let current = (doing, trouble);
        if self.notifier.reported.as_ref() != Some(&current) {
            let (doing, trouble) = &current;
            let trouble =
                trouble.as_ref().map(|(since, what, why)| of_trouble(now.since(*since), what, why, clock::wall_ms()));
            self.notifier.status(&format!("{doing}{}", trouble.unwrap_or_default()));
            self.notifier.reported = Some(current);
        }
        if self.ending.is_some() || is_leaving {
            self.notifier.stopping(now, now + longest_stop(&self.config));
        }
        self.notifier.tell(now);
    }
}

/// The longest time of a stop. It includes: with `--overlap`, a lease in which another candidate may claim; the barrier, or the wait for a
/// claim in flight; a lease for processes that SIGKILL does not end at once; a lease for the release's delivery; the time limit of a hook (the
/// exit waits for all but `--on-lead`); and the time for leaving the group and writing the last line of the log.
fn longest_stop(config: &Config) -> Duration {
    let has_hook = config.hooks.keys().any(|hook| *hook != Hook::Lead);
    let hook = if has_hook { hooks::LIMIT } else { Duration::ZERO };
    let lease = config.timings.lease;
    let yields = config.timings.overlap.map_or(Duration::ZERO, |_| lease);
    yields + config.job.stop.timeout.max(lease) + 2 * lease + hook + Duration::from_secs(1)
}

/// A lead that begins or ends is published at once; other changes at least this long after the last one.
const PAUSE: Duration = Duration::from_millis(100);

/// An unchanged state is published this often as well, to show that the loop runs.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// The next snapshot, and what it takes to make it.
pub(super) struct Publisher {
    board: Arc<Board>,
    /// It has the time of the last attempt to publish it, and what has changed since only of the echoes.
    snapshot: Snapshot,
    /// Of each role.
    echoes: Vec<Echoes>,
    /// The roles that have changed since the last snapshot.
    changed: BTreeSet<usize>,
}

impl Publisher {
    /// Publishes the initial state, and starts serving.
    pub(super) fn start(
        bound: TcpListener,
        MainLoop { config, job_maker, nodes, logger, .. }: &MainLoop,
    ) -> Result<Self> {
        let now = clock::now();
        let about = Arc::new(About {
            group: config.elections.group.clone(),
            topic: config.elections.topic.clone(),
            name: config.name.clone(),
            member: job_maker.member.clone(),
            elector: config.timings.elector().name(),
            lease: config.timings.lease,
        });
        let roles: Vec<_> = nodes.roles.iter().map(|role| snapshot(role, now)).collect();
        let of_roles = roles.iter().map(|_| Echoes::default()).collect();
        let changed = (0..roles.len()).collect();
        let (echoes, kafka) = (Histogram::default(), Troubles::default());
        let snapshot = Snapshot { about, at: now, kafka, was_reached: false, echoes, roles };
        let board = Arc::new(Board::new(Arc::new(snapshot.clone())));
        let address = bound.local_addr()?.to_string();
        // If the job is real-time, this process has a higher priority, but the HTTP thread gets a lower one.
        let of_job = job_maker.attributes.scheduling;
        let served = Arc::clone(&board);
        let site = move || -> Rc<dyn Site> {
            let _ = of_job.map(|of_job| of_job.set_for(Pid::from_raw(0)));
            Rc::new(AnswerSource::new(served))
        };
        http::serve(bound, site).context("--listen: HTTP can't be served")?;
        logger.event(&events::listening(&address));
        Ok(Self { board, snapshot, echoes: of_roles, changed })
    }

    /// When the next snapshot is due.
    pub(super) fn poll_timeout(&self) -> Time {
        self.snapshot.at + if self.changed.is_empty() { SIGN_OF_LIFE } else { PAUSE }
    }

    /// Notes a change of a role.
    pub(super) fn has_changed(&mut self, role: usize) {
        self.changed.insert(role);
    }

    /// Notes a record that was handed to the producer.
    pub(super) fn sent(&mut self, role: usize, now: Time, record: &Record) {
        if let (Some(seq), Body::Beat { .. } | Body::Claim { .. } | Body::Release { .. }) = (record.seq, &record.body) {
            http::note_sent(&mut self.echoes[role], now, seq);
        }
    }

    /// Notes a record that was read, if it is this process's own.
    pub(super) fn read(&mut self, role: usize, now: Time, event: &Event) {
        let Event::Read { record: Some(Record { member: Some(member), seq: Some(seq), .. }), .. } = event else {
            return;
        };
        if *member == self.snapshot.about.member {
            self.snapshot.echoes.note_read(&mut self.echoes[role], now, *seq);
        }
    }

    /// Publishes the changes, if that is due.
    pub(super) fn publish(&mut self, now: Time, Nodes { roles, troubles, .. }: &Nodes<Role>) {
        let has_changed_lead = |at: &usize| {
            let shown = &self.snapshot.roles[*at].status.position;
            roles[*at].node.leads() != if let Position::Leading { term, .. } = shown { Some(*term) } else { None }
        };
        if now < self.poll_timeout() && !self.changed.iter().any(has_changed_lead) {
            return;
        }
        for &at in &self.changed {
            self.snapshot.roles[at] = snapshot(&roles[at], now);
        }
        self.snapshot.was_reached |= roles.iter().all(|role| role.node.is_caught_up());
        (self.snapshot.at, self.snapshot.kafka) = (now, troubles.clone());
        if http::publish(&self.board, self.snapshot.clone()) {
            self.changed.clear();
        }
    }
}

fn snapshot(role: &Role, now: Time) -> Arc<RoleSnapshot> {
    let status = role.node.status(now);
    let (label, partition) = (role.election.label(), role.election.partition);
    let facts = role.facts.as_ref();
    let next_window_ms = facts.and_then(|facts| facts.next_window_ms(status.next_window_ms));
    let (runs, success_due_ms) =
        (facts.and_then(KeyFacts::known_runs).cloned(), facts.and_then(KeyFacts::success_due_ms));
    Arc::new(RoleSnapshot {
        label,
        partition,
        at: now,
        status,
        tally: role.tally,
        runs,
        next_window_ms,
        success_due_ms,
    })
}
