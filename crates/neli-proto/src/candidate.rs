//! May this member lead? Input in, action out: the rules R1 to R7 of a candidate.
//!
//! It knows the journal and the lease. It does not know the job: that it may run, and until when, it says with
//! [`Action::Lead`] and [`Action::Extend`]; that nothing of it is left, it is told by [`LocalEvent::NothingLeft`].

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::time::Duration;

use crate::listener::{FIRST_SPAN, Listener};
use crate::node::status::Shown;
use crate::precedence::Precedence;
use crate::random::Random;
use crate::record::{Body, JobState, MemberId, Offset, Why};
use crate::time::Time;

use identifying::KnownTopic;

pub use crate::timings::{Elector, Patience, Timings};
pub use action::{Action, Departure, Loss, Milestone, Note, Right, Standby, Waiting};
pub use event::{Event, JobReport, LocalEvent};
pub use position::Position;

mod action;
mod claiming;
mod event;
mod identifying;
mod leading;
mod listening;
mod position;
mod releasing;
mod speaking;
mod standing_down;

/// `--wait 0` waits this long for Kafka's first answer.
const WAIT_FOR_KAFKA: Duration = Duration::from_secs(5);

/// Who a candidate is.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Identity {
    /// Its random id, made at its start.
    pub member: MemberId,
    /// How it is called.
    pub name: Box<str>,
    /// What its hello says.
    pub hello: Body,
}

/// One candidate of one election.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "facts that nothing ties to each other")]
pub struct Candidate {
    identity: Identity,
    timings: Timings,
    random: Random,
    listener: Listener,
    precedence: Precedence,
    role: Role,
    /// Which topic the journal is read from.
    topic: KnownTopic,
    /// The last sequence number used.
    seq: u64,
    /// R0.
    judgement: Judgement,
    /// The highest term that was ever held; none at or below it is taken up (R5).
    highest_term: Offset,
    /// It goes for good once no term is held.
    leaving: Option<Why>,
    /// It is to be suspended once no term is held.
    suspending: bool,
    /// After standing down: nothing is claimed until then, or until another's claim has been effective (R7).
    cooling_off: Option<Time>,
    /// Whether it is a member of the group, or about to be.
    in_group: bool,
    /// The id under which it held the partition when it left the group, for the release to say.
    left_as: Option<Box<str>>,
    /// The topic has more partitions than roles: a revoke ends no lead.
    unused_partitions: bool,
    /// `--wait`, until the first lead.
    wait_until: Option<Time>,
    /// When it was made.
    started: Time,
    /// When the next hello is due; none before Kafka's first answer.
    next_hello: Option<Time>,
    /// The random part of the next claim's delay, drawn once for each vacancy.
    draw: Option<(Time, Duration)>,
    /// A claim was not read back within its lease, and nothing has been since: Kafka gives no answer.
    claim_unanswered: bool,
    /// Since when claims have gone unanswered, or the producer was renewed for that.
    unanswered_since: Option<Time>,
    /// What was last said of standing by.
    standing_by: Option<Standby>,
    /// Who leads, and since when that has been known.
    leader_since: Shown<Option<(Offset, Time)>>,
    actions: VecDeque<Action>,
}

/// R0: whether the topic may carry an election. One that may not is told by [`LocalEvent::StandDown`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Judgement {
    /// It has not been judged yet.
    Awaited {
        /// One claim is made meanwhile, and no second.
        claimed: bool,
    },
    /// It may.
    Fit,
}

impl Judgement {
    /// Nobody has said anything, and nothing has been claimed.
    const fn awaited() -> Self {
        Self::Awaited { claimed: false }
    }
}

/// What a candidate is in the election.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum Role {
    /// R0: a claim that was sent then has taken effect in a topic that is not judged yet. The term is held, and nothing runs or is
    /// written under it but its release.
    AwaitingJudgement { term: Offset, sent: Time },
    /// A claim is under way. Whoever is told to stand down meanwhile releases it when it comes back effective (R7).
    Claiming { seq: u64, sent: Time, stood_down: Option<Why> },
    /// Gone.
    Departed,
    /// The lease is over; of the job something may be left. Nothing is written. What the term was standing down for holds
    /// beyond the fence.
    Fenced { term: Offset, why: Why, stood_down: Option<Why>, lease_end: Time, loss: Loss },
    /// It leads.
    Leading(Lead),
    /// Nothing of the job is left, nothing will be started, the release is on its way (R6).
    Releasing(Releasing),
    /// Nothing is held; nothing is claimed before this time.
    Standby { not_before: Time },
    /// Nothing is held, and the process is stopped, or about to be: it neither claims nor speaks until it is continued.
    Suspended,
}

