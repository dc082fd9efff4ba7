//! `status`: the leader of an election, or why there is none and until when; and the standbys. Of a group with several roles: a table of them.

use std::time::Duration;

use anyhow::Result;
use neli_kafka::{ElectionId, clock};
use neli_proto::journal::{EarlierJob, Journal, Origin};
use neli_proto::leadership::{Leader, Leadership, Unknown};
use neli_proto::mapping::Mapping;
use neli_proto::observer::{Election, KnownCandidate, NoRoom};
use neli_proto::record::{Job, JobState};
use neli_proto::time::millis;
use serde_json::{Value, json};

use crate::cli::parsed_args::{self, ParsedArgs};
use crate::cli::validate::validate_key;
use crate::command::facts::{INTERRUPTED, LastRun, are_recorded, last_run, outcome};
use crate::command::list::Listed;
use crate::command::look::{Look, TIMEOUT};
use crate::command::output::{self, Page, Style, Tone, columns};
use crate::command::reading::{self, FoundElections, Observation, Seen, in_topic, read_at, warn_of_clock};
use crate::command::wording::{groups, led_of, named};
use crate::exit::{ExitStatus, status_of};
use crate::report::election::{asked_by, sentence};
use crate::report::json::{self, ended, joined, leaders_hello, release, runs};
use crate::text::{self, counted, date, one_line, span, spoken, timestamp, wrapped};

mod claimable;
mod key;

/// There is a leader.
const LED: ExitStatus = ExitStatus::SUCCESS;
/// The pause between two pages of the live view.
const INTERVAL: Duration = Duration::from_secs(1);

/// Shows the election as it is now, or the state of this key alone.
///
/// # Errors
/// Kafka refuses permanently, the log can't be read, or stdout can't be written.
pub fn main(args: &ParsedArgs) -> Result<ExitStatus> {
    // A variable is about the candidates that have it.
    let key = args.value("once").filter(parsed_args::Value::is_option).map(|once| validate_key(&once)).transpose()?;
    let look = &Look::of(args, TIMEOUT)?;
    key.map_or_else(|| shown(look, false), |key| key::main(look, &key))
}

/// Shows the election as it is now, or each second, with the last changes.
pub(super) fn shown(look: &Look, is_live: bool) -> Result<ExitStatus> {
    match reading::run(show(look, is_live)) {
        Err(error) if status_of(&error) == ExitStatus::UNKNOWN && look.json => {
            output::print(&unread(&look.election, &error.to_string()))?;
            Ok(ExitStatus::UNKNOWN)
        }
        Err(error) if status_of(&error) == ExitStatus::UNKNOWN => Err(error.context("can't tell who leads")),
        shown => shown.or_else(output::unless_closed),
    }
}

async fn show(look: &Look, is_live: bool) -> Result<ExitStatus> {
    let found = FoundElections::find(look, |_| {}).await?;
    // The jobs of several roles have no recorded runs.
    let recorded = if let [only] = found.elections.as_slice() { Some(only.clone()) } else { None };
    let reading_runs = recorded.as_ref().map(|election| last_run(&look.access, election));
    let mut observation = Observation::of_leaders(look, found).await?;
    // The end of the reading: no heartbeat is read while the claim and the last run are, so by the present time a leader would seem silent.
    let mut at = read_at();
    observation.learn_claim().await;
    let mut run = match (reading_runs, observation.first()) {
        (Some(reading), Ok(seen)) => reading.await.unwrap_or_else(|error| {
            if are_recorded(seen.read.observer(), at) {
                output::say(&format!("warning: the last run is not shown: {error:#}"));
            }
            None
        }),
        _ => None,
    };
    loop {
        if let (Some(run), Ok(seen)) = (&mut run, observation.first()) {
            run.learn_release(seen.read);
            run.learn_leadership(seen.read.observer().leadership(at));
            run.learn_schedule(seen.read.observer(), at);
        }
        let mapping = observation.found.mapping.as_ref();
        // What is shown live is as of Kafka's last answer: a silence since then may be Kafka's.
        let elections = observation.seen().map(|seen| {
            let (topic, found) = (seen.election.topic.as_str(), seen.read);
            let current = if is_live { found.leadership(at) } else { found.observer().leadership(at) };
            let standbys = found.observer().standbys(at);
            let no_room = NoRoom::of(&standbys, || mapping.map_or(1, Mapping::count)).filter(|_| current.is_vacant());
            Listed { at, topic, found, current, standbys, no_room }
        });
        let shown: Vec<Listed<'_>> = elections.collect();
        if !is_live {
            // It shows the records up to the end, even if Kafka does not answer any more.
            let text = if look.json {
                shown.iter().map(|one| text::json(&json_of(one, run.as_ref())) + "\n").collect()
            } else {
                page(&shown, &observation, run.as_ref(), usize::MAX, false)
            };
            warn_of_clock(observation.seen().map(|seen| seen.read.observer()));
            // The exit status names the state even if stdout is not read.
            output::print(&text)?;
            // The worst state counts.
            let statuses = shown.iter().map(|one| status(one.current).0);
            return Ok(statuses.max_by_key(|status| status.code()).unwrap_or(ExitStatus::UNKNOWN));
        }
        output::show(&live_page(&shown, &observation, run.as_ref()))?;
        let (until, mut has_changed) = (clock::now() + INTERVAL, false);
        while clock::now() < until {
            let judged = observation.next(Some(until)).await?.and_then(|(_, judged)| judged);
            has_changed |= judged.is_some_and(|(_, (_, changes))| !changes.is_empty());
        }
        // After a change of the term or its job there may be another fact, even if the state is the same again.
        if let Some(election) = recorded.as_ref().filter(|_| has_changed) {
            run = last_run(&look.access, election).await.unwrap_or(run);
        }
        observation.note_silences();
        at = read_at();
    }
}

