//! What happens to a candidate: in Kafka, and on its machine.

use alloc::boxed::Box;
use core::time::Duration;

use crate::precedence::Standing;
use crate::record::{Hello, JobState, MemberId, Offset, Record, Why};
use crate::supervisor::NothingLeft;
use crate::time::Time;
use crate::topic::TopicIdentity;

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
    /// Another process with many roles said hello, for all of them. Where that stands is told like the records of other keys.
    Heard(Hello),
    /// The partition's history was cut or made anew.
    HistoryCut,
    /// From now on an empty log is a new one, where [`Answered`](Event::Answered) said that it was not to be trusted.
    LogTrusted,
    /// The group's coordinator knows this member by this id from now on.
    Named {
        /// The id.
        id: Box<str>,
    },
    /// Records of other keys stand at each offset from `first` to `last`. Whoever reads for many candidates tells each of them so before
    /// the next thing that happens to it, and at the latest where an offset is missing (L4).
    Passed {
        /// The first.
        first: Offset,
        /// The last.
        last: Offset,
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
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum LocalEvent {
    /// The process was told to go on: SIGCONT.
    Continued,
    /// The lease of the current term is over, whatever was believed here: the guard fenced, or died.
    Fenced {
        /// What the release will say.
        why: Why,
    },
    /// The lead is handed over, where one is held: another holds fewer roles than its share.
    HandOver {
        /// For whom; none for the member to which the group has assigned the partition.
        to: Option<MemberId>,
    },
    /// The job is in another state.
    JobChanged(JobReport),
    /// No process of the job is left, and none will be started under this term (R6).
    NothingLeft(JobEnd),
    /// So much is added to the claim delay from now on; none when nothing is to be claimed.
    SpreadBy(Option<Duration>),
    /// The candidate is to go for good (`Stopped`, `Ended`, ...), to stand down and cool off (`Unhealthy`), or to stand
    /// down until it is [`Continued`](LocalEvent::Continued) (`Suspended`).
    StandDown {
        /// Why.
        why: Why,
        /// For good.
        leaving: bool,
    },
}

/// The end of a term's job.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct JobEnd {
    /// Shows that it is so, and names the term.
    pub proof: NothingLeft,
    /// Why the term ends, unless the candidate knows better.
    pub why: Why,
    /// The job's exit status.
    pub exit: Option<u8>,
    /// The candidate goes for good.
    pub leaving: bool,
    /// `--once`: the key, where this is the end of its run, and `exit` its outcome.
    pub once: Option<Box<str>>,
    /// When nothing was left; `None` where that was so by the guard's deadline, or no job was alive then.
    pub gone_at: Option<Time>,
    /// What is added to the claim delay from now on: its last runs failed. Zero where none did.
    pub back_off: Duration,
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
