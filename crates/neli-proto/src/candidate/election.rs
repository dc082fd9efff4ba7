//! The election as one candidate knows it, and its own part in it, whatever its [state](super::state) is.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use core::hash::{Hash, Hasher};

use super::claims::NextClaim;
use super::identifying::KnownTopic;
use super::membership::Membership;
use super::{Action, Setup};
use crate::hello::Hello;
use crate::journal::{Term, Verdict, View};
use crate::kafka::Request;
use crate::leadership::LastTerm;
use crate::listener::Listener;
use crate::note::StandbyReason;
use crate::precedence::{Assignment, HELLO_AFTER_LEAD, HELLO_INTERVAL, Precedence};
use crate::random::Random;
use crate::record::{Body, MemberId, Offset, Record, Why};
use crate::status::Counts;
use crate::supervisor::Departure;
use crate::time::{Time, millis};
use crate::timings::Timings;

/// The election as one candidate knows it, its own part in it, and its pending actions.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Election {
    /// Its identity, as its hellos say it.
    pub(super) hello: Hello,
    pub(super) timings: Timings,
    pub(super) random: Random,
    pub(super) listener: Listener,
    pub(super) precedence: Precedence,
    pub(super) topic: KnownTopic,
    /// The last sequence number used.
    pub(super) seq: u64,
    /// R0: the topic was judged, and may carry an election. (If it may not, the node tells the candidate to stand down.)
    pub(super) is_judged: bool,
    /// The highest term ever held. The candidate takes up no term at or below it (R5).
    pub(super) highest_term: Offset,
    /// The reason why it exits when it holds no term.
    pub(super) leaving: Option<Why>,
    /// Whether it is suspended when it holds no term.
    pub(super) suspending: bool,
    /// After standing down: the candidate claims nothing before this time, or before another candidate's claim has been effective (R7).
    pub(super) cooling_off: Option<Time>,
    /// The term of a leader of lower priority, and when that one is asked to resign.
    pub(super) preemption: Option<(Offset, Time)>,
    /// Its own last lead was lost, so it waits longer before it preempts another.
    pub(super) has_lost_lead: bool,
    /// The offset of its own first hello or effective claim, and when it was read back: the claim may come before the hello.
    pub(super) introduced: Option<(Offset, Time)>,
    /// The processes with many roles that said hello before that, and are not known to have gone, if its own has no roles.
    pub(super) roles_before: BTreeSet<MemberId>,
    pub(super) group: Membership,
    /// What delays or forbids its next claim.
    pub(super) next_claim: NextClaim,
    /// The successor for which it stands down; the release contains it.
    pub(super) successor: Option<MemberId>,
    /// `--wait`, until the first lead.
    pub(super) wait_until: Option<Time>,
    pub(super) started: Time,
    /// When the next hello is due; none before Kafka's first answer.
    pub(super) next_hello: Option<Time>,
    /// The last term whose leader uses `--overlap` and this candidate does not, or the other way round.
    pub(super) differing_term: Option<Offset>,
    /// The last report about standing by.
    pub(super) standing_by: Option<StandbyReason>,
    /// What is only displayed.
    pub(super) shown: Statistics,
    pub(super) actions: VecDeque<Action>,
}

