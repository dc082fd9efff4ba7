//! The record of a key's runs in the topic `<topic>.once`: the encoding, and the result of all records of one key. A key has three places
//! in that topic, which is compacted. One is for the success, and one for the last run that began or failed. So the record of a run that
//! reaches the log late, after another run has succeeded, does not replace the success. The third place is for an operator's request to
//! forget the key; candidates never write there. All windows of an election share these places, and the records there are about the newest
//! window.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::mem;

use serde::{Deserialize, Serialize};

use crate::record::{MemberId, Offset, fields_of, is_default, or_unknown, parsed, to_line};
use crate::time::Span;

/// The suffix that makes the name of the topic of facts from the journal's name.
pub const TOPIC_SUFFIX: &str = ".once";

/// The most facts of other windows that are kept. One is added each time a machine's clock is more than a window behind the last run's, or ahead.
const MOST_HIDDEN: usize = 16;

/// The state of a key's run.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It ended by itself with status 0.
    Done,
    /// It ended by itself with another status or by a signal.
    Failed,
    /// It is about to start, or has started. Its end is not recorded.
    #[default]
    Running,
    /// `--schedule`: this window and the earlier ones are over without a run.
    Skipped,
    /// An operator asked to let the key run again: records of terms up to the one in this record don't count.
    Forgotten,
}

/// One record about a key's run.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct Fact {
    /// The key.
    pub key: Box<str>,
    /// The window whose start is the key, if the key is a window's.
    #[serde(flatten)]
    pub window: Option<Span>,
    /// The state of the run.
    pub outcome: Outcome,
    /// The term of the run. If the key was forgotten: the journal's last offset at the operator's request.
    pub term: Offset,
    /// The member that runs it or ran it.
    #[serde(default, deserialize_with = "or_unknown")]
    pub member: Option<MemberId>,
    /// The name of that candidate.
    #[serde(default, deserialize_with = "or_unknown")]
    pub name: Option<Box<str>>,
    /// The job's exit status, once it has ended.
    #[serde(default, deserialize_with = "or_unknown")]
    pub exit: Option<u8>,
    /// 1, plus 1 for each earlier run of the key that failed, on any machine.
    pub attempt: u32,
    /// How long the job ran, in milliseconds.
    #[serde(default, deserialize_with = "or_unknown")]
    pub ran_ms: Option<u64>,
    /// When this was written, in milliseconds since 1970 by the writer's wall clock. For display only.
    #[serde(default, deserialize_with = "or_unknown")]
    pub at_ms: Option<u64>,
    /// How often the key had been forgotten when the run began. In a `forgotten` record, this request is counted too. A number
    /// that this version does not know is no reason to count the fact as never forgotten.
    #[serde(default, skip_serializing_if = "is_default")]
    pub forgets: u32,
    /// How many times the journal had been created again when the run began, as far as the facts show it. Then terms begin again.
    #[serde(default, deserialize_with = "or_unknown", skip_serializing_if = "is_default")]
    pub remakes: u32,
    /// The order of the facts of one candidate: a later one has a higher number. 0 if it is not known.
    #[serde(default, deserialize_with = "or_unknown", skip_serializing_if = "is_default")]
    pub seq: u32,
    /// The runs up to this fact. For display only; the owner adds it when it writes the fact.
    #[serde(default, deserialize_with = "or_unknown", skip_serializing_if = "is_default")]
    pub account: Account,
}

/// The place of a fact in the topic.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Place {
    /// A run that began or failed.
    Attempt,
    /// A success, or a window that is over without a run.
    Done,
    /// An operator's request to forget the key.
    Forgotten,
}

impl Place {
    /// All places.
    pub const ALL: [Self; 3] = [Self::Attempt, Self::Done, Self::Forgotten];
}

/// The message about a record that is not a fact.
pub const UNREADABLE: &str = "a record of the key is in no form that this version knows; update neli-run, or delete the record by neli-run \
                              forget --force";

/// All facts of a key, read from the topic's start to an end.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Facts {
    /// The success.
    pub done: Option<Fact>,
    /// The last run that began or failed.
    pub attempt: Option<Fact>,
    /// The last request of an operator to forget the key.
    pub forgotten: Option<Fact>,
    /// Facts of other windows that stood at one of the first two places before, and were replaced since a clock is wrong: those of newer windows, and
    /// of older ones, at whose time the fact there is not believed. Each counts for a candidate whose clock does not contradict it.
    pub hidden: Vec<Fact>,
    /// The places whose records are no facts that this version can read.
    pub unreadable: BTreeSet<Place>,
}

/// The result of a question about the key's facts, or of recording a fact.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[expect(missing_docs, reason = "a field with an unclear meaning has a comment")]
pub enum FactsEvent {
    /// The fact of the action `AppendFact` with this number was acknowledged, with its offset.
    Appended { id: u32, offset: Offset },
    /// The topic was missing, and this process created it.
    Created,
    /// Such a fact was refused, or not acknowledged in time. It may be in the topic nevertheless.
    NotAppended { id: u32, error: Box<str> },
    /// The topic was read up to `end`, its next offset when the action `ReadFacts` with this number was performed, and these are the key's facts.
    Read { id: u32, end: Offset, facts: Box<Facts> },
    /// The topic is being read, and the reading has come so far.
    Reading { progress: Box<str> },
    /// The facts can't be read yet. The reading is tried again.
    Unread { error: Box<str> },
}