/// A lease that is held, and a job that may be alive.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Lead {
    term: Offset,
    lease_end: Time,
    /// When the last effective record was sent.
    last_effective_sent: Time,
    next_beat: Time,
    /// The next beat tells a state of the job's that none has told.
    state_is_new: bool,
    /// No beat is sent before this time for a new state alone.
    state_beats_from: Time,
    /// Beats sent and not read back: `seq` and the send time.
    in_flight: VecDeque<(u64, Time)>,
    /// Whether the guard was told something since the last beat.
    extended: bool,
    /// What the guard was told last.
    right: Right,
    /// The job has been asked to stop.
    stopping: Option<Why>,
    job: JobReport,
}

/// A release on its way.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Releasing {
    term: Offset,
    seq: u64,
    why: Why,
    end: End,
    /// It could not be delivered, and is sent again then.
    again_at: Option<Time>,
    /// It is no longer waited for from then on.
    give_up: Time,
    /// The journal is read anew afterwards: the lease was lost (R5).
    anew: bool,
}

/// What a release tells of the job's end.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
struct End {
    /// The exit status.
    exit: Option<u8>,
    /// How long after the lease's end something of it was still alive.
    late: Option<Duration>,
}

/// Says that no process of a term's job is left, and that none will be started: without it there is no release (R6).
struct NothingLeft;

impl Candidate {
    /// A candidate that begins to listen.
    #[must_use]
    pub fn new(
        now: Time,
        identity: Identity,
        timings: Timings,
        random: Random,
        (started, wait): (Time, Option<Duration>),
    ) -> Self {
        let precedence = Precedence::new(timings.elector, timings.claim_delay);
        Self {
            identity,
            timings,
            random,
            listener: Listener::asking(now, FIRST_SPAN),
            precedence,
            role: Role::Standby { not_before: now },
            topic: KnownTopic::unknown(),
            seq: 0,
            judgement: Judgement::awaited(),
            highest_term: -1,
            leaving: None,
            suspending: false,
            cooling_off: None,
            in_group: false,
            left_as: None,
            unused_partitions: false,
            wait_until: wait.map(|wait| started + wait),
            started,
            next_hello: None,
            draw: None,
            claim_unanswered: false,
            unanswered_since: None,
            standing_by: None,
            leader_since: Shown(None),
            actions: VecDeque::from([Action::Ask]),
        }
    }

    /// The same, whose readings begin at most `span` offsets before the log's end instead of [`FIRST_SPAN`]. For a candidate that
    /// was made at this `now` and has not been told anything yet.
    #[must_use]
    pub fn with_first_span(self, now: Time, span: Offset) -> Self {
        Self { listener: Listener::asking(now, span), ..self }
    }

