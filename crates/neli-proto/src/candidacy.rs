//! The words of a candidate: what it is told at its start and later, what it wants done, and what it says of itself.

use alloc::boxed::Box;
use core::time::Duration;

use super::precedence::Standing;
use super::record::{Body, Hello, JobState, MemberId, Offset, Record, Why};
use super::time::Time;
use super::topic::TopicIdentity;

/// Every duration of the protocol (docs/protocol.md, Timing).
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

/// Who should lead first (docs/protocol.md, Precedence).
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

/// Things that happened in Kafka: to the journal, the topic and the group.
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
    /// The partition's history was cut or made anew.
    HistoryCut,
    /// From now on an empty log is a new one, where [`Answered`](Event::Answered) said that it was not to be trusted.
    LogTrusted,
    /// The group's coordinator knows this member by this id from now on.
    Named {
        /// The id.
        id: Box<str>,
    },
    /// A record of another key stands at `offset`.
    ReadOther {
        /// Where.
        offset: Offset,
        /// Whose, when it is a hello of this election.
        hello: Option<Hello>,
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
    /// A broker has said which topic stands under the election's topic's name.
    TopicIdentified {
        /// Just before the asking.
        asked: Time,
        /// Its answer.
        identity: TopicIdentity,
    },
    /// R0 has been judged, and the topic may carry an election.
    TopicJudged {
        /// An empty log whose head was cut is vacant.
        cut_is_harmless: bool,
        /// The topic deletes whole segments from its head and nothing else: what is missing in between is a marker (L4).
        gaps_are_markers: bool,
    },
    /// A batch can't be decoded: nothing behind it can be read.
    Undecodable,
    /// The topic has more partitions than roles: the group moves partitions at each join, and a revoke says nothing.
    UnusedPartitions,
    /// A record of this candidate's could not be delivered.
    Undelivered {
        /// Which.
        seq: u64,
    },
}

/// Things that happened on this machine. They come from the supervisor, or from the node: nobody else can say that nothing of a
/// job is left.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum LocalEvent {
    /// The process was told to go on: SIGCONT.
    Continued,
    /// The lease of the current term is over, whatever was believed here: the guard fenced, or died.
    Fenced {
        /// What the release will say.
        why: Why,
    },
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
        /// When that was so; `None` where it was so by the guard's deadline, or no job was alive then.
        gone_at: Option<Time>,
    },
    /// The candidate is to go for good (`Stopped`, `Ended`, ...), to stand down and cool off (`Unhealthy`), or to stand
    /// down until it is [`Continued`](LocalEvent::Continued) (`Suspended`).
    StandDown {
        /// Why.
        why: Why,
        /// For good.
        leaving: bool,
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
    /// Ask which topic stands under the name, until there is an answer ([`Event::TopicIdentified`]).
    Identify,
    /// The job is to be killed at once, whatever the lease says.
    Kill(Loss),
    /// Join the group, if the elector is `group`.
    JoinGroup,
    /// The job may run, for as long as the right lasts.
    Lead(Right),
    /// Leave the group.
    LeaveGroup,
    /// Ask soon where the log ends ([`Event::Answered`]).
    LookForEnd,
    /// Terms begin anew: the guard is to forget those that it held (R5).
    ForgetTerms,
    /// Say so.
    Note(Note),
    /// The election has come so far: the guard and the hooks act on it, and a person is told.
    Reached(Milestone),
    /// Read from this offset, which the log holds.
    ReadFrom(Offset),
    /// Make a new producer, and forget the one before.
    RenewProducer,
    /// Hand this record to the producer: the send time is the time of the input that caused it (R3).
    Send {
        /// Under the election's key; a hello goes under the hello's.
        record: Record,
    },
    /// The barrier: stop the job, and say when nothing of it is left. Beats go on.
    StopJob(Why),
    /// Stop the process, once the group is left: no term is held, no claim under way, and none will be until
    /// [`LocalEvent::Continued`].
    Suspend,
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
    /// The lease is over, by our own clock or by the guard's word.
    LeaseOver,
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
    /// Beats are not coming back.
    FenceWarning {
        /// The term.
        term: Offset,
        /// How much of the lease is left.
        left: Duration,
        /// No heartbeat that was sent in this time has come back.
        silent: Duration,
    },
    /// The reader has handed over nothing for a while, although the log goes on: another one reads.
    ReaderStuck {
        /// Where the log is known to end.
        end: Offset,
        /// For how long.
        silent: Duration,
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
    /// The broker has no ids for topics: that one is deleted and made again may go unnoticed.
    TopicUnnamed,
    /// The topic has more partitions than roles.
    UnusedPartitions,
}

/// How far the election has come: what the guard and the hooks act on.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Milestone {
    /// The lease ran out or was taken, and nothing of the job is left.
    Fenced {
        /// The term.
        term: Offset,
        /// `fenced` or `guard-died`.
        why: Why,
        /// How the right to run was lost.
        loss: Loss,
        /// How much of the lease is left.
        left: Duration,
        /// How long after the lease's end something of the job was still alive: the guarantee was broken.
        late: Option<Duration>,
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
    /// Standing by.
    Standby(Standby),
    /// Another's claim took effect while we led.
    Superseded {
        /// The term that is over.
        term: Offset,
        /// The other's term.
        by_term: Option<Offset>,
        /// The other.
        by: Option<Box<str>>,
    },
    /// Another topic stands under the name: it was deleted and made again.
    TopicRemade,
}

/// Whom a candidate stands by for.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Standby {
    /// Who leads, as far as known.
    pub leader: Option<Box<str>>,
    /// Its term.
    pub term: Option<Offset>,
    /// Why the candidate may not claim yet.
    pub why: Option<Waiting>,
}

/// What a candidate is in the election, for whoever looks at it from outside.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Position {
    /// R0: its claim has taken effect in a topic that is not judged yet. Nothing runs under the term.
    AwaitingJudgement {
        /// The term.
        term: Offset,
    },
    /// A claim is under way.
    Claiming,
    /// It is gone.
    Departed,
    /// The lease is over; of the job something may be left.
    Fenced {
        /// The term.
        term: Offset,
    },
    /// It leads.
    Leading {
        /// The term.
        term: Offset,
        /// The job.
        job: JobReport,
        /// Why the job has been asked to stop, if it has.
        stopping: Option<Why>,
    },
    /// It reads what was written before it came (R1).
    Listening,
    /// Nothing of the job is left, and the release is on its way.
    Releasing {
        /// The term.
        term: Offset,
    },
    /// It stands by; as it was told last, so that nobody is told two things.
    Standby(Option<Standby>),
    /// It holds nothing, and is stopped until it is continued, or about to be.
    Suspended,
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
