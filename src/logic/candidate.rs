//! May this member lead? Input in, action out: the rules R1 to R7 of a candidate.
//!
//! It knows the journal and the lease. It does not know the job: that it may run, and until when, it says with
//! [`Action::Lead`] and [`Action::Extend`]; that nothing of it is left, it is told by [`Event::NothingLeft`].

use std::collections::VecDeque;
use std::time::Duration;

use super::flaw::{Flaw, broken};
use super::journal::{Term, Verdict, View};
use super::listener::Listener;
use super::precedence::{HELLO_INTERVAL, Precedence, SPREAD, Standing};
use super::random::Random;
use super::record::{Body, JobState, MemberId, Offset, Record, What, Why};
use super::time::Time;

/// `--wait 0` waits this long for Kafka's first answer.
const WAIT_FOR_KAFKA: Duration = Duration::from_secs(5);

/// Every duration of the protocol (protocol.md, Timing).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Timings {
    /// How long a leader may act after it sent a record that came back effective; whole milliseconds, 300 to 60,000.
    pub lease: Duration,
    /// Between two beats; at most a third of the lease.
    pub heartbeat_interval: Duration,
    /// The guard kills this much before the lease ends.
    pub kill_margin: Duration,
    /// The stop signal this long before the deadline, when beats are not coming back; zero is none.
    pub fence_warning: Duration,
    /// `--claim-delay`: added to every claim delay.
    pub claim_delay: Duration,
    /// Who claims a vacancy first.
    pub elector: Elector,
}

/// Who should lead first (protocol.md, Precedence).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Elector {
    /// The member of the consumer group to which the role's partition is assigned.
    Group(Patience),
    /// Nobody: the first claim wins.
    Log,
}

/// How long a member waits for the one to which the partition is assigned.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Patience {
    /// This long.
    For(Duration),
    /// For ever: only the assigned member claims (NELI as published).
    Never,
}

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

/// Things that happened.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Event {
    /// The log holds `start..end`, as of `asked`. `trusted`: an empty log from offset 0 is a new one.
    Answered {
        /// Just before the asking.
        asked: Time,
        /// The first offset that is still there.
        start: Offset,
        /// The offset of the next record.
        end: Offset,
        /// False where the broker may have lost a log.
        trusted: bool,
    },
    /// A record of this candidate's has been acknowledged.
    Delivered {
        /// Which.
        seq: u64,
    },
    /// The lease of the current term is over, whatever was believed here: the guard fenced, or died.
    Fenced {
        /// What the release will say.
        why: Why,
    },
    /// The partition's history was cut or made anew.
    HistoryCut,
    /// The job is in another state.
    JobChanged(JobReport),
    /// No process of the job is left, and none will be started under this term (R6).
    NothingLeft {
        /// Why the term ends, unless the candidate knows better.
        why: Why,
        /// The job's exit status.
        exit: Option<u8>,
        /// The candidate goes for good.
        leaving: bool,
    },
    /// A record of another key stands at `offset`.
    ReadOther {
        /// Where.
        offset: Offset,
        /// The member, when it is a hello of this election.
        hello: Option<MemberId>,
    },
    /// A record of the election stands at `offset`; `None` is one that does not parse.
    Read {
        /// Where.
        offset: Offset,
        /// What it says.
        record: Option<Record>,
    },
    /// Everything below `next` has been handed over.
    ReachedEnd {
        /// The log's end, as of then.
        next: Offset,
    },
    /// The partition was revoked, not lost.
    Revoked,
    /// The group has spoken.
    StandingChanged(Standing),
    /// The candidate is to go for good (`Stopped`, `Ended`, ...), or to stand down and cool off (`Unhealthy`).
    StandDown {
        /// Why.
        why: Why,
        /// For good.
        leaving: bool,
    },
    /// R0 has been judged, and the topic may carry an election.
    TopicJudged {
        /// An empty log whose head was cut is vacant.
        cut_is_harmless: bool,
    },
    /// A batch can't be decoded: nothing behind it can be read.
    Undecodable,
    /// A record of this candidate's could not be delivered.
    Undelivered {
        /// Which.
        seq: u64,
    },
}

/// Things to do.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    /// R1: make a reader, ask it for the end offset, and forget the one before.
    Ask,
    /// Nothing is left to do here: no term is held, no claim under way.
    Depart(Departure),
    /// Tell the guard that the lease holds until then.
    Extend(Right),
    /// The job is to be killed at once, whatever the lease says.
    Kill(Loss),
    /// Join the group, if the elector is `group`.
    JoinGroup,
    /// The job may run, for as long as the right lasts.
    Lead(Right),
    /// Leave the group.
    LeaveGroup,
    /// Say so.
    Note(Note),
    /// Read from this offset, which the log holds.
    ReadFrom(Offset),
    /// Hand this record to the producer: the send time is the time of the input that caused it (R3).
    Send {
        /// Under the election's key; a hello goes under the hello's.
        record: Record,
    },
    /// The barrier: stop the job, and say when nothing of it is left. Beats go on.
    StopJob(Why),
}

