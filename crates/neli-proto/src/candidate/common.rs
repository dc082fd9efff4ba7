//! The part of a candidate's state that does not depend on its role.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::time::Duration;

use super::action::Action;
use super::beside_roles::BesideRoles;
use super::identifying::KnownTopic;
use super::preempting::Preemption;
use super::standing_by::Draw;
use super::state::State;
use super::{Identity, Judgement, Setup};
use crate::guard::Grant;
use crate::journal::{Term, Verdict, View};
use crate::kafka::Request;
use crate::leadership::LastTerm;
use crate::listener::{Listener, Received};
use crate::note::{Note, StandbyReason};
use crate::precedence::{HELLO_AFTER_LEAD, HELLO_INTERVAL, Precedence, Standing};
use crate::random::Random;
use crate::record::{Body, MemberId, Offset, Record, Why};
use crate::status::{Counts, Shown};
use crate::supervisor::Departure;
use crate::time::{Time, millis};
use crate::timings::Timings;

/// The number of moments in a heartbeat interval at which the roles of one process send beats. For each answer a broker checks every
/// partition that a reader fetches, so beats that are sent together share answers. But if all were sent at one moment, they would wait for
/// each other.
const BEAT_MOMENTS: u32 = 16;

/// The part of a candidate's state that does not depend on its role, and its pending actions.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "facts that nothing ties to each other")]
pub(super) struct Common {
    pub(super) identity: Identity,
    pub(super) timings: Timings,
    pub(super) random: Random,
    pub(super) listener: Listener,
    pub(super) precedence: Precedence,
    /// The topic's identity.
    pub(super) topic: KnownTopic,
    /// The last sequence number used.
    seq: u64,
    /// R0: the judgement of the topic.
    pub(super) judgement: Judgement,
    /// The highest term ever held. The candidate takes up no term at or below it (R5).
    pub(super) highest_term: Offset,
    /// The reason why it exits when it holds no term.
    pub(super) leaving: Option<Why>,
    /// Whether it is suspended when it holds no term.
    pub(super) suspending: bool,
    /// After standing down: the candidate claims nothing before this time, or before another candidate's claim has been effective (R7).
    pub(super) cooling_off: Option<Time>,
    /// A leader of lower priority, and when it is asked to resign.
    pub(super) preemption: Option<Preemption>,
    /// Its own last lead was lost, so it waits longer before it preempts another.
    pub(super) has_lost_lead: bool,
    /// Whether the node forbids claims for now.
    pub(super) claims_are_held: bool,
    /// Whether no job could run under a claim, because this machine lacks a guard.
    pub(super) guard_is_missing: bool,
    /// The processes with many roles in its group, if its own has no roles.
    pub(super) beside_roles: BesideRoles,
    /// Its process stands in other elections too, with one member of the group, and sends one hello for all of them.
    pub(super) is_one_of_many: bool,
    /// Whether it is a member of the group, or about to be.
    pub(super) in_group: bool,
    /// Why the group does not take it, if it does not.
    pub(super) group_refusal: Option<Box<str>>,
    /// The id under which it held the partition when it left the group; the release contains it.
    pub(super) left_as: Option<Box<str>>,
    /// The successor for which it stands down; the release contains it.
    pub(super) successor: Option<MemberId>,
    /// The term released last, and the successor that its release names.
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
    /// A claim was not read back within its lease, and no record has been read since: Kafka does not answer.
    pub(super) claim_unanswered: bool,
    /// Since when claims have not been read back, or when the producer was renewed for that reason.
    unanswered_since: Option<Time>,
    /// The last report about standing by.
    pub(super) standing_by: Option<StandbyReason>,
    /// The last term, as far as its records were read.
    pub(super) last_term: Shown<LastTerm>,
    /// Counts of the records read since listening began.
    pub(super) counts: Shown<Counts>,
    pub(super) actions: VecDeque<Action>,
}

/// The candidate that superseded our term; `None` if the term is over and no other one has begun.
pub(super) struct Superseder {
    pub(super) term: Option<Offset>,
    pub(super) name: Option<Box<str>>,
}

impl Common {
    /// The state of a candidate that begins to listen.
    pub(super) fn new(now: Time, setup: Setup, random: Random) -> Self {
        let Setup { identity, timings, started, wait, first_span } = setup;
        let overlaps = timings.overlap().is_some();
        Self {
            precedence: Precedence::new(timings.elector(), timings.claim_delay()).with_priority(identity.priority()),
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
            guard_is_missing: false,
            beside_roles: BesideRoles::default(),
            is_one_of_many: false,
            in_group: false,
            group_refusal: None,
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
            last_term: Shown::default(),
            counts: Shown::default(),
            actions: VecDeque::from([Action::Kafka(Request::ReadAnew)]),
        }
    }

    /// Performs the due actions that are the same in every state.
    pub(super) fn perform_due_actions(&mut self, now: Time) {
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
        millis(self.timings.lease())
    }

