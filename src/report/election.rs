//! Who leads an election, or why nobody does: the same words in every command, on the page, in the log and for systemd.

use std::fmt;
use std::time::Duration;

use neli_proto::leadership::{Ended, Leadership, ReadAt, Release, Request, Unknown};
use neli_proto::time::millis;
use serde::Serialize;

use super::log::{because, spoken, time_of_day, timestamp};

/// The sentence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sentence<'a> {
    leadership: Leadership<'a>,
    /// The wall clock in milliseconds since 1970, if the sentence is to contain times of the day.
    wall_ms: Option<u64>,
}

/// The sentence as of now: with ages.
pub(crate) const fn sentence(leadership: Leadership<'_>) -> Sentence<'_> {
    Sentence { leadership, wall_ms: None }
}

/// The sentence with times of the day, which stays right while nothing changes.
pub(crate) const fn lasting_sentence(leadership: Leadership<'_>, wall_ms: u64) -> Sentence<'_> {
    Sentence { leadership, wall_ms: Some(wall_ms) }
}

/// The state as one word; docs/json.md lists the words.
pub(crate) const fn state(leadership: Leadership<'_>) -> &'static str {
    match leadership {
        Leadership::Forgotten => "forgotten",
        Leadership::Led { .. } => "led",
        Leadership::NeverLed => "never-led",
        Leadership::Released { .. } => "released",
        Leadership::Overdue { .. } | Leadership::Silent { .. } => "silent",
        Leadership::Unknown(_) => "unknown",
    }
}

impl Sentence<'_> {
    fn past(self, age: Duration) -> Option<String> {
        Some(format!("{}Z", time_of_day(self.wall_ms?.saturating_sub(millis(age)))))
    }

    /// How long something has lasted.
    fn lasting(self, age: Duration) -> String {
        self.past(age).map_or_else(|| format!("for {}", span(age)), |at| format!("since {at}"))
    }

    /// When something was.
    fn ago(self, age: Duration) -> String {
        self.past(age).map_or_else(|| format!("{} ago", span(age)), |at| format!("at {at}"))
    }

    /// When something will be.
    fn within(self, left: Duration) -> String {
        let at = self.wall_ms.map(|wall_ms| time_of_day(wall_ms.saturating_add(millis(left))));
        at.map_or_else(|| format!("in {}", span(left)), |at| format!("at {at}Z"))
    }
}

impl fmt::Display for Sentence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.leadership {
            Leadership::Led { leader, .. } => write!(f, "{} leads", leader.shown()),
            Leadership::Overdue { leader, age, claimable_in, .. } => {
                let (name, silent, lease) = (leader.shown(), self.lasting(age), spoken(leader.lease));
                let within = self.within(claimable_in);
                write!(
                    f,
                    "{name} has been silent {silent} (lease {lease}): unless a heartbeat comes, another may claim {within}"
                )
            }
            Leadership::Silent { leader, age, .. } => {
                let (name, lease) = (leader.shown(), spoken(leader.lease));
                match leader.late().map(|late| span(late.gap)) {
                    Some(gap) => write!(
                        f,
                        "no leader: {name} was silent for {gap} (lease {lease}); a heartbeat that came after that extends no lease"
                    ),
                    None => write!(f, "no leader: {name} has been silent {} (lease {lease})", self.lasting(age)),
                }
            }
            Leadership::Released { release, age } => {
                let (by, term, ago, how) = (release.shown(), release.term, self.ago(age), how_released(release));
                write!(f, "no leader: {by} released term {term} {ago}: {how}")
            }
            Leadership::NeverLed => f.write_str("no leader: nobody has ever led"),
            Leadership::Forgotten => {
                f.write_str("no leader: the topic keeps no record of this election (older ones were deleted)")
            }
            Leadership::Unknown(unknown) => {
                f.write_str("can't tell who leads: ")?;
                match unknown {
                    Unknown::Left => f.write_str("this process has left this election, and does not read it any more"),
                    Unknown::LeaseOver => f.write_str("the lease of this process, which led, is over"),
                    Unknown::Missing => f.write_str(
                        "the record that says so is missing from the topic; if no record of a leader comes, a candidate claims \
                         after 60.61s",
                    ),
                    Unknown::NoAnswer => f.write_str("Kafka does not answer"),
                    Unknown::NobodyAnswers => f.write_str("Kafka does not answer; nobody led when it last did"),
                    Unknown::NotHeard { leader, age } => {
                        write!(f, "Kafka does not answer; {} led, and was heard last {}", leader.shown(), self.ago(age))
                    }
                    Unknown::Reading => f.write_str("the journal is being read"),
                }
            }
        }
    }
}