impl Fact {
    /// A fact about the first run of this key, of which nothing more is known.
    pub fn new(key: impl Into<Box<str>>, outcome: Outcome, term: Offset) -> Self {
        Self { key: key.into(), outcome, term, attempt: 1, ..Self::default() }
    }

    /// The place of this fact.
    pub const fn place(&self) -> Place {
        match self.outcome {
            Outcome::Done | Outcome::Skipped => Place::Done,
            Outcome::Failed | Outcome::Running => Place::Attempt,
            Outcome::Forgotten => Place::Forgotten,
        }
    }

    /// Whether this fact reached the log late: `known`, which is before it in the log, is about a later run, or is a later fact of the same
    /// lead. Terms begin again when the journal is created again; windows and the numbers of `forgets` and `remakes` do not. In a lead, an earlier window
    /// may follow a later one, because the clock was set back.
    pub fn is_older_than(&self, known: &Self) -> bool {
        let windows = self.window.zip(known.window);
        let order = |fact: &Self| (fact.forgets, fact.remakes, fact.term);
        let is_of_earlier_lead =
            order(self) < order(known) && windows.is_none_or(|(own, known)| own.from_ms <= known.from_ms);
        let is_of_same_lead = (&self.member, self.term) == (&known.member, known.term);
        is_of_earlier_lead || (is_of_same_lead && self.seq < known.seq)
    }

    /// The number of the next run for the same, if this is about the last one that began or failed.
    pub(crate) fn next_attempt(&self) -> u32 {
        self.attempt.saturating_add(u32::from(self.outcome == Outcome::Failed))
    }

    /// Whether this is a run whose candidate had not read a failure that `known` is, or counts. It reads it before the run begins (K2).
    fn overlooks_failure(&self, known: &Self) -> bool {
        let about = |fact: &Self| (fact.window, fact.forgets);
        self.outcome == Outcome::Running && about(self) == about(known) && self.attempt < known.next_attempt()
    }

    /// Whether this fact does not count because the key was forgotten later. If the fact's candidate had read that the key was forgotten,
    /// `forgets` shows that its run is later. If not, the term shows which one is later.
    pub fn is_forgotten_by(&self, forgotten: &Self) -> bool {
        self.window == forgotten.window && self.forgets < forgotten.forgets && self.term <= forgotten.term
    }

    /// Parses a line of JSON; `None` if it is not a fact that this version can read.
    pub fn parse(line: &[u8]) -> Option<Self> {
        fields_of(line).and_then(parsed)
    }

    /// This fact as a line of JSON, without a line end.
    pub fn to_bytes(&self) -> Vec<u8> {
        to_line(None, self)
    }
}

impl Facts {
    /// The fact at this place. If its record can't be read, the last readable fact there.
    pub const fn at(&self, place: Place) -> Option<&Fact> {
        match place {
            Place::Attempt => self.attempt.as_ref(),
            Place::Done => self.done.as_ref(),
            Place::Forgotten => self.forgotten.as_ref(),
        }
    }

    /// Whether this fact does not count, because an operator asked to forget the key after it.
    pub fn has_forgotten(&self, fact: &Fact) -> bool {
        self.forgotten.as_ref().is_some_and(|forgotten| fact.is_forgotten_by(forgotten))
    }

    /// Adds the next record at this place; `None` is a record without a value, which removes the one before it.
    pub fn take(&mut self, place: Place, value: Option<&[u8]>) {
        let known = match place {
            Place::Attempt => &mut self.attempt,
            Place::Done => &mut self.done,
            Place::Forgotten => &mut self.forgotten,
        };
        self.unreadable.remove(&place);
        match value.map(Fact::parse) {
            None => *known = None,
            Some(None) => drop(self.unreadable.insert(place)),
            Some(Some(fact)) => {
                let is_late = |known: &Fact| fact.is_older_than(known) || fact.overlooks_failure(known);
                if !known.as_ref().is_some_and(is_late) {
                    let replaced = known.replace(fact);
                    self.keep_hidden(replaced);
                }
            }
        }
        self.keep_hidden(None);
    }

    /// All facts about runs: those at the two places, and those that these hide.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &Fact> {
        self.done.iter().chain(&self.attempt).chain(&self.hidden)
    }

    /// Keeps these facts as well while the fact at their place is about an older window, or lies more than a window ahead of them.
    pub(crate) fn keep_hidden(&mut self, replaced: impl IntoIterator<Item = Fact>) {
        let mut hidden = mem::take(&mut self.hidden);
        for fact in replaced {
            if !hidden.contains(&fact) {
                hidden.push(fact);
            }
        }
        let start = |fact: &Fact| fact.window.map(|window| window.from_ms);
        let is_ahead = |known: &Fact, fact: &Fact| {
            fact.window.zip(known.window).is_some_and(|(window, known)| !window.believes(known))
        };
        let is_hidden = |known: &Fact, fact: &Fact| start(known) < start(fact) || is_ahead(known, fact);
        hidden.retain(|fact| self.at(fact.place()).is_some_and(|known| is_hidden(known, fact)));
        hidden.drain(..hidden.len().saturating_sub(MOST_HIDDEN));
        self.hidden = hidden;
    }
}

