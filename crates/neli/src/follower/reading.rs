//! The follower's thread: it reads the journals of all roles that are followed, and publishes who leads each.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use neli_proto::journal::{Verdict, View};
use neli_proto::late_beat::Punctuality;
use neli_proto::listener::{FIRST_SPAN, Listener, LogBounds};
use neli_proto::record::{Offset, Record};
use neli_proto::time::Time;
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::sync::{broadcast, watch};

use super::FollowerState;
use crate::clock;
use crate::election::Elections;
use crate::error::Error;
use crate::event::{Event, Leader};
use crate::kafka::embedded::Connection;
use crate::kafka::event::{KafkaEvent, ReadingEvent};
use crate::kafka::source::Source;
use crate::leadership::Leadership;
use crate::session::event::RoleEvent;
use crate::session::readers::{Output, Readers};
use crate::text;
use crate::waiter::Waiter;
use crate::wording;

/// The journals, as they are read.
pub(super) struct Reading {
    elections: Elections,
    /// The embedded broker, whose log may be one that another has lost.
    embedded: Option<Arc<Connection>>,
    readers: Readers,
    /// By their numbers, from the first one on.
    roles: Vec<Role>,
    /// Why no broker answers, or what else keeps the reading from going on.
    trouble: Option<String>,
    /// What stops nothing.
    warnings: broadcast::Sender<Event>,
}

/// One election that is followed.
struct Role {
    listener: Listener,
    /// When the leader's records were appended.
    punctuality: Punctuality,
    /// The last term that was known, and since when.
    known: Option<(Offset, Instant)>,
    state: watch::Sender<FollowerState>,
}

impl Reading {
    pub(super) fn new(
        source: Source,
        event_sender: Sender<KafkaEvent>,
        states: Vec<watch::Sender<FollowerState>>,
        warnings: broadcast::Sender<Event>,
    ) -> Self {
        let now = clock::now();
        let role = |state| {
            let listener = Listener::asking(now, FIRST_SPAN);
            Role { listener, punctuality: Punctuality::default(), known: None, state }
        };
        Self {
            elections: source.elections.clone(),
            embedded: source.access.embedded.clone(),
            // A topic that is made anew may have another number.
            readers: Readers::new(source, false, event_sender),
            roles: states.into_iter().map(role).collect(),
            trouble: None,
            warnings,
        }
    }

    /// Begins to read the journal of each role.
    pub(super) fn start(&mut self) -> io::Result<()> {
        let now = clock::now();
        for role in self.elections.roles.clone() {
            self.readers.read_anew(now, role);
        }
        self.follow_readers(now)
    }

    /// Until the last follower is dropped, or Kafka refuses.
    pub(super) fn run(
        mut self,
        mut waiter: Waiter,
        mut events: Receiver<KafkaEvent>,
        mut followers: Receiver<Infallible>,
    ) {
        loop {
            let due = self.publish(clock::now());
            let event = waiter.wait(due, async {
                tokio::select! {
                    biased;
                    _ = followers.recv() => None,
                    event = events.recv() => event,
                }
            });
            let refused = match event {
                // A leader has been silent for its lease.
                None => None,
                Some(None) => return,
                Some(Some(event)) => self.handle(event).err(),
            };
            if let Some(error) = refused {
                for role in &self.roles {
                    let leadership = Leadership::Unknown { trouble: Some(error.to_string()) };
                    role.state.send_replace(FollowerState { leadership, ended: Some(error.clone()) });
                }
                return;
            }
        }
    }

    /// Tells who leads each role. Gives when that changes if nothing is read until then.
    fn publish(&self, now: Time) -> Option<Time> {
        let publish = |role: &Role| {
            let leader = role.leader(now);
            let due = leader.as_ref().map(|(_, until)| *until);
            let leadership = match leader {
                Some((leader, _)) => Leadership::Led(leader),
                None if self.trouble.is_none() && role.is_vacant() => Leadership::Vacant,
                None => Leadership::Unknown { trouble: self.trouble.clone() },
            };
            role.state.send_if_modified(|state| {
                let has_changed = state.leadership != leadership;
                state.leadership = leadership;
                has_changed
            });
            due
        };
        self.roles.iter().filter_map(publish).min()
    }

