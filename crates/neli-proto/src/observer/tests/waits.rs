//! How long a standby leaves a released term to others.

use alloc::vec;
use alloc::vec::Vec;

use super::*;

/// How long each candidate waits, this many milliseconds after a release for this reason.
fn waits(why: &str, exit: &str, ms: u64) -> Vec<u128> {
    let mut observer = observer();
    hello(&mut observer, 0, 0, "n");
    read(&mut observer, 1, 0, &claim("m", 0));
    read(&mut observer, 2, 1_000, &release("m", 1, why, exit));
    hello(&mut observer, 3, 1_100, "m");
    let at = later(1_000 + ms);
    observer.standbys(at).iter().map(|standby| observer.waits(standby, at).as_millis()).collect()
}

#[test]
fn the_hello_of_a_candidate_with_a_cut_history_contains_its_wait() {
    let mut observer = observer();
    let line = r#"{"v":1,"kind":"hello","member":"n","name":"n","seq":1,"waits_ms":58000}"#;
    read_hello(&mut observer, later(0), 0, line, None);
    let endless = line.replace("\"n\"", "\"o\"").replace("58000", "18446744073709551615");
    read_hello(&mut observer, later(0), 1, &endless, None);
    let waits = |observer: &Observer, ms: u64| -> Vec<u128> {
        let at = later(ms);
        observer.standbys(at).iter().map(|standby| observer.waits(standby, at).as_millis()).collect()
    };
    assert_eq!((waits(&observer, 8_000), waits(&observer, 58_000)), (vec![50_000, 52_610], vec![0, 2_610]));
    read(&mut observer, 2, 9_000, &claim("m", 1));
    assert_eq!(waits(&observer, 10_000), [0, 0], "a leader is known");
}

/// The candidates know that nobody may lead for a minute, and each observer says so.
#[test]
fn who_leads_is_unknown_while_a_candidate_waits_since_records_are_gone() {
    for (origin, after) in [(Origin::Beginning, Leadership::NeverLed), (Origin::CutHead, Leadership::Forgotten)] {
        let mut observer = Observer::new(Journal::read_from(0, origin));
        assert_eq!(observer.leadership(later(0)), after);
        for (offset, waits) in [(0, r#","waits_ms":58000"#), (1, "")] {
            let line = format!(r#"{{"v":1,"kind":"hello","member":"m{offset}","seq":1{waits}}}"#);
            read_hello(&mut observer, later(0), offset, &line, Some(later(0).wall_ms));
        }
        assert_eq!(observer.leadership(later(57_999)), Leadership::Unknown(Unknown::Cut), "{after:?}");
        assert_eq!(observer.leadership(later(58_000)), after, "no lease of before can run any more");
    }
}

#[test]
fn nobody_has_to_lead_after_a_success_or_an_end_if_nobody_stands_by() {
    let end = r#"{"v":1,"kind":"request","member":null,"name":"ann","seq":null,"what":"end"}"#;
    for (last, is_over) in [
        (release("m", 0, "exited", "0"), true),
        (release("m", 0, "exited", "3"), false),
        (release("m", 0, "stopped", "0"), false),
        (end.to_owned(), true),
    ] {
        let mut observer = observer();
        read(&mut observer, 0, 0, &claim("m", -1));
        read(&mut observer, 1, 10, &last);
        assert_eq!(observer.is_done(later(20)), is_over, "{last}");
        hello(&mut observer, 2, 30, "n");
        assert!(!observer.is_done(later(40)), "one stands by: {last}");
        read(&mut observer, 3, 50, &claim("n", 2));
        assert!(!observer.is_done(later(60)), "a new term: {last}");
    }
}

#[test]
fn after_standing_down_a_candidate_waits_two_leases_and_after_a_failed_run_it_backs_off() {
    assert_eq!(waits("resigned", "0", 4_000), [6_000, 0]);
    assert_eq!(waits("resigned", "0", 10_000), [0, 0]);
    assert_eq!(waits("failed", "1", 200), [300, 0]);
    assert_eq!(waits("exited", "0", 200), [0, 0]);
}

/// It has heard nothing of the leader, whose machine died before.
#[test]
fn a_standby_that_began_to_listen_after_a_leader_s_last_record_waits_for_a_lease() {
    let mut observer = observer();
    read(&mut observer, 0, 0, &claim("m", -1));
    hello(&mut observer, 1, 11_000, "n");
    let again = r#"{"v":1,"kind":"hello","member":"n","name":"n","seq":2,"joined":1}"#;
    read_hello(&mut observer, later(12_000), 2, again, Some(later(12_000).wall_ms));
    let other = again.replace("\"n\"", "\"o\"");
    read_hello(&mut observer, later(12_000), 3, &other, Some(later(12_000).wall_ms));
    let waits = |ms: u64| -> Vec<u128> {
        let at = later(ms);
        observer.standbys(at).iter().map(|standby| observer.waits(standby, at).as_millis()).collect()
    };
    assert_eq!((waits(13_000), waits(16_060)), (vec![3_060, 0], vec![0, 0]), "the first hello of o was not read");
}
