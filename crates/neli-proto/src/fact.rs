//! The record of a key's runs in the topic `<topic>.once`: reading and writing its bytes, and the result of all
//! records of one key.
//! A key has three places in that topic, which is compacted. One holds the success, one holds the last run that began
//! or failed. So the record of a run that reaches the log late, after another run has succeeded, does not replace the
//! success. The third place says that an operator had the key forgotten; candidates never write there. All windows of
//! an election share these places: the records there are about the newest window.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::record::{MemberId, Offset};
use crate::window::Span;

/// The suffix that makes the name of the topic of facts from the journal's name.
pub const TOPIC_SUFFIX: &str = ".once";

/// The state of a key's run.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It ended by itself with status 0.
    Done,
    /// It ended by itself with another status or by a signal.
    Failed,
    /// It is about to start, or has started; its end is not recorded.
    Running,
    /// `--schedule`: this window and those before it are over without a run.
    Skipped,
    /// An operator asked that the key runs again: records of terms up to the one named here count for nothing.
    Forgotten,
}

/// One record about a key's run.
#[derive(Clone, Debug, Eq, Hash, PartialEq, Serialize)]
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
    pub member: Option<MemberId>,
    /// The name of that candidate.
    pub name: Option<Box<str>>,
    /// The job's exit status, once it has ended.
    pub exit: Option<u8>,
    /// 1, plus 1 for each earlier run of the key that failed, on any machine.
    pub attempt: u32,
    /// How long the job ran, in milliseconds.
    pub ran_ms: Option<u64>,
    /// When this was written, in milliseconds since 1970 by the writer's wall clock. For display only.
    pub at_ms: Option<u64>,
    /// How often the key had been forgotten when the run began; in a `forgotten` record this request is counted too.
    #[serde(skip_serializing_if = "is_zero")]
    pub forgets: u32,
}

/// The place of a fact in the topic.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Place {
    /// A run that began or failed.
    Attempt,
    /// A success, or a window that is over without a run.
    Done,
    /// An operator had the key forgotten.
    Forgotten,
}

impl Place {
    /// All places.
    pub const ALL: [Self; 3] = [Self::Attempt, Self::Done, Self::Forgotten];
}

/// What is said of [`Unreadable`].
pub const UNREADABLE: &str = "a record of the key is in no form that this version knows; update neli-run, or delete the record by neli-run \
                              forget --force";

/// A record in a fact's place that is not a fact.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Unreadable;