    fn handle(&mut self, event: KafkaEvent) -> Result<(), Error> {
        match event {
            KafkaEvent::Reading { reading, partition, event } => {
                if matches!(event, ReadingEvent::CaughtUp { .. } | ReadingEvent::Record(_)) && self.readers.has(reading)
                {
                    // What is read goes on, so that nothing keeps it from that.
                    self.trouble = None;
                }
                let now = clock::now();
                self.readers.handle(now, reading, partition, event);
                self.follow_readers(now).map_err(|error| Error::System(text::reason(&error)))?;
            }
            KafkaEvent::Refused { error } => return Err(Error::refused(&error)),
            KafkaEvent::Down { error } => self.trouble = Some(wording::of_library(&error)),
            KafkaEvent::Up => self.trouble = None,
            KafkaEvent::Partitions(partitions) => {
                self.found(partitions).map_err(|error| Error::System(text::reason(&error)))?;
            }
            KafkaEvent::AppendRefused { .. }
            | KafkaEvent::BrokerSession(_)
            | KafkaEvent::Created { .. }
            | KafkaEvent::Debug(_)
            | KafkaEvent::Delivered { .. }
            | KafkaEvent::Facts { .. }
            | KafkaEvent::HelloDelivered
            | KafkaEvent::Identified { .. }
            | KafkaEvent::Moved(_)
            | KafkaEvent::NotDelivered { .. }
            | KafkaEvent::Topic { .. } => {}
            // Nobody may be listening.
            KafkaEvent::Warning(message) => drop(self.warnings.send(Event::warning(&message))),
        }
        Ok(())
    }

    /// The topic has so many partitions. With another number roles are on others, and their journals are others.
    fn found(&mut self, partitions: i32) -> io::Result<()> {
        let known = self.readers.partitions();
        self.readers.found(partitions);
        if known.is_none_or(|known| known == partitions) {
            return Ok(());
        }
        let now = clock::now();
        self.readers.stop();
        for role in self.elections.roles.clone() {
            self.read_anew(now, role);
        }
        self.follow_readers(now)
    }

    /// Has done what reading takes, and passes what has come of it to the listeners.
    fn follow_readers(&mut self, now: Time) -> io::Result<()> {
        while let Some(output) = self.readers.poll() {
            match output {
                Output::Hello { .. } => {}
                Output::NotStarted(error) => return Err(error),
                Output::Role { role, event } => self.handle_role_event(now, role, event),
            }
        }
        Ok(())
    }

    fn handle_role_event(&mut self, now: Time, number: u32, event: RoleEvent) {
        let role = &mut self.roles[(number - self.elections.roles.start) as usize];
        match event {
            RoleEvent::CaughtUp { next } => role.listener.reached(now, next),
            RoleEvent::Cut => self.read_anew(now, number),
            RoleEvent::Ends { asked, start, end } => {
                let trusted = self.embedded.as_ref().is_none_or(|broker| now >= broker.trusted_from());
                match role.listener.answered(now, LogBounds { asked, start, end, trusted }) {
                    Ok(Some(from)) => self.readers.read_from(now, number, from),
                    Ok(None) => {}
                    Err(_) => self.read_anew(now, number),
                }
            }
            RoleEvent::Passed { first, last } => role.listener.read_others(now, first, last),
            RoleEvent::Read { offset, is_hello: true, .. } => role.listener.read_others(now, offset, offset),
            RoleEvent::Read { offset, is_hello: false, value, written_ms } => {
                role.read(now, offset, value.as_deref(), written_ms);
            }
            RoleEvent::Undecodable { offset, error } => {
                role.listener.undecodable(now);
                let topic = &self.elections.topic;
                self.trouble =
                    Some(format!("topic \"{topic}\": the batch at offset {offset} can't be decoded: {error}"));
            }
            // A follower joins no group, sends nothing and does not ask which topic it is.
            RoleEvent::Assigned
            | RoleEvent::Delivered { .. }
            | RoleEvent::Elsewhere
            | RoleEvent::Identified { .. }
            | RoleEvent::Named { .. }
            | RoleEvent::NotDelivered { .. }
            | RoleEvent::Revoked { .. }
            | RoleEvent::Topic(_)
            | RoleEvent::UnusedPartitions => {}
        }
        if self.roles[(number - self.elections.roles.start) as usize].listener.is_caught_up() {
            self.readers.note_caught_up(number);
        }
    }

    /// The history of a role's journal is cut or made anew.
    fn read_anew(&mut self, now: Time, number: u32) {
        // Of the reading before.
        self.trouble = None;
        self.roles[(number - self.elections.roles.start) as usize].listener.history_cut(now);
        self.readers.read_anew(now, number);
    }
}

impl Role {
    /// Who leads, and until when that is taken for known.
    fn leader(&self, now: Time) -> Option<(Leader, Time)> {
        let View::Led(term) = self.listener.journal().view() else { return None };
        let until = self.listener.last_effective() + term.lease;
        let is_late = self.punctuality.late(term.offset).is_some();
        let is_known = self.listener.is_caught_up() && now < until && !is_late;
        let name = term.name.as_deref().map(Into::into);
        let since = self.known.filter(|(known, _)| *known == term.offset).map(|(_, since)| since);
        is_known.then_some((Leader { name, term: term.offset, is_self: false, since }, until))
    }

