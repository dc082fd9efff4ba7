//! Ages that two machines' clocks disagree about.

use super::*;

/// The clock is a minute behind the broker's.
#[test]
fn an_age_is_at_least_that_up_to_the_newest_record() {
    let slow = ReadAt { wall_ms: later(0).wall_ms - 60_000, ..later(0) };
    let mut observer = observer();
    read_late(&mut observer, 0, slow, 0, &claim("m", -1));
    read_late(&mut observer, 1, slow, 1_000, &release("m", 0, "exited", "0"));
    observer.stamped(later(9_000).wall_ms);
    let Leadership::Released { age, .. } = observer.leadership(slow) else { panic!("released") };
    assert_eq!((age.as_secs(), observer.is_ahead_by(slow)), (8, Some(Duration::from_secs(69))));
    assert_eq!(observer.is_ahead_by(later(8_000)), None, "a second is within the tolerance");
    assert_eq!(observer.broker_now(later(20_000)), later(20_000).wall_ms);
}

/// The leader's clock is ten minutes ahead, or the observer's.
#[test]
fn no_standby_is_left_out_because_one_of_the_clocks_is_ahead() {
    for (leader_ms, own_ms) in [(600_000, 0), (0, 600_000)] {
        let at = |ms| ReadAt { wall_ms: later(ms + own_ms).wall_ms, ..later(ms) };
        let mut observer = observer();
        observer.stamped_by_candidates();
        read_late(&mut observer, 0, at(0), leader_ms, &claim("m", -1));
        let line = r#"{"v":1,"kind":"hello","member":"s","name":"s","seq":0}"#;
        read_hello(&mut observer, at(0), 1, line, Some(later(0).wall_ms));
        observer.caught_up();
        read_late(&mut observer, 2, at(1_000), leader_ms + 1_000, &beat("m", 0, "running"));
        assert_eq!(observer.standbys(at(1_000)).len(), 1, "{leader_ms} and {own_ms} ms");
    }
}

/// The lease is 5 s. The later record may be another broker's, whose clock is an hour ahead.
#[test]
fn only_a_record_of_a_day_later_proves_a_silence_without_a_wait() {
    for (stamped_ms, is_doubted) in [(0, true), (3_600_000, true), (86_400_000, false)] {
        let mut observer = observer();
        read_late(&mut observer, 0, later(90_000), 0, &claim("m", -1));
        observer.stamped(later(stamped_ms).wall_ms);
        assert!(matches!(observer.leadership(later(90_000)), Leadership::Silent { .. }));
        assert_eq!(observer.doubts_timestamps(later(90_000)).is_some(), is_doubted, "{stamped_ms} ms");
    }
}
