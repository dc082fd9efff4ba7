//! A leader is elected even if the log is slow: the claims of candidates that void each other get out of step.
//!
//! A few candidates, a log, and a simulated time: each record needs half a round trip each way. A claim is void if another record of the
//! election comes between its writer's last read and the claim. So all claims are void while undecodable records keep coming. The test
//! measures how long the candidates keep voiding each other's claims after these records have stopped.

#![expect(clippy::expect_used, reason = "a test")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use neli_proto::candidate::{Action, Candidate, Durations, Elector, Event, Setup, Timings};
use neli_proto::hello::Hello;
use neli_proto::kafka::Request;
use neli_proto::listener::{FIRST_SPAN, Predecessor};
use neli_proto::precedence::Precedence;
use neli_proto::random::Random;
use neli_proto::record::{Body, MemberId, Record};
use neli_proto::time::Time;
use neli_proto::topic::TopicIdentity;

#[path = "records/mod.rs"]
mod records;

use records::Written;

const LEASE: Duration = Duration::from_secs(20);

/// The number of round trips during which another client writes undecodable records.
const STRANGER_WRITES: u32 = 20;

/// A message under way, its destination, and its arrival time, by which they are ordered.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Due(Reverse<Time>, Reverse<u64>);

/// The effect of a message when it arrives.
enum Arrival {
    /// An event at a candidate.
    At(usize, Event),
    /// At the log: a candidate's record, or an undecodable one.
    Appended(Option<Written>),
    /// A query for the log's end.
    Asked(usize, Time),
    /// A timeout of a candidate.
    Timeout(usize, u64),
}

struct World {
    now: Time,
    way: Duration,
    random: Random,
    candidates: Vec<Candidate>,
    log: Vec<Option<Written>>,
    count: u64,
    agenda: BinaryHeap<Due>,
    arrivals: std::collections::BTreeMap<u64, Arrival>,
    led: Option<Time>,
    /// The number of each candidate's valid timeout: the last one that was set.
    alarms: Vec<u64>,
}

impl World {
    fn new(candidates: usize, round_trip: Duration, seed: u64) -> Self {
        Self::with_log(Vec::new(), candidates, LEASE, round_trip, seed)
    }

    fn with_log(
        log: Vec<Option<Written>>,
        candidates: usize,
        lease: Duration,
        round_trip: Duration,
        seed: u64,
    ) -> Self {
        let now = Time::ZERO + Duration::from_secs(100);
        let timings = Timings::new(
            Durations {
                lease,
                heartbeat_interval: lease / 5,
                kill_margin: (lease / 50).max(Duration::from_millis(20)),
                fence_warning: lease / 4,
                preempt_after: None,
                overlap: None,
            },
            Elector::Log,
        )
        .unwrap_or_else(|error| panic!("{error}"));
        let candidate = |index: usize| {
            let member = MemberId::from_random(index as u128 + 1);
            let hello = Hello::new(member, Some("one of them".into()));
            let setup = Setup { hello, timings: timings.clone(), started: now, wait: None, first_span: FIRST_SPAN };
            Candidate::new(now, setup, Random::from_seed(seed * 1000 + index as u64))
        };
        let mut world = Self {
            now,
            way: round_trip / 2,
            random: Random::from_seed(!seed),
            candidates: (0..candidates).map(candidate).collect(),
            log,
            count: 0,
            agenda: BinaryHeap::new(),
            arrivals: std::collections::BTreeMap::new(),
            led: None,
            alarms: vec![0; candidates],
        };
        for index in 0..candidates {
            let identity = TopicIdentity::Unnamed;
            world.candidates[index].handle(now, Event::TopicIdentified { asked: now, identity });
            world.candidates[index].handle(now, Event::TopicJudged { cut_is_harmless: true, gaps_are_markers: true });
            world.act(index);
        }
        world
    }

    fn put(&mut self, at: Time, arrival: Arrival) {
        self.count += 1;
        self.agenda.push(Due(Reverse(at), Reverse(self.count)));
        self.arrivals.insert(self.count, arrival);
    }