/// All facts of a key, read from the topic's start to an end.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Facts {
    /// The success.
    pub done: Option<Fact>,
    /// The last run that began or failed.
    pub attempt: Option<Fact>,
    /// The last request of an operator to forget the key.
    pub forgotten: Option<Fact>,
    /// The record in the success's place is not a fact that this version can read.
    pub done_is_unreadable: bool,
    /// The same for the place of the last run.
    pub attempt_is_unreadable: bool,
    /// The same for the place of the operator's request.
    pub forgotten_is_unreadable: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Fact {
    /// The place of this fact.
    #[must_use]
    pub const fn place(&self) -> Place {
        match self.outcome {
            Outcome::Done | Outcome::Skipped => Place::Done,
            Outcome::Failed | Outcome::Running => Place::Attempt,
            Outcome::Forgotten => Place::Forgotten,
        }
    }

    /// Whether this fact reached the log late: `known`, which is before it in the log, is of a later run. Terms start
    /// again when the journal is created again; windows and the number of `forgets` do not.
    #[must_use]
    pub(crate) fn is_older_than(&self, known: &Self) -> bool {
        let windows = self.window.zip(known.window);
        (self.forgets, self.term) < (known.forgets, known.term)
            && windows.is_none_or(|(own, known)| own.from_ms <= known.from_ms)
    }

    /// Whether this fact counts for nothing because the key was forgotten later. If its candidate had read that the
    /// key was forgotten, `forgets` shows that the run is later; if the candidate does not know of forgetting, the
    /// term shows it.
    #[must_use]
    pub fn is_forgotten_by(&self, forgotten: &Self) -> bool {
        self.window == forgotten.window && self.forgets < forgotten.forgets && self.term <= forgotten.term
    }

    /// Parses a line of JSON.
    ///
    /// # Errors
    /// It is not a fact that this version knows.
    pub fn parse(line: &[u8]) -> Result<Self, Unreadable> {
        Self::of_json(line).ok_or(Unreadable)
    }

    fn of_json(line: &[u8]) -> Option<Self> {
        let fields: Map<String, Value> = serde_json::from_slice(line).ok()?;
        if fields.get("v")?.as_u64()? != 1 {
            return None;
        }
        let text = |field: &str| fields.get(field)?.as_str().map(Box::<str>::from);
        let number = |field: &str| fields.get(field)?.as_u64();
        let span = number("window_from_ms").zip(number("window_until_ms"));
        Some(Self {
            key: text("key")?,
            window: span.map(|(from_ms, until_ms)| Span { from_ms, until_ms }),
            outcome: Outcome::deserialize(fields.get("outcome")?).ok()?,
            term: fields.get("term")?.as_i64()?,
            member: text("member").map(|member| MemberId::from(&*member)),
            name: text("name"),
            exit: number("exit").and_then(|exit| exit.try_into().ok()),
            attempt: number("attempt")?.try_into().ok()?,
            ran_ms: number("ran_ms"),
            at_ms: number("at_ms"),
            forgets: number("forgets").unwrap_or(0).try_into().ok()?,
        })
    }

    /// This fact as a line of JSON, without a line end.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        #[derive(Serialize)]
        struct Line<'a> {
            v: u8,
            #[serde(flatten)]
            fact: &'a Fact,
        }
        // A struct of strings and numbers always has a JSON form.
        serde_json::to_vec(&Line { v: 1, fact: self }).unwrap_or_default()
    }
}

impl Facts {
    /// Whether the place holds a record that this version can't read.
    #[must_use]
    pub const fn is_unreadable(&self) -> bool {
        self.done_is_unreadable || self.attempt_is_unreadable || self.forgotten_is_unreadable
    }

    /// Whether what stands at this place is nothing that this version can read.
    #[must_use]
    pub const fn is_unreadable_at(&self, place: Place) -> bool {
        match place {
            Place::Attempt => self.attempt_is_unreadable,
            Place::Done => self.done_is_unreadable,
            Place::Forgotten => self.forgotten_is_unreadable,
        }
    }

    /// What stands at this place, or stood there last before what can't be read.
    #[must_use]
    pub const fn at(&self, place: Place) -> Option<&Fact> {
        match place {
            Place::Attempt => self.attempt.as_ref(),
            Place::Done => self.done.as_ref(),
            Place::Forgotten => self.forgotten.as_ref(),
        }
    }

    /// Adds the next record at this place; `None` is a record without a value, which removes the one before it.
    pub fn take(&mut self, place: Place, value: Option<&[u8]>) {
        let (known, is_unreadable) = match place {
            Place::Attempt => (&mut self.attempt, &mut self.attempt_is_unreadable),
            Place::Done => (&mut self.done, &mut self.done_is_unreadable),
            Place::Forgotten => (&mut self.forgotten, &mut self.forgotten_is_unreadable),
        };
        let fact = value.map(Fact::parse);
        *is_unreadable = matches!(fact, Some(Err(Unreadable)));
        match fact {
            None => *known = None,
            Some(Err(Unreadable)) => {}
            Some(Ok(fact)) => {
                if known.as_ref().is_none_or(|known| !fact.is_older_than(known)) {
                    *known = Some(fact);
                }
            }
        }
    }
}

