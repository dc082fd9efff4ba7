//! What a candidate is and knows in every state.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use super::action::{Action, Note, StandingFor};
use super::identifying::KnownTopic;
use super::preempting::Preemption;
use super::standing_by::Draw;
use super::state::State;
use super::{Identity, Judgement, Setup};
use crate::guard::Grant;
use crate::journal::{Term, Verdict, View};
use crate::listener::{Listener, Received};
use crate::precedence::{HELLO_AFTER_RELEASE, HELLO_INTERVAL, Precedence, Standing};
use crate::random::Random;
use crate::record::{Body, MemberId, Offset, Record, Why};
use crate::status::{Counts, Shown};
use crate::supervisor::Departure;
use crate::time::Time;
use crate::timings::Timings;

/// How many moments a heartbeat interval has at which roles of one process beat. For each answer a broker looks at all partitions that a
/// reader fetches, so that of beats which come together many go in one answer; and at one single moment all of them would wait for each
/// other.
const BEAT_MOMENTS: u32 = 16;

/// What a candidate is and knows in every state, and what it wants done.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "facts that nothing ties to each other")]
pub(super) struct Common {
    pub(super) identity: Identity,
    pub(super) timings: Timings,
    pub(super) random: Random,
    pub(super) listener: Listener,
    pub(super) precedence: Precedence,
    /// Which topic the journal is read from.
    pub(super) topic: KnownTopic,
    /// The last sequence number used.
    seq: u64,
    /// R0.
    pub(super) judgement: Judgement,
    /// The highest term that was ever held; none at or below it is taken up (R5).
    pub(super) highest_term: Offset,
    /// It goes for good once no term is held.
    pub(super) leaving: Option<Why>,
    /// It is to be suspended once no term is held.
    pub(super) suspending: bool,
    /// After standing down: nothing is claimed until then, or until another's claim has been effective (R7).
    pub(super) cooling_off: Option<Time>,
    /// A leader of lower priority, and when it is asked to resign.
    pub(super) preemption: Option<Preemption>,
    /// The last lead of its own was lost: it asks nobody to resign for longer.
    pub(super) has_lost_lead: bool,
    /// Nothing is claimed until the node allows it.
    pub(super) claims_are_held: bool,
    /// Its process stands in other elections too, by one member of the group, and says hello for all of them.
    pub(super) is_one_of_many: bool,
    /// Whether it is a member of the group, or about to be.
    pub(super) in_group: bool,
    /// The id under which it held the partition when it left the group, for the release to tell.
    pub(super) left_as: Option<Box<str>>,
    /// For whom it stands down, for the release to tell.
    pub(super) successor: Option<MemberId>,
    /// Which term was released last for whom, as its release tells.
    pub(super) released_for: Option<(Offset, MemberId)>,
    /// The topic has more partitions than roles: a revoke ends no lead.
    pub(super) unused_partitions: bool,
    /// `--wait`, until the first lead.
    pub(super) wait_until: Option<Time>,
    /// When the process started.
    pub(super) started: Time,
    /// When the next hello is due; none before Kafka's first answer.
    pub(super) next_hello: Option<Time>,
    /// The random part of the next claim's delay, drawn once for each vacancy.
    pub(super) draw: Option<Draw>,
    /// A claim was not read back within its lease, and nothing has been since: Kafka gives no answer.
    pub(super) claim_unanswered: bool,
    /// Since when claims have gone unanswered, or the producer was renewed for that.
    unanswered_since: Option<Time>,
    /// What was last reported of standing by.
    pub(super) standing_by: Option<StandingFor>,
    /// Who leads, and since when that has been known.
    pub(super) leader_since: Shown<Option<(Offset, Time)>>,
    /// What was read since it began to listen.
    pub(super) counts: Shown<Counts>,
    pub(super) actions: VecDeque<Action>,
}

/// By whom a term of ours was superseded: by nobody where it is over and no other has begun.
pub(super) struct Superseder {
    pub(super) term: Option<Offset>,
    pub(super) name: Option<Box<str>>,
}

impl Common {
    /// That of a candidate that begins to listen.
    pub(super) fn new(now: Time, setup: Setup, random: Random) -> Self {
        let Setup { identity, timings, started, wait, first_span } = setup;
        let overlaps = timings.overlap().is_some();
        Self {
            precedence: Precedence::new(timings.elector(), timings.claim_delay()).of_priority(identity.priority()),
            identity,
            timings,
            random,
            listener: Listener::asking(now, first_span).with_overlap(overlaps),
            topic: KnownTopic::unknown(),
            seq: 0,
            judgement: Judgement::awaited(),
            highest_term: -1,
            leaving: None,
            suspending: false,
            cooling_off: None,
            preemption: None,
            has_lost_lead: false,
            claims_are_held: false,
            is_one_of_many: false,
            in_group: false,
            left_as: None,
            successor: None,
            released_for: None,
            unused_partitions: false,
            wait_until: wait.map(|wait| started + wait),
            started,
            next_hello: None,
            draw: None,
            claim_unanswered: false,
            unanswered_since: None,
            standing_by: None,
            leader_since: Shown(None),
            counts: Shown::default(),
            actions: VecDeque::from([Action::Ask]),
        }
    }