    /// When the next beat is due after a record sent at `sent`: one interval later, or at the last common moment of the process's roles
    /// before that. It is never later, so that no lease gets shorter.
    pub(super) fn beat_after(&self, sent: Time) -> Time {
        let interval = self.timings.heartbeat_interval();
        let due = sent + interval;
        if self.is_one_of_many { due.floor_to(interval / BEAT_MOMENTS) } else { due }
    }

    pub(super) fn send(&mut self, seq: u64, body: Body) {
        let (member, name) = (Some(self.identity.member.clone()), Some(self.identity.name.clone()));
        self.actions.push_back(Action::Kafka(Request::Send { record: Record { member, name, seq: Some(seq), body } }));
    }

    pub(super) fn say_hello(&mut self, now: Time) {
        self.next_hello = Some(now + HELLO_INTERVAL);
        if !self.is_one_of_many {
            self.send_hello(Some(now));
        }
    }

    /// Says hello at once, if it has said one, because an operator asks who is there.
    pub(super) fn answer_with_hello(&mut self, now: Time) {
        if self.next_hello.is_some() && self.listener.is_caught_up() {
            self.say_hello(now);
        }
    }

    /// `now` is `None` for the last hello.
    fn send_hello(&mut self, now: Option<Time>) {
        let seq = self.next_seq();
        let mut hello = self.identity.hello.clone();
        if let Body::Hello { group_member, group_refuses, overlap_ms, waits_ms, joined, leaves, .. } = &mut hello {
            group_refuses.clone_from(&self.group_refusal);
            *joined = self.beside_roles.joined();
            *group_member = self.precedence.group_member().map(Into::into);
            *overlap_ms = self.overlap_ms();
            *waits_ms = now.and_then(|now| self.listener.undecided_for(now)).map(millis);
            *leaves = now.is_none();
        }
        self.send(seq, hello);
    }

    /// Sends a hello soon, if the candidate stays: after a term was released, or lost to another candidate's claim after a silence, the
    /// others assume that this candidate has left.
    pub(super) fn say_hello_after_lead(&mut self, now: Time) {
        if self.departure().is_some() {
            self.next_hello = None;
        } else if !self.is_one_of_many {
            self.next_hello = self.next_hello.map(|due| due.min(now + HELLO_AFTER_LEAD));
        }
    }

    /// The grant for the guard: the term, which is current as of the last record read.
    pub(super) fn grant(&self, term: Offset, lease_end: Time) -> Grant {
        let until = lease_end - self.timings.kill_margin();
        Grant { term, seen: self.listener.last(), next_seq: self.seq + 1, until }
    }

    // ---- reading ----------------------------------------------------------------------------------------------------

    /// Whether the term is current in our own view.
    pub(super) fn is_current(&self, term: Offset) -> bool {
        self.listener.journal().term() == Some(term)
    }

    /// R7: our term ends at once if the view is decided and another term is current or ours is released.
    pub(super) fn superseded(&self, term: Offset) -> Option<Superseder> {
        match self.listener.journal().view() {
            View::Led(Term { offset, name, .. }) if *offset != term => {
                Some(Superseder { term: Some(*offset), name: name.clone() })
            }
            View::NeverLed | View::Released { .. } => Some(Superseder { term: None, name: None }),
            View::Led(_) | View::Undecided(_) => None,
        }
    }

