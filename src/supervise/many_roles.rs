//! The object that spreads the roles of a process with many elections, and the log messages about all roles.

use neli_kafka::names;
use neli_proto::many_roles::{ManyRoles, Settings};
use neli_proto::process_hello::ProcessHello;
use neli_proto::record::MemberId;
use neli_proto::role_set::RoleSet;
use neli_proto::topic::{self, Risk};

use crate::config::Config;
use crate::supervise::main_loop::MainLoop;

/// The object for a process with many elections; `None` with a single one.
pub(super) fn of(config: &Config, member: &MemberId) -> Option<ManyRoles> {
    let roles = config.roles.as_ref().filter(|_| config.elections().are_many())?;
    let hello = ProcessHello {
        member: member.clone(),
        name: Some(config.name.as_str().into()),
        host: names::host().map(Into::into),
        pid: Some(std::process::id()),
        version: Some(env!("CARGO_PKG_VERSION").into()),
        elector: Some(config.timings.elector().name().into()),
        group_refuses: None,
        roles: Some(roles.text.as_str().into()),
        partitions: None,
        priority: config.priority,
        max_roles: roles.most,
        joined: None,
        asks: None,
        waits_ms: None,
        left: RoleSet::new(),
        leaves: false,
    };
    Some(ManyRoles::new(Settings {
        hello,
        roles: roles.count as usize,
        elector: config.timings.elector(),
        are_spread: roles.are_spread,
    }))
}

impl MainLoop {
    /// Logs the risks of a topic, only in the first reading.
    pub(super) fn warn_of_risks(&self, at: usize, risks: &[Risk]) {
        if at == 0 && self.nodes.roles[at].readings == 1 {
            self.logger.warn(format!("topic {:?}: {}", self.config.election.topic, topic::warning(risks)));
        }
    }
}
