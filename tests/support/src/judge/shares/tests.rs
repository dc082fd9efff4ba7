use std::path::Path;

use serde_json::json;

use super::*;

const SECOND: u64 = 1_000_000_000;
const BEGAN: u64 = 100 * SECOND;

/// What is seen at this second: six roles, of which each slot leads so many.
struct Watched(Fairness);

impl Watched {
    fn new() -> Self {
        Self(Fairness::new(BEGAN))
    }

    fn look(&mut self, second: u64, held: &[usize]) -> Verdict {
        self.look_after_loss(second, held, (0, 1.0))
    }

    fn look_after_loss(&mut self, second: u64, held: &[usize], (lost_at, tolerance): (u64, f64)) -> Verdict {
        let lost_at = if lost_at == 0 { 0 } else { BEGAN + lost_at * SECOND };
        let seen = Seen { held: held.to_vec(), roles: 6, lost_at, moves: 1, tolerance };
        self.0.look(BEGAN + second * SECOND, seen)
    }
}

fn unfair(held: &[usize], within: u64) -> Verdict {
    Verdict::Unfair(format!("shares are {held:?}, and not fair within {:?}", Duration::from_secs(within)))
}

#[test]
fn fair_shares_that_last_are_accepted() {
    for held in [&[2, 2, 2][..], &[2, 1, 1, 2], &[1, 1, 1, 1, 1, 1, 0]] {
        let mut watched = Watched::new();
        assert_eq!(watched.look(5, held), Verdict::NotYet);
        assert_eq!(watched.look(6, held), Verdict::NotYet, "not for long enough");
        assert_eq!(watched.look(7, held), Verdict::Fair);
        let shares = watched.0.shares.expect("a result");
        assert_eq!((shares.after, shares.held), (Duration::from_secs(5), held.to_vec()));
    }
}

#[test]
fn shares_that_are_not_fair_in_time_are_reported() {
    // Too many and too few, too many, too few, and a role without a leader.
    for held in [&[3, 2, 1][..], &[3, 1, 1, 1], &[2, 2, 2, 0], &[2, 1, 1, 1]] {
        let mut watched = Watched::new();
        assert_eq!(watched.look(60, held), Verdict::NotYet);
        assert_eq!(watched.look(61, held), Verdict::Late);
        assert_eq!(watched.0.allow(Duration::ZERO), FAIR_WITHIN);
        assert_eq!(watched.look(61, held), unfair(held, 60));
        assert_eq!(watched.0.shares.expect("a result").after, Duration::from_secs(61));
    }
}

#[test]
fn shares_that_are_fair_for_a_moment_are_not_fair() {
    let mut watched = Watched::new();
    assert_eq!(watched.look(58, &[2, 2, 2]), Verdict::NotYet);
    assert_eq!(watched.look(59, &[3, 2, 1]), Verdict::NotYet);
    assert_eq!(watched.look(60, &[2, 2, 2]), Verdict::NotYet);
    assert_eq!(watched.look(61, &[3, 2, 1]), Verdict::Late);
    assert_eq!(watched.look(61, &[3, 2, 1]), unfair(&[3, 2, 1], 60));
}

#[test]
fn what_the_journals_excuse_is_added_once() {
    let mut watched = Watched::new();
    assert_eq!(watched.look(61, &[3, 2, 1]), Verdict::Late);
    assert_eq!(watched.0.allow(Duration::from_secs(30)), Duration::from_secs(90));
    assert_eq!(watched.look(90, &[3, 2, 1]), Verdict::NotYet);
    assert_eq!(watched.look(91, &[3, 2, 1]), unfair(&[3, 2, 1], 90));
}

/// On a busy machine a lost lead begins the time again, but only as far as the load explains.
#[test]
fn a_lost_lead_gives_more_time_on_a_busy_machine() {
    let at = |second, lost| Watched::new().look_after_loss(second, &[3, 2, 1], lost);
    assert_eq!(at(75, (20, 1.0)), Verdict::Late, "no load");
    assert_eq!(at(75, (20, 2.0)), Verdict::NotYet);
    assert_eq!(at(81, (20, 2.0)), Verdict::Late);
    assert_eq!(at(121, (110, 2.0)), Verdict::Late, "not for ever");
    assert_eq!(at(75, (0, 2.0)), Verdict::Late, "no lead was lost");
}