    /// Does what is due by now in every state.
    pub(super) fn do_what_is_due(&mut self, now: Time) {
        if self.next_hello.is_some_and(|due| now >= due) {
            self.say_hello(now);
        }
        if self.cooling_off.is_some_and(|until| now >= until) {
            self.cooling_off = None;
        }
    }

    // ---- records ----------------------------------------------------------------------------------------------------

    pub(super) fn next_seq(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    pub(super) fn lease_ms(&self) -> u64 {
        u64::try_from(self.timings.lease().as_millis()).unwrap_or(u64::MAX)
    }

    /// When a beat is due that follows something sent at `sent`: an interval later, or at the last moment before that at which the
    /// roles of its process beat. Never later, so that no lease gets shorter.
    pub(super) fn beat_after(&self, sent: Time) -> Time {
        let interval = self.timings.heartbeat_interval();
        let due = sent + interval;
        if self.is_one_of_many { due.floor_to(interval / BEAT_MOMENTS) } else { due }
    }

    pub(super) fn send(&mut self, seq: u64, body: Body) {
        let (member, name) = (Some(self.identity.member.clone()), Some(self.identity.name.clone()));
        self.actions.push_back(Action::Send { record: Record { member, name, seq: Some(seq), body } });
    }

    pub(super) fn say_hello(&mut self, now: Time) {
        self.next_hello = Some(now + HELLO_INTERVAL);
        if !self.is_one_of_many {
            self.send_hello(false);
        }
    }

    fn send_hello(&mut self, is_last: bool) {
        let seq = self.next_seq();
        let mut hello = self.identity.hello.clone();
        if let Body::Hello { group_member, overlap_ms, leaves, .. } = &mut hello {
            *group_member = self.precedence.group_member().map(Into::into);
            *overlap_ms = self.overlap_ms();
            *leaves = is_last;
        }
        self.send(seq, hello);
    }

    /// A term was released, and the others take this candidate for gone: whoever stays says hello again soon.
    pub(super) fn say_hello_after_release(&mut self, now: Time) {
        if self.departure().is_some() {
            self.next_hello = None;
        } else if !self.is_one_of_many {
            self.next_hello = self.next_hello.map(|due| due.min(now + HELLO_AFTER_RELEASE));
        }
    }

    /// What the guard is sent: the term, which is current as of the last record read.
    pub(super) fn grant(&self, term: Offset, lease_end: Time) -> Grant {
        let until = lease_end - self.timings.kill_margin();
        Grant { term, seen: self.listener.last(), next_seq: self.seq + 1, until }
    }

    // ---- what was read ----------------------------------------------------------------------------------------------

    /// Whether the term is current in our own view.
    pub(super) fn is_current(&self, term: Offset) -> bool {
        self.listener.journal().term() == Some(term)
    }

    /// R7: a decided view in which another term is current than ours, or ours is released, ends ours at once.
    pub(super) fn superseded(&self, term: Offset) -> Option<Superseder> {
        match self.listener.journal().view() {
            View::Led(Term { offset, name, .. }) if *offset != term => {
                Some(Superseder { term: Some(*offset), name: name.clone() })
            }
            View::NeverLed | View::Released { .. } => Some(Superseder { term: None, name: None }),
            View::Led(_) | View::Undecided(_) => None,
        }
    }

    /// A record of another candidate's was read.
    pub(super) fn read_of_another(&mut self, now: Time, record: &Record, received: Received) {
        let is_news = received.verdict == Verdict::Effective && received.fresh;
        match &record.body {
            Body::Claim { .. } if is_news => {
                self.precedence.forget_foresight();
                // R7: somebody else leads now; the cool-off has done its work.
                self.cooling_off = None;
            }
            Body::Release { group_member, why, .. } => {
                let known = record.member.as_ref().and_then(|member| self.precedence.released(member));
                if is_news {
                    // A dead one could not say as whom it was in the group. It was the one that holds the partition, if another does.
                    let has_died = why.as_deref() == Some(Why::SupervisorDied.as_str())
                        && self.precedence.standing() == Standing::Elsewhere
                        && !self.unused_partitions;
                    match group_member.as_ref().or(known.as_ref().filter(|_| has_died)) {
                        Some(left) => self.precedence.foresee(now, left),
                        None => self.precedence.forget_foresight(),
                    }
                }
            }
            Body::Beat { .. } | Body::Claim { .. } | Body::Hello { .. } | Body::Request { .. } => {}
        }
    }

    /// Counts what is shown of a record, whoever wrote it.
    pub(super) fn count(&mut self, record: &Record, received: Received) {
        let counts = &mut self.counts.0;
        match (&record.body, received.verdict) {
            _ if !received.fresh => {}
            (Body::Claim { .. }, Verdict::Effective) => (counts.terms, counts.void_since_heard) = (counts.terms + 1, 0),
            (Body::Claim { .. }, Verdict::Void) => {
                counts.void_claims += 1;
                counts.void_since_heard = counts.void_since_heard.saturating_add(1);
            }
            (Body::Beat { .. } | Body::Release { .. }, Verdict::Effective) => counts.void_since_heard = 0,
            _ => {}
        }
    }

    /// Notes who leads, and since when it has been known.
    pub(super) fn note_leader(&mut self, now: Time) {
        let journal = self.listener.journal();
        let (term, earlier_job) = (journal.term(), journal.earlier_job().term());
        let leader = match journal.view() {
            View::Led(term) => term.member.as_ref(),
            View::NeverLed | View::Released { .. } | View::Undecided(_) => None,
        };
        // The claim is over the silence of the leader before, which most likely is dead; with `--overlap` it may be alive, and says so.
        if leader.is_some() && earlier_job.is_none() {
            self.precedence.lost_to(leader);
        }
        self.precedence.led_by(leader);
        if self.leader_since.0.map(|(term, _)| term) != term {
            self.leader_since.0 = term.map(|term| (term, now));
        }
    }

    /// The history was cut: nothing that was read or judged before tells of what is there now.
    pub(super) fn forget_history(&mut self, now: Time) {
        self.topic = self.topic.after_cut(now);
        self.leader_since.0 = None;
        self.precedence.led_by(None);
        self.listener.history_cut(now);
        // The terms to come may begin from 0 again.
        self.highest_term = -1;
        // Nothing is written into the new topic but one claim until it is judged, too.
        self.judgement = Judgement::awaited();
        self.next_hello = None;
        self.actions.extend([Action::ForgetTerms, Action::RenewProducer, Action::Ask]);
    }

    /// Reads again from R1, as after a fence (R5).
    pub(super) fn ask_anew(&mut self, now: Time) {
        if self.leaving.is_none() && !self.suspending {
            self.listener.ask_anew(now);
            self.actions.push_back(Action::Ask);
        }
    }

    // ---- claims -----------------------------------------------------------------------------------------------------

    /// From then on a claim that was sent at `sent` is too late: the job would be warned of the fence before a beat had
    /// an interval's time to come back. Where beats are always as slow, no job could ever stay.
    pub(super) fn claim_expires_at(&self, sent: Time) -> Time {
        let timings = &self.timings;
        let late = timings.heartbeat_interval() + timings.kill_margin() + timings.fence_warning();
        sent + timings.lease().saturating_sub(late)
    }

    /// A claim was not read back within its lease: it is not known whether the producer fails or the reader. The log's end shows
    /// whether there is more to be read; a producer that fails for two leases is renewed.
    pub(super) fn claim_went_unanswered(&mut self, now: Time, sent: Time) {
        self.claim_unanswered = true;
        self.actions.push_back(Action::LookForEnd);
        let since = *self.unanswered_since.get_or_insert(sent);
        if now >= since + self.timings.lease() * 2 {
            self.unanswered_since = Some(now);
            self.actions.push_back(Action::RenewProducer);
            self.ask_identity_again();
        }
    }

    /// Something was read.
    pub(super) const fn kafka_answers(&mut self) {
        (self.claim_unanswered, self.unanswered_since) = (false, None);
    }

    // ---- standing down and leaving ------------------------------------------------------------------------------------

    /// Takes note of why it stands down, for good or until it is continued.
    pub(super) fn stands_down(&mut self, why: Why, leaving: bool) {
        if leaving && (self.leaving.is_none() || why == Why::Ended) {
            self.leaving = Some(why);
        }
        self.suspending |= why == Why::Suspended;
        if leaving || self.suspending {
            self.leave_group();
        }
    }

    /// R7: nothing is claimed until another leads, or for two leases; a member joins again after it.
    pub(super) fn cool_off(&mut self, now: Time) {
        self.cooling_off = Some(now + self.timings.lease() * 2);
    }

    /// How it goes, if it does once nothing is held.
    pub(super) fn departure(&self) -> Option<Departure> {
        self.leaving.map(|why| if why == Why::Ended { Departure::Ended } else { Departure::Left })
    }

    pub(super) fn depart(&mut self, departure: Departure) -> State {
        self.leave_group();
        // Who has said hello, and has not just released a term, is taken for there.
        if self.next_hello.take().is_some() && !self.is_one_of_many {
            self.send_hello(true);
        }
        self.actions.push_back(Action::Depart(departure));
        State::Departed
    }

    /// Reports it once, if a revoke would be heeded otherwise.
    pub(super) fn learn_of_unused_partitions(&mut self) {
        if self.in_group && !self.unused_partitions {
            self.unused_partitions = true;
            self.actions.push_back(Action::Note(Note::UnusedPartitions));
        }
    }
}
