//! `status`: who leads an election now, or why nobody does and until when, and who stands by.

use std::io::{self, Write};

use neli::program::Election;
use neli_proto::observer::{Candidate, Leader, Leadership, Observer, ReadAt, Standby};

use crate::command::page::{Page, Style, Tone};
use crate::command::reading::{self, Place, Reading, Seen, Unread, observe, read_at};
use crate::command::wording::{date, job_state, leadership, named, span, time_of_day};
use crate::command::{status::json::Line, stdout};
use crate::config::Look;
use crate::exit::{ExitStatus, StartupError};
use crate::report::log::spoken;

mod json;

/// Somebody leads.
const LED: ExitStatus = ExitStatus::Success;
/// Nobody does.
const VACANT: ExitStatus = ExitStatus::Answer(3);
/// It can't be told.
const UNKNOWN: ExitStatus = ExitStatus::Answer(4);

/// More groups are not named.
const GROUPS_SHOWN: usize = 10;

/// Shows the election as it is now.
///
/// # Errors
///
/// Kafka refuses for good, the log can't be read, or stdout takes nothing more.
pub fn main(look: &Look) -> Result<ExitStatus, StartupError> {
    let seen = match reading::run(see(look)) {
        Ok(seen) => Ok(seen),
        Err(Unread::NoAnswer(why)) => Err(why),
        Err(Unread::Refused(refusal)) => return Err(refusal),
    };
    let at = read_at();
    let (status, text) = match &seen {
        Ok((election, seen)) => {
            let sight = Sight::of(election, seen, at);
            let text = if look.json { sight.json() } else { sight.page().render(Style::of_stdout()) };
            (sight.status(), text)
        }
        Err(why) if look.json => (UNKNOWN, Line::unknown(&look.election, at, why).text()),
        Err(why) => return Err(StartupError::with(UNKNOWN, format!("can't tell who leads: {why}"))),
    };
    stdout::written(io::stdout().write_all(text.as_bytes()))?;
    Ok(status)
}

/// Reads the election, and says which that is.
async fn see(look: &Look) -> Result<(Election, Seen), Unread> {
    let access = reading::access(&look.client)?;
    let place = Place::find(&access, &look.election, look.timeout).await?;
    let mut reading = Reading::with_hellos(&access, &place)?;
    let mut seen = observe(&mut reading, look.timeout).await?;
    seen.learn_claim(&reading).await?;
    Ok((place.election, seen))
}

/// An election at one moment.
struct Sight<'a> {
    election: &'a Election,
    seen: &'a Seen,
    observer: &'a Observer,
    at: ReadAt,
    leadership: Leadership<'a>,
    standbys: Vec<Standby<'a>>,
}

impl<'a> Sight<'a> {
    fn of(election: &'a Election, seen: &'a Seen, at: ReadAt) -> Self {
        let observer = &seen.observer;
        let (leadership, standbys) = (observer.leadership(at), observer.standbys(at));
        Self { election, seen, observer, at, leadership, standbys }
    }

    fn status(&self) -> ExitStatus {
        match self.leadership {
            Leadership::Led { .. } => LED,
            Leadership::Forgotten | Leadership::NeverLed | Leadership::Released { .. } | Leadership::Silent { .. } => {
                VACANT
            }
            Leadership::Unknown => UNKNOWN,
        }
    }

    fn json(&self) -> String {
        Line::of(self).text()
    }

    fn tone(&self) -> Tone {
        match self.leadership {
            Leadership::Led { .. } => Tone::Good,
            Leadership::Forgotten | Leadership::NeverLed | Leadership::Released { .. } | Leadership::Silent { .. } => {
                Tone::Bad
            }
            Leadership::Unknown => Tone::Unknown,
        }
    }