/// A claim of this member, whose name is the same, and the run of its term, so many seconds after the begin.
fn claim(offset: u64, member: &str) -> Value {
    json!({"offset": offset, "verdict": "effective", "record": {"kind": "claim", "member": member, "name": member}})
}

fn release(why: &str, giver: &str, successor: Option<&str>) -> Value {
    let record = json!({"kind": "release", "why": why, "name": giver, "successor": successor});
    json!({"offset": 0, "verdict": "effective", "record": record})
}

fn run(term: u64, second: u64) -> JobRun {
    let from = BEGAN + second * SECOND;
    JobRun { span: (from, from + SECOND), ..JobRun::of_file(Path::new(&format!("0.0.{term}"))) }
}

fn seconds(roles: &[(Vec<Value>, Vec<JobRun>)]) -> u64 {
    let roles: Vec<_> = roles.iter().map(|(lines, job_runs)| RoleHistory { lines: lines.clone(), job_runs }).collect();
    let names = ["a", "b"].map(str::to_owned);
    excuse(BEGAN, &roles, &names).as_secs()
}

#[test]
fn an_ordinary_journal_excuses_nothing() {
    for why in ["stopped", "resigned"] {
        let lines = vec![claim(1, "a"), release(why, "a", None), claim(3, "b")];
        assert_eq!(seconds(&[(lines, vec![run(1, 0), run(3, 10)])]), 0, "{why}");
    }
}

/// A candidate that did not take the role that was handed to it gets none from that giver for a minute, then for two.
#[test]
fn a_candidate_that_took_no_role_is_barred() {
    let refused = |giver: &str| vec![claim(1, giver), release("spread", giver, Some("b")), claim(3, "c")];
    let of = |lines: Vec<Value>| seconds(&[(lines, vec![run(3, 10), run(5, 20)])]);
    assert_eq!(of(refused("a")), 70);
    assert_eq!(of(refused("gone")), 0, "that giver gives nothing any more");
    let twice = || [refused("a"), vec![release("spread", "a", Some("b"))]].concat();
    assert_eq!(of([twice(), vec![claim(5, "c")]].concat()), 20 + 120);
    assert_eq!(of([twice(), vec![claim(5, "b")]].concat()), 0, "it took the next");
}

#[test]
fn a_record_without_effect_excuses_nothing() {
    let mut of_another = claim(3, "c");
    of_another["verdict"] = json!("void");
    let lines = vec![release("spread", "a", Some("b")), of_another];
    assert_eq!(seconds(&[(lines, vec![run(3, 10)])]), 0);
}

/// A record at this second, in any role's journal.
fn at(second: u64, line: &Value, member: &str) -> Value {
    let mut line = line.clone();
    line["ts"] = json!(format!("2026-01-01T00:00:{second:02}.000Z"));
    line["record"]["member"] = json!(member);
    line
}

#[test]
fn a_role_is_handed_to_the_dead_if_the_successor_writes_nothing_after_that() {
    let spread = release("spread", "a", Some("b"));
    let beat = json!({ "verdict": "void", "record": { "kind": "beat" } });
    for (why, then, dead) in [
        (&spread, at(6, &beat, "b"), 0),
        (&spread, at(6, &claim(1, "b"), "b"), 0),
        (&spread, at(4, &beat, "b"), 1),
        (&spread, at(6, &beat, "c"), 1),
        (&spread, at(6, &release("supervisor-died", "b", None), "b"), 1),
        (&release("spread", "a", None), at(4, &beat, "b"), 0),
    ] {
        let lines = [at(5, why, "a"), then.clone()];
        assert_eq!(handed_to_the_dead(lines.iter()), dead, "{then}");
    }
}