/// The page, with so many standbys at most.
fn page(all: &[Listed<'_>], of: &Observation, run: Option<&LastRun>, most: usize, is_live: bool) -> String {
    let style = Style::of_stdout();
    match (all, of.seen().next()) {
        ([one], Some(seen)) => page_of(one, (seen, of.found.mapping.as_ref(), run), is_live, most, style).render(style),
        _ => head(all).render(style) + &table(all, style),
    }
}

/// The page, and as many of the last changes as fit the terminal. While Kafka does not answer, the records that were read do not show the
/// present leader.
fn live_page(all: &[Listed<'_>], observation: &Observation, run: Option<&LastRun>) -> String {
    let style = Style::of_stdout();
    if let Some(why) = observation.reading.outage() {
        let only = observation.first().ok().filter(|_| all.len() == 1);
        let name = only.map_or_else(|| group(all).to_owned(), |seen| named(seen.election));
        return Page::new(Tone::Unknown, &format!("{name}: can't tell who leads: {why}")).render(style);
    }
    let line = |(ms, event): &(u64, Box<str>)| wrapped(&one_line(&format!("{} {event}", date(*ms))), style.width());
    let changes: Vec<String> = observation.changes.iter().flat_map(line).collect();
    let standbys = if let [one] = all { one.standbys.len() } else { 0 };
    with_changes(output::rows().unwrap_or(usize::MAX), &changes, standbys, |most| {
        page(all, observation, run, most, true)
    })
}

fn group<'a>(all: &'a [Listed<'_>]) -> &'a str {
    all.first().map_or("", |listed| &listed.found.place().group)
}

/// The first line above the table of several roles.
fn head(all: &[Listed<'_>]) -> Page {
    let of = |wanted| all.iter().filter(|listed| status(listed.current).0 == wanted).count();
    let (led, tone) = led_of("role", all.len(), of(LED), 0, of(ExitStatus::VACANT));
    Page::new(tone, &format!("{}: {led}; --role shows one of them", group(all)))
}

/// One line for each role.
fn table(all: &[Listed<'_>], style: Style) -> String {
    let cells = all.iter().map(|listed| {
        let [term, standbys, current] = listed.cells();
        [one_line(&listed.found.place().role), term, standbys, current]
    });
    columns(["ROLE", "TERM", "STANDBYS", "LEADER"], &cells.collect::<Vec<_>>(), style)
}

/// The exit status, and the tone of the page.
const fn status(current: Leadership<'_>) -> (ExitStatus, Tone) {
    if current.is_led() {
        (LED, Tone::Good)
    } else if current.is_vacant() {
        (ExitStatus::VACANT, Tone::Bad)
    } else {
        (ExitStatus::UNKNOWN, Tone::Unknown)
    }
}

/// `--json`: the line.
fn json_of(listed: &Listed<'_>, last_run: Option<&LastRun>) -> Value {
    let Listed { at, found, current: leadership, standbys, .. } = listed;
    let (observer, at, leadership) = (found.observer(), *at, *leadership);
    let in_future = |left| at.wall_ms.saturating_add(millis(left));
    // Those that stand by may have to wait longer than a candidate that starts.
    let wait = claimable::least_wait(observer, standbys, at);
    let later = wait.filter(|wait| !wait.is_zero()).map(in_future);
    let (claimable_since, released) = match leadership {
        Leadership::Overdue { claimable_in, .. } => (Some(in_future(claimable_in)), None),
        Leadership::Silent { claimable_since, claimable_in, .. } => {
            let since = in_future(claimable_in).saturating_sub(millis(claimable_since));
            (later.max(Some(since)), None)
        }
        Leadership::Released { release: of, .. } => {
            let earlier_job = observer.earlier_job(at).map(|(_, left)| in_future(left));
            let since = earlier_job.unwrap_or_else(|| of.received.at_ms(at));
            (later.max(Some(since)), Some(release(of, at)))
        }
        // Those that stand by wait where records are missing.
        Leadership::Unknown(_) => (later, None),
        Leadership::Forgotten | Leadership::Led { .. } | Leadership::NeverLed => (None, None),
    };
    let journal = observer.journal();
    let earlier_job = if let EarlierJob::Overlapped { term, name, lease, .. } = journal.earlier_job() {
        Some(json!({ "term": term, "name": name, "lease_ms": millis(*lease) }))
    } else {
        None
    };
    let next_windows = last_run.map(|run| run.next_windows(at.wall_ms)).unwrap_or_default();
    let mut head = listed.head();
    for hint in claimable::of(listed).1 {
        head["why"] = format!("{}; {hint}", head["why"].as_str().unwrap_or_default()).into();
    }
    joined([
        head,
        json!({
            "claimable_since": claimable_since.map(timestamp),
            "leader": leadership.leader().map(|leader| leader_part(listed, leader)),
            "release": released,
            "ended": observer.ended().map(|of| ended(of, at)),
            "earlier_job": earlier_job,
            "last_run": last_run.map(|run| run.json(leadership)),
            "runs": last_run.map(|run| runs(&run.account, next_windows.first().copied())),
            "next_windows": next_windows.iter().copied().map(timestamp).collect::<Vec<_>>(),
            "void_claims": observer.void_claims(),
            "standbys": json::standbys(observer, standbys, at),
        }),
    ])
}

fn leader_part(listed: &Listed<'_>, leader: &Leader) -> Value {
    let (observer, at) = (listed.found.observer(), listed.at);
    let (resign, lease) = (leader.resign.as_ref(), listed.current.lease());
    json!({
        "name": leader.name,
        "member": leader.member,
        "term": leader.term,
        "since": leader.claimed_ms.map(timestamp),
        "lease_ms": millis(leader.lease),
        "lease_left_ms": lease.map_or(0, |(_, left)| millis(left)),
        "heartbeat_age_ms": millis(observer.age(leader.last_record, at)),
        "age_by": if leader.last_record.is_aged_by_timestamp() { "timestamp" } else { "receipt" },
        "job": leader.job.map(|job| json!({
            "state": job.state.name(),
            "for_ms": in_state(listed, job, leader).map(millis),
            "pid": job.pid,
            "attempt": job.attempt,
        })),
        "resign_asked_by": resign.map(|resign| resign.by.as_deref().unwrap_or("somebody")),
        "resign_reason": resign.and_then(|resign| resign.reason.as_deref()),
        "hello": leaders_hello(observer, at),
    })
}

/// The page, with so many standbys at most.
fn page_of(
    listed: &Listed<'_>,
    (seen, mapping, last_run): (Seen<'_>, Option<&Mapping>, Option<&LastRun>),
    has_bar: bool,
    most: usize,
    style: Style,
) -> Page {
    let sentence = listed.said(sentence);
    let mut page = Page::new(status(listed.current).1, &format!("{}: {sentence}", named(seen.election)));
    let Listed { at, current, .. } = listed;
    let (observer, other_groups, at, current) = (listed.found.observer(), seen.other_groups, *at, *current);
    if !observer.has_read_anything() && !other_groups.is_empty() {
        page.row("groups", &format!("this topic has {}", groups(other_groups)));
    } else {
        let (claimable, hints) = claimable::of(listed);
        if let Some(claimable) = claimable {
            page.row("claimable", &claimable);
        }
        for hint in hints {
            page.row("why", hint);
        }
    }
    if let Some(leader) = current.leader() {
        page.row("term", &term(listed, leader));
        page.row("job", &job(listed, leader));
    }
    if let Leadership::Led { leader, age, left } | Leadership::Overdue { leader, age, left, .. } = current {
        let (bar, lease) = (if has_bar { style.bar(left, leader.lease) } else { String::new() }, spoken(leader.lease));
        let (left, age) = (span(left), span(age));
        page.row("lease", &format!("{bar}{lease}, {left} left at most; last heartbeat {age} ago"));
        if let Some(resign) = &leader.resign {
            page.row("resign", &format!("it was asked to stand down {}", asked_by(resign)));
        }
    }
    if let EarlierJob::Overlapped { term, name, lease, .. } = observer.journal().earlier_job() {
        let of = name.as_ref().map_or_else(String::new, |name| format!(" of {name}"));
        let most = spoken(*lease);
        let text = format!("the job of term {term}{of} may run beside it, for {most} after the claim at most");
        page.row("overlap", &text);
    }
    if let Some(run) = last_run {
        let is_left = outcome(&run.fact, current) == INTERRUPTED;
        for (number, (label, text)) in run.rows(at.wall_ms).into_iter().enumerate() {
            page.row(label, &if number == 0 && is_left { format!("{text}; its runner is gone") } else { text });
        }
    }
    if let Some((request, received)) = observer.ended() {
        let (age, by) = (span(observer.age(*received, at)), asked_by(request));
        page.row("ended", &format!("{age} ago {by}; candidates that started before exit"));
    }
    if observer.void_claims() > 0 {
        page.row("claims", &format!("{} void since then", observer.void_claims()));
    }
    candidates(listed, &mut page, most);
    if let Some(mapping) = mapping {
        let (roles, label) = (mapping.roles(), seen.election.label());
        page.row("roles", &format!("{roles}; this is {label}, and --role shows another"));
    }
    page
}

fn term(listed: &Listed<'_>, leader: &Leader) -> String {
    let since = leader.claimed_ms.map_or_else(String::new, |claimed_ms| {
        let for_so_long = listed.found.observer().broker_now(listed.at).saturating_sub(claimed_ms);
        format!(", since {} ({})", date(claimed_ms), span(Duration::from_millis(for_so_long)))
    });
    format!("{}{since}", leader.term)
}

fn job(listed: &Listed<'_>, leader: &Leader) -> String {
    if listed.current.is_vacant() {
        return "dead, or killed by its guard when the lease ended".to_owned();
    }
    let Some(job) = leader.job else { return "not started yet".to_owned() };
    let since = in_state(listed, job, leader).map_or_else(String::new, |since| format!(" for {}", span(since)));
    let pid = job.pid.map_or_else(String::new, |pid| format!(", pid {pid}"));
    let attempt = which_attempt(job);
    // Also between the times of `--schedule`.
    let state = match job.state {
        JobState::Restarting => "waiting for its next run",
        JobState::Stopping if job.pid.is_none() => "ended, not released yet",
        JobState::Running | JobState::Starting | JobState::Stopping => job.state.name(),
    };
    let by = if listed.current.is_led() { "" } else { ", by its last heartbeat" };
    format!("{state}{since}{pid}{attempt}{by}")
}

/// The attempt, from the second one on. Between two runs it is that of the last run, of which the heartbeat does not say how it ended.
fn which_attempt(job: Job) -> String {
    match job.attempt.filter(|attempt| *attempt > 1) {
        Some(attempt) if job.state == JobState::Restarting => format!(", after attempt {attempt}"),
        Some(attempt) => format!(", attempt {attempt} after {} that failed", attempt - 1),
        None => String::new(),
    }
}

/// How long the job has been in its state: until now only if its leader is known to lead, otherwise until its last heartbeat.
fn in_state(listed: &Listed<'_>, job: Job, leader: &Leader) -> Option<Duration> {
    let age = || listed.found.observer().age(leader.last_record, listed.at);
    let more = if listed.current.is_led() { age() } else { Duration::ZERO };
    job.since_ms.map(|since_ms| Duration::from_millis(since_ms).saturating_add(more))
}

fn candidates(listed: &Listed<'_>, page: &mut Page, most: usize) {
    let (observer, Listed { at, current, standbys, .. }) = (listed.found.observer(), listed);
    let leader = observer.leaders_hello().filter(|_| current.may_lead().is_some());
    if let Some(leader) = leader {
        page.row("leader", &describe(leader).join(", "));
    }
    if standbys.is_empty() {
        page.row("standbys", "none");
    }
    for (number, standby) in standbys.iter().enumerate().take(most) {
        let mut cells = vec![format!("{}, hello {} ago", standby.candidate.shown(), span(standby.age))];
        let differs = describe(standby.candidate).into_iter();
        let leaders = leader.map(describe).unwrap_or_default();
        cells.extend(differs.filter(|fact| !leaders.contains(fact)));
        if standby.failed_runs > 0 {
            let (waits, failed) = (spoken(standby.back_off()), counted(standby.failed_runs, "time"));
            cells.push(format!("failed {failed} in a row: waits {waits} before it claims"));
        }
        let waits = observer.waits(standby, *at);
        if waits > Duration::ZERO {
            cells.push(format!("claims {} at the earliest", claimable::moment(*at, waits)));
        }
        page.row(if number == 0 { "standbys" } else { "" }, &cells.join(", "));
    }
    match standbys.len().saturating_sub(most) {
        0 => {}
        more if most == 0 => page.row("standbys", &more.to_string()),
        more => page.row("", &format!("and {more} more")),
    }
}

/// The page and the last changes, on so many rows. The page shows as many of the standbys as leave the changes their room.
fn with_changes(rows: usize, changes: &[String], standbys: usize, page: impl Fn(usize) -> String) -> String {
    let room = |page: &String| rows.saturating_sub(page.lines().count() + 2);
    let mut pages = (0..=standbys).rev().map(&page);
    let mut text = pages.find(|page| room(page) >= changes.len()).unwrap_or_else(|| page(0));
    let last = changes.iter().skip(changes.len().saturating_sub(room(&text)));
    text.push('\n');
    text.extend(last.map(|line| format!("{line}\n")));
    text
}

/// Settings that may differ between candidates.
fn describe(candidate: &KnownCandidate) -> Vec<String> {
    let hello = &candidate.hello;
    let version = hello.version.as_ref().map(|version| format!("version {version}"));
    let elector = hello.elector.as_ref().map(|elector| format!("--elect {elector}"));
    let priority = (hello.priority > 0).then(|| format!("--priority {}", hello.priority));
    let max_roles = candidate.max_roles().map(|most| format!("--max-roles {most}"));
    let host = hello.host.as_ref().map(|host| format!("on {host}"));
    let refused = hello.group_refuses.as_ref();
    let refused = refused.map(|words| format!("without precedence: the group refuses it ({words})"));
    [host, version, elector, refused, priority, max_roles].into_iter().flatten().collect()
}

/// `--json`: the line about an election that could not be read, for this reason.
fn unread(election: &ElectionId, why: &str) -> String {
    let read = &Election::new(&in_topic(election), Journal::read_from(0, Origin::Beginning), 0, 0);
    let (topic, current) = (election.topic.as_str(), Leadership::Unknown(Unknown::NoAnswer));
    let listed = Listed { at: read_at(), topic, found: read, current, standbys: Vec::new(), no_room: None };
    let mut line = json_of(&listed, None);
    line["why"] = why.into();
    text::json(&line) + "\n"
}

#[cfg(test)]
mod tests {
    use neli_proto::leadership::ReadAt;

    use super::*;
    use crate::command::reading::HeardBefore;

    /// As the page says: it must have listened for longer than the lease.
    #[test]
    fn a_standby_that_has_just_begun_to_listen_claims_later_than_the_lease_s_end() {
        let heard = HeardBefore::new().with_hello(br#"{"v":1,"kind":"hello","member":"n","seq":0}"#);
        let (seen, now) = (heard.seen(), read_at());
        let observer = seen.read.observer();
        let after = |seconds: u64| {
            let at = ReadAt { now: now.now + Duration::from_secs(seconds), wall_ms: now.wall_ms + 1_000 * seconds };
            let (current, standbys) = (observer.leadership(at), observer.standbys(at));
            json_of(&Listed { at, topic: "t", found: seen.read, current, standbys, no_room: None }, None)
        };
        let object = after(0);
        assert_eq!(object["state"], "silent");
        assert!(object["claimable_since"].as_str() > object["ts"].as_str(), "{object}");
        let is_explained = |object: &Value| object["why"].as_str().is_some_and(|why| why.ends_with("; see its log"));
        assert_eq!((is_explained(&object), is_explained(&after(30))), (false, true), "as the page does");
    }

    #[test]
    fn an_attempt_that_is_over_is_not_said_to_follow_those_that_failed() {
        let shown = |state| which_attempt(Job { state, pid: None, attempt: Some(3), since_ms: None });
        assert_eq!(shown(JobState::Restarting), ", after attempt 3");
        assert_eq!(shown(JobState::Running), ", attempt 3 after 2 that failed");
    }

    #[test]
    fn many_standbys_leave_the_changes_their_room() {
        let changes = ["ann has asked n1 to stand down".to_owned(), "n2 leads".to_owned()];
        let shown = |rows| {
            let text = with_changes(rows, &changes, 39, |most| "n2 leads\n".to_owned() + &"standby\n".repeat(most));
            (text.matches("standby\n").count(), text.matches("n1").count(), text.ends_with("\nn2 leads\n"))
        };
        assert_eq!(shown(30), (25, 1, true));
        assert_eq!(shown(200), (39, 1, true));
        assert_eq!(shown(4), (0, 0, true), "the last change");
    }
}
