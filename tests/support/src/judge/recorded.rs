use std::collections::BTreeMap;

use serde_json::Value;

use crate::journal::Raw;

/// The tolerance for a comparison of a broker's times, which are in whole milliseconds.
pub(super) const TICK_MS: u64 = 2;

/// The records of a term.
#[derive(Debug, Default)]
pub struct Recorded {
    /// When its claim was appended, by the broker's clock.
    pub claimed_ms: Option<u64>,
    /// When the fact was appended that its run succeeded.
    pub done_ms: Option<u64>,
    /// The offset and the content of its effective release.
    pub release: Option<(u64, Value)>,
}

/// The records of each term. `lines` are the records with the law's verdicts, as `neli-run watch --json` shows them; the two topics as they
/// are stored have the times.
#[must_use]
pub fn recorded(lines: &[Value], journal: &[Raw], facts: &[Raw]) -> BTreeMap<u64, Recorded> {
    let offset = |raw: &Raw| u64::try_from(raw.offset).expect("an offset");
    let written: BTreeMap<u64, u64> = journal.iter().map(|raw| (offset(raw), raw.written_ms)).collect();
    let mut recorded: BTreeMap<u64, Recorded> = BTreeMap::new();
    for line in lines.iter().filter(|line| line["verdict"] == "effective") {
        let (record, at) = (&line["record"], line["offset"].as_u64().expect("an offset"));
        if record["kind"] == "claim" {
            recorded.entry(at).or_default().claimed_ms = written.get(&at).copied();
        } else if let ("release", Some(term)) = (record["kind"].as_str().unwrap_or_default(), record["term"].as_u64()) {
            recorded.entry(term).or_default().release = Some((at, record.clone()));
        }
    }
    for Success { term, written_ms, .. } in successes(facts) {
        recorded.entry(term).or_default().done_ms.get_or_insert(written_ms);
    }
    recorded
}

/// When it was first recorded that a term's run in a window has succeeded, by the broker's clock. The key is the term and the window.
#[must_use]
pub fn windows_done(facts: &[Raw]) -> BTreeMap<(u64, u64), u64> {
    let mut done = BTreeMap::new();
    for Success { term, key, written_ms } in successes(facts) {
        done.entry((term, number_of(&key))).or_insert(written_ms);
    }
    done
}

/// The number of the window that begins at this time, given in RFC 3339 in UTC: its digits, as in a file's name.
pub(super) fn number_of(start: &str) -> u64 {
    let digits: String = start.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("no window: {start:?}"))
}

/// The fact that a run has succeeded.
struct Success {
    term: u64,
    key: String,
    written_ms: u64,
}

fn successes(facts: &[Raw]) -> impl Iterator<Item = Success> {
    facts.iter().filter_map(|raw| {
        let fact: Value = serde_json::from_slice(raw.payload.as_deref()?).ok()?;
        let key = fact["key"].as_str().unwrap_or_default().to_owned();
        let term = fact["term"].as_u64().filter(|_| fact["outcome"] == "done")?;
        Some(Success { term, key, written_ms: raw.written_ms })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn raw(offset: i64, written_ms: u64, payload: Option<&Value>) -> Raw {
        let payload = payload.map(|payload| payload.to_string().into_bytes());
        Raw { offset, key: b"g/0".to_vec(), payload, written_ms }
    }

    #[test]
    fn only_what_is_effective_counts() {
        let release = |term: u64, why: &str| json!({"kind": "release", "term": term, "why": why});
        let line =
            |offset: u64, verdict: &str, record: Value| json!({"offset": offset, "verdict": verdict, "record": record});
        let lines = [
            line(3, "effective", json!({"kind": "claim"})),
            line(4, "void", json!({"kind": "claim"})),
            line(5, "effective", release(3, "exited")),
            line(6, "void", release(3, "fenced")),
        ];
        let journal = [raw(3, 1_003, None), raw(4, 1_004, None), raw(5, 1_005, None)];
        let recorded = recorded(&lines, &journal, &[]);
        assert_eq!(recorded.keys().collect::<Vec<_>>(), [&3]);
        assert_eq!(recorded[&3].claimed_ms, Some(1_003));
        assert_eq!(recorded[&3].release, Some((5, release(3, "exited"))));
        assert_eq!(recorded[&3].done_ms, None);
    }

    #[test]
    fn a_success_is_known_from_its_first_fact_on_and_other_facts_are_none() {
        let fact = |outcome: &str, term: u64| json!({"outcome": outcome, "term": term, "key": "2026-01-31T02:00:00Z"});
        let facts = [
            raw(0, 1, Some(&fact("running", 3))),
            raw(1, 2, Some(&fact("failed", 3))),
            raw(2, 3, None),
            raw(3, 4, Some(&json!("garbage"))),
            raw(4, 5, Some(&fact("done", 7))),
            raw(5, 6, Some(&fact("done", 7))),
        ];
        let of_terms = recorded(&[], &[], &facts);
        assert_eq!(of_terms.into_iter().map(|(term, of)| (term, of.done_ms)).collect::<Vec<_>>(), [(7, Some(5))]);
        assert_eq!(windows_done(&facts), BTreeMap::from([((7, 20_260_131_020_000), 5)]));
    }
}
