//! What happens to a candidate in Kafka.

use alloc::boxed::Box;

use crate::precedence::Standing;
use crate::record::{Hello, Offset, Record};
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
    HelloReceived(Hello),
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
