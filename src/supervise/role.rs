//! What this process has in one election.

use neli::program::{Election, clock};
use neli_proto::candidate::{Elector, Event as ElectionEvent, Identity};
use neli_proto::listener::FIRST_SPAN;
use neli_proto::node::{Event, Node, Settings};
use neli_proto::random::Random;
use neli_proto::record::{Body, MemberId};
use neli_proto::reminder::Reminder;
use neli_proto::supervisor::{Policy, StopPolicy};
use neli_proto::time::Time;
use neli_proto::topic::TopicIdentity;
use nix::unistd;

use super::commands::{self, RunningCommands};
use super::job::GuardedJob;
use super::start::PreparedJob;
use crate::config::Config;
use crate::exit::StartupError;
use crate::text::reason;
use neli::program::random;

/// What this process has in one election: the node that decides, and what it decides about.
pub(super) struct Role {
    pub(super) election: Election,
    pub(super) node: Node,
    /// How many readings of its journal there have been.
    pub(super) readings: u32,
    /// A batch that can't be decoded, while it keeps what is behind it from being read.
    pub(super) undecodable: Reminder,
    pub(super) job: GuardedJob,
    pub(super) commands: RunningCommands,
}

impl Role {
    /// Within a runtime. `started`: when the process did.
    pub(super) fn new(
        config: &Config,
        member: MemberId,
        job: PreparedJob,
        started: Time,
    ) -> Result<Self, StartupError> {
        let random_seed = random::bytes().map_err(StartupError::new)?;
        let random = Random::from_seed(u64::from_le_bytes(random_seed));
        let job = GuardedJob::new(job)
            .map_err(|error| StartupError::new(format!("the guard can't be awaited: {}", reason(&error))))?;
        Ok(Self {
            election: config.election.clone(),
            node: Node::new(clock::now(), settings(config, member, started), random),
            readings: 0,
            undecodable: Reminder::default(),
            job,
            commands: RunningCommands::none(config.commands.clone()),
        })
    }

    /// The embedded broker's topics have no ids.
    pub(super) fn topic_has_no_id(&mut self) {
        let (asked, identity) = (clock::now(), TopicIdentity::Unnamed);
        self.node.handle(asked, Event::Election(ElectionEvent::TopicIdentified { asked, identity }));
    }
}

/// The elector, as log and journal call it.
pub(super) const fn name_of(elector: Elector) -> &'static str {
    match elector {
        Elector::Group(_) => "group",
        Elector::Log => "log",
    }
}

fn settings(config: &Config, member: MemberId, started: Time) -> Settings {
    let hello = Body::Hello {
        host: unistd::gethostname().ok().and_then(|host| host.into_string().ok()).map(Into::into),
        pid: Some(std::process::id()),
        version: Some(env!("CARGO_PKG_VERSION").into()),
        elector: Some(name_of(config.timings.elector()).into()),
        group_member: None,
        priority: config.priority,
    };
    let job = Policy {
        settle: config.settle,
        stop: StopPolicy {
            signal: config.stop_signal,
            timeout: config.stop_timeout,
            kill_margin: config.timings.kill_margin(),
        },
        restart: config.restart,
        on_loss: config.on_loss,
        health: config.commands.health.as_ref().map(|(_, health)| health.clone()),
    };
    Settings {
        identity: Identity { member, name: config.name.as_str().into(), hello },
        timings: config.timings.clone(),
        job,
        hooks: commands::hooks_in(&config.commands),
        accepts_remade_topic: config.create_topic,
        started,
        wait: config.wait,
        first_span: FIRST_SPAN,
    }
}