/// Why a term ended, and how its job ended.
pub(crate) fn how_released(release: &Release) -> String {
    let why = because(release.why.as_deref().unwrap_or("no reason said"));
    let asked = release.request.as_ref().map_or_else(String::new, |request| format!(" {}", asked_by(request)));
    let once = release.once.as_ref().map_or_else(String::new, |key| {
        let how = match release.exit {
            None => "is done already, or has failed with no retries left",
            Some(0) => "is done",
            Some(_) => "has failed",
        };
        format!("; {key} {how}")
    });
    let exit = release.exit.map_or_else(String::new, |exit| format!(" (the job's status: {exit})"));
    let late = release.late.map_or_else(String::new, |late| {
        let late = spoken(late);
        format!(
            "; its job may have been alive until {late} after the lease's end: another candidate's job may have \
            run beside it"
        )
    });
    format!("{why}{asked}{exit}{once}{late}")
}

/// Who made a request, and why.
pub(crate) fn asked_by(request: &Request) -> String {
    let reason = request.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
    format!("by {}{reason}", request.by.as_deref().unwrap_or("somebody"))
}

/// A release as JSON.
#[derive(Serialize)]
pub(crate) struct ReleasePart<'a> {
    term: i64,
    by: Option<&'a str>,
    #[serde(flatten)]
    how: HowReleasedPart<'a>,
    pub(crate) at: String,
}

/// Why a term was released as JSON; all is null for one that was not.
#[derive(Default, Serialize)]
pub(crate) struct HowReleasedPart<'a> {
    why: Option<&'a str>,
    asked_by: Option<&'a str>,
    reason: Option<&'a str>,
    exit: Option<u8>,
    late_ms: Option<u64>,
    once: Option<&'a str>,
}

/// A job as JSON.
#[derive(Serialize)]
pub(crate) struct JobPart {
    pub(crate) state: &'static str,
    pub(crate) for_ms: Option<u64>,
    pub(crate) pid: Option<u32>,
    pub(crate) attempt: Option<u32>,
}

impl<'a> ReleasePart<'a> {
    pub(crate) fn of(release: &'a Release, at: ReadAt) -> Self {
        Self {
            term: release.term,
            by: release.name.as_deref(),
            how: HowReleasedPart::of(release),
            at: timestamp(release.received.at_ms(at)),
        }
    }
}

impl<'a> HowReleasedPart<'a> {
    pub(crate) fn of(release: &'a Release) -> Self {
        let request = release.request.as_ref();
        Self {
            why: release.why.as_deref(),
            asked_by: request.and_then(|request| request.by.as_deref()),
            reason: request.and_then(|request| request.reason.as_deref()),
            exit: release.exit,
            late_ms: release.late.map(millis),
            once: release.once.as_deref(),
        }
    }
}

/// A request to end the election as JSON.
#[derive(Serialize)]
pub(crate) struct EndedPart<'a> {
    by: Option<&'a str>,
    reason: Option<&'a str>,
    at: String,
}

impl<'a> EndedPart<'a> {
    pub(crate) fn of(ended: &'a Ended, at: ReadAt) -> Self {
        Self {
            by: ended.request.by.as_deref(),
            reason: ended.request.reason.as_deref(),
            at: timestamp(ended.received.at_ms(at)),
        }
    }
}

/// A duration for comparison: `400ms`, `4.2s`, `108s`, `14m 3s`, `3h 12m`, `5d 3h`.
pub(crate) fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0 => format!("{}ms", span.as_millis()),
        1..10 => spoken(Duration::from_millis(u64::from(span.subsec_millis()) / 100 * 100 + seconds * 1_000)),
        10..120 => format!("{seconds}s"),
        120..7_200 => two(seconds / 60, "m", seconds % 60, "s"),
        7_200..172_800 => two(seconds / 3_600, "h", seconds % 3_600 / 60, "m"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
    }
}

fn two(one: u64, unit: &str, more: u64, smaller: &str) -> String {
    if more == 0 { format!("{one}{unit}") } else { format!("{one}{unit} {more}{smaller}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_short_and_can_be_compared() {
        let shown =
            [40, 4_250, 108_700, 843_000, 11_520_000, 442_800_000, 7_200_000].map(Duration::from_millis).map(span);
        assert_eq!(shown, ["40ms", "4.2s", "108s", "14m 3s", "3h 12m", "5d 3h", "2h"]);
    }
}