    /// The duration of one way, up to a tenth longer than the minimum.
    fn way(&mut self) -> Duration {
        self.way + self.random.up_to(self.way / 10)
    }

    fn act(&mut self, index: usize) {
        while let Some(action) = self.candidates[index].poll_action() {
            let arrival = if action == Action::Kafka(Request::ReadAnew) {
                Arrival::Asked(index, self.now)
            } else if let Action::Kafka(request) = action
                && let Some(written) = Written::of(&request)
            {
                Arrival::Appended(Some(written))
            } else {
                continue;
            };
            let at = self.now + self.way();
            self.put(at, arrival);
        }
        if self.candidates[index].wants().is_some() {
            self.led.get_or_insert(self.now);
        }
        if let Some(at) = self.candidates[index].poll_timeout() {
            self.alarms[index] += 1;
            self.put(at.max(self.now), Arrival::Timeout(index, self.alarms[index]));
        }
    }

    /// The event for a record that is read.
    fn read_event(&self, offset: usize) -> Event {
        let written = self.log[offset].clone();
        let offset = i64::try_from(offset).expect("a small number");
        written.map_or(Event::Read { offset, record: None, written_ms: None }, |written| written.read_at(offset))
    }

    fn step(&mut self) {
        let Due(Reverse(at), Reverse(number)) =
            self.agenda.pop().expect("candidates always have something to wait for");
        self.now = at;
        match self.arrivals.remove(&number).expect("put there with it") {
            Arrival::At(index, event) => {
                self.candidates[index].handle(at, event);
                self.act(index);
            }
            Arrival::Appended(record) => {
                self.log.push(record);
                for index in 0..self.candidates.len() {
                    let event = self.read_event(self.log.len() - 1);
                    self.put(at + self.way, Arrival::At(index, event));
                }
            }
            Arrival::Asked(index, asked) => {
                let end = i64::try_from(self.log.len()).expect("a small number");
                self.put(at + self.way, Arrival::At(index, Event::Answered { asked, start: 0, end }));
                for offset in 0..self.log.len() {
                    let event = self.read_event(offset);
                    self.put(at + self.way, Arrival::At(index, event));
                }
                self.put(at + self.way, Arrival::At(index, Event::ReachedEnd { next: end }));
            }
            Arrival::Timeout(index, alarm) if alarm != self.alarms[index] => {}
            Arrival::Timeout(index, _) => {
                self.candidates[index].handle_timeout(at);
                assert!(self.candidates[index].poll_timeout().is_none_or(|due| due > at), "it stays due");
                self.act(index);
            }
        }
    }
}

/// The records of a leader that is not one of the candidates.
fn of_leader(seq: u64, body: Body) -> Written {
    Record { member: Some(MemberId::from("leader")), name: Some("leader".into()), seq: Some(seq), body }.into()
}

/// The time from a release to the first lead, when the candidates know each other. Within three round trips six more records reach the
/// log: the release again, since it was sent again before its acknowledgement, claims of candidates that had not read it, and undecodable
/// records.
fn takes_after_release(candidates: usize, lease: Duration, round_trip: Duration, seed: u64) -> Duration {
    let lease_ms = u64::try_from(lease.as_millis()).expect("a small number");
    let claim = of_leader(1, Body::Claim { after: -1, lease_ms, overlap: None });
    let mut world = World::with_log(vec![Some(claim)], candidates, lease, round_trip, seed);
    // By then every hello has been read, and the leader's silence is not over.
    let end = world.now + lease / 2;
    let release = || {
        of_leader(
            2,
            Body::Release {
                term: 0,
                seen: 0,
                why: Some("stopped".into()),
                exit: None,
                late_ms: None,
                group_member: None,
                once: None,
                successor: None,
            },
        )
    };
    world.put(end, Arrival::Appended(Some(release())));
    let late_claim = |seq| of_leader(seq, Body::Claim { after: 0, lease_ms, overlap: None });
    let strays = [Some(release()), Some(late_claim(3)), None, Some(release()), Some(late_claim(4)), None];
    for (nth, stray) in (1..).zip(strays) {
        world.put(end + round_trip * nth / 2, Arrival::Appended(stray));
    }
    while world.led.is_none() && world.now < end + Duration::from_secs(20) {
        world.step();
    }
    world.now.since(end)
}

