//! The facts that `--once`, `--window` and `--schedule` record in the topic `<topic>.once`: those of a key, and the last run of an election.

use std::collections::BTreeMap;
use std::mem;
use std::time::Duration;

use anyhow::{Error, Result};
use jiff::tz::TimeZone;
use neli_kafka::{Access, ElectionId, FactsTopic};
use neli_proto::fact::{Account, Fact, Facts, Outcome, Place};
use neli_proto::leadership::{Leader, Leadership, ReadAt, Release};
use neli_proto::listener::{FIRST_SPAN, LogBounds};
use neli_proto::observer::{Election, Observer, PastLeader, PastTerm, TermEnd};
use neli_proto::record::{KeyedRun, LogRecord, MemberId, Offset};
use serde_json::Value;

use crate::calendar::{Calendar, Edges, Every, has_beginning, is_start, zone};
use crate::command::look::Look;
use crate::command::reading::{Limit, Reading, Seen};
use crate::exit::{ExitStatus, status_of, with_status};
use crate::report::json::run;
use crate::text::{date, span, spoken};

/// The fact about a key, or the newest window, that still counts, if any does, and its [outcome] as of `at`, when the journal was read: it is not read
/// on while the facts are, and a leader would seem silent.
pub(super) fn recorded<'a>(facts: &'a Facts, seen: Seen<'_>, at: ReadAt) -> Option<(&'a Fact, &'static str)> {
    let counts = |fact: &&Fact| !facts.has_forgotten(fact);
    let attempt = facts.attempt.as_ref().filter(counts);
    let current = seen.read.observer().leadership(at);
    let done = facts.done.as_ref().filter(counts);
    let is_over =
        |run: &Fact| facts.done.as_ref().is_some_and(|done| done.term == run.term && done.window == run.window);
    // Also if the key was forgotten meanwhile.
    if let Some(run) = facts.attempt.as_ref().filter(|run| outcome(run, current) == RUNNING && !is_over(run)) {
        return Some((run, RUNNING));
    }
    // The windows before a forgotten one stay over.
    let is_before = |fact: &&Fact| {
        let windows = facts.forgotten.as_ref().filter(|forgotten| fact.forgets < forgotten.forgets);
        let windows = windows.and_then(|forgotten| fact.window.zip(forgotten.window));
        windows.is_some_and(|(own, forgotten)| own.from_ms < forgotten.from_ms)
    };
    let newest = done.into_iter().chain(attempt).filter(|fact| !is_before(fact)).max_by_key(|fact| {
        // A success that was recorded after a later run had failed counts.
        let rank = (fact.outcome == Outcome::Done, fact.term, fact.outcome != Outcome::Running);
        (fact.window.map(|window| window.from_ms), fact.forgets, rank)
    });
    newest.map(|fact| (fact, outcome(fact, current)))
}

