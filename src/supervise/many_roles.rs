//! A process that stands in many elections: what spreads its roles and makes it known to the others is asked what to do.

use neli::program::{clock, names};
use neli_proto::many_roles::{Action, ManyRoles, Settings};
use neli_proto::node::Event;
use neli_proto::process_hello::ProcessHello;
use neli_proto::record::{MemberId, Offset};
use neli_proto::time::Time;

use super::{MainLoop, role};
use crate::config::Config;
use crate::report::log::timestamp;

/// That of a process that stands in many elections; none of one that stands in a single one.
pub(super) fn of(config: &Config, member: &MemberId) -> Option<ManyRoles> {
    let roles = config.roles.as_ref().filter(|_| config.elections().are_many())?;
    let hello = ProcessHello {
        member: member.clone(),
        name: Some(config.name.as_str().into()),
        host: names::host().map(Into::into),
        pid: Some(std::process::id()),
        version: Some(env!("CARGO_PKG_VERSION").into()),
        elector: Some(role::name_of(config.timings.elector()).into()),
        roles: Some(roles.text.as_str().into()),
        partitions: None,
        max_roles: roles.most,
        joined: None,
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
    /// A hello was read in partition 0.
    pub(super) fn handle_hello(&mut self, now: Time, offset: Offset, value: &[u8]) {
        if let Some(event) = self.many.as_mut().and_then(|many| many.received(now, offset, value)) {
            for at in 0..self.roles.len() {
                self.call(at, now, |node| node.handle(now, event.clone()));
            }
        }
        self.follow_many();
    }

    /// Does what is due of it.
    pub(super) fn handle_timeout_of_many(&mut self, now: Time) {
        if let Some(many) = &mut self.many {
            many.handle_timeout(now);
            self.follow_many();
        }
    }

    /// Does what is wanted for all roles, until nothing more is: what a role does with it may change what is wanted of another.
    pub(super) fn follow_many(&mut self) {
        while let Some(action) = self.many.as_mut().and_then(ManyRoles::poll_action) {
            match action {
                Action::Hello(hello) => self.say_hello(&hello),
                Action::Refuse { error } => self.tell_all(&Event::KafkaRefused { error }),
                Action::SpreadWithoutGroup { partitions } => self.warn_of_partitions(partitions),
                Action::SharesNoRole { warning } => self.logger.warn(warning.into()),
                Action::Tell { role: at, event } => {
                    let now = clock::now();
                    self.take_passed(at, now);
                    self.call(at, now, |node| node.handle(now, event));
                }
                Action::Wait { why, until } => self.warn_of_doubt(&why, until),
            }
        }
    }

    fn warn_of_partitions(&self, partitions: u32) {
        let (topic, count) = (&self.config.election.topic, self.roles.len());
        self.logger.warn(format!(
            "topic {topic:?} has {partitions} partitions for {count} roles: the group could not assign each candidate a fair \
             share, so the roles are spread as with --elect log"
        ));
    }

    fn warn_of_doubt(&self, why: &str, until: Time) {
        let left = until.since(clock::now());
        let left_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        let at = timestamp(clock::wall_ms().saturating_add(left_ms));
        self.logger
            .warn(format!("{why}; it may have gone: until {at} nothing is claimed, unless that is known before"));
    }

    /// Says hello for all roles.
    fn say_hello(&mut self, hello: &ProcessHello) {
        if let Err(error) = self.kafka.session.say_hello(hello) {
            self.kafka.append_was_refused(clock::now(), error.to_string());
        }
    }

    /// Says the last hello, if the process has said hello.
    pub(super) fn say_last_hello(&mut self) {
        if let Some(last_hello) = self.many.as_ref().and_then(ManyRoles::last_hello) {
            self.say_hello(&last_hello);
        }
    }
}