/// What the guard is told: the right to run the job, and what it needs to release the term for a dead supervisor.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Right {
    /// The term.
    pub term: Offset,
    /// As of here, the term was current.
    pub seen: Offset,
    /// The next free sequence number.
    pub next_seq: u64,
    /// The guard's deadline: the lease's end less the kill margin.
    pub until: Time,
}

/// Why a lead is lost at once.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Loss {
    /// Our own word in the journal no longer counts: the history is gone.
    HistoryCut,
    /// Another's claim took effect.
    Superseded,
}

/// How a candidate goes.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Departure {
    /// The election was ended.
    Ended,
    /// It was told to.
    Left,
    /// It has not led within `--wait`.
    WaitedEnough,
}

/// What the beats say of the job.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct JobReport {
    /// Its state.
    pub state: JobState,
    /// Its main process.
    pub pid: Option<u32>,
    /// 1 for the first run in this term.
    pub attempt: u32,
    /// Since when it has been in this state.
    pub since: Time,
}

/// What a person is told.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Note {
    /// A claim was sent.
    Claiming {
        /// Everything up to here has been judged.
        after: Offset,
    },
    /// An operator ended the election.
    Ended {
        /// Who.
        by: Option<Box<str>>,
        /// And why.
        reason: Option<Box<str>>,
    },
    /// The lease ran out, or was taken.
    Fenced {
        /// The term.
        term: Offset,
        /// `fenced` or `guard-died`.
        why: Why,
    },
    /// Beats are not coming back.
    FenceWarning {
        /// The term.
        term: Offset,
        /// How much of the lease is left.
        left: Duration,
    },
    /// The lead was won.
    Leading {
        /// The term.
        term: Offset,
        /// When the lease ends if no beat comes back.
        until: Time,
    },
    /// A term was released, or could not be.
    Released {
        /// The term.
        term: Offset,
        /// Why.
        why: Why,
        /// Whether Kafka acknowledged it.
        delivered: bool,
    },
    /// An operator asked the leader to stand down.
    Resigned {
        /// The term.
        term: Offset,
        /// Who.
        by: Option<Box<str>>,
        /// And why.
        reason: Option<Box<str>>,
    },
    /// Standing by.
    Standby {
        /// Who leads, as far as known.
        leader: Option<Box<str>>,
        /// Its term.
        term: Option<Offset>,
        /// Why it may not claim yet.
        why: Option<Waiting>,
    },
    /// Another's claim took effect while we led.
    Superseded {
        /// The term that is over.
        term: Offset,
        /// The other's term.
        by_term: Option<Offset>,
        /// The other.
        by: Option<Box<str>>,
    },
}

/// Why a standby may not claim yet.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Waiting {
    /// The records that were read do not tell who leads.
    Undecided,
    /// Another leads.
    Led,
    /// It stood down, and lets another lead first.
    CoolingOff,
    /// Nobody leads, and others may claim before it: its claim delay runs.
    Precedence,
}

/// One candidate of one election.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Candidate {
    identity: Identity,
    timings: Timings,
    random: Random,
    listener: Listener,
    precedence: Precedence,
    role: Role,
    /// The last sequence number used.
    seq: u64,
    /// R0 has been judged.
    topic_judged: bool,
    /// The highest term that was ever held; none at or below it is taken up (R5).
    highest_term: Offset,
    /// It goes for good once no term is held.
    leaving: Option<Why>,
    /// After standing down: nothing is claimed until then, or until another's claim has been effective (R7).
    cooling_off: Option<Time>,
    /// Whether it is a member of the group, or about to be.
    in_group: bool,
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
    /// What was last noted of standing by.
    noted: Option<Note>,
    actions: VecDeque<Action>,
}

/// What a candidate is in the election.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum Role {
    /// A claim is under way. Whoever is told to stand down meanwhile releases it when it comes back effective (R7).
    Claiming { seq: u64, sent: Time, stood_down: Option<Why> },
    /// Gone.
    Departed,
    /// The lease is over; of the job something may be left. Nothing is written. What the term was standing down for holds
    /// beyond the fence.
    Fenced { term: Offset, why: Why, stood_down: Option<Why> },
    /// It leads.
    Leading(Lead),
    /// Nothing of the job is left, nothing will be started, the release is on its way (R6).
    Releasing(Releasing),
    /// Nothing is held; nothing is claimed before this time.
    Standby { not_before: Time },
}