/// The Kafka key of a fact about `key` in the topic: `<group>/<role>/<KEY>`, where `election` is the election's own key. In KEY `%` and `/`
/// are written `%25` and `%2F`. Without KEY it is the place of the election's windows, `<group>/<role>`. Two elections never share a place
/// if each group [may have facts](may_have_facts).
pub fn record_key(election: &str, key: Option<&str>, place: Place) -> String {
    let key = key.map(|key| format!("/{}", key.replace('%', "%25").replace('/', "%2F"))).unwrap_or_default();
    match place {
        Place::Attempt => format!("{election}{key}%attempt"),
        Place::Done => format!("{election}{key}"),
        Place::Forgotten => format!("{election}{key}%forgotten"),
    }
}

/// Whether a group with this name may have facts. If the name contains `/`, the place of its windows could be that of another group's key:
/// `a/0/0` is the place of the windows of group `a/0`, and of KEY `0` of group `a`.
pub fn may_have_facts(group: &str) -> bool {
    !group.contains('/')
}

// ---- what the facts of a key, or of an election's windows, tell of all runs; it is only displayed ------------------

/// The runs of a key, or of an election's windows, up to a fact that contains this. So it outlives the process and the facts of other runs.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(default)]
pub struct Account {
    /// The number of runs that have ended by themselves.
    pub runs: u32,
    /// The number of those that have failed.
    pub failures: u32,
    /// The last one that has succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success: Option<Success>,
    /// The last one that has ended by itself, without its account. It is left out where the fact is about that run.
    #[serde(deserialize_with = "or_unknown", skip_serializing_if = "Option::is_none")]
    pub last: Option<Box<Fact>>,
    /// The earliest window that a candidate has seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<Span>,
    /// `--schedule`, as it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Box<str>>,
    /// Its `--timezone`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<Box<str>>,
}

/// A run that has succeeded.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct Success {
    /// Its window, if it was for one.
    #[serde(flatten)]
    pub window: Option<Span>,
    /// When that was recorded, in milliseconds since 1970 by the writer's wall clock.
    pub at_ms: Option<u64>,
    /// The name of the candidate.
    pub by: Option<Box<str>>,
}

impl Account {
    /// The runs up to this fact, and its own.
    pub fn of(fact: &Fact) -> Self {
        let own = (fact.outcome == Outcome::Done).then(|| Success::of(fact));
        let last = has_ended(fact).then(|| Box::new(Fact { account: Self::default(), ..fact.clone() }));
        let account = fact.account.clone();
        Self { success: own.or(account.success), last: last.or(account.last), ..account }
    }

    /// Adds what was read.
    pub fn read(&mut self, facts: &Facts) {
        for fact in facts.runs() {
            let read = Self::of(fact);
            (self.runs, self.failures) = (self.runs.max(read.runs), self.failures.max(read.failures));
            if self.success.as_ref().map(|run| run.at_ms) < read.success.as_ref().map(|run| run.at_ms) {
                self.success = read.success;
            }
            if self.last.as_ref().map(|run| run.at_ms) < read.last.as_ref().map(|run| run.at_ms) {
                self.last = read.last;
            }
            self.first = self.first.into_iter().chain(read.first).min_by_key(|window| window.from_ms);
        }
        self.last.take_if(|last| facts.has_forgotten(last));
    }

    /// Completes a fact that is about to be written now, in milliseconds since 1970, and adds it. A fact that is written again counts once, also
    /// one of another candidate, whose time it has.
    #[must_use]
    pub fn written(&mut self, now_ms: u64, fact: Fact) -> Fact {
        let is_again = |last: &Fact| (&last.member, last.term, last.seq) == (&fact.member, fact.term, fact.seq);
        let is_new = fact.at_ms.is_none() && !self.last.as_deref().is_some_and(is_again);
        let mut fact = Fact { at_ms: fact.at_ms.or(Some(now_ms)), account: self.clone(), ..fact };
        if has_ended(&fact) && is_new {
            fact.account.runs = fact.account.runs.saturating_add(1);
            let has_failed = fact.outcome == Outcome::Failed;
            fact.account.failures = fact.account.failures.saturating_add(has_failed.into());
            *self = Self::of(&fact);
        }
        // Its own success and end stand in the fact already.
        fact.account.success.take_if(|_| fact.outcome == Outcome::Done);
        if has_ended(&fact) {
            fact.account.last = None;
        }
        fact
    }
}

impl Success {
    fn of(fact: &Fact) -> Self {
        Self { window: fact.window, at_ms: fact.at_ms, by: fact.name.clone() }
    }
}

const fn has_ended(fact: &Fact) -> bool {
    matches!(fact.outcome, Outcome::Done | Outcome::Failed)
}

#[cfg(test)]
mod tests;
