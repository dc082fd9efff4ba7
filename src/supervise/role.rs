//! The state of this process in one election.

use anyhow::{Context as _, Result};
use neli_kafka::{ElectionId, HasNode, Session, hello, new_node};
use neli_proto::hello::Hello;
use neli_proto::listener::FIRST_SPAN;
use neli_proto::node::{Node, Settings};
use neli_proto::record::MemberId;
use neli_proto::spread::Holding;
use neli_proto::supervisor::Job;
use neli_proto::time::Time;

use crate::config::Config;
use crate::exit::ExitStatus;
use crate::http::Tally;
use crate::process::shell::{ShellCommands, Tail};
use crate::report::log::Logger;
use crate::supervise::facts::KeyFacts;
use crate::supervise::job::GuardedJob;

/// The state of this process in one election: the node that decides, and the objects that it decides about.
pub(super) struct Role {
    /// The election. With several roles its partition is known when the topic is.
    pub(super) election: ElectionId,
    pub(super) logger: Logger,
    pub(super) node: Node,
    /// The job and its guard. With several roles only a role that is claimed or led has one.
    pub(super) job: Option<GuardedJob>,
    /// The running hooks, with their numbers.
    pub(super) hooks: ShellCommands<u32>,
    /// The number and the output of the last ordered health command, until its end is reported.
    pub(super) health_output: Option<(u32, Tail)>,
    pub(super) tally: Tally,
    /// The exit status of this role, once it has ended.
    pub(super) ending: Option<ExitStatus>,
    /// `--once`, `--window` or `--schedule`: the topic of facts.
    pub(super) facts: Option<KeyFacts>,
}

impl Role {
    /// Must be called within a runtime. `started` is when the process started.
    pub(super) fn new(
        config: &Config,
        session: &Session,
        election: ElectionId,
        member: &MemberId,
        logger: &Logger,
        started: Time,
    ) -> Result<Self> {
        let facts = config.once.as_ref().map(|once| KeyFacts::new(session, &election, once));
        let node = new_node(settings(config, member, started), config.elections.are_many())?;
        Ok(Self {
            logger: if config.roles.is_some() { logger.of_role(&election) } else { logger.clone() },
            election,
            node,
            job: None,
            hooks: ShellCommands::none(),
            health_output: None,
            tally: Tally::default(),
            ending: None,
            facts: facts.transpose().context("no thread to read the facts of the key")?,
        })
    }

    /// When to send the guard queued orders again, because the kernel lacked memory for one.
    pub(super) fn orders_due_at(&self) -> Option<Time> {
        self.job.as_ref().and_then(|job| job.guard.poll_timeout())
    }

    /// For one of several roles, whose guard `waits` to be started or not. One that another candidate leads needs no guard here; a claim starts
    /// another one. Returns whether the role had a guard, or waited for one.
    pub(super) fn part_with_idle_guard(&mut self, waits: bool) -> bool {
        let is_led_elsewhere = || matches!(self.node.holding(), Holding::Held { .. } | Holding::Done);
        let supervisor = self.node.supervisor();
        let has_idle = self.job.as_ref().is_some_and(GuardedJob::is_idle) || waits && *supervisor.job() == Job::None;
        let parts = has_idle && !supervisor.lacks_guard() && is_led_elsewhere();
        self.job.take_if(|_| parts);
        parts
    }

    /// Whether the process may be stopped as far as this role is concerned.
    pub(super) fn is_suspended(&self) -> bool {
        self.ending.is_some() || self.node.is_suspended()
    }
}

impl HasNode for Role {
    fn node(&self) -> &Node {
        &self.node
    }

    fn node_mut(&mut self) -> &mut Node {
        &mut self.node
    }

    fn poll_timeout(&self) -> Option<Time> {
        let orphans = self.job.as_ref().and_then(|job| job.orphans.as_ref()).map(|orphans| orphans.killing.again_at());
        let look = self.facts.as_ref().and_then(|facts| facts.look_at).filter(|_| self.node.leads().is_some());
        [self.node.poll_timeout(), orphans, self.orders_due_at(), look].into_iter().flatten().min()
    }
}

/// How this process is called, and what it says of itself.
pub(super) fn own_hello(config: &Config, member: &MemberId) -> Hello {
    let (who, elector) = ((member.clone(), &*config.name), config.timings.elector());
    let once = config.once.as_ref().map(|once| once.options.clone());
    Hello { once, ..hello(who, env!("CARGO_PKG_VERSION"), elector, config.priority, config.listening_at) }
}

fn settings(config: &Config, member: &MemberId, started: Time) -> Settings {
    Settings {
        hello: own_hello(config, member),
        timings: config.timings.clone(),
        job: config.job.clone(),
        hooks: config.hooks.keys().copied().collect(),
        accepts_remade_topic: config.create_topic,
        once: config.once.as_ref().map(|once| once.policy.clone()),
        started,
        wait: config.wait,
        first_span: FIRST_SPAN,
    }
}