impl Election {
    /// The state of a candidate that begins to listen.
    pub(super) fn new(now: Time, setup: Setup, random: Random) -> Self {
        let Setup { hello, timings, started, wait, first_span } = setup;
        let mut listener = Listener::asking(now, first_span);
        listener.overlaps = timings.overlap.is_some();
        let mut precedence = Precedence::new(timings.elector());
        (precedence.member, precedence.priority) = (hello.member.clone(), hello.priority);
        Self {
            precedence,
            hello,
            timings,
            random,
            listener,
            topic: KnownTopic::default(),
            seq: 0,
            is_judged: false,
            highest_term: -1,
            leaving: None,
            suspending: false,
            cooling_off: None,
            preemption: None,
            has_lost_lead: false,
            introduced: None,
            roles_before: BTreeSet::new(),
            group: Membership::default(),
            next_claim: NextClaim::default(),
            successor: None,
            wait_until: wait.map(|wait| started + wait),
            started,
            next_hello: None,
            differing_term: None,
            standing_by: None,
            shown: Statistics::default(),
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
        millis(self.timings.lease)
    }

    pub(super) fn send(&mut self, seq: u64, body: Body) {
        let (member, name) = (Some(self.hello.member.clone()), self.hello.name.clone());
        self.actions.push_back(Action::Kafka(Request::Send { record: Record { member, name, seq: Some(seq), body } }));
    }

    pub(super) fn say_hello(&mut self, now: Time) {
        self.next_hello = Some(now + HELLO_INTERVAL);
        if !self.precedence.is_one_of_many {
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
    pub(super) fn send_hello(&mut self, now: Option<Time>) {
        let hello = Hello {
            seq: Some(self.next_seq()),
            group_member: self.precedence.group_member.clone(),
            group_refuses: self.group.refusal.clone(),
            overlap_ms: self.overlap_ms(),
            joined: self.joined(),
            waits_ms: now.and_then(|now| self.listener.undecided_for(now)).map(millis),
            leaves: now.is_none(),
            ..self.hello.clone()
        };
        self.actions.push_back(Action::Kafka(Request::SayHello(Box::new(hello))));
    }

    /// Sends a hello soon, if the candidate stays: after a term was released, or lost to another candidate's claim after a silence, the
    /// others assume that this candidate has left.
    pub(super) fn say_hello_after_lead(&mut self, now: Time) {
        if self.departure().is_some() {
            self.next_hello = None;
        } else if !self.precedence.is_one_of_many {
            self.next_hello = self.next_hello.map(|due| due.min(now + HELLO_AFTER_LEAD));
        }
    }

    // ---- reading ----------------------------------------------------------------------------------------------------

    /// Whether the term is current in our own view.
    pub(super) fn is_current(&self, term: Offset) -> bool {
        self.listener.journal().term() == Some(term)
    }

    /// R7: our term ends at once if the view is decided and another term is current (that term, and its leader's name) or ours is released.
    pub(super) fn superseded(&self, term: Offset) -> Option<(Option<Offset>, Option<Box<str>>)> {
        match self.listener.journal().view() {
            View::Led(Term { offset, name, .. }) if *offset != term => Some((Some(*offset), name.clone())),
            View::NeverLed | View::Released { .. } => Some((None, None)),
            View::Led(_) | View::Undecided(_) => None,
        }
    }

    /// Handles a record of another candidate.
    pub(super) fn read_of_another(&mut self, now: Time, record: &Record, verdict: Verdict, fresh: bool) {
        let is_effective = verdict == Verdict::Effective;
        match &record.body {
            Body::Claim { .. } if is_effective => {
                if fresh {
                    self.precedence.foreseen = false;
                }
                // R7: another candidate has led since, so the cool-off ends. After a fence the journal is read anew, and the claim may be
                // history by then.
                if self.listener.journal().term() > Some(self.highest_term) {
                    self.cooling_off = None;
                }
            }
            Body::Release { group_member, why, .. } => {
                // The hellos of many roles are in one partition: an earlier release may be older than a hello that was read before it.
                let goes_for_good = why.as_deref().and_then(Why::parse).is_some_and(Why::goes_for_good);
                let may_have_stayed = self.precedence.is_one_of_many && !fresh && !goes_for_good;
                let member = record.member.as_ref().filter(|_| !may_have_stayed);
                let known = member.and_then(|member| self.precedence.released(member));
                if is_effective && fresh {
                    // A dead leader's release can't contain its group member id. If another member holds the partition, that member was the
                    // leader.
                    let has_died = why.as_deref() == Some(Why::SupervisorDied.as_str())
                        && self.precedence.assignment == Assignment::Elsewhere
                        && !self.group.unused_partitions;
                    match group_member.as_ref().or(known.as_ref().filter(|_| has_died)) {
                        Some(left) => self.precedence.foresee(now, left),
                        None => self.precedence.foreseen = false,
                    }
                }
            }
            Body::Beat { .. } | Body::Claim { .. } | Body::Request { .. } => {}
        }
    }

    /// Records the leader. Returns whether its claim has ended a term of this candidate.
    pub(super) fn note_leader(&mut self) -> bool {
        let leader = self.listener.journal().led().and_then(|term| term.member.as_ref());
        // The claim follows the silence of the previous leader, which most likely is dead. With `--overlap` it is alive, and may be about to leave.
        let has_lost = leader.is_some_and(|leader| self.precedence.lost_to(leader));
        self.precedence.set_leader(leader);
        has_lost
    }

    /// Handles a cut of the history: earlier records and judgements don't apply to the present log.
    pub(super) fn forget_history(&mut self, now: Time) {
        self.topic = self.topic.after_cut(now);
        self.shown.last_term = LastTerm::default();
        self.precedence.set_leader(None);
        self.precedence.successor = None;
        self.listener.history_cut(now);
        // Terms may start from 0 again.
        self.highest_term = -1;
        // Until the new topic is judged too, nothing is claimed in it.
        self.is_judged = false;
        self.next_hello = None;
        self.introduced = None;
        self.roles_before.clear();
        self.actions.extend([
            Action::RenewGuard,
            Action::Kafka(Request::RenewProducer),
            Action::Kafka(Request::ReadAnew),
        ]);
    }

    /// Reads again from R1, as after a fence (R5).
    pub(super) fn ask_anew(&mut self, now: Time) {
        if self.stays() {
            self.topic.ask_anew(now);
            self.listener.ask_anew(now);
            self.actions.push_back(Action::Kafka(Request::ReadAnew));
        }
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
        self.cooling_off = Some(now + self.timings.lease * 2);
    }

    /// Whether it neither exits nor is suspended when it holds nothing.
    pub(super) const fn stays(&self) -> bool {
        self.leaving.is_none() && !self.suspending
    }

    /// Why it exits when it holds nothing, if it does.
    pub(super) fn departure(&self) -> Option<Departure> {
        self.leaving.map(|why| if why == Why::Ended { Departure::Ended } else { Departure::Left })
    }
}

// ---- what a candidate knows of the election only to display it; no decision depends on it --------------------------

/// What is only displayed. No rule depends on it, so comparing two states ignores it.
#[derive(Clone, Debug, Default)]
pub(super) struct Statistics {
    /// The last term, as far as its records were read.
    pub(super) last_term: LastTerm,
    /// The options of other candidates that were told of, since they differ ([`Hello::once`]).
    pub(super) others_once: BTreeSet<Box<str>>,
    /// Those in the last hellos that were read since the last look at them.
    pub(super) differing_once: BTreeMap<MemberId, Box<str>>,
    /// Counts of the records read since listening began.
    pub(super) counts: Counts,
}

impl Eq for Statistics {}

impl Hash for Statistics {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl PartialEq for Statistics {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Election {
    /// Counts a record of any candidate, which is read for the first time, for the statistics.
    pub(super) fn count(&mut self, record: &Record, verdict: Verdict) {
        let counts = &mut self.shown.counts;
        match (&record.body, verdict) {
            (Body::Claim { .. }, Verdict::Effective) => (counts.terms, counts.void_in_a_row) = (counts.terms + 1, 0),
            (Body::Claim { .. }, Verdict::Void) => {
                counts.void_claims += 1;
                counts.void_in_a_row = counts.void_in_a_row.saturating_add(1);
            }
            (Body::Beat { .. } | Body::Release { .. }, Verdict::Effective) => counts.void_in_a_row = 0,
            _ => {}
        }
    }
}
