//! Records of other programs: undecodable ones, and decodable ones with false content. None is a forged beat or release of a leader, since
//! a program that can forge those can do anything (assumption 5).

use std::time::Duration;

use serde_json::json;

use crate::fault::Dice;

/// Records: key and payload.
pub(crate) type Records = Vec<(Option<String>, Option<Vec<u8>>)>;

/// The lease of a forged claim. It is no shorter than that of any leader whose term the claim may end, because otherwise the claim could
/// cause a second job.
pub(crate) const LEASE_MS: u64 = 2000;

fn key(group: &str, role: usize) -> String {
    format!("{group}/{role}")
}

/// Undecodable records.
pub(crate) fn garbage(group: &str, role: usize, degree: f64, dice: &mut Dice) -> Records {
    let ours = || Some(key(group, role));
    let noise: Vec<u8> = (0..300).map(|_| u8::try_from(dice.below(256)).expect("a byte")).collect();
    let kinds: [Records; 8] = [
        vec![(ours(), Some(noise.clone()))],
        vec![(ours(), None)],
        vec![(None, Some(noise))],
        vec![(ours(), Some(b"{}".to_vec())), (ours(), Some(b"{\"v\":1".to_vec()))],
        vec![(ours(), Some(json!({"v": 2, "kind": "claim", "after": 0, "lease_ms": 1000}).to_string().into_bytes()))],
        vec![(ours(), Some(json!({"v": 1, "kind": "coup", "member": "x"}).to_string().into_bytes()))],
        vec![(Some(format!("{group}/hello")), Some(b"hello, hello".to_vec()))],
        vec![(ours(), Some(vec![b'x'; 100_000])); 3],
    ];
    pick(kinds, degree)
}

/// Records that are decodable and plausible but false. They have the election's own configuration, because candidates ignore other
/// elections.
pub(crate) fn lie(
    (group, overlap): (&str, Option<Duration>),
    role: usize,
    degree: f64,
    end: i64,
    earlier: Option<u64>,
) -> Records {
    let line = |what: serde_json::Value| {
        let mut record = json!({"v": 1, "member": "liar", "name": "liar", "seq": 1});
        if let Some(overlap) = overlap {
            record["overlap_ms"] = json!(overlap.as_millis());
        }
        let fields = what.as_object().expect("an object").clone();
        record.as_object_mut().expect("an object").extend(fields);
        vec![(Some(key(group, role)), Some(record.to_string().into_bytes()))]
    };
    let earlier = earlier.unwrap_or_default();
    let kinds: [Records; 8] = [
        line(json!({"kind": "claim", "after": (end - 50).max(0), "lease_ms": LEASE_MS})),
        line(json!({"kind": "claim", "after": end, "lease_ms": LEASE_MS})),
        line(json!({"kind": "claim", "after": end + 1_000_000, "lease_ms": LEASE_MS})),
        line(json!({"kind": "beat", "term": earlier, "seen": earlier, "lease_ms": LEASE_MS, "state": "running"})),
        line(json!({"kind": "beat", "term": end + 1_000_000, "seen": end + 1_000_000, "lease_ms": 1000})),
        line(json!({"kind": "release", "term": earlier, "seen": earlier, "why": "exited", "exit": 0})),
        line(json!({"kind": "request", "what": "resign", "term": earlier, "by": "liar"})),
        line(json!({"kind": "hello", "host": "liar", "pid": 1})),
    ];
    pick(kinds, degree)
}

/// An undecodable record, which voids a claim that follows it.
pub(crate) fn stray(group: &str, role: usize) -> Records {
    vec![(Some(key(group, role)), Some(b"{}".to_vec()))]
}

/// An operator's request to resign.
pub(crate) fn resign(group: &str, term: u64) -> Records {
    let record =
        json!({"v": 1, "kind": "request", "member": "person", "seq": 1, "what": "resign", "term": term, "by": "chaos"});
    vec![(Some(key(group, 0)), Some(record.to_string().into_bytes()))]
}

fn pick(kinds: [Records; 8], degree: f64) -> Records {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 7")]
    let index = (degree * 8.0) as usize;
    kinds.into_iter().nth(index.min(7)).expect("one of them")
}