    fn page(&self) -> Page {
        let sentence = leadership(self.leadership);
        let mut page = Page::new(self.tone(), &format!("{}: {sentence}", named(self.election)));
        match self.leadership {
            Leadership::Led { leader, age, left } => {
                page.row("term", &self.term(leader));
                page.row("job", &self.job(leader));
                let lease =
                    format!("{}, {} left at most; last heartbeat {} ago", spoken(leader.lease), span(left), span(age));
                page.row("lease", &lease);
                if let Some(resign) = &leader.resign {
                    let by = resign.by.as_deref().unwrap_or("somebody");
                    let reason = resign.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
                    page.row("resign", &format!("{by} has asked it to stand down{reason}"));
                }
            }
            Leadership::Silent { leader, claimable_since, .. } => {
                let since =
                    self.at.wall_ms.saturating_sub(u64::try_from(claimable_since.as_millis()).unwrap_or(u64::MAX));
                page.row("claimable", &format!("since {} ({})", time_of_day(since), span(claimable_since)));
                page.row("term", &self.term(leader));
                page.row("job", "dead, or killed by its guard when the lease ended");
            }
            Leadership::Released { .. } => page.row("claimable", "now, by whoever stands by or starts"),
            Leadership::NeverLed if !self.observer.has_read_anything() && !self.seen.others.is_empty() => {
                page.row("groups", &format!("this topic has {}", self.groups()));
            }
            Leadership::Forgotten | Leadership::NeverLed | Leadership::Unknown => {}
        }
        self.void_claims(&mut page);
        self.candidates(&mut page);
        self.roles(&mut page);
        page
    }

    fn term(&self, leader: &Leader) -> String {
        let since = leader.claimed_ms.map_or_else(String::new, |claimed_ms| {
            let for_so_long = self.at.wall_ms.saturating_sub(claimed_ms);
            format!(", since {} ({})", date(claimed_ms), span(std::time::Duration::from_millis(for_so_long)))
        });
        format!("{}{since}", leader.term)
    }

    fn job(&self, leader: &Leader) -> String {
        let Some(job) = leader.job else { return "not started yet".to_owned() };
        let since = job.since_ms.map_or_else(String::new, |since_ms| {
            let since = std::time::Duration::from_millis(since_ms);
            format!(" for {}", span(since + self.observer.age(leader.word, self.at)))
        });
        let pid = job.pid.map_or_else(String::new, |pid| format!(", pid {pid}"));
        let attempt = job.attempt.filter(|attempt| *attempt > 1);
        let attempt = attempt.map_or_else(String::new, |attempt| format!(", run {attempt} of this term"));
        format!("{}{since}{pid}{attempt}", job_state(job.state))
    }

    fn void_claims(&self, page: &mut Page) {
        if let Some(claims) = self.observer.void_claims() {
            let by = claims.by.as_deref().unwrap_or("somebody");
            let (count, age) = (claims.count, span(self.observer.age(claims.heard, self.at)));
            page.row("claims", &format!("{count} void since then, the last by {by} {age} ago"));
        }
    }

    fn candidates(&self, page: &mut Page) {
        let leader = self.observer.leaders_hello().filter(|_| matches!(self.leadership, Leadership::Led { .. }));
        if let Some(leader) = leader {
            page.row("leader", &describe(leader).join(", "));
        }
        if self.standbys.is_empty() {
            page.row("standbys", "none");
        }
        for (at, standby) in self.standbys.iter().enumerate() {
            let mut told = vec![format!("{}, hello {} ago", standby.candidate.shown(), span(standby.age))];
            let differs = describe(standby.candidate).into_iter();
            let leaders = leader.map(describe).unwrap_or_default();
            told.extend(differs.filter(|fact| !leaders.contains(fact)));
            if standby.failed_runs > 0 {
                let waits = spoken(standby.back_off());
                told.push(format!("its last {} runs failed: waits {waits} before it claims", standby.failed_runs));
            }
            page.row(if at == 0 { "standbys" } else { "" }, &told.join(", "));
        }
    }

    /// Which role this is of how many.
    fn roles(&self, page: &mut Page) {
        let Some(mapping) = &self.seen.mapping else { return };
        let (label, roles) = (self.election.label(), mapping.roles());
        let told = match mapping.number(&label) {
            Some(_) => format!("this is {label} of {roles}; --role shows another"),
            None => format!("{roles}; --role says which"),
        };
        page.row("roles", &told);
    }

    /// The groups of other elections in the topic.
    fn groups(&self) -> String {
        let shown: Vec<&str> = self.seen.others.iter().take(GROUPS_SHOWN).map(String::as_str).collect();
        let more = self.seen.others.len().saturating_sub(GROUPS_SHOWN);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        format!("{}{more}", shown.join(", "))
    }
}

/// What may differ from candidate to candidate.
fn describe(candidate: &Candidate) -> Vec<String> {
    let version = candidate.version.as_ref().map(|version| format!("version {version}"));
    let elector = candidate.elector.as_ref().map(|elector| format!("--elect {elector}"));
    let priority = (candidate.priority > 0).then(|| format!("--priority {}", candidate.priority));
    let host = candidate.host.as_ref().map(|host| format!("on {host}"));
    [host, version, elector, priority].into_iter().flatten().collect()
}