/// The time from the last undecodable record to the first lead.
fn takes(candidates: usize, round_trip: Duration, seed: u64) -> Duration {
    let mut world = World::new(candidates, round_trip, seed);
    let end = world.now + round_trip * STRANGER_WRITES;
    let mut at = world.now;
    while at < end {
        world.put(at, Arrival::Appended(None));
        at = at + round_trip / 4;
    }
    while world.led.is_none_or(|led| led <= end) && world.now < end + Duration::from_secs(120) {
        world.led = None;
        world.step();
    }
    world.now.since(end)
}

#[test]
fn claims_that_void_each_other_get_out_of_step() {
    for candidates in [2, 3, 5] {
        for millis in [2, 20, 200, 500] {
            let round_trip = Duration::from_millis(millis);
            let worst = (0..10).map(|seed| takes(candidates, round_trip, seed)).max().expect("at least one seed");
            let bound = round_trip * 10 + Duration::from_millis(100);
            assert!(worst < bound, "{candidates} candidates, {round_trip:?} there and back: {worst:?}");
        }
    }
}

/// Many candidates need a larger range of delays than a few: the range grows with their number.
#[test]
fn many_candidates_get_out_of_step_too() {
    for candidates in [10, 40, 100, 200] {
        for millis in [2, 20, 100] {
            let round_trip = Duration::from_millis(millis);
            let worst = (0..3)
                .map(|seed| takes_after_release(candidates, LEASE, round_trip, seed))
                .max()
                .expect("at least one seed");
            let bound = round_trip * 20 + Duration::from_millis(100);
            assert!(worst < bound, "{candidates} candidates, {round_trip:?} there and back: {worst:?}");
        }
    }
}

/// A round trip for each of the candidates may be longer than a lease. A claim that comes late only costs time.
#[test]
fn many_candidates_get_out_of_step_with_a_short_lease_too() {
    for (candidates, lease, round_trip) in [(40, 300, 20), (40, 1_000, 100), (100, 2_000, 100), (200, 5_000, 100)] {
        let (lease, round_trip) = (Duration::from_millis(lease), Duration::from_millis(round_trip));
        let worst = (0..5)
            .map(|seed| takes_after_release(candidates, lease, round_trip, seed))
            .max()
            .expect("at least one seed");
        let bound = round_trip * 20 + Duration::from_millis(100);
        assert!(worst < bound, "{candidates} candidates, lease {lease:?}, {round_trip:?} there and back: {worst:?}");
    }
}

/// The number of candidates that claim a vacancy at once, although all of them see it at the same moment.
#[test]
fn of_many_candidates_about_fifteen_claim_and_the_first_claims_at_once() {
    /// The time from a claim until the others read it.
    const ECHO: Duration = Duration::from_micros(1_500);
    const VACANCIES: u32 = 200;

    let now = Time::ZERO;
    let mut random = Random::from_seed(1);
    for crowd in [100, 300, 1_000_u32] {
        let mut precedence = Precedence::new(Elector::Log);
        (0..crowd).for_each(|index| precedence.received(now, Hello::new(MemberId::from_random(index.into()), None)));
        let span = precedence.delay(now, Predecessor::Gone).expect("everybody may claim").random;
        let (mut claims, mut waited) = (0, Duration::ZERO);
        for _ in 0..VACANCIES {
            let delays: Vec<Duration> = (0..crowd).map(|_| random.up_to(span)).collect();
            let first = *delays.iter().min().expect("everybody may claim");
            claims += delays.iter().filter(|delay| **delay < first + ECHO).count();
            waited += first;
        }
        let claims = claims / VACANCIES as usize;
        assert!((13..=18).contains(&claims), "{claims} of {crowd}");
        assert!(waited / VACANCIES < Duration::from_micros(150), "{waited:?}");
    }
}