/// The Kafka key of a fact about `key` in the topic: `<group>/<role>/<KEY>`, where `election` is the election's own
/// key. In KEY `%` and `/` are written `%25` and `%2F`. Without KEY it is the place of the election's windows,
/// `<group>/<role>`. Two elections never share a place, as long as each group [may have facts](may_have_facts).
#[must_use]
pub fn record_key(election: &str, key: Option<&str>, place: Place) -> String {
    let key = key.map(|key| format!("/{}", key.replace('%', "%25").replace('/', "%2F"))).unwrap_or_default();
    match place {
        Place::Attempt => format!("{election}{key}%attempt"),
        Place::Done => format!("{election}{key}"),
        Place::Forgotten => format!("{election}{key}%forgotten"),
    }
}

/// Whether a group of this name may have facts. With `/` in it, the place of its windows could be that of a key of
/// another group: `a/0/0` is that of the windows of group `a/0`, and of KEY `0` of group `a`.
#[must_use]
pub fn may_have_facts(group: &str) -> bool {
    !group.contains('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(outcome: Outcome, term: Offset) -> Fact {
        Fact {
            key: "v1.42".into(),
            window: None,
            outcome,
            term,
            member: Some(MemberId::from("m")),
            name: Some("db2".into()),
            exit: None,
            attempt: 1,
            ran_ms: None,
            at_ms: None,
            forgets: 0,
        }
    }

    fn come_to(records: &[(Place, Option<&[u8]>)]) -> Facts {
        let mut facts = Facts::default();
        for (place, value) in records {
            facts.take(*place, *value);
        }
        facts
    }

    #[test]
    fn a_fact_comes_back_as_it_was_written() {
        for outcome in [Outcome::Done, Outcome::Failed, Outcome::Running, Outcome::Skipped, Outcome::Forgotten] {
            let fact = Fact { exit: Some(3), ran_ms: Some(3_200), at_ms: Some(1_769_860_801_123), ..fact(outcome, 57) };
            let fact = Fact { forgets: 2, ..fact };
            assert_eq!(Fact::parse(&fact.to_bytes()), Ok(fact.clone()));
            let of_window = Fact { window: Some(Span { from_ms: 5, until_ms: 10 }), ..fact };
            assert_eq!(Fact::parse(&of_window.to_bytes()), Ok(of_window));
        }
        let line = br#"{"v":1,"key":"k","outcome":"done","term":7,"attempt":2,"of a later version":[]}"#;
        let expected = Fact { key: "k".into(), member: None, name: None, attempt: 2, ..fact(Outcome::Done, 7) };
        assert_eq!(Fact::parse(line), Ok(expected));
        for nonsense in [&b""[..], b"{}", br#"{"v":2,"key":"k","outcome":"done","term":7,"attempt":2}"#, b"\xff"] {
            assert_eq!(Fact::parse(nonsense), Err(Unreadable));
        }
    }

    #[test]
    fn a_record_that_came_late_replaces_nothing_newer() {
        let [begun, failed, late] =
            [(Outcome::Running, 9), (Outcome::Failed, 9), (Outcome::Running, 5)].map(|(how, term)| fact(how, term));
        let bytes = [&begun, &failed, &late].map(Fact::to_bytes);
        let facts = come_to(&bytes.each_ref().map(|bytes| (Place::Attempt, Some(&**bytes))));
        assert_eq!(facts, Facts { attempt: Some(failed), ..Facts::default() });
    }

    #[test]
    fn facts_before_a_key_was_forgotten_do_not_count_and_later_ones_do() {
        let forgotten = Fact { forgets: 1, ..fact(Outcome::Forgotten, 57) };
        let done = |term, forgets| Fact { forgets, ..fact(Outcome::Done, term) };
        assert!(done(57, 0).is_forgotten_by(&forgotten), "also where its record reaches the log late");
        assert!(!done(58, 0).is_forgotten_by(&forgotten), "a candidate that does not know of it has run the key later");
        assert!(!done(0, 1).is_forgotten_by(&forgotten), "the journal was made anew");
        let records = [done(57, 0), done(0, 1), done(57, 0)].map(|fact| fact.to_bytes());
        let facts = come_to(&records.each_ref().map(|bytes| (Place::Done, Some(&**bytes))));
        assert_eq!(facts.done, Some(done(0, 1)));
    }

    #[test]
    fn of_windows_the_newer_counts_where_terms_have_begun_anew_and_the_later_term_where_a_clock_was_wrong() {
        let done = |term, from_ms| {
            let window = Some(Span { from_ms, until_ms: from_ms + 10 });
            Fact { window, ..fact(Outcome::Done, term) }
        };
        for (records, expected) in [
            ([done(5, 10), done(9, 20)], done(9, 20)),
            // The record of the older run came late.
            ([done(9, 20), done(5, 10)], done(9, 20)),
            // The journal was created again.
            ([done(57, 10), done(0, 20)], done(0, 20)),
            // The clock of the first candidate was ahead.
            ([done(5, 9_000), done(9, 20)], done(9, 20)),
        ] {
            let bytes = records.each_ref().map(Fact::to_bytes);
            let facts = come_to(&bytes.each_ref().map(|bytes| (Place::Done, Some(&**bytes))));
            assert_eq!(facts.done, Some(expected));
        }
    }

    /// Each window lasts 10 ms. A run of window 1 is cut off; its record reaches the log after window 2 has
    /// succeeded.
    #[test]
    fn a_late_record_takes_no_success_away_while_its_window_lasts_where_compaction_lags_by_a_window() {
        let done = |term, from_ms| Fact {
            window: Some(Span { from_ms, until_ms: from_ms + 10 }),
            ..fact(Outcome::Done, term)
        };
        let log = [(1, done(1, 0)), (12, done(9, 10)), (13, done(5, 0))];
        for (lag, is_kept) in [(10, true), (2, false)] {
            for now in 13..20 {
                // Compaction removes a record if a later one has its key and the record is older than the lag.
                let kept =
                    log.iter().enumerate().filter(|(at, (written, _))| *at + 1 == log.len() || written + lag > now);
                let records: Vec<Vec<u8>> = kept.map(|(_, (_, fact))| fact.to_bytes()).collect();
                let facts = come_to(&records.iter().map(|bytes| (Place::Done, Some(&**bytes))).collect::<Vec<_>>());
                let counts = facts.done.is_some_and(|fact| fact.term == 9);
                assert!(counts || !is_kept, "{now}");
                assert!(now < 15 || counts == is_kept, "{now}: the lag is needed");
            }
        }
    }

    #[test]
    fn a_record_without_a_value_takes_back_and_one_that_is_no_fact_is_noticed() {
        let done = fact(Outcome::Done, 5).to_bytes();
        assert_eq!(come_to(&[(Place::Done, Some(&done)), (Place::Done, None)]), Facts::default());
        let nonsense = (Place::Done, Some(&b"nonsense"[..]));
        assert!(come_to(&[nonsense]).is_unreadable());
        assert_eq!(come_to(&[nonsense, (Place::Done, None)]), Facts::default());
    }

    #[test]
    fn no_two_elections_share_a_place_if_their_groups_may_have_facts() {
        assert_eq!(record_key("a/0/0", None, Place::Done), record_key("a/0", Some("0"), Place::Done));
        assert!(may_have_facts("a") && may_have_facts("a%2F0 b") && !may_have_facts("a/0"));
        let of = |election, key| record_key(election, Some(key), Place::Done);
        assert_eq!(of("billing/0", "v1.42"), "billing/0/v1.42");
        assert_ne!(of("g/0", "a/0/b"), of("g/0/a/0", "b"));
        assert_ne!(of("g/0", "a%2F"), of("g/0", "a/"));
        assert_ne!(of("g/0", "a%attempt"), record_key("g/0", Some("a"), Place::Attempt));
        assert_eq!(record_key("billing/0", None, Place::Done), "billing/0");
        assert_ne!(of("g/0", "a"), record_key("g/0", None, Place::Attempt));
        assert_ne!(of("g/0", "a%forgotten"), record_key("g/0", Some("a"), Place::Forgotten));
    }
}
