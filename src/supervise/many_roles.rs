//! What there is in a process that stands in many elections: how it makes itself known to the others, and which roles it is to hold.

use neli::program::{RoleEvent, clock, names};
use neli_proto::candidate::{self, Elector};
use neli_proto::introduction::{self, Introduction, Whose};
use neli_proto::mapping::Mapping;
use neli_proto::node::Event;
use neli_proto::precedence::Standing;
use neli_proto::process_hello::ProcessHello;
use neli_proto::record::{Body, Hello, MemberId, Offset, Record};
use neli_proto::spread::{self, By, Holding, Spread};
use neli_proto::time::Time;
use neli_proto::timings::Patience;

use super::{MainLoop, role};
use crate::config::{Config, Roles};
use crate::report::log::timestamp;

/// How the roles of this process are spread, from when it is known how many partitions the topic has.
pub(super) struct ManyRoles {
    roles: Roles,
    /// What its hello says, but for what changes.
    hello: ProcessHello,
    /// R0: the topic may carry an election.
    is_fit: bool,
    known: Option<Known>,
}

/// What there is once it is known how many partitions the topic has.
struct Known {
    introduction: Introduction,
    spread: Spread,
    by: By,
    /// Vacancies may be claimed.
    stands: bool,
    /// When either of the two wants to be called again.
    due: Option<Time>,
}

/// A release that was read.
pub(super) struct ReadRelease {
    term: Offset,
    by: MemberId,
    why: Box<str>,
    successor: Option<MemberId>,
}

impl ReadRelease {
    /// The one that was read, if this is a release.
    pub(super) fn of(event: &candidate::Event) -> Option<Self> {
        let candidate::Event::Read { record: Some(record), .. } = event else { return None };
        let Record { member: Some(by), body: Body::Release { term, why, successor, .. }, .. } = record else {
            return None;
        };
        let why = why.clone().unwrap_or_default();
        Some(Self { term: *term, by: by.clone(), why, successor: successor.clone() })
    }
}

impl ManyRoles {
    /// Of a process that stands in many elections; none of one that stands in a single one.
    pub(super) fn of(config: &Config, member: &MemberId) -> Option<Self> {
        let roles = config.roles.clone().filter(|_| config.elections().are_many())?;
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
        Some(Self { roles, hello, is_fit: false, known: None })
    }

    /// Who holds a role now.
    pub(super) fn observe(&mut self, now: Time, at: usize, holding: Holding) {
        if let Some(known) = &mut self.known {
            known.spread.observe(now, at, holding);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.known.as_ref()?.due
    }

    /// Whether the process is a member of the group: where its assignments can't give each the same number of roles, they are spread
    /// by how many each holds.
    pub(super) fn uses_group(&self) -> bool {
        self.known.as_ref().is_none_or(|known| known.by == By::Assignment)
    }

    /// Whether the group's taking a partition away ends the lead of its role.
    pub(super) const fn heeds_revoke(&self) -> bool {
        self.roles.are_spread
    }

    fn begin(&mut self, now: Time, elector: Elector, partitions: i32) -> Option<By> {
        if self.known.is_some() {
            return None;
        }
        let partitions = partitions.unsigned_abs();
        let by = match elector {
            Elector::Group(Patience::Never) => By::Assignment,
            Elector::Group(Patience::For(_)) if partitions == self.roles.count => By::Assignment,
            Elector::Group(Patience::For(_)) | Elector::Log => By::Count,
        };
        let settings = spread::Settings {
            member: self.hello.member.clone(),
            roles: self.roles.count as usize,
            by,
            is_on: self.roles.are_spread,
            max_roles: self.roles.most,
        };
        self.hello.partitions = Some(partitions);
        let mapping = Mapping::new(&self.roles.text, partitions);
        let mut introduction = Introduction::new(self.hello.member.clone(), mapping);
        if self.is_fit {
            introduction.topic_judged(now);
        }
        let spread = Spread::new(now, settings);
        self.known = Some(Known { introduction, spread, by, stands: false, due: None });
        Some(by)
    }
}

impl Known {
    fn handle_timeout(&mut self, now: Time) {
        self.introduction.handle_timeout(now);
        if self.stands {
            self.spread.handle_timeout(now);
        }
    }