    /// Handles a record of another candidate.
    pub(super) fn read_of_another(&mut self, now: Time, record: &Record, received: Received) {
        let is_news = received.verdict == Verdict::Effective && received.fresh;
        match &record.body {
            Body::Claim { .. } if received.verdict == Verdict::Effective => {
                if received.fresh {
                    self.precedence.forget_foresight();
                }
                // R7: another candidate has led since, so the cool-off ends. After a fence the journal is read anew, and the claim may be
                // history by then.
                if self.listener.journal().term() > Some(self.highest_term) {
                    self.cooling_off = None;
                }
            }
            Body::Release { group_member, why, .. } => {
                let known = record.member.as_ref().and_then(|member| self.precedence.released(member));
                if is_news {
                    // A dead leader's release can't contain its group member id. If another member holds the partition, that member was the
                    // leader.
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

    /// Counts a record of any candidate for the statistics.
    pub(super) fn count(&mut self, record: &Record, received: Received) {
        let counts = &mut self.counts.0;
        match (&record.body, received.verdict) {
            _ if !received.fresh => {}
            (Body::Claim { .. }, Verdict::Effective) => (counts.terms, counts.void_in_a_row) = (counts.terms + 1, 0),
            (Body::Claim { .. }, Verdict::Void) => {
                counts.void_claims += 1;
                counts.void_in_a_row = counts.void_in_a_row.saturating_add(1);
            }
            (Body::Beat { .. } | Body::Release { .. }, Verdict::Effective) => counts.void_in_a_row = 0,
            _ => {}
        }
    }

    /// Records the leader.
    pub(super) fn note_leader(&mut self) {
        let journal = self.listener.journal();
        let earlier_job = journal.earlier_job().term();
        let leader = match journal.view() {
            View::Led(term) => term.member.as_ref(),
            View::NeverLed | View::Released { .. } | View::Undecided(_) => None,
        };
        // The claim follows the silence of the previous leader, which most likely is dead. With `--overlap` it may be alive, and then its
        // record shows it.
        if leader.is_some() && earlier_job.is_none() {
            self.precedence.lost_to(leader);
        }
        self.precedence.set_leader(leader);
    }

    /// Handles a cut of the history: earlier records and judgements don't apply to the present log.
    pub(super) fn forget_history(&mut self, now: Time) {
        self.topic = self.topic.after_cut(now);
        self.last_term = Shown::default();
        self.precedence.set_leader(None);
        self.listener.history_cut(now);
        // Terms may start from 0 again.
        self.highest_term = -1;
        // Until the new topic is judged too, at most one claim is written to it.
        self.judgement = Judgement::awaited();
        self.next_hello = None;
        self.beside_roles = BesideRoles::default();
        self.actions.extend([
            Action::ForgetTerms,
            Action::Kafka(Request::RenewProducer),
            Action::Kafka(Request::ReadAnew),
        ]);
    }

    /// Reads again from R1, as after a fence (R5).
    pub(super) fn ask_anew(&mut self, now: Time) {
        if self.leaving.is_none() && !self.suspending {
            self.listener.ask_anew(now);
            self.actions.push_back(Action::Kafka(Request::ReadAnew));
        }
    }

    // ---- claims -----------------------------------------------------------------------------------------------------

    /// Whether nothing may be claimed on this machine for now, whatever the election's state is.
    pub(super) fn may_not_claim(&self) -> bool {
        self.claims_are_held || self.guard_is_missing
    }

    /// The time from which a claim that was sent at `sent` is too late: the job would get the fence warning before a beat had an interval's
    /// time to be read back. If beats are always that slow, no job could run for long.
    pub(super) fn claim_expires_at(&self, sent: Time) -> Time {
        let timings = &self.timings;
        let late = timings.heartbeat_interval() + timings.kill_margin() + timings.fence_warning();
        sent + timings.lease().saturating_sub(late)
    }

    /// Handles a claim that was not read back within its lease: either the producer or the reader has failed. The log's end shows whether
    /// there are more records to read. A producer that has failed for two leases is renewed.
    pub(super) fn claim_went_unanswered(&mut self, now: Time, sent: Time) {
        self.claim_unanswered = true;
        self.actions.push_back(Action::Kafka(Request::LookForEnd));
        let since = *self.unanswered_since.get_or_insert(sent);
        if now >= since + self.timings.lease() * 2 {
            self.unanswered_since = Some(now);
            self.actions.push_back(Action::Kafka(Request::RenewProducer));
            self.ask_identity_again();
        }
    }

    /// Notes that a record was read, so Kafka answers.
    pub(super) const fn kafka_answers(&mut self) {
        (self.claim_unanswered, self.unanswered_since) = (false, None);
    }

    // ---- standing down and leaving ------------------------------------------------------------------------------------

    /// Notes why it stands down, for good or until SIGCONT. The group is left before the barrier, so that it has chosen a successor by the
    /// time of the release. A handover has a named successor already.
    pub(super) fn stands_down(&mut self, why: Why, leaving: bool) {
        if leaving && (self.leaving.is_none() || why == Why::Ended) {
            self.leaving = Some(why);
        }
        self.suspending |= why == Why::Suspended;
        if why != Why::Spread {
            self.leave_group();
        }
    }

    /// R7: the candidate claims nothing until another one leads, or for two leases. Then it joins the group again.
    pub(super) fn cool_off(&mut self, now: Time) {
        self.cool_off_for(now, self.timings.lease() * 2);
    }

    /// The same for another time.
    pub(super) fn cool_off_for(&mut self, now: Time, span: Duration) {
        self.cooling_off = Some(now + span);
    }

    /// Why it exits when it holds nothing, if it does.
    pub(super) fn departure(&self) -> Option<Departure> {
        self.leaving.map(|why| if why == Why::Ended { Departure::Ended } else { Departure::Left })
    }

    pub(super) fn depart(&mut self, departure: Departure) -> State {
        self.leave_group();
        // The other candidates count a candidate as alive if it has sent a hello and has not just released a term.
        if self.next_hello.take().is_some() && !self.is_one_of_many {
            self.send_hello(None);
        }
        self.actions.push_back(Action::Depart(departure));
        State::Departed
    }

    /// Reports the unused partitions once, if a revocation would end a lead otherwise.
    pub(super) fn learn_of_unused_partitions(&mut self) {
        if self.in_group && !self.unused_partitions && !self.is_one_of_many {
            self.unused_partitions = true;
            self.actions.push_back(Action::Note(Note::UnusedPartitions));
        }
    }
}