/// How a run has ended, in a word of docs/json.md. One that was begun goes on while its runner leads, or it is unknown who leads.
pub(super) fn outcome(run: &Fact, current: Leadership<'_>) -> &'static str {
    let is_its = |leader: &Leader| ran_in(run, leader.term, leader.member.as_ref());
    match run.outcome {
        Outcome::Done => "done",
        Outcome::Failed => "failed",
        Outcome::Forgotten => "forgotten",
        Outcome::Running if current.is_unknown() || current.may_lead().is_some_and(is_its) => RUNNING,
        Outcome::Running => INTERRUPTED,
        Outcome::Skipped => "skipped",
    }
}

/// The run was begun, and goes on.
pub(super) const RUNNING: &str = "running";
/// The run was begun, and its runner is gone.
pub(super) const INTERRUPTED: &str = "interrupted";

/// Whether it was this leader's run: in a journal that was made anew another may lead in the same term.
fn ran_in(run: &Fact, term: Offset, leader: Option<&MemberId>) -> bool {
    let is_anothers = leader.zip(run.member.as_ref()).is_some_and(|(leader, runner)| leader != runner);
    run.term == term && !is_anothers
}

/// Adds the success of a key that a release in the journal names, unless one counts already: it is as good as the fact (K4).
pub(super) fn learn_release(facts: &mut Facts, key: &str, seen: Seen<'_>) {
    let counts = |fact: &Fact| !facts.has_forgotten(fact);
    let released = |past: &PastTerm| {
        let TermEnd::Released { how, .. } = &past.end else { return None };
        let is_meant = |run: &&KeyedRun| *run.key == *key && run.is_window != Some(true);
        how.once.as_ref().filter(is_meant).filter(|_| how.exit == Some(0))?;
        let PastLeader { member, name } = (*past.leader).clone();
        let fact = Fact { member, name, exit: Some(0), ..Fact::new(key, Outcome::Done, past.term) };
        Some(fact).filter(counts)
    };
    if !facts.done.as_ref().is_some_and(counts)
        && let Some(success) = seen.read.terms().iter().rev().find_map(released)
    {
        facts.done = Some(success);
    }
}

/// Reads the facts in this topic.
///
/// # Errors
/// As for [`Reading::read_to_end`].
pub(super) async fn read(topic: &FactsTopic, look: &Look) -> Result<Facts> {
    let mut facts = Facts::default();
    let handle_record = |_, record: LogRecord| {
        topic.take(&mut facts, record.key.as_deref(), record.value.as_deref());
    };
    let mut reading = Reading::of_facts(&look.access, &topic.name)?;
    let read = reading.read_to_end(Limit::of_all(look.timeout), |bounds| bounds.start, handle_record).await;
    read.map_err(|error| if_late(error, &topic.name, look.timeout, "; see --timeout"))?;
    Ok(facts)
}

/// Why a topic of facts could not be read. If that took longer than `within`, it says so, with this advice.
fn if_late(error: Error, topic: &str, within: Duration, advice: &str) -> Error {
    if status_of(&error) != ExitStatus::UNKNOWN {
        return error;
    }
    let late = format!("topic {topic:?}: it is not read to its end within {}{advice}", spoken(within));
    with_status(ExitStatus::UNKNOWN, late)
}

/// What is said of a key without a fact in an election that [runs by windows](has_windows).
pub(super) const OF_WINDOWS: &str = "nothing is recorded of such a key, and this election runs by windows: neli-run status shows the newest one, and \
                                     neli-run forget --newest-window lets it run again";

/// Whether windows of this election are recorded.
pub(super) async fn has_windows(election: &ElectionId, look: &Look) -> Result<bool> {
    let facts = read(&FactsTopic::of(election, None), look).await?;
    Ok(facts.done.or(facts.attempt).is_some())
}

/// The places of records that keep every candidate from running the job, because they are not facts of this key, or of windows if there is
/// none.
pub(super) fn unreadable(facts: &Facts, key: Option<&str>) -> Vec<Place> {
    let is_other = |fact: &Fact| key.is_none() && fact.window.is_none();
    let is_unreadable = |place: &Place| facts.unreadable.contains(place) || facts.at(*place).is_some_and(is_other);
    Place::ALL.into_iter().filter(is_unreadable).collect()
}

/// The time limit for Kafka's answers. It is short, because the rest of the page does not need them.
const WITHIN: Duration = Duration::from_secs(1);

/// So many of a schedule's next windows are shown.
const NEXT: usize = 5;

/// The last run, if one is recorded. The reading begins at once, while the journal is read. Must be called within a runtime.
pub(super) fn last_run(
    access: &Access,
    election: &ElectionId,
) -> impl Future<Output = Result<Option<LastRun>>> + use<> {
    let topic = FactsTopic::of(election, None).name;
    let reading = Reading::of_facts(access, &topic);
    let key = election.key();
    async move {
        let mut last = None;
        let handle_record = |_, record: LogRecord| {
            let is_own = record.key.is_some_and(|own| election_of(&own) == Some(&*key));
            if let Some(fact) = record.value.filter(|_| is_own).and_then(|value| Fact::parse(&value)) {
                last = Some(LastRun::after(last.take(), fact));
            }
        };
        let last_records = |bounds: &LogBounds| bounds.last(FIRST_SPAN);
        let read = reading?.read_to_end(Limit::of_all(WITHIN), last_records, handle_record).await;
        read.map_err(|error| if_late(error, &topic, WITHIN, ""))?;
        Ok(last)
    }
}

/// The last fact, and what it tells of the runs before it.
pub(super) struct LastRun {
    pub(super) fact: Fact,
    pub(super) account: Account,
    /// The calendar of the schedule or the windows, if this version and this machine know it. It is kept, since a page of many elections asks each for its next window,
    /// and it takes ten times as long to make.
    calendar: Option<Calendar>,
    /// The options of `--once`, `--window` or `--schedule` by a candidate's hello: the schedule may have been changed since the run.
    said: Option<Box<str>>,
    /// The last request to forget each key or window.
    forgotten: BTreeMap<Box<str>, Fact>,
    /// The run of a skipped window that began and did not finish, or of a key or window that was forgotten while it went on.
    unfinished: Option<Fact>,
}

impl LastRun {
    /// The last run by the next fact in the log. A run whose key was forgotten while it went on counts for nothing: the key is to run again.
    pub(super) fn after(mut before: Option<Self>, fact: Fact) -> Self {
        let mut forgotten = before.as_mut().map(|before| mem::take(&mut before.forgotten)).unwrap_or_default();
        let is_forgotten = |forgotten: &BTreeMap<Box<str>, Fact>, fact: &Fact| {
            forgotten.get(&fact.key).is_some_and(|forgotten| fact.is_forgotten_by(forgotten))
        };
        let counts = !is_forgotten(&forgotten, &fact);
        if fact.outcome == Outcome::Forgotten {
            forgotten.insert(fact.key.clone(), fact.clone());
            // The last run is of another key, or of a window.
            if let Some(last) = before.take_if(|last| fact.window.is_none() && last.fact.key != fact.key) {
                return Self { forgotten, ..last };
            }
        }
        // Of two keys neither is the later one by its fact alone, and each has its own account.
        let is_of_same = |run: &Fact| fact.key == run.key || fact.window.is_some() && run.window.is_some();
        let is_late = |known: &Fact| is_of_same(known) && fact.is_older_than(known);
        if let Some(last) = before.take_if(|last| counts && is_late(&last.fact)) {
            return Self { forgotten, ..last };
        }
        let (before, ended, unfinished) =
            before.map_or((None, None, None), |before| (Some(before.fact), before.account.last, before.unfinished));
        // A version before wrote no account of it.
        let ended = ended.filter(|run| is_of_same(run));
        let begun = before.clone().filter(|before| before.outcome == Outcome::Running);
        let unfinished = match fact.outcome {
            Outcome::Skipped => begun,
            // A second request changes nothing.
            Outcome::Forgotten => begun.or(unfinished),
            // The next attempt of a run that was forgotten.
            Outcome::Running if !counts => Some(fact.clone()),
            Outcome::Done | Outcome::Failed | Outcome::Running => None,
        };
        let shown = before.as_ref().map(|before| &before.key);
        let unfinished = unfinished.filter(|run| run.key == fact.key && Some(&run.key) == shown);
        let mut own = Self { forgotten, unfinished, ..Self::of(fact) };
        own.account.last = own.account.last.or(ended).filter(|run| !is_forgotten(&own.forgotten, run));
        match before {
            Some(fact) if !counts => Self { fact, ..own },
            _ => own,
        }
    }

    /// As docs/json.md describes it.
    pub(super) fn json(&self, current: Leadership<'_>) -> Value {
        let mut of_run = run(&self.fact);
        of_run["outcome"] = outcome(&self.fact, current).into();
        of_run
    }

    /// Takes the outcome of a run that is only recorded to have begun from the release of its term, if that names it: the facts could not be
    /// written when it ended.
    pub(super) fn learn_release(&mut self, election: &Election) {
        let Fact { key, window, .. } = &self.fact;
        let is_its = |past: &&PastTerm| ran_in(&self.fact, past.term, past.leader.member.as_ref());
        let past = election.terms().iter().rfind(is_its).map(|past| &past.end);
        let Some(TermEnd::Released { how, .. }) = past.filter(|_| self.fact.outcome == Outcome::Running) else {
            return;
        };
        let is_named =
            |run: &&KeyedRun| run.key == *key && run.is_window.is_none_or(|is_window| is_window == window.is_some());
        if let (Some(_), Some(exit)) = (how.once.as_ref().filter(is_named), how.exit) {
            let outcome = if exit == 0 { Outcome::Done } else { Outcome::Failed };
            // When it ended by its machine's clock is unknown.
            self.fact = Fact { outcome, exit: Some(exit), at_ms: None, ..self.fact.clone() };
            self.account.last = Some(self.fact.clone().into());
        }
    }

    /// Learns who leads: a run that was forgotten goes on for as long as its runner leads.
    pub(super) fn learn_leadership(&mut self, current: Leadership<'_>) {
        let is_gone = |run: &mut Fact| outcome(run, current) != RUNNING;
        self.unfinished.take_if(|run| self.fact.outcome == Outcome::Forgotten && is_gone(run));
    }

    /// Whether the run that this release names was forgotten since, so that the key or window is to run again.
    pub(super) fn has_forgotten(&self, release: &Release, now_ms: u64) -> bool {
        let forgotten = release.how.once.as_ref().and_then(|run| self.forgotten.get(&run.key));
        let is_due = |forgotten: &Fact| forgotten.window.is_none_or(|window| window.until_ms > now_ms);
        forgotten.is_some_and(|forgotten| release.term <= forgotten.term && is_due(forgotten))
    }

    fn of(fact: Fact) -> Self {
        let account = Account::of(&fact);
        let calendar = calendar(&account);
        Self { fact, account, calendar, said: None, forgotten: BTreeMap::new(), unfinished: None }
    }

    /// Takes the schedule from the candidates' hellos, or else that of the last run.
    pub(super) fn learn_schedule(&mut self, observer: &Observer, at: ReadAt) {
        let said = options_of_once(observer, at);
        if self.said.as_deref() == said {
            return;
        }
        self.said = said.map(Box::from);
        let Some(said) = said else {
            let Account { schedule, timezone, .. } = self.fact.account.clone();
            (self.account.schedule, self.account.timezone) = (schedule, timezone);
            self.calendar = calendar(&self.account);
            return;
        };
        let schedule = said.strip_prefix("--schedule '").and_then(|said| said.split_once('\''));
        let window = said.strip_prefix("--window ").map(|said| said.split_once(' ').unwrap_or((said, "")));
        let typed = schedule.or(window).map(|(_, options)| {
            options.split_once("--timezone ").and_then(|(_, zone)| zone.split(' ').next()).unwrap_or("UTC")
        });
        let timezone = typed.filter(|_| schedule.is_some()).map(|typed| {
            // As in a fact.
            zone(typed).as_ref().and_then(TimeZone::iana_name).unwrap_or(typed).into()
        });
        let account = &mut self.account;
        (account.schedule, account.timezone) = (schedule.map(|(schedule, _)| schedule.into()), timezone);
        let of_window = window
            .zip(typed)
            .and_then(|((length, _), typed)| Some(Calendar::new(Edges::Every(Every::parse(length)?), zone(typed)?)));
        self.calendar = of_window.or_else(|| calendar(account));
    }

    /// Whether the schedule was changed since the last run.
    fn is_changed(&self) -> bool {
        let (now, of_run) = (&self.account, &self.fact.account);
        (&now.schedule, &now.timezone) != (&of_run.schedule, &of_run.timezone)
    }

    /// The starts of the next windows: with a schedule the next five, otherwise that of the next one.
    pub(super) fn next_windows(&self, now_ms: u64) -> Vec<u64> {
        match (&self.calendar, self.fact.window) {
            // None before the recorded one is run, even if the clock was set back.
            (Some(calendar), window) => {
                let from_ms = window.map_or(0, |window| window.from_ms);
                let most = if self.account.schedule.is_some() { NEXT } else { 1 };
                calendar.next_starts(now_ms.max(from_ms)).take(most).collect()
            }
            (None, Some(window)) if !self.is_changed() && window.until_ms > now_ms => vec![window.until_ms],
            (None, _) => Vec::new(),
        }
    }

    /// The rows of the page.
    pub(super) fn rows(&self, now_ms: u64) -> Vec<(&'static str, String)> {
        let Account { runs, failures, success, .. } = &self.account;
        let mut rows = vec![row_with(&self.fact, self.unfinished.as_ref(), now_ms, !self.is_changed())];
        let failed = |run: &&Fact| run.outcome == Outcome::Failed && self.fact.outcome != Outcome::Failed;
        if let Some(run) = self.account.last.as_deref().filter(failed) {
            rows.push(("failure", row_with(run, None, now_ms, false).1));
        }
        if let Some(success) = success.as_ref().filter(|_| self.fact.outcome != Outcome::Done) {
            let window = success.window.map_or_else(String::new, |window| format!("{}: ", date(window.from_ms)));
            let by = writer(success.by.as_deref(), success.at_ms);
            rows.push(("success", format!("{window}the last, by {by}")));
        }
        if *runs > 0 {
            rows.push(("runs", format!("{runs}, of which {failures} failed")));
        }
        if let (Some(_), Some(schedule)) = (&self.calendar, &self.account.schedule) {
            let next = self.next_windows(now_ms).into_iter().map(|start| {
                format!("{} (in {})", date(start), span(Duration::from_millis(start.saturating_sub(now_ms))))
            });
            let next =
                next.reduce(|before, next| before + ", " + &next).unwrap_or_else(|| "no further time".to_owned());
            let zone = self.account.timezone.as_deref().unwrap_or("UTC");
            let of = if self.said.is_some() { "" } else { ", of the last run" };
            rows.push(("schedule", format!("{schedule} ({zone}){of}: {next}")));
        }
        rows
    }
}

/// The options of `--once`, `--window` or `--schedule` in the leader's last hello, or a standby's if nobody leads.
fn options_of_once(observer: &Observer, at: ReadAt) -> Option<&str> {
    match observer.leadership(at).may_lead() {
        Some(_) => observer.leaders_hello()?.hello.once.as_deref(),
        None => observer.standbys(at).iter().find_map(|standby| standby.candidate.hello.once.as_deref()),
    }
}

/// Whether runs of the election are recorded, by its candidates or its last release.
pub(super) fn are_recorded(observer: &Observer, at: ReadAt) -> bool {
    let is_released_run =
        matches!(observer.leadership(at), Leadership::Released { release, .. } if release.how.once.is_some());
    is_released_run || options_of_once(observer, at).is_some()
}

/// The calendar of a schedule, if this version and this machine know it.
fn calendar(Account { schedule, timezone, .. }: &Account) -> Option<Calendar> {
    Some(Calendar::new(Edges::of_schedule(schedule.as_deref()?).ok()?, zone(timezone.as_deref()?)?))
}

/// The key of the election that a fact under `key` is of. As no group with facts has `/` in its name, nor has a written KEY, it is what stands before
/// the second one.
pub(super) fn election_of(key: &[u8]) -> Option<&str> {
    let key = std::str::from_utf8(key).ok()?;
    let (group, rest) = key.split_once('/')?;
    let (role, once) = rest.split_once('/').unwrap_or((rest, ""));
    let role = role.strip_suffix("%attempt").or_else(|| role.strip_suffix("%forgotten")).unwrap_or(role);
    (!once.contains('/')).then(|| &key[..group.len() + 1 + role.len()])
}

/// Who wrote a fact, and when: `db2 at 2026-01-31 12:00:00Z`.
fn writer(name: Option<&str>, at_ms: Option<u64>) -> String {
    let at = at_ms.map_or_else(String::new, |at_ms| format!(" at {}", date(at_ms)));
    name.unwrap_or("somebody").to_owned() + &at
}

fn begun(run: &Fact) -> String {
    format!("begun by {} (term {}, attempt {})", writer(run.name.as_deref(), run.at_ms), run.term, run.attempt)
}

/// The row about a run: its label and its text.
pub(super) fn row(fact: &Fact, now_ms: u64) -> (&'static str, String) {
    row_with(fact, None, now_ms, true)
}

/// Who has forgotten a key or window, and whether it runs again.
pub(super) fn forgotten(request: &Fact, now_ms: u64) -> String {
    let by = writer(request.name.as_deref(), request.at_ms);
    let is_over = request.window.is_some_and(|window| window.until_ms <= now_ms);
    format!("forgotten by {by}{}", if is_over { "" } else { ", so that it runs again" })
}

/// The same for a window that is skipped after this run of it, which did not finish, or for what was forgotten while this run goes on, and without
/// the next window if another schedule counts.
fn row_with(fact: &Fact, unfinished: Option<&Fact>, now_ms: u64, has_next: bool) -> (&'static str, String) {
    let by = writer(fact.name.as_deref(), fact.at_ms);
    let ran = fact.ran_ms.map_or_else(String::new, |ran| format!(" after {}", spoken(Duration::from_millis(ran))));
    let exit = fact.exit.map_or_else(String::new, |exit| format!(", status {exit}{ran}"));
    let term = fact.term;
    let how = match fact.outcome {
        Outcome::Done => format!("done by {by} (term {term}{exit})"),
        Outcome::Failed => format!("failed on {by} (term {term}{exit}, attempt {})", fact.attempt),
        Outcome::Running => begun(fact),
        Outcome::Skipped => match unfinished {
            None => "skipped, without a run".to_owned(),
            Some(run) => format!("{}, not finished, and not begun again", begun(run)),
        },
        Outcome::Forgotten => {
            let run = unfinished.map_or_else(String::new, |run| begun(run) + "; ");
            run + &forgotten(fact, now_ms)
        }
    };
    let Some(window) = fact.window else { return ("once", format!("{}: {how}", fact.key)) };
    let away = |from: u64, to: u64| span(Duration::from_millis(to.saturating_sub(from)));
    let next = if window.until_ms > now_ms {
        format!("begins at {} (in {})", date(window.until_ms), away(now_ms, window.until_ms))
    } else {
        format!("began at {} ({} ago)", date(window.until_ms), away(window.until_ms, now_ms))
    };
    let next = match (has_beginning(window), is_start(window.until_ms)) {
        _ if !has_next => String::new(),
        (false, _) => format!(", which {next}"),
        (true, true) => format!("; the next {next}"),
        (true, false) => "; it is the last one".to_owned(),
    };
    let text =
        if has_beginning(window) { format!("{}: {how}", date(window.from_ms)) } else { "none before the first".into() };
    ("window", text + &next)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use neli_proto::fact::Success;
    use neli_proto::hello::Hello;
    use neli_proto::journal::{Journal, Origin};
    use neli_proto::time::{Span, Time};

    use super::*;
    use crate::command::reading::{HeardBefore, read_at};

    fn fact(outcome: Outcome, window: Option<Span>) -> Fact {
        let key = if window.is_some() { "2026-01-31T00:00:00Z" } else { "v1.42" };
        Fact {
            window,
            name: Some("db2".into()),
            exit: Some(0),
            ran_ms: Some(3_200),
            at_ms: Some(1_769_860_800_000),
            ..Fact::new(key, outcome, 57)
        }
    }

    /// `forget` would have it run again. The leader was heard three seconds ago, with a lease of one.
    #[test]
    fn a_run_goes_on_whose_leader_was_not_heard_only_because_the_facts_were_read() {
        let facts = Facts { attempt: Some(Fact { term: 0, ..fact(Outcome::Running, None) }), ..Facts::default() };
        let (heard, now) = (HeardBefore::new(), read_at());
        let outcome_at = |at| recorded(&facts, heard.seen(), at).map(|(_, outcome)| outcome);
        let ago = ReadAt { now: now.now - Duration::from_secs(3), wall_ms: now.wall_ms - 3_000 };
        assert_eq!([outcome_at(ago), outcome_at(now)], [Some(RUNNING), Some(INTERRUPTED)]);
    }

    #[test]
    fn a_run_is_shown_with_its_window_or_key() {
        let now = 1_769_861_400_000;
        let of_key = row(&fact(Outcome::Done, None), now);
        assert_eq!(
            of_key,
            ("once", "v1.42: done by db2 at 2026-01-31 12:00:00Z (term 57, status 0 after 3.2s)".into())
        );
        let window = Some(Span { from_ms: 1_769_817_600_000, until_ms: 1_769_904_000_000 });
        let shown = row(&Fact { exit: None, ran_ms: None, ..fact(Outcome::Running, window) }, now).1;
        assert_eq!(
            shown,
            "2026-01-31 00:00:00Z: begun by db2 at 2026-01-31 12:00:00Z (term 57, attempt 1); the next begins at \
             2026-02-01 00:00:00Z (in 11h 50m)"
        );
        let shown = row(&fact(Outcome::Skipped, window), 1_769_904_001_000).1;
        assert_eq!(
            shown,
            "2026-01-31 00:00:00Z: skipped, without a run; the next began at 2026-02-01 00:00:00Z (1s ago)"
        );
        let forgotten = "2026-01-31 00:00:00Z: forgotten by db2 at 2026-01-31 12:00:00Z";
        for (now, again) in
            [(now, ", so that it runs again; the next begins "), (1_769_904_001_000, "; the next began ")]
        {
            let shown = row(&fact(Outcome::Forgotten, window), now).1;
            assert!(shown.starts_with(&format!("{forgotten}{again}")), "{shown}");
        }
    }

    /// A schedule with years is before its first time, or after its last one.
    #[test]
    fn a_window_without_a_beginning_or_an_end_is_shown_as_such() {
        let now = 1_769_861_400_000;
        let edges = Edges::of_cron("0 0 0 31 1 * 2026").unwrap();
        let calendar = Calendar::new(edges, TimeZone::UTC);
        let before = calendar.window(now - 86_400_000).span;
        let shown = row(&fact(Outcome::Skipped, Some(before)), now - 86_400_000);
        let expected = "none before the first, which begins at 2026-01-31 00:00:00Z (in 11h 50m)";
        assert_eq!(shown, ("window", expected.to_owned()));
        let last = calendar.window(now).span;
        let shown = row(&Fact { exit: None, ran_ms: None, ..fact(Outcome::Done, Some(last)) }, now).1;
        assert_eq!(shown, "2026-01-31 00:00:00Z: done by db2 at 2026-01-31 12:00:00Z (term 57); it is the last one");
    }

    /// The last run of a schedule has failed.
    #[test]
    fn a_schedule_is_shown_with_its_next_windows_and_its_last_success() {
        let window = |from_ms| Some(Span { from_ms, until_ms: from_ms + 86_400_000 });
        let success =
            Success { window: window(1_769_738_400_000), at_ms: Some(1_769_738_460_000), by: Some("db1".into()) };
        let account = Account {
            runs: 12,
            failures: 2,
            success: Some(success),
            schedule: Some("0 3 * * *".into()),
            timezone: Some("Europe/Berlin".into()),
            ..Account::default()
        };
        let failed = Fact { exit: Some(3), account, ..fact(Outcome::Failed, window(1_769_824_800_000)) };
        let rows = LastRun::of(failed.clone()).rows(1_769_861_400_000);
        assert_eq!(
            rows[1..],
            [
                ("success", "2026-01-30 02:00:00Z: the last, by db1 at 2026-01-30 02:01:00Z".to_owned()),
                ("runs", "12, of which 2 failed".to_owned()),
                (
                    "schedule",
                    "0 3 * * * (Europe/Berlin), of the last run: 2026-02-01 02:00:00Z (in 13h 50m), 2026-02-02 02:00:00Z (in 37h 50m), \
                     2026-02-03 02:00:00Z (in 2d 13h), 2026-02-04 02:00:00Z (in 3d 13h), 2026-02-05 02:00:00Z (in 4d 13h)"
                        .to_owned()
                ),
            ]
        );
        let set_back = LastRun::of(failed).next_windows(1_769_738_000_000);
        assert_eq!(set_back[0], 1_769_911_200_000, "after the recorded one");
    }

    /// Until the first run under another schedule, only hellos tell of it.
    #[test]
    fn a_schedule_that_was_changed_since_the_last_run_is_the_candidates() {
        let account =
            Account { schedule: Some("0 3 * * *".into()), timezone: Some("UTC".into()), ..Account::default() };
        let window = Span { from_ms: 1_769_828_400_000, until_ms: 1_769_914_800_000 };
        let mut last = LastRun::of(Fact { account, ..fact(Outcome::Done, Some(window)) });
        let mut observer = Observer::new(Journal::read_from(0, Origin::Beginning));
        let at = ReadAt { now: Time::from_nanos(1_000_000_000_000), wall_ms: 1_769_861_400_000 };
        let mut row = |said: Option<&str>| {
            let hello = Hello { once: said.map(Box::from), ..Hello::new("d2".into(), None) };
            observer.hello_received(at, &Arc::new(hello), false, Some(at.wall_ms));
            last.learn_schedule(&observer, at);
            let mut rows = last.rows(at.wall_ms).into_iter();
            let is_changed = said.is_some_and(|said| !said.contains("0 3 "));
            assert_eq!(rows.next().is_some_and(|(_, text)| text.contains("; the next ")), !is_changed, "{said:?}");
            let row = rows.find(|(label, _)| *label == "schedule");
            (row.map_or_else(String::new, |(_, text)| text), last.next_windows(at.wall_ms).first().copied())
        };
        for (said, shown, next_ms) in [
            (None, "0 3 * * * (UTC), of the last run: 2026-02-01 03:00:00Z ", Some(1_769_914_800_000)),
            (
                Some("--schedule '0 3 * * *' --timezone etc/utc --catch-up none"),
                "0 3 * * * (UTC): 2026-02-01 03",
                Some(1_769_914_800_000),
            ),
            (
                Some("--schedule '0 5 * * *' --timezone Europe/Berlin --catch-up none"),
                "0 5 * * * (Europe/Berlin): 2026-02-01 04",
                Some(1_769_918_400_000),
            ),
            (Some("--schedule 'every 1h'"), "every 1h (UTC): 2026-01-31 13:00:00Z ", Some(1_769_864_400_000)),
            (Some("--window 1d/2h --timezone Europe/Berlin --retries 2"), "", Some(1_769_907_600_000)),
            (Some("--once"), "", None),
        ] {
            let (text, next) = row(said);
            assert!(text.starts_with(shown) && text.is_empty() == shown.is_empty(), "{said:?}: {text}");
            assert_eq!(next, next_ms, "{said:?}");
        }
        last.learn_schedule(&Observer::new(Journal::read_from(0, Origin::Beginning)), at);
        assert_eq!(last.next_windows(at.wall_ms).first(), Some(&1_769_914_800_000), "nobody says anything any more");
    }

    /// The job runs for longer than its window.
    #[test]
    fn the_next_window_is_known_by_the_candidates_when_the_last_run_s_is_over() {
        let window = Span { from_ms: 1_769_861_360_000, until_ms: 1_769_861_380_000 };
        let mut last = LastRun::of(Fact { exit: None, ..fact(Outcome::Running, Some(window)) });
        let mut observer = Observer::new(Journal::read_from(0, Origin::Beginning));
        let at = ReadAt { now: Time::from_nanos(1_000_000_000_000), wall_ms: 1_769_861_400_001 };
        assert!(last.next_windows(at.wall_ms).is_empty());
        let hello = Hello { once: Some("--window 20s".into()), ..Hello::new("d2".into(), None) };
        observer.hello_received(at, &Arc::new(hello), false, Some(at.wall_ms));
        last.learn_schedule(&observer, at);
        assert_eq!(last.next_windows(at.wall_ms), [1_769_861_420_000]);
    }

    /// A window without a further run is not one without a run.
    #[test]
    fn a_run_that_was_cut_off_is_shown_with_its_skipped_window() {
        let of = |outcome, key: &str| Fact {
            key: key.into(),
            ..fact(outcome, Some(Span { from_ms: 1_000, until_ms: 2_000 }))
        };
        for (skipped, how) in [
            (
                "a",
                "begun by db2 at 2026-01-31 12:00:00Z (term 57, attempt 1), not finished, and not begun again; the next ",
            ),
            ("b", "skipped, without a run; the next "),
        ] {
            let log = [of(Outcome::Running, "a"), of(Outcome::Skipped, skipped)];
            let last = log.into_iter().fold(None, |before, fact| Some(LastRun::after(before, fact))).expect("a run");
            let (_, text) = last.rows(3_000).swap_remove(0);
            assert!(text.starts_with(&format!("1970-01-01 00:00:01Z: {how}")), "{text}");
        }
    }

    #[test]
    fn a_failure_is_shown_until_a_run_has_ended_or_is_forgotten() {
        let of = |outcome, from_ms: u64| {
            let window = Span { from_ms, until_ms: from_ms + 1_000 };
            Fact { exit: Some(7), key: date(from_ms).into(), ..fact(outcome, Some(window)) }
        };
        let failure =
            "1970-01-01 00:00:01Z: failed on db2 at 2026-01-31 12:00:00Z (term 57, status 7 after 3.2s, attempt 1)";
        let mut last = LastRun::of(of(Outcome::Failed, 1_000));
        let forgotten = Fact { forgets: 1, ..of(Outcome::Forgotten, 1_000) };
        for (next, shown) in [
            (Fact { exit: None, ..of(Outcome::Skipped, 2_000) }, Some(failure)),
            (of(Outcome::Running, 3_000), Some(failure)),
            (of(Outcome::Done, 3_000), None),
            (of(Outcome::Failed, 1_000), None),
            (forgotten, None),
        ] {
            last = LastRun::after(Some(last), next);
            let rows = last.rows(3_000);
            let row = rows.iter().find(|(label, _)| *label == "failure").map(|(_, text)| text.as_str());
            assert_eq!(row, shown, "{:?}", last.fact.outcome);
        }
    }

    /// Those of windows are, since all windows are recorded in the same places.
    #[test]
    fn the_end_of_a_run_is_not_shown_as_that_of_another_key() {
        for (key, window, is_shown) in [
            ("v1.42", None, true),
            ("v1.43", None, false),
            ("2026-02-01T00:00:00Z", Some(Span { from_ms: 1, until_ms: 2 }), false),
        ] {
            let next = Fact { key: key.into(), ..fact(Outcome::Running, window) };
            let log = [fact(Outcome::Failed, None), Fact { term: 58, ..next }];
            let last = log.into_iter().fold(None, |before, fact| Some(LastRun::after(before, fact))).expect("a run");
            assert_eq!(last.account.last.is_some(), is_shown, "{key}");
        }
    }

    /// The run is recorded after its key was forgotten with `--force`.
    #[test]
    fn a_run_whose_key_was_forgotten_while_it_went_on_does_not_count() {
        let of = |outcome, term, forgets| Fact { forgets, ..Fact { term, ..fact(outcome, None) } };
        let log = [of(Outcome::Running, 3, 0), of(Outcome::Forgotten, 9, 1), of(Outcome::Done, 3, 0)];
        let last = log.into_iter().fold(None, |before, fact| Some(LastRun::after(before, fact))).expect("a run");
        assert_eq!(last.fact.outcome, Outcome::Forgotten);
        assert_eq!(last.account.last, None, "it is to run again");
        let again = LastRun::after(Some(last), of(Outcome::Running, 12, 1));
        assert_eq!((again.fact.outcome, again.fact.term), (Outcome::Running, 12));
        let another = Fact { key: "another".into(), ..of(Outcome::Forgotten, 13, 1) };
        assert_eq!(LastRun::after(Some(again), another).fact.term, 12, "the last run is still the last one");
    }

    /// `forget --force`, twice. When the run has ended, or its runner is gone, only the request counts.
    #[test]
    fn a_run_that_goes_on_though_it_was_forgotten_is_shown_with_the_request() {
        let of = |outcome, forgets| Fact { forgets, ..Fact { term: 0, ..fact(outcome, None) } };
        let begun = "begun by db2 at 2026-01-31 12:00:00Z (term 0, attempt 1); ";
        let forgotten = "forgotten by db2 at 2026-01-31 12:00:00Z, so that it runs again";
        let (heard, now) = (HeardBefore::new(), read_at());
        let observer = heard.seen().read.observer();
        let ago = ReadAt { now: now.now - Duration::from_secs(3), wall_ms: now.wall_ms - 3_000 };
        let [request, again] = [1, 2].map(|forgets| of(Outcome::Forgotten, forgets));
        for (next, at, run) in [
            (request, ago, begun),
            (again.clone(), ago, begun),
            (of(Outcome::Running, 0), ago, begun),
            (of(Outcome::Done, 0), ago, ""),
            (again, now, ""),
        ] {
            let log = [of(Outcome::Running, 0), of(Outcome::Forgotten, 1), next];
            let last = log.into_iter().fold(None, |before, fact| Some(LastRun::after(before, fact)));
            let mut last = last.expect("a run");
            last.learn_leadership(observer.leadership(at));
            assert_eq!(last.rows(at.wall_ms)[0], ("once", format!("v1.42: {run}{forgotten}")));
        }
    }

    /// It was written again, or its acknowledgement was lost and it was sent twice.
    #[test]
    fn a_fact_of_an_earlier_run_that_comes_late_is_not_the_last_run() {
        let of = |term, window: Option<u64>| Fact {
            term,
            ..fact(Outcome::Failed, window.map(|from_ms| Span { from_ms, until_ms: from_ms + 1_000 }))
        };
        for (log, shown) in [
            ([of(3, None), of(9, None), of(3, None)], 9),
            ([of(3, Some(1_000)), of(9, Some(2_000)), of(3, Some(1_000))], 9),
            // Terms begin from 0 again in a topic that was made anew, windows do not.
            ([of(9, Some(1_000)), of(3, Some(2_000)), of(4, Some(3_000))], 4),
        ] {
            let last = log.into_iter().fold(None, |before, fact| Some(LastRun::after(before, fact))).expect("a run");
            assert_eq!(last.fact.term, shown);
        }
    }

    #[test]
    fn a_fact_is_its_election_s() {
        let own = ["g/0", "g/0%attempt", "g/0%forgotten", "g/0/v1", "g/0/v1%attempt", "g/0/v1%forgotten"];
        assert!(own.iter().all(|key| election_of(key.as_bytes()) == Some("g/0")));
        assert_eq!(election_of(b"a/0/0"), Some("a/0"), "that is of KEY 0 of group a");
        assert!(!["g/1", "g/01", "g/0/1/v1", "other"].iter().any(|key| election_of(key.as_bytes()) == Some("g/0")));
    }
}