    /// What to do next for the spread. Nothing is claimed before this process may stand.
    fn poll_spread(&mut self) -> Option<spread::Action> {
        if !self.stands || !self.spread.has_news() {
            return None;
        }
        let action = self.spread.poll_action();
        if action.is_none() {
            self.note_due();
        }
        action
    }

    fn note_due(&mut self) {
        let of_spread = if self.stands { self.spread.poll_timeout() } else { None };
        self.due = [self.introduction.poll_timeout(), of_spread].into_iter().flatten().min();
    }
}

impl MainLoop {
    /// What happens to a role in Kafka, before its node is told.
    pub(super) fn tell_many(&mut self, at: usize, now: Time, event: &RoleEvent) {
        match event {
            RoleEvent::Assigned => self.role_stands(at, now, Standing::Assigned),
            RoleEvent::Cut => self.role_is_cut(at),
            RoleEvent::Elsewhere | RoleEvent::Revoked { lost: false } => self.role_stands(at, now, Standing::Elsewhere),
            RoleEvent::Ends { end, .. } => self.role_listens(at, now, *end),
            RoleEvent::Revoked { lost: true } => self.role_stands(at, now, Standing::Unknown),
            RoleEvent::Topic(None) => self.topic_is_fit(at, now),
            RoleEvent::CaughtUp { .. }
            | RoleEvent::Delivered { .. }
            | RoleEvent::Identified { .. }
            | RoleEvent::Named { .. }
            | RoleEvent::NotDelivered { .. }
            | RoleEvent::Passed { .. }
            | RoleEvent::Read { .. }
            | RoleEvent::Topic(Some(_))
            | RoleEvent::Undecodable { .. }
            | RoleEvent::UnusedPartitions => {}
        }
    }

    /// Where a role's log ends was answered: by then it is known how many partitions the topic has.
    fn role_listens(&mut self, at: usize, now: Time, end: Offset) {
        let Some((many, partitions)) = self.many.as_mut().zip(self.kafka.session.partitions()) else { return };
        let elector = self.config.timings.elector();
        let begun = many.begin(now, elector, partitions);
        if let Some(known) = many.known.as_mut().filter(|_| at == 0) {
            known.introduction.listens(now, end);
        }
        if matches!((begun, elector), (Some(By::Count), Elector::Group(_))) {
            let (topic, count) = (&self.config.election.topic, self.roles.len());
            self.logger.warn(format!(
                "topic {topic:?} has {partitions} partitions for {count} roles: the group could not assign each candidate a fair \
                 share, so the roles are spread as with --elect log"
            ));
        }
        self.follow_introduction();
    }

    /// R0 is satisfied, for a role.
    pub(super) fn topic_is_fit(&mut self, at: usize, now: Time) {
        let Some(many) = self.many.as_mut().filter(|_| at == 0) else { return };
        // Often that is known before where the log ends.
        many.is_fit = true;
        if let Some(known) = &mut many.known {
            known.introduction.topic_judged(now);
            self.follow_introduction();
        }
    }

    /// The history of a role's partition was cut.
    fn role_is_cut(&mut self, at: usize) {
        if let Some(known) = self.known().filter(|_| at == 0) {
            known.introduction.history_cut();
        }
    }

    /// The group has changed this process's standing in a role.
    fn role_stands(&mut self, at: usize, now: Time, standing: Standing) {
        if let Some(known) = self.known() {
            known.spread.stand(now, at, standing);
        }
    }