/// A lease that is held, and a job that may be alive.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Lead {
    term: Offset,
    lease_end: Time,
    /// When the last effective record was sent.
    last_effective_sent: Time,
    next_beat: Time,
    /// Beats sent and not read back: `seq` and the send time.
    under_way: VecDeque<(u64, Time)>,
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
    exit: Option<u8>,
    /// It is no longer waited for from then on.
    give_up: Time,
    /// The journal is read anew afterwards: the lease was lost (R5).
    anew: bool,
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
        seed: u64,
        (started, wait): (Time, Option<Duration>),
    ) -> Self {
        let precedence = Precedence::new(timings.elector, timings.claim_delay);
        Self {
            identity,
            timings,
            random: Random::from_seed(seed),
            listener: Listener::asking(now),
            precedence,
            role: Role::Standby { not_before: now },
            seq: 0,
            topic_judged: false,
            highest_term: -1,
            leaving: None,
            cooling_off: None,
            in_group: false,
            wait_until: wait.map(|wait| started + wait),
            started,
            next_hello: None,
            draw: None,
            claim_unanswered: false,
            noted: None,
            actions: VecDeque::from([Action::Ask]),
        }
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
            Role::Claiming { sent, .. } => Some(*sent + self.timings.lease),
            Role::Departed => return None,
            Role::Fenced { .. } => None,
            Role::Leading(lead) => {
                let warning = self.warning_due(lead);
                [Some(self.deadline(lead)), Some(lead.next_beat), warning].into_iter().flatten().min()
            }
            Role::Releasing(releasing) => Some(releasing.give_up),
            Role::Standby { .. } => {
                let due = [self.claim_due(), self.wait_due(), self.cooling_off, self.blind_due()];
                due.into_iter().flatten().min()
            }
        };
        [role, self.next_hello].into_iter().flatten().min()
    }

    /// Does what is due by now. Early calls do nothing.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.role == Role::Departed {
            return;
        }
        self.end_lease_if_due(now);
        if self.next_hello.is_some_and(|due| now >= due) {
            self.say_hello(now);
        }
        if self.cooling_off.is_some_and(|until| now >= until) {
            self.cool_off_is_over();
        }
        match &self.role {
            Role::Claiming { sent, .. } => {
                if now >= *sent + self.timings.lease {
                    self.claim_unanswered = true;
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
                }
            }
            Role::Departed | Role::Fenced { .. } | Role::Standby { .. } => {}
        }
        self.move_on(now);
    }

    /// Takes in what happened.
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
                if let Role::Claiming { sent, stood_down, .. } = self.role
                    && broken(Flaw::AcknowledgedClaimTaken)
                {
                    self.claim_took_effect(now, self.listener.last() + 1, sent, stood_down);
                }
            }
            Event::Fenced { why } => {
                if matches!(self.role, Role::Leading(_)) {
                    self.lose_lease(why);
                }
            }
            Event::HistoryCut => self.history_cut(now),
            Event::JobChanged(job) => {
                if let Role::Leading(lead) = &mut self.role {
                    let changed = lead.job.state != job.state || lead.job.attempt != job.attempt;
                    lead.job = job;
                    if changed {
                        lead.next_beat = now;
                        self.beat_if_due(now);
                    }
                }
            }
            Event::NothingLeft { why, exit, leaving } => self.nothing_left(now, why, exit, leaving),
            Event::ReachedEnd { next } => self.listener.reached(now, next),
            Event::Read { offset, record } => self.read(now, offset, record.as_ref()),
            Event::ReadOther { offset, hello } => {
                if offset < self.listener.journal().next() {
                    self.history_cut(now);
                } else {
                    self.listener.read_other(now, offset);
                    self.claim_unanswered = false;
                    if let Some(member) = hello.filter(|member| *member != self.identity.member) {
                        self.precedence.heard(now, member);
                    }
                    self.superseded_by_the_view();
                }
            }
            Event::Revoked => self.revoked(),
            Event::StandDown { why, leaving } => self.stand_down(now, why, leaving),
            Event::StandingChanged(standing) => {
                // What the group said before it was left is said to nobody.
                if self.in_group {
                    self.precedence.stand(standing);
                }
            }
            Event::TopicJudged { cut_is_harmless } => {
                self.topic_judged = true;
                self.listener.topic_judged(now, cut_is_harmless);
                self.introduce(now);
            }
            Event::Undecodable => self.listener.undecodable(now),
            Event::Undelivered { seq } => self.undelivered(now, seq),
        }
        self.handle_timeout(now);
    }

    /// The term that is held, while the lease lasts.
    #[must_use]
    pub fn leads(&self) -> Option<Offset> {
        match &self.role {
            Role::Leading(lead) => Some(lead.term),
            Role::Claiming { .. }
            | Role::Departed
            | Role::Fenced { .. }
            | Role::Releasing(_)
            | Role::Standby { .. } => None,
        }
    }

    /// What has been heard.
    #[must_use]
    pub const fn listener(&self) -> &Listener {
        &self.listener
    }

    // ---- listening ------------------------------------------------------------------------------------------------

    fn answered(&mut self, now: Time, asked: Time, (start, end): (Offset, Offset), trusted: bool) {
        match self.listener.answered(now, asked, (start, end), trusted) {
            Ok(Some(from)) => {
                self.actions.push_back(Action::ReadFrom(from));
                self.introduce(now);
            }
            Ok(None) => {}
            Err(super::listener::HistoryCut) => self.history_cut(now),
        }
    }

    /// The leader fences, a claim under way spoke of what is gone, and everybody starts again at R1.
    fn history_cut(&mut self, now: Time) {
        match &self.role {
            Role::Claiming { .. } => self.role = Role::Standby { not_before: now },
            Role::Leading(_) => {
                self.lose_lease(Why::Fenced);
                self.actions.push_back(Action::Kill(Loss::HistoryCut));
            }
            Role::Departed | Role::Fenced { .. } | Role::Releasing(_) | Role::Standby { .. } => {}
        }
        self.listener.history_cut(now);
        self.actions.push_back(Action::Ask);
    }

    fn read(&mut self, now: Time, offset: Offset, record: Option<&Record>) {
        if offset < self.listener.journal().next() {
            return self.history_cut(now);
        }
        let own = record.is_some_and(|record| record.member.as_ref() == Some(&self.identity.member));
        let received = self.listener.read(now, offset, record, own);
        self.claim_unanswered = false;
        if let Some(record) = record.filter(|_| received.verdict != Verdict::Nonsense) {
            match &record.body {
                Body::Request { what, term, by, reason } => {
                    self.requested(now, offset, *what, (*term, by, reason));
                }
                Body::Beat { .. } | Body::Claim { .. } | Body::Release { .. } if own => {
                    if received.fresh {
                        self.came_back(now, offset, record, received.verdict);
                    }
                }
                Body::Claim { .. } if received.verdict == Verdict::Effective && received.fresh => {
                    // R7: somebody else leads now; the cool-off has done its work.
                    if self.cooling_off.is_some() {
                        self.cool_off_is_over();
                    }
                }
                Body::Beat { .. } | Body::Claim { .. } | Body::Hello { .. } | Body::Release { .. } => {}
            }
        }
        self.superseded_by_the_view();
    }

    /// One of our own records has been read for the first time.
    fn came_back(&mut self, now: Time, offset: Offset, record: &Record, verdict: Verdict) {
        let effective = verdict == Verdict::Effective;
        match (&record.body, &mut self.role) {
            (Body::Claim { .. }, Role::Claiming { seq, sent, stood_down })
                if record.seq == Some(*seq) || broken(Flaw::EchoByKind) =>
            {
                let (sent, stood_down) = (*sent, *stood_down);
                if effective {
                    self.claim_took_effect(now, offset, sent, stood_down);
                } else {
                    self.claim_was_void(now);
                }
            }
            // A claim that was given up took effect all the same: its lease is over (R5).
            (Body::Claim { .. }, Role::Claiming { .. } | Role::Standby { .. }) if effective => {
                self.release(now, offset, (Why::Stillborn, None), (now, false), NothingLeft);
            }
            (Body::Beat { .. }, Role::Leading(lead)) if effective => {
                let last = lead.under_way.back().map(|(seq, _)| *seq);
                let seq = if broken(Flaw::EchoByKind) { last } else { record.seq };
                if let Some(seq) = seq {
                    self.extend_by(now, seq);
                }
            }
            (Body::Release { .. }, Role::Releasing(releasing)) if record.seq == Some(releasing.seq) => {
                self.release_is_over(now, true);
            }
            (
                Body::Beat { .. }
                | Body::Claim { .. }
                | Body::Hello { .. }
                | Body::Release { .. }
                | Body::Request { .. },
                Role::Claiming { .. }
                | Role::Departed
                | Role::Fenced { .. }
                | Role::Leading(_)
                | Role::Releasing(_)
                | Role::Standby { .. },
            ) => {}
        }
    }

    /// R7: a decided view in which another term is current, or ours is released, ends ours at once.
    fn superseded_by_the_view(&mut self) {
        let Role::Leading(lead) = &self.role else { return };
        let (by_term, by) = match self.listener.journal().view() {
            View::Led(Term { offset, name, .. }) if *offset != lead.term => (Some(*offset), name.clone()),
            View::NeverLed | View::Released { .. } => (None, None),
            View::Led(_) | View::Undecided(_) => return,
        };
        let term = lead.term;
        // Another leads: whatever this term stood down for has come about.
        self.role = Role::Fenced { term, why: Why::Fenced, stood_down: None };
        self.actions.push_back(Action::Note(Note::Superseded { term, by_term, by }));
        self.actions.push_back(Action::Kill(Loss::Superseded));
    }

    // ---- claiming -------------------------------------------------------------------------------------------------

    /// Whatever the new state of affairs calls for: leaving, reading further back, claiming, giving up.
    fn move_on(&mut self, now: Time) {
        let Role::Standby { not_before } = self.role else { return };
        if let Some(why) = self.leaving {
            let departure = if why == Why::Ended { Departure::Ended } else { Departure::Left };
            return self.depart(departure);
        }
        if self.listener.reads_further_back(now) {
            self.actions.push_back(Action::Ask);
        }
        self.keep_membership(now);
        self.draw_delay(now);
        if self.wait_due().is_some_and(|due| now >= due) {
            return self.depart(Departure::WaitedEnough);
        }
        if now >= not_before && self.claim_due().is_some_and(|due| now >= due) {
            return self.claim(now);
        }
        self.note_standby(now);
    }

    /// Throws the dice once for each vacancy or silence, and anew after a void claim.
    fn draw_delay(&mut self, now: Time) {
        let Some(opening) = self.listener.opening(self.timings.lease) else {
            self.draw = None;
            return;
        };
        if self.draw.is_none_or(|(since, _)| since != opening.since) {
            let random = self.precedence.delay(now, opening.after_death).map(|delay| delay.random);
            // A standing that comes later may widen the span: what is drawn is the share of it.
            let drawn = self.random.up_to(Duration::from_secs(1));
            self.draw = random.map(|_| (opening.since, drawn));
        }
    }

    /// When the claim is due (R2); none while that isn't known, or never.
    fn claim_due(&self) -> Option<Time> {
        let Role::Standby { not_before } = self.role else { return None };
        if !self.topic_judged || self.cooling_off.is_some() || self.leaving.is_some() {
            return None;
        }
        let opening = self.listener.opening(self.timings.lease)?;
        let delay = self.precedence.delay(opening.since, opening.after_death)?;
        let (_, share) = self.draw?;
        Some((opening.since + delay.fixed + delay.random.mul_f64(share.as_secs_f64())).max(not_before))
    }

    fn claim(&mut self, now: Time) {
        let after = self.listener.last();
        let seq = self.next_seq();
        let lease_ms = self.lease_ms();
        self.send(seq, Body::Claim { after, lease_ms });
        self.role = Role::Claiming { seq, sent: now, stood_down: None };
        self.noted = None;
        self.actions.push_back(Action::Note(Note::Claiming { after }));
    }

    /// R2: after a void claim a fresh random delay, so that two that retry in step do not void each other for ever.
    fn claim_was_void(&mut self, now: Time) {
        let not_before = now + self.random.up_to(SPREAD);
        if let Role::Claiming { stood_down: Some(why), .. } = self.role
            && lets_another_lead(why)
        {
            self.cool_off(now);
        }
        self.draw = None;
        self.role = Role::Standby { not_before };
    }

    /// R3: the lease runs from the claim's sending; R5: a claim that comes back with its lease over is released.
    fn claim_took_effect(&mut self, now: Time, term: Offset, sent: Time, stood_down: Option<Why>) {
        self.wait_until = None;
        let lease_end = sent + self.timings.lease;
        if stood_down.is_some_and(lets_another_lead) {
            self.cool_off(now);
        }
        if let Some(why) = self.leaving.or(stood_down) {
            return self.release(now, term, (why, None), (lease_end, false), NothingLeft);
        }
        let is_late = now + self.timings.kill_margin >= lease_end;
        if is_late && broken(Flaw::LateClaimTaken) {
            return self.lead(now, term, now);
        }
        if is_late || term <= self.highest_term {
            return self.release(now, term, (Why::Stillborn, None), (lease_end, false), NothingLeft);
        }
        self.lead(now, term, if broken(Flaw::LeaseFromReceipt) { now } else { sent });
    }

    // ---- leading --------------------------------------------------------------------------------------------------

    fn lead(&mut self, now: Time, term: Offset, sent: Time) {
        self.highest_term = self.highest_term.max(term);
        let lease_end = sent + self.timings.lease;
        let right = self.right(term, lease_end);
        let lead = Lead {
            term,
            lease_end,
            last_effective_sent: sent,
            next_beat: sent + self.timings.heartbeat_interval,
            under_way: VecDeque::new(),
            extended: true,
            right,
            stopping: None,
            job: JobReport { state: JobState::Starting, pid: None, attempt: 1, since: now },
        };
        self.actions.push_back(Action::Lead(right));
        self.actions.push_back(Action::Note(Note::Leading { term, until: lease_end }));
        self.role = Role::Leading(lead);
    }

    fn deadline(&self, lead: &Lead) -> Time {
        lead.lease_end - self.timings.kill_margin
    }

    fn right(&self, term: Offset, lease_end: Time) -> Right {
        let until = lease_end - self.timings.kill_margin;
        Right { term, seen: self.listener.last(), next_seq: self.seq + 1, until }
    }

    /// R3: the beat `seq` came back effective. The lease runs from its sending.
    fn extend_by(&mut self, now: Time, seq: u64) {
        let Role::Leading(lead) = &mut self.role else { return };
        let echo = lead.under_way.iter().position(|(sent, _)| *sent == seq);
        let Some((_, sent)) = echo.and_then(|index| lead.under_way.remove(index)) else { return };
        let sent = if broken(Flaw::LeaseFromReceipt) { now } else { sent };
        if sent > lead.last_effective_sent {
            lead.last_effective_sent = sent;
            lead.lease_end = lead.lease_end.max(sent + self.timings.lease);
            self.extend();
        }
    }

    fn extend(&mut self) {
        let Role::Leading(lead) = &self.role else { return };
        // R6: `term` and `seen` go to the guard together, and only while the view says that the term is current. In a
        // view that says nothing the guard is told again what it knows: its answer shows that it is alive.
        let is_current = self.listener.journal().term() == Some(lead.term);
        let right = if is_current { self.right(lead.term, lead.lease_end) } else { lead.right };
        let Role::Leading(lead) = &mut self.role else { return };
        (lead.extended, lead.right) = (true, right);
        self.actions.push_back(Action::Extend(right));
    }

    /// Sends a beat when one is due, if the term is current in our own view (R6).
    fn beat_if_due(&mut self, now: Time) {
        let current = self.listener.journal().term();
        let Role::Leading(lead) = &self.role else { return };
        if now < lead.next_beat {
            return;
        }
        let (term, job, is_current) = (lead.term, lead.job, current == Some(lead.term));
        let (seen, lease_ms) = (self.listener.last(), self.lease_ms());
        let seq = is_current.then(|| self.next_seq());
        let (interval, lease) = (self.timings.heartbeat_interval, self.timings.lease);
        let Role::Leading(lead) = &mut self.role else { return };
        lead.next_beat = now + interval;
        lead.under_way.retain(|(_, sent)| *sent + lease > now);
        let was_extended = std::mem::replace(&mut lead.extended, false);
        if let Some(seq) = seq {
            lead.under_way.push_back((seq, now));
            let since_ms = u64::try_from(now.since(job.since).as_millis()).ok();
            self.send(
                seq,
                Body::Beat {
                    term,
                    seen,
                    lease_ms,
                    state: Some(job.state),
                    pid: job.pid,
                    attempt: Some(job.attempt),
                    since_ms,
                },
            );
        }
        if !was_extended {
            // Nothing new to say: the guard's answer shows that it is alive all the same.
            self.extend();
        }
    }

    /// When the fence warning is due: the beats of a whole warning are not coming back.
    fn warning_due(&self, lead: &Lead) -> Option<Time> {
        let wanted = !self.timings.fence_warning.is_zero() && lead.stopping.is_none();
        wanted.then(|| self.deadline(lead) - self.timings.fence_warning)
    }

    fn warn_of_fence(&mut self, now: Time) {
        let Role::Leading(lead) = &self.role else { return };
        let (term, left) = (lead.term, lead.lease_end.since(now));
        self.actions.push_back(Action::Note(Note::FenceWarning { term, left }));
        self.stop_job(Why::Fenced);
    }

    fn end_lease_if_due(&mut self, now: Time) {
        if let Role::Leading(lead) = &self.role
            && now >= self.deadline(lead)
        {
            self.lose_lease(Why::Fenced);
        }
    }

    /// R5: a lease that ended is not taken up again.
    fn lose_lease(&mut self, why: Why) {
        let Role::Leading(lead) = &self.role else { return };
        let (term, stood_down) = (lead.term, lead.stopping);
        self.role = Role::Fenced { term, why, stood_down };
        self.actions.push_back(Action::Note(Note::Fenced { term, why }));
    }

    // ---- standing down --------------------------------------------------------------------------------------------

    fn requested(
        &mut self,
        now: Time,
        offset: Offset,
        what: What,
        (term, by, reason): (Option<Offset>, &Option<Box<str>>, &Option<Box<str>>),
    ) {
        let (by, reason) = (by.clone(), reason.clone());
        match what {
            What::End => {
                if self.listener.is_bound_by_end_at(offset) && self.leaving != Some(Why::Ended) {
                    self.actions.push_back(Action::Note(Note::Ended { by, reason }));
                    self.stand_down(now, Why::Ended, true);
                }
            }
            What::Resign => {
                if let Some(term) = term.filter(|term| self.may_resign(*term)) {
                    self.actions.push_back(Action::Note(Note::Resigned { term, by, reason }));
                    self.stand_down(now, Why::Resigned, false);
                }
            }
        }
    }

    /// Whether `term` is held here, or still to be released, and not yet standing down for good or for somebody else.
    fn may_resign(&self, term: Offset) -> bool {
        let (held, stood_down) = match &self.role {
            Role::Fenced { term, stood_down, .. } => (*term, *stood_down),
            Role::Leading(lead) => (lead.term, lead.stopping),
            Role::Releasing(releasing) => (releasing.term, self.cooling_off.map(|_| Why::Resigned)),
            Role::Claiming { .. } | Role::Departed | Role::Standby { .. } => return false,
        };
        held == term && stood_down.is_none_or(|why| rank(why) < rank(Why::Resigned))
    }

    fn stand_down(&mut self, now: Time, why: Why, leaving: bool) {
        if leaving && (self.leaving.is_none() || why == Why::Ended) {
            self.leaving = Some(why);
        }
        if leaving {
            self.leave_group();
        }
        match &mut self.role {
            Role::Leading(_) => {
                // Before the barrier: the heir is to be known by the time of the release.
                self.leave_group();
                self.stop_job(why);
            }
            // The claim, or the rest of the job, is awaited; then the cool-off begins.
            Role::Claiming { stood_down, .. } | Role::Fenced { stood_down, .. } => *stood_down = Some(why),
            Role::Departed | Role::Releasing(_) | Role::Standby { .. } => {
                if !leaving {
                    self.cool_off(now);
                }
            }
        }
    }

    /// The partition is another's now. A leader to which it was never assigned leads on: it was not taken from it.
    fn revoked(&mut self) {
        let was_assigned = self.precedence.standing() == Standing::Assigned;
        if self.in_group {
            self.precedence.stand(Standing::Elsewhere);
        }
        if was_assigned {
            self.stop_job(Why::Revoked);
        }
    }

    /// Ends the wait for a claim or for a release's delivery: whoever stops twice does not want to wait.
    pub fn give_up(&mut self, now: Time) {
        match &self.role {
            Role::Claiming { .. } => {
                self.claim_was_void(now);
                self.move_on(now);
            }
            Role::Releasing(_) => {
                self.release_is_over(now, false);
                self.move_on(now);
            }
            Role::Departed | Role::Fenced { .. } | Role::Leading(_) | Role::Standby { .. } => {}
        }
    }

    /// The barrier begins, unless it has.
    fn stop_job(&mut self, why: Why) {
        let Role::Leading(lead) = &mut self.role else { return };
        match lead.stopping {
            None => {
                lead.stopping = Some(why);
                self.actions.push_back(Action::StopJob(why));
            }
            // The barrier that runs serves; what it is for has changed.
            Some(before) if rank(why) > rank(before) => lead.stopping = Some(why),
            Some(_) => {}
        }
    }

    fn leave_group(&mut self) {
        if self.in_group && matches!(self.timings.elector, Elector::Group(_)) {
            self.in_group = false;
            self.precedence.stand(Standing::Unknown);
            self.actions.push_back(Action::LeaveGroup);
        }
    }

    fn join_group(&mut self) {
        if !self.in_group && self.leaving.is_none() && matches!(self.timings.elector, Elector::Group(_)) {
            self.in_group = true;
            self.actions.push_back(Action::JoinGroup);
        }
    }

    /// Whoever claims nothing anyway is in the group, unless it is leaving, cooling off, or could do nothing with what
    /// the group might assign to it.
    fn keep_membership(&mut self, now: Time) {
        let is_introduced = self.next_hello.is_some();
        if !is_introduced || self.leaving.is_some() || self.cooling_off.is_some() {
            return;
        }
        let lease = self.timings.lease;
        let is_behind = self.listener.behind_since().is_some_and(|since| now >= since + lease);
        if self.claims_only_when_assigned() && (is_behind || self.claim_unanswered) {
            self.leave_group();
        } else {
            self.join_group();
        }
    }

    /// With `--patience never` the assigned member alone claims: one whose reader has not reached the end for a lease
    /// would hold the assignment and lead nobody.
    fn blind_due(&self) -> Option<Time> {
        let may_leave = self.in_group && self.cooling_off.is_none() && self.claims_only_when_assigned();
        self.listener.behind_since().filter(|_| may_leave).map(|since| since + self.timings.lease)
    }

    fn claims_only_when_assigned(&self) -> bool {
        match self.timings.elector {
            Elector::Group(Patience::Never) => true,
            Elector::Group(Patience::For(_)) | Elector::Log => false,
        }
    }

    /// R7: nothing is claimed until another leads, or for two leases; a member joins again after it.
    fn cool_off(&mut self, now: Time) {
        self.cooling_off = Some(now + self.timings.lease * 2);
    }

    fn cool_off_is_over(&mut self) {
        self.cooling_off = None;
    }

    // ---- releasing ------------------------------------------------------------------------------------------------

    fn nothing_left(&mut self, now: Time, why: Why, exit: Option<u8>, leaving: bool) {
        let (term, give_up, why, stood_down) = match &self.role {
            Role::Leading(lead) => {
                let why = lead.stopping.unwrap_or(why);
                // R7: until one lease after the last effective record that was sent.
                (lead.term, lead.last_effective_sent + self.timings.lease, why, None)
            }
            // A lease that was lost is not waited for: silence does what the release might.
            Role::Fenced { term, why, stood_down } => (*term, now + self.timings.lease, *why, *stood_down),
            Role::Claiming { .. } | Role::Departed | Role::Releasing(_) | Role::Standby { .. } => return,
        };
        if leaving {
            self.leaving.get_or_insert(why);
            self.leave_group();
        }
        if lets_another_lead(why) || stood_down.is_some_and(lets_another_lead) {
            self.cool_off(now);
        }
        let anew = matches!(why, Why::Fenced | Why::GuardDied);
        // R6: a release is written only while the term is current in our own view.
        if self.listener.journal().term() == Some(term) || broken(Flaw::ReleaseOfAnEndedTerm) {
            self.release(now, term, (why, exit), (give_up, anew), NothingLeft);
        } else {
            self.role = Role::Standby { not_before: now };
            self.ask_anew(now);
        }
    }

    fn release(
        &mut self,
        now: Time,
        term: Offset,
        (why, exit): (Why, Option<u8>),
        (give_up, anew): (Time, bool),
        _: NothingLeft,
    ) {
        self.highest_term = self.highest_term.max(term);
        // A stillborn term's lease is over by itself; still, others wait for its silence unless the release arrives.
        let give_up = give_up.max(if self.leaving.is_some() { now } else { now + self.timings.lease });
        let seq = self.send_release(term, why, exit);
        self.role = Role::Releasing(Releasing { term, seq, why, exit, give_up, anew });
    }

    fn send_release(&mut self, term: Offset, why: Why, exit: Option<u8>) -> u64 {
        let seen = self.listener.last();
        let seq = self.next_seq();
        self.send(seq, Body::Release { term, seen, why: Some(why.as_str().into()), exit });
        seq
    }

    fn undelivered(&mut self, now: Time, seq: u64) {
        match &self.role {
            Role::Releasing(releasing) if releasing.seq == seq => {
                let Releasing { term, why, exit, give_up, .. } = *releasing;
                if now < give_up && self.listener.journal().term() == Some(term) {
                    let again = self.send_release(term, why, exit);
                    if let Role::Releasing(releasing) = &mut self.role {
                        releasing.seq = again;
                    }
                } else {
                    self.release_is_over(now, false);
                }
            }
            // It may have arrived all the same: only the journal tells. Its time is up with its lease.
            Role::Claiming { .. }
            | Role::Departed
            | Role::Fenced { .. }
            | Role::Leading(_)
            | Role::Releasing(_)
            | Role::Standby { .. } => {}
        }
    }

    fn release_is_over(&mut self, now: Time, delivered: bool) {
        let Role::Releasing(Releasing { term, why, anew, .. }) = self.role else { return };
        self.actions.push_back(Action::Note(Note::Released { term, why, delivered }));
        self.role = Role::Standby { not_before: now };
        self.noted = None;
        if anew {
            self.ask_anew(now);
        }
    }

    /// R5: after a fence it stands again like any other, from R1.
    fn ask_anew(&mut self, now: Time) {
        if self.leaving.is_none() {
            self.listener.ask_anew(now);
            self.actions.push_back(Action::Ask);
        }
    }

    // ---- going ----------------------------------------------------------------------------------------------------

    /// When `--wait` is over; none where it must not cut the silence of an unheard leader short.
    fn wait_due(&self) -> Option<Time> {
        let until = self.wait_until?;
        if self.listener.heard_leader() || self.claim_unanswered {
            Some(until)
        } else if self.listener.is_answered() {
            None
        } else {
            let at_once = until == self.started;
            Some(if at_once { self.started + WAIT_FOR_KAFKA } else { until })
        }
    }

    fn depart(&mut self, departure: Departure) {
        self.leave_group();
        self.role = Role::Departed;
        self.next_hello = None;
        self.actions.push_back(Action::Depart(departure));
    }

    // ---- speaking -------------------------------------------------------------------------------------------------

    fn next_seq(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    fn lease_ms(&self) -> u64 {
        u64::try_from(self.timings.lease.as_millis()).unwrap_or(u64::MAX)
    }

    fn send(&mut self, seq: u64, body: Body) {
        let (member, name) = (Some(self.identity.member.clone()), Some(self.identity.name.clone()));
        self.actions.push_back(Action::Send { record: Record { member, name, seq: Some(seq), body } });
    }

    /// Says hello and joins the group, once the topic is known to be there and to be fit for an election: nothing is
    /// written into one that R0 refuses.
    fn introduce(&mut self, now: Time) {
        if self.next_hello.is_none() && self.topic_judged && self.listener.is_answered() && self.leaving.is_none() {
            self.say_hello(now);
            self.keep_membership(now);
        }
    }

    fn say_hello(&mut self, now: Time) {
        self.next_hello = Some(now + HELLO_INTERVAL);
        let seq = self.next_seq();
        self.send(seq, self.identity.hello.clone());
    }

    fn note_standby(&mut self, now: Time) {
        if !self.listener.is_caught_up() || !self.topic_judged {
            return;
        }
        let (leader, term, why) = match self.listener.journal().view() {
            View::Led(term) => (term.name.clone(), Some(term.offset), Some(Waiting::Led)),
            _ if self.cooling_off.is_some() => (None, None, Some(Waiting::CoolingOff)),
            View::Undecided(_) => (None, None, Some(Waiting::Undecided)),
            // A claim that is all but due is not worth a word.
            View::NeverLed | View::Released { .. } if self.claim_due().is_some_and(|due| due < now + SPREAD) => return,
            View::NeverLed | View::Released { .. } => (None, None, Some(Waiting::Precedence)),
        };
        let note = Note::Standby { leader, term, why };
        if self.noted.as_ref() != Some(&note) {
            self.noted = Some(note.clone());
            self.actions.push_back(Action::Note(note));
        }
    }
}

/// Of two reasons to stop, the one of the higher rank says what happens afterwards.
const fn rank(why: Why) -> u8 {
    match why {
        Why::Ended => 3,
        Why::Exited | Why::Stopped => 2,
        Why::Resigned | Why::RestartLimit | Why::Suspended | Why::Unhealthy => 1,
        Why::Fenced | Why::GuardDied | Why::Revoked | Why::Stillborn | Why::SupervisorDied => 0,
    }
}

/// Whether another is to lead first (R7).
const fn lets_another_lead(why: Why) -> bool {
    match why {
        Why::Resigned | Why::RestartLimit | Why::Unhealthy => true,
        Why::Ended
        | Why::Exited
        | Why::Fenced
        | Why::GuardDied
        | Why::Revoked
        | Why::Stillborn
        | Why::Stopped
        | Why::SupervisorDied
        | Why::Suspended => false,
    }
}
