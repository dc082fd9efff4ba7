//! How often in a row the runs of a candidate have failed.

use alloc::format;

use super::*;

#[test]
fn of_a_few_candidates_each_is_kept() {
    let mut failed = FailedRuns::new();
    let [one, other] = ["one", "other"].map(MemberId::from);
    for member in [&one, &other, &other] {
        failed.released(member, Some(Why::Failed), Some(1), |_| false);
    }
    assert_eq!([&one, &other].map(|member| failed.of(member)), [1, 2]);
    failed.released(&other, Some(Why::Exited), Some(0), |_| false);
    assert_eq!([&one, &other].map(|member| failed.of(member)), [1, 0]);
}

#[test]
fn of_very_many_candidates_only_those_that_are_there_are_kept() {
    let mut failed = FailedRuns::new();
    let member = |number: usize| MemberId::from(&*format!("m{number}"));
    for number in 0..=MOST {
        failed.released(&member(number), Some(Why::Exited), Some(1), |known| *known == member(7));
    }
    assert_eq!([0, 7, MOST].map(|number| failed.of(&member(number))), [0, 1, 1]);
    assert_eq!(failed.by_member.len(), 2);
}