    /// A hello was read in partition 0.
    pub(super) fn handle_hello(&mut self, now: Time, offset: Offset, value: &[u8]) {
        let Some((known, hello)) = self.known().zip(ProcessHello::parse(value)) else { return };
        let ProcessHello { member, name, max_roles, leaves, .. } = &hello;
        match known.introduction.heard(now, offset, &hello) {
            Whose::Own => {}
            _ if *leaves => known.spread.left(now, member),
            _ if !hello.takes_roles() => {}
            Whose::Another => known.spread.heard(now, member, *max_roles),
            Whose::AnotherBefore => known.spread.may_be_there(now, member, *max_roles),
        }
        if hello.member != self.job_maker.member && !hello.leaves {
            for at in 0..self.roles.len() {
                let (member, name) = (member.clone(), name.clone());
                let heard = Hello { member, group_member: None, name, priority: 0, overlaps: false };
                self.call(at, now, |node| node.handle(now, Event::Election(candidate::Event::Heard(heard))));
            }
        }
        self.follow_introduction();
        self.follow_spread();
    }

    /// A role's node reads a release.
    pub(super) fn read_release(&mut self, at: usize, now: Time, event: candidate::Event, release: ReadRelease) {
        let ReadRelease { term, by, why, successor } = release;
        let node = &mut self.roles[at].node;
        node.handle(now, Event::Election(event));
        self.touched.insert(at);
        let (took_effect, holding) = (node.released_term() == Some(term), node.holding());
        if let Some(known) = self.known() {
            if took_effect {
                // The node may have claimed already what is vacant since.
                known.spread.observe(now, at, Holding::Vacant { successor });
                known.spread.released(now, at, &by, &why);
            }
            known.spread.observe(now, at, holding);
        }
        self.follow_spread();
    }

    /// Does what is due of it.
    pub(super) fn handle_timeout_of_many(&mut self, now: Time) {
        let is_due = |known: &&mut Known| known.due.is_some_and(|due| now >= due);
        if let Some(known) = self.known().filter(is_due) {
            known.handle_timeout(now);
            self.follow_introduction();
            self.follow_spread();
        }
    }

    /// Does what the spread wants, until it wants nothing more: what a role does with it may change what it wants of another.
    pub(super) fn follow_spread(&mut self) {
        while let Some(action) = self.known().and_then(Known::poll_spread) {
            let (at, event) = match action {
                spread::Action::Delay { role, extra } => (role, Event::SpreadBy(extra)),
                spread::Action::HandOver { role, to } => (role, Event::HandOver { to }),
            };
            let now = clock::now();
            self.take_passed(at, now);
            self.call(at, now, |node| node.handle(now, event));
        }
    }

    fn follow_introduction(&mut self) {
        while let Some(action) = self.known().and_then(|known| known.introduction.poll_action()) {
            match action {
                introduction::Action::Hello { joined } => self.say_hello(joined, false),
                introduction::Action::Refuse { error } => self.tell_all(&Event::KafkaRefused { error }),
                introduction::Action::Stand => {
                    self.known().into_iter().for_each(|known| known.stands = true);
                    self.follow_spread();
                }
                introduction::Action::Wait { why, until } => self.warn_of_doubt(&why, until),
            }
        }
        self.known().into_iter().for_each(Known::note_due);
    }

    fn warn_of_doubt(&self, why: &str, until: Time) {
        let left = until.since(clock::now());
        let left_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        let at = timestamp(clock::wall_ms().saturating_add(left_ms));
        self.logger
            .warn(format!("{why}; it may have gone: until {at} nothing is claimed, unless that is known before"));
    }

    /// Says hello for all roles; `leaves` with the last one.
    pub(super) fn say_hello(&mut self, joined: Option<Offset>, leaves: bool) {
        let Some(many) = &self.many else { return };
        let hello = ProcessHello { joined, leaves, ..many.hello.clone() };
        if let Err(error) = self.kafka.session.say_hello(&hello.to_bytes()) {
            self.kafka.append_was_refused(clock::now(), error.to_string());
        }
    }

    /// Says that this process goes, where it has said hello.
    pub(super) fn say_goodbye(&mut self) -> bool {
        let joined = self.known().and_then(|known| known.introduction.joined());
        if joined.is_some() {
            self.say_hello(joined, true);
        }
        joined.is_some()
    }

    fn known(&mut self) -> Option<&mut Known> {
        self.many.as_mut()?.known.as_mut()
    }
}
