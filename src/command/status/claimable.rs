//! For a vacant role: since when or from when on a candidate may claim, as far as the records show it.

use std::time::Duration;

use neli_proto::leadership::{Leadership, ReadAt, Unknown};
use neli_proto::listener::silence;
use neli_proto::observer::{Observer, Standby};
use neli_proto::record::Why;
use neli_proto::time::millis;
use neli_proto::timings::LONGEST_LEASE;

use crate::command::list::Listed;
use crate::text::{span, spoken, time_of_day};

/// After this time each candidate that may claim has claimed, with any value of `--elect` and `--priority`.
const CLAIMED_WITHIN: Duration = Duration::from_secs(10);

/// A hint for the case that no candidate claims: a death and a refused append leave no record in the journal.
const LOOK: &str = "no standby has claimed: it has died since its hello, or Kafka refuses its records, or (--patience never) the consumer group has \
                    chosen none; see its log";

/// A hint for a term that was given up because Kafka refused a record: other candidates may be refused for the same reason.
const REFUSED: &str = "the log of the candidate that released it says what refused it; neli-run doctor looks at the topic, the rights and the machine";

/// When the next claim may come, and hints why none has.
pub(super) fn of(listed: &Listed<'_>) -> (Option<String>, Vec<&'static str>) {
    let Listed { at, found, current, standbys, no_room, .. } = listed;
    next_claim((found.observer(), *current), standbys, no_room.is_some(), *at)
}

