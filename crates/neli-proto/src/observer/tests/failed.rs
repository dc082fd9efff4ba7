//! How often in a row the runs of a candidate have failed.

use alloc::format;

use super::*;

fn failed_runs<const N: usize>(observer: &Observer, members: [&MemberId; N]) -> [u32; N] {
    members.map(|member| observer.failed_runs.get(member).copied().unwrap_or_default())
}

#[test]
fn of_a_few_candidates_each_is_kept() {
    let mut observer = observer();
    let [one, other] = &["one", "other"].map(MemberId::from);
    for member in [one, other, other] {
        observer.count_failed_runs(member, Some(1));
    }
    assert_eq!(failed_runs(&observer, [one, other]), [1, 2]);
    observer.count_failed_runs(other, None);
    assert_eq!(failed_runs(&observer, [one, other]), [1, 0]);
}

#[test]
fn of_very_many_candidates_only_those_that_are_there_are_kept() {
    let mut observer = observer();
    hello(&mut observer, 0, 0, "m7");
    let member = |number: usize| MemberId::from(&*format!("m{number}"));
    for number in 0..=MOST_FAILED {
        observer.count_failed_runs(&member(number), Some(1));
    }
    let [first, there, last] = &[0, 7, MOST_FAILED].map(member);
    assert_eq!(failed_runs(&observer, [first, there, last]), [0, 1, 1]);
    assert_eq!(observer.failed_runs.len(), 2);
}