    fn is_vacant(&self) -> bool {
        self.listener.is_caught_up() && self.listener.is_vacant()
    }

    fn read(&mut self, now: Time, offset: Offset, value: Option<&[u8]>, written_ms: Option<u64>) {
        let record = value.and_then(Record::parse);
        let is_effective = self.listener.read(now, offset, record.as_ref(), false).verdict == Verdict::Effective;
        let View::Led(term) = self.listener.journal().view() else { return };
        if let Some(record) = record.filter(|_| is_effective) {
            self.punctuality.read(term.offset, term.lease, &record, written_ms);
        }
        if self.known.is_none_or(|(known, _)| known != term.offset) {
            self.known = Some((term.offset, clock::instant_of(now)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::mpsc;

    use super::*;
    use crate::election::Properties;
    use crate::kafka::access::Access;
    use crate::kafka::source::IfMissing;

    fn source() -> Source {
        Source {
            access: Access::at("localhost:9", &Properties::default()),
            elections: Elections { group: "g".into(), topic: "t".into(), roles: 0..1, names: [].into() },
            partitions: None,
            only: None,
            if_missing: IfMissing::Await,
            joins_group: false,
            is_for_display: false,
        }
    }

    const CLAIM: &str = r#"{"v":1,"member":"m","name":"db1","seq":1,"kind":"claim","after":-1,"lease_ms":5000}"#;
    const BEAT: &str = r#"{"v":1,"member":"m","name":"db1","seq":2,"kind":"beat","term":0,"seen":0,"lease_ms":5000}"#;
    const RESIGN: &str = r#"{"v":1,"name":"ann","kind":"request","what":"resign","term":0}"#;

    /// What is published at `shown`, after these records: when each was read, when it was appended, and its text. The log ended at `end` when
    /// the reading began. All times are in milliseconds, `shown` and those of the reading since then.
    fn leadership(end: i64, records: &[(u64, u64, &str)], shown: u64) -> Leadership {
        let (events, _received) = mpsc::channel(1);
        let (warnings, _told) = broadcast::channel(1);
        let unknown = FollowerState { leadership: Leadership::Unknown { trouble: None }, ended: None };
        let (state, follower) = watch::channel(unknown);
        let mut reading = Reading::new(source(), events, vec![state], warnings);
        let began = clock::now();
        let after = |ms| began + Duration::from_millis(ms);
        reading.handle_role_event(began, 0, RoleEvent::Ends { asked: began, start: 0, end });
        for (offset, (read, written_ms, value)) in (0..).zip(records) {
            let (value, written_ms) = (Some(value.as_bytes().into()), Some(*written_ms));
            reading.handle_role_event(after(*read), 0, RoleEvent::Read { offset, is_hello: false, value, written_ms });
        }
        reading.publish(after(shown));
        follower.borrow().leadership.clone()
    }

    /// Its leader was fenced before, and leads no more.
    #[test]
    fn a_heartbeat_after_the_lease_s_end_makes_no_leader() {
        let after_a_heartbeat = |gap_ms: u64| leadership(2, &[(0, 1_000, CLAIM), (0, 1_000 + gap_ms, BEAT)], 0);
        assert!(matches!(after_a_heartbeat(4_900), Leadership::Led(_)));
        assert_eq!(after_a_heartbeat(9_000), Leadership::Unknown { trouble: None });
    }

    /// An operator writes it, and the leader may be dead.
    #[test]
    fn a_request_does_not_prolong_a_lead() {
        let records = [(100, 1_000, CLAIM), (4_900, 5_800, RESIGN)];
        assert!(matches!(leadership(0, &records, 5_099), Leadership::Led(_)));
        assert_eq!(leadership(0, &records, 5_100), Leadership::Unknown { trouble: None });
    }

    #[test]
    fn a_record_from_before_the_reading_is_at_least_as_old_as_the_reading() {
        let records = [(900, 1_000, CLAIM)];
        assert!(matches!(leadership(1, &records, 4_999), Leadership::Led(_)));
        assert_eq!(leadership(1, &records, 5_000), Leadership::Unknown { trouble: None });
    }

    #[test]
    fn what_stops_nothing_is_told() {
        let (events, _received) = mpsc::channel(1);
        let (warnings, mut told) = broadcast::channel(1);
        let mut reading = Reading::new(source(), events, Vec::new(), warnings);
        let message = "odd".to_owned();
        reading.handle(KafkaEvent::Warning(message.clone())).unwrap();
        assert_eq!(told.try_recv(), Ok(Event::Warning { message }));
    }
}