    /// What to do next.
    #[must_use]
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), unless something happens before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        let role = match &self.role {
            Role::AwaitingJudgement { sent, .. } => Some(self.claim_expires_at(*sent)),
            Role::Claiming { sent, .. } => Some(*sent + self.timings.lease),
            Role::Departed | Role::Suspended => return None,
            Role::Fenced { .. } => None,
            Role::Leading(lead) => {
                let warning = self.warning_due(lead);
                [Some(self.deadline(lead)), Some(lead.next_beat), warning].into_iter().flatten().min()
            }
            Role::Releasing(releasing) => {
                Some(releasing.again_at.map_or(releasing.give_up, |again| again.min(releasing.give_up)))
            }
            Role::Standby { .. } => {
                let due = [self.claim_due(), self.wait_due(), self.cooling_off, self.blind_due(), self.stuck_due()];
                due.into_iter().flatten().min()
            }
        };
        [role, self.next_hello, self.identity_due()].into_iter().flatten().min()
    }

    /// Does what is due by now. Early calls do nothing.
    pub fn handle_timeout(&mut self, now: Time) {
        match self.role {
            Role::Departed => return,
            Role::Suspended => return self.move_on(now),
            Role::AwaitingJudgement { .. }
            | Role::Claiming { .. }
            | Role::Fenced { .. }
            | Role::Leading(_)
            | Role::Releasing(_)
            | Role::Standby { .. } => {}
        }
        self.end_lease_if_due(now);
        if self.next_hello.is_some_and(|due| now >= due) {
            self.say_hello(now);
        }
        if self.cooling_off.is_some_and(|until| now >= until) {
            self.cool_off_is_over();
        }
        match &self.role {
            Role::AwaitingJudgement { sent, .. } => {
                if now >= self.claim_expires_at(*sent) {
                    self.release_unjudged(now, Why::ClaimExpired);
                }
            }
            Role::Claiming { sent, .. } => {
                if now >= *sent + self.timings.lease {
                    let sent = *sent;
                    self.claim_went_unanswered(now, sent);
                    self.claim_was_void(now);
                }
            }
            Role::Leading(lead) => {
                if self.warning_due(lead).is_some_and(|due| now >= due) {
                    self.warn_of_fence(now);
                }
                self.beat_if_due(now);
            }
            Role::Releasing(releasing) => {
                if now >= releasing.give_up {
                    self.release_is_over(now, false);
                } else if releasing.again_at.is_some_and(|again| now >= again) {
                    self.release_again(now);
                }
            }
            Role::Departed | Role::Fenced { .. } | Role::Standby { .. } | Role::Suspended => {}
        }
        self.replace_reader_if_stuck(now);
        self.move_on(now);
        self.ask_identity_if_due(now);
    }

    /// Takes in what happened in Kafka.
    pub fn handle(&mut self, now: Time, event: Event) {
        if self.role == Role::Departed {
            return;
        }
        // A lease that is over stays over, whatever the event says.
        self.end_lease_if_due(now);
        match event {
            Event::Answered { asked, start, end, trusted } => self.answered(now, asked, (start, end), trusted),
            Event::Delivered { seq } => {
                if let Role::Releasing(releasing) = &self.role
                    && releasing.seq == seq
                {
                    self.release_is_over(now, true);
                }
            }
            Event::HistoryCut => self.history_cut(now),
            Event::LogTrusted => self.log_trusted(now),
            Event::Named { id } => self.named(now, id),
            Event::ReachedEnd { next } => self.listener.reached(now, next),
            Event::Read { offset, record } => self.read(now, offset, record.as_ref()),
            Event::ReadOther { offset, hello } => {
                if offset < self.listener.journal().next() {
                    self.history_cut(now);
                } else {
                    self.listener.read_other(now, offset);
                    self.kafka_answers();
                    if let Some(hello) = hello.filter(|hello| hello.member != self.identity.member) {
                        self.precedence.heard(now, hello);
                    }
                    self.note_leader(now);
                    self.superseded_by_the_view(now);
                }
            }
            Event::Revoked => self.revoked(now),
            Event::StandingChanged(standing) => {
                // What the group said before it was left is said to nobody.
                if self.in_group {
                    self.precedence.stand(standing);
                }
            }
            Event::TopicIdentified { asked, identity } => self.identified(now, asked, identity),
            Event::TopicJudged { cut_is_harmless, gaps_are_markers } => {
                self.judgement = Judgement::Fit;
                let is_misread = self.listener.topic_judged(now, cut_is_harmless, gaps_are_markers);
                if is_misread && matches!(self.role, Role::Standby { .. }) {
                    self.ask_anew(now);
                }
                self.lead_if_judged(now);
                self.introduce(now);
            }
            Event::Undecodable => self.listener.undecodable(now),
            Event::UnusedPartitions => self.learn_of_unused_partitions(),
            Event::Undelivered { seq } => self.undelivered(now, seq),
        }
        self.handle_timeout(now);
    }

    /// Takes in what happened on this machine.
    pub fn handle_local(&mut self, now: Time, event: LocalEvent) {
        if self.role == Role::Departed {
            return;
        }
        self.end_lease_if_due(now);
        match event {
            LocalEvent::Continued => self.continued(now),
            LocalEvent::Fenced { why } => {
                if matches!(self.role, Role::Leading(_)) {
                    self.lose_lease(why, Loss::LeaseOver);
                }
            }
            LocalEvent::JobChanged(job) => {
                if let Role::Leading(lead) = &mut self.role {
                    let changed = lead.job.state != job.state || lead.job.attempt != job.attempt;
                    lead.job = job;
                    if changed {
                        let quick = if job.state == JobState::Stopping { leading::QUICK_STOP } else { Duration::ZERO };
                        lead.state_is_new = true;
                        lead.next_beat = lead.next_beat.min((now + quick).max(lead.state_beats_from));
                    }
                }
            }
            LocalEvent::NothingLeft { why, exit, leaving, gone_at } => {
                self.nothing_left(now, why, (exit, gone_at), leaving);
            }
            LocalEvent::StandDown { why, leaving } => self.stand_down(now, why, leaving),
        }
        self.handle_timeout(now);
    }

    /// Whether it holds nothing, and is to be stopped until it is continued.
    #[must_use]
    pub(crate) fn is_suspended(&self) -> bool {
        self.role == Role::Suspended
    }

    /// The term that is held, while the lease lasts.
    #[must_use]
    pub(crate) fn leads(&self) -> Option<Offset> {
        match &self.role {
            Role::Leading(lead) => Some(lead.term),
            Role::AwaitingJudgement { .. }
            | Role::Claiming { .. }
            | Role::Departed
            | Role::Fenced { .. }
            | Role::Releasing(_)
            | Role::Standby { .. }
            | Role::Suspended => None,
        }
    }
}