/// The same; `has_no_room`: the standbys may not lead any more roles (`--max-roles`).
fn next_claim(
    (observer, leadership): (&Observer, Leadership<'_>),
    standbys: &[Standby<'_>],
    has_no_room: bool,
    at: ReadAt,
) -> (Option<String>, Vec<&'static str>) {
    let waits = least_wait(observer, standbys, at);
    let later = waits.filter(|left| !left.is_zero());
    let by_standby = |left| format!("now, by a candidate that starts; {}, by one that stands by", moment(at, left));
    // For how long one of the standbys could have claimed.
    let mut vacant_for = Duration::ZERO;
    let claimable = match leadership {
        Leadership::Overdue { claimable_in, .. } => format!("{} unless a heartbeat comes", moment(at, claimable_in)),
        Leadership::Silent { claimable_in, .. } if !claimable_in.is_zero() => {
            format!("{}; a further heartbeat puts that off by the lease again", moment(at, claimable_in))
        }
        Leadership::Silent { leader, claimable_since, .. } => {
            if let Some(left) = later {
                let (then, lease) = (moment(at, left), spoken(leader.lease));
                format!("{then}, by a standby, which must have listened for longer than the lease ({lease})")
            } else {
                let listens = |standby: &Standby<'_>| Some(standby.listens?.saturating_sub(silence(leader.lease)));
                let could = standbys.iter().map(|standby| listens(standby).unwrap_or(claimable_since)).max();
                vacant_for = could.unwrap_or_default().min(claimable_since);
                let since = at.wall_ms.saturating_sub(millis(claimable_since));
                format!("since {} ({})", time_of_day(since), span(claimable_since))
            }
        }
        Leadership::Released { age, .. } => {
            let now = if waits.is_none() { "starts" } else { "stands by or starts" };
            if let Some((term, left)) = observer.earlier_job(at) {
                format!("{} at the latest, when the earlier job, of term {term}, is gone (--overlap)", moment(at, left))
            } else if has_no_room {
                "now, by a candidate that starts, or has a higher --max-roles".to_owned()
            } else {
                vacant_for = age;
                later.map_or_else(|| format!("now, by a candidate that {now}"), by_standby)
            }
        }
        Leadership::Led { .. } | Leadership::Unknown(Unknown::NotAnswered { .. }) => return (None, Vec::new()),
        Leadership::Unknown(unknown) => {
            // A candidate that has just begun to read does not know yet how long it waits.
            let by = moment(at, later.unwrap_or(silence(LONGEST_LEASE)));
            let latest = if later.is_none() { " at the latest" } else { "" };
            let alone = if unknown == Unknown::Cut { "; start no other before then: it would not wait" } else { "" };
            format!("{by}{latest}, by a candidate that runs, unless a leader's record comes before{alone}")
        }
        Leadership::Forgotten | Leadership::NeverLed => {
            // Since when nobody leads is unknown: since before the oldest hello.
            let is_late = !has_no_room && standbys.iter().any(|standby| standby.age > CLAIMED_WITHIN);
            return (None, is_late.then_some(LOOK).into_iter().collect());
        }
    };
    let is_refused = matches!(leadership, Leadership::Released { release, .. } if release.how.why.as_deref() == Some(Why::Refused.as_str()));
    let is_late = waits == Some(Duration::ZERO) && vacant_for > CLAIMED_WITHIN;
    let hints = [is_refused.then_some(REFUSED), is_late.then_some(LOOK)];
    (Some(claimable), hints.into_iter().flatten().collect())
}

/// For how long each of these standbys will not claim, as far as the records show it; `None` without a standby.
pub(super) fn least_wait(observer: &Observer, standbys: &[Standby<'_>], at: ReadAt) -> Option<Duration> {
    standbys.iter().map(|standby| observer.waits(standby, at)).min()
}

/// A future time, by the clock and as a time span from now, in whole seconds.
pub(super) fn moment(at: ReadAt, left: Duration) -> String {
    let seconds = Duration::from_secs(left.as_millis().div_ceil(1_000).try_into().unwrap_or(u64::MAX));
    format!("at {} (in {})", time_of_day(at.wall_ms.saturating_add(millis(left))), span(seconds))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use neli_proto::hello::Hello;
    use neli_proto::journal::{Journal, Origin};
    use neli_proto::record::{Offset, Record};
    use neli_proto::time::Time;

    use super::*;

    const AT: ReadAt = ReadAt { now: Time::from_nanos(1_000_000_000_000), wall_ms: 1_769_860_800_000 };

    fn later(seconds: u64) -> ReadAt {
        ReadAt { now: AT.now + Duration::from_secs(seconds), wall_ms: AT.wall_ms + seconds * 1_000 }
    }

    fn said(observer: &mut Observer, hello: &str) {
        let hello = Arc::new(Hello::parse(hello.as_bytes()).expect("a hello"));
        observer.hello_received(AT, &hello, false, Some(AT.wall_ms));
    }

    /// The rows of the page with these standbys.
    fn shown(observer: &Observer, standbys: &[Standby<'_>], at: ReadAt) -> String {
        let (claimable, hints) = next_claim((observer, observer.leadership(at)), standbys, false, at);
        let hints = hints.iter().map(|hint| format!("why        {hint}\n"));
        claimable.map(|claimable| format!("claimable  {claimable}\n")).into_iter().chain(hints).collect()
    }

    /// The rows this many seconds after a release, with this standby or none.
    fn rows(why: &str, standby: Option<&str>, seconds: u64) -> String {
        let mut observer = Observer::new(Journal::read_from(0, Origin::Beginning));
        let release = format!(
            r#"{{"v":1,"kind":"release","member":"d1","name":"d1","seq":9,"term":0,"seen":0,"why":"{why}","exit":1}}"#
        );
        let claim = r#"{"v":1,"kind":"claim","member":"d1","name":"d1","seq":1,"after":-1,"lease_ms":5000}"#;
        for (offset, line) in [(0, claim), (1, release.as_str())] {
            observer.read(AT, offset, Record::parse(line.as_bytes()).as_ref(), Some(AT.wall_ms));
        }
        if let Some(name) = standby {
            let hello = format!(r#"{{"v":1,"kind":"hello","member":"{name}","name":"{name}","seq":0}}"#);
            said(&mut observer, &hello);
        }
        shown(&observer, &observer.standbys(later(seconds)), later(seconds))
    }

    #[test]
    fn a_released_term_is_claimed_when_the_standbys_may() {
        assert_eq!(rows("stopped", None, 1), "claimable  now, by a candidate that starts\n");
        assert_eq!(rows("stopped", Some("d2"), 1), "claimable  now, by a candidate that stands by or starts\n");
        let only = "claimable  now, by a candidate that starts; at 12:00:10Z (in 6s), by one that stands by\n";
        assert_eq!(rows("resigned", Some("d1"), 4), only);
    }

    #[test]
    fn after_missed_heartbeats_the_page_shows_when_another_may_claim() {
        let mut observer = Observer::new(Journal::read_from(0, Origin::Beginning));
        let claim = r#"{"v":1,"kind":"claim","member":"d1","name":"d1","seq":1,"after":-1,"lease_ms":20000}"#;
        observer.read(AT, 0, Record::parse(claim.as_bytes()).as_ref(), Some(AT.wall_ms));
        assert_eq!(shown(&observer, &[], later(18)), "claimable  at 12:00:20Z (in 3s) unless a heartbeat comes\n");
    }

    #[test]
    fn a_late_heartbeat_puts_off_the_claim() {
        let mut observer = Observer::new(Journal::read_from(0, Origin::Beginning));
        let claim = r#"{"v":1,"kind":"claim","member":"d1","name":"d1","seq":1,"after":-1,"lease_ms":20000}"#;
        let beat = r#"{"v":1,"kind":"beat","member":"d1","name":"d1","seq":2,"term":0,"seen":0,"lease_ms":20000}"#;
        observer.read(AT, 0, Record::parse(claim.as_bytes()).as_ref(), Some(AT.wall_ms));
        observer.read(later(30), 1, Record::parse(beat.as_bytes()).as_ref(), Some(later(30).wall_ms));
        let then = "claimable  at 12:00:50Z (in 20s); a further heartbeat puts that off by the lease again\n";
        assert_eq!(shown(&observer, &[], later(31)), then);
    }

    /// A third job would run otherwise.
    #[test]
    fn while_the_earlier_job_of_a_handover_may_run_the_page_shows_until_when() {
        let mut observer = Observer::new(Journal::read_from(0, Origin::Beginning));
        let of =
            |member: &str, fields: &str| format!(r#"{{"v":1,"member":"{member}","name":"{member}","seq":1,{fields}}}"#);
        let claim = r#""kind":"claim","lease_ms":5000,"overlap_ms":2000,"after""#;
        let beat = r#""kind":"beat","lease_ms":5000,"overlap_ms":2000,"yields":true,"term":0,"seen":0"#;
        let release = r#""kind":"release","term":2,"seen":2,"why":"stopped""#;
        let [first, next] = [format!("{claim}:-1"), format!(r#"{claim}:1,"over":0"#)];
        let lines = [of("d1", &first), of("d1", beat), of("d2", &next), of("d2", release)];
        let mut read = |offset: Offset, line: &str| {
            let record = Record::parse(line.as_bytes());
            observer.read(AT, offset, record.as_ref(), Some(AT.wall_ms));
            shown(&observer, &[], later(1))
        };
        let pages: Vec<String> = (0..).zip(&lines).map(|(offset, line)| read(offset, line)).collect();
        let until = "at 12:00:05Z (in 5s) at the latest, when the earlier job, of term 0, is gone (--overlap)";
        assert_eq!(pages[3], format!("claimable  {until}\n"));
        let gone = of("d1", r#""kind":"release","term":0,"seen":1,"why":"stopped""#);
        assert_eq!(read(4, &gone), "claimable  now, by a candidate that starts\n");
    }

    /// A machine has died, and the only standby was started after that.
    #[test]
    fn a_standby_that_has_not_listened_for_a_lease_is_no_riddle() {
        let mut observer = Observer::new(Journal::read_from(0, Origin::Beginning));
        let claim = r#"{"v":1,"kind":"claim","member":"d1","name":"d1","seq":1,"after":-1,"lease_ms":10000}"#;
        observer.read(AT, 0, Record::parse(claim.as_bytes()).as_ref(), Some(AT.wall_ms));
        let hello = Hello { seq: Some(0), ..Hello::new("d2".into(), Some("d2".into())) };
        observer.hello_received(later(15), &Arc::new(hello), false, Some(later(15).wall_ms));
        let rows = |seconds| shown(&observer, &observer.standbys(later(seconds)), later(seconds));
        let listens = "at 12:00:25Z (in 5s), by a standby, which must have listened for longer than the lease (10s)";
        assert_eq!(rows(21), format!("claimable  {listens}\n"));
        assert_eq!(rows(30), "claimable  since 12:00:10Z (19s)\n", "it may have claimed now");
        assert!(rows(40).contains(LOOK));
    }

    #[test]
    fn after_a_refusal_the_page_shows_where_to_find_the_reason() {
        let page = rows("refused", None, 1);
        assert!(
            page.contains(
                "\nwhy        the log of the candidate that released it says what refused it; neli-run doctor "
            ),
            "{page}"
        );
    }

    /// The rows about an empty journal this many seconds after the hello of a candidate that announces that it waits for this number of
    /// milliseconds.
    fn rows_of_an_empty_journal(waits_ms: u64, seconds: u64) -> String {
        let mut observer = Observer::new(Journal::read_from(0, Origin::Beginning));
        let hello = format!(r#"{{"v":1,"kind":"hello","member":"d2","name":"d2","seq":1,"waits_ms":{waits_ms}}}"#);
        said(&mut observer, &hello);
        shown(&observer, &observer.standbys(later(seconds)), later(seconds))
    }

    #[test]
    fn in_a_topic_that_was_created_again_the_page_shows_until_when_the_standbys_wait() {
        let page = rows_of_an_empty_journal(60_000, 8);
        let claimable = "claimable  at 12:01:00Z (in 52s), by a candidate that runs, unless a leader's record comes before; start no other \
             before then: it would not wait\n";
        assert_eq!(page, claimable);
        assert_eq!(rows_of_an_empty_journal(0, 8), "");
    }

    #[test]
    fn if_no_standby_claims_in_time_the_page_shows_where_to_look() {
        assert!(rows("stopped", Some("d2"), 30).contains(
            "\nwhy        no standby has claimed: it has died since its hello, or Kafka refuses its records, or (--patience never) the consumer \
             group has chosen none; see its log\n"
        ));
        assert_eq!(rows_of_an_empty_journal(0, 11), format!("why        {LOOK}\n"), "nobody has ever led");
    }
}
