//! The requests that an operator writes into the journal: `resign` and `end`.

use std::io::{self, BufRead, IsTerminal, Write};
use std::time::Duration;

use neli::program::{Access, ElectionId, Elections, KafkaEvent, Producer, clock};
use neli_proto::journal::View;
use neli_proto::observer::{Leader, Leadership};
use neli_proto::record::{Body, Offset, Record, What};
use neli_proto::time::Time;
use nix::unistd::{User, gethostname, getuid};
use serde::Serialize;
use tokio::sync::mpsc::channel;

use crate::command::reading::{self, Input, Place, Reading, Seen, Unread, observe, read_at};
use crate::command::stdout;
use crate::command::wording::{leadership, named, span};
use crate::config::{End, Look, Resign};
use crate::exit::{ExitStatus, StartupError};
use crate::report::log::{spoken, timestamp};
use crate::text::one_line;

/// The capacity of the queue of reports about one record.
const REPORTS: usize = 16;

/// If a right is missing, Kafka reports which one within this time after it gave up the request.
const REFUSAL_WITHIN: Duration = Duration::from_millis(1_500);

/// The result of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Outcome {
    /// Another candidate leads.
    Resigned,
    /// No other candidate leads in time, or Kafka did not accept the request.
    TimedOut,
    /// There is no standby that could lead.
    NobodyStandsBy,
    /// There is no leader.
    Vacant,
    /// The leader is unknown.
    Unknown,
}

impl Outcome {
    const fn status(self) -> ExitStatus {
        match self {
            Self::Resigned => ExitStatus::Success,
            Self::TimedOut => ExitStatus::Answer(1),
            Self::NobodyStandsBy => ExitStatus::Answer(2),
            Self::Vacant => ExitStatus::Answer(3),
            Self::Unknown => ExitStatus::Answer(4),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Resigned => "resigned",
            Self::TimedOut => "timed-out",
            Self::NobodyStandsBy => "nobody-stands-by",
            Self::Vacant => "vacant",
            Self::Unknown => "unknown",
        }
    }
}

/// A leader as it is printed.
#[derive(Clone, Debug, Serialize)]
struct Party {
    name: String,
    term: Offset,
}

impl Party {
    fn of(leader: &Leader) -> Self {
        Self { name: leader.shown().to_owned(), term: leader.term }
    }
}

/// The result of `resign`.
struct Handover {
    election: ElectionId,
    outcome: Outcome,
    sentence: String,
    from: Option<Party>,
    to: Option<Party>,
    gap: Option<Duration>,
}

/// The same as JSON: docs/json.md describes it.
#[derive(Serialize)]
struct Line<'a> {
    ts: String,
    group: &'a str,
    role: String,
    outcome: &'static str,
    why: Option<String>,
    from: Option<Party>,
    to: Option<Party>,
    gap_ms: Option<u64>,
}

/// Asks the leader to stand down, and waits until another candidate leads.
///
/// # Errors
/// Kafka refuses permanently, the log can't be read, or stdout can't be written; and each result but success has its
/// own status.
pub fn resign(resign: &Resign) -> Result<ExitStatus, StartupError> {
    let Handover { election, outcome, sentence, from, to, gap } = reading::run(hand_over(resign))?;
    let line = resign.look.json.then(|| Line {
        ts: timestamp(clock::wall_ms()),
        group: &election.group,
        role: election.label(),
        outcome: outcome.name(),
        why: Some(sentence.clone()).filter(|_| outcome != Outcome::Resigned),
        from,
        to,
        gap_ms: gap.map(|gap| u64::try_from(gap.as_millis()).unwrap_or(u64::MAX)),
    });
    answered(line, outcome.status(), sentence)
}

/// Prints the answer: the JSON line, or the sentence, which goes to stderr unless `status` is success.
pub(super) fn answered(
    line: Option<impl Serialize>,
    status: ExitStatus,
    sentence: String,
) -> Result<ExitStatus, StartupError> {
    let text = match line {
        // Strings and numbers under string keys always serialize.
        Some(line) => serde_json::to_string(&line).unwrap_or_default(),
        None if status == ExitStatus::Success => one_line(&sentence),
        None => return Err(StartupError::with(status, sentence)),
    };
    stdout::written(writeln!(io::stdout(), "{text}"))?;
    Ok(status)
}

impl Handover {
    fn none(election: &ElectionId, outcome: Outcome, from: Option<Party>, sentence: String) -> Self {
        Self { election: election.clone(), outcome, sentence, from, to: None, gap: None }
    }
}

async fn hand_over(resign: &Resign) -> Result<Handover, StartupError> {
    let Resign { look, force, reason } = resign;
    let until = clock::now() + look.timeout;
    let access = reading::access(&look.client)?;
    let (place, mut reading, mut seen) = match see(&access, look).await {
        Ok(seen) => seen,
        Err(Unread::Refused(refusal)) => return Err(refusal),
        Err(Unread::NoAnswer(why)) => {
            let sentence = format!("can't tell who leads: {why}");
            return Ok(Handover::none(&look.election, Outcome::Unknown, None, sentence));
        }
    };
    let (at, election) = (read_at(), &place.election);
    let current = seen.observer.leadership(at);
    let from = match current {
        Leadership::Led { leader, .. } => Party::of(leader),
        Leadership::Unknown => return Ok(Handover::none(election, Outcome::Unknown, None, leadership(current))),
        Leadership::Forgotten | Leadership::NeverLed | Leadership::Released { .. } | Leadership::Silent { .. } => {
            let sentence = seen.no_record(election).unwrap_or_else(|| leadership(current));
            return Ok(Handover::none(election, Outcome::Vacant, None, sentence));
        }
    };
    if seen.observer.standbys(at).is_empty() && !force {
        let sentence = format!("{} leads, and nobody stands by; --force has it stand down all the same", from.name);
        return Ok(Handover::none(election, Outcome::NobodyStandsBy, Some(from), sentence));
    }
    let body =
        Body::Request { what: What::Resign, term: Some(from.term), by: Some(operator()), reason: reason.clone() };
    if let Appended::No { why } = append(&access, election, look.timeout, record(election, body)).await? {
        let sentence = format!("{} was not asked: {why}", from.name);
        return Ok(Handover::none(election, Outcome::TimedOut, Some(from), sentence));
    }
    successor(&mut reading, &mut seen, (election, from), look.timeout, until).await
}

/// Finds the election and reads it with its candidates' hellos.
pub(super) async fn see(access: &Access, look: &Look) -> Result<(Place, Reading, Seen), Unread> {
    let place = Place::find(access, &look.election, look.timeout).await?;
    let mut reading = Reading::with_hellos(access, &place)?;
    let seen = observe(&mut reading, look.timeout).await?;
    Ok((place, reading, seen))
}

/// Waits until another candidate leads, and measures the time without a leader.
async fn successor(
    reading: &mut Reading,
    seen: &mut Seen,
    (election, from): (&ElectionId, Party),
    timeout: Duration,
    until: Time,
) -> Result<Handover, StartupError> {
    let mut released = None;
    loop {
        let observer = &seen.observer;
        match (observer.journal().view(), observer.leader(), observer.leadership(read_at())) {
            (View::Led(term), Some(leader), _) if term.offset > from.term => {
                let gap = released.map(|released| leader.last_record.read.since(released));
                let to = Party::of(leader);
                let again = if to.name == from.name { " again" } else { "" };
                let for_so_long = gap.map_or_else(String::new, |gap| format!("; nobody led for {}", span(gap)));
                let sentence = format!("{} leads{again}, term {}{for_so_long}", to.name, to.term);
                return Ok(Handover {
                    to: Some(to),
                    gap,
                    ..Handover::none(election, Outcome::Resigned, Some(from), sentence)
                });
            }
            (_, _, Leadership::Released { release, .. }) => {
                released.get_or_insert(release.received.read);
            }
            _ => {}
        }
        let is_late = clock::now() >= until;
        let input = reading.next(Some(until)).await?;
        if is_late || matches!(input, Input::Timeout) {
            let within = spoken(timeout);
            let sentence = match released {
                Some(_) => format!("{} has stood down, and nobody leads yet, {within} after the request", from.name),
                None => format!("{} has been asked, and has not stood down within {within}", from.name),
            };
            return Ok(Handover::none(election, Outcome::TimedOut, Some(from), sentence));
        }
        if matches!(input, Input::Cut) {
            return Err(reading.history_cut());
        }
        seen.take_in(input);
    }
}

/// The result of `end`: the reason if the election was not ended.
struct Ending {
    election: ElectionId,
    outcome: &'static str,
    why: Option<String>,
    has_more_roles: bool,
}

/// The same as JSON: docs/json.md describes it.
#[derive(Serialize)]
struct EndLine<'a> {
    ts: String,
    group: &'a str,
    role: String,
    outcome: &'static str,
    why: Option<String>,
}

/// Ends the election: every candidate stops its job and exits with 0.
///
/// # Errors
/// Kafka refuses permanently, or has not answered in time (1); the operator has not confirmed (1); there is neither
/// leader nor standby (3); or stdout can't be written.
pub fn end(end: &End) -> Result<ExitStatus, StartupError> {
    let Ending { election, outcome, why, has_more_roles } = reading::run(ending(end))?;
    let status = match (outcome, &why) {
        (NOBODY_TO_END, _) => ExitStatus::Answer(3),
        (_, None) => ExitStatus::Success,
        (_, Some(_)) => ExitStatus::Answer(1),
    };
    let name = named(&election);
    let text = match why {
        why if end.look.json => {
            let (ts, group, role) = (timestamp(clock::wall_ms()), election.group.as_str(), election.label());
            // Strings under string keys always serialize.
            serde_json::to_string(&EndLine { ts, group, role, outcome, why }).unwrap_or_default()
        }
        Some(why) => return Err(StartupError::with(status, format!("{name} was not ended: {why}"))),
        None => format!("{name} is ended: {}; one that starts now stands anew", consequence(has_more_roles)),
    };
    stdout::written(writeln!(io::stdout(), "{text}"))?;
    Ok(status)
}

async fn ending(end: &End) -> Result<Ending, StartupError> {
    let End { look, is_confirmed, force, reason } = end;
    let access = reading::access(&look.client)?;
    let mut ending = Ending { election: look.election.clone(), outcome: "ended", why: None, has_more_roles: false };
    // The election is read even without a question to the operator: a topic that does not exist has no election.
    let (place, _, seen) = match see(&access, look).await {
        Ok(seen) => seen,
        Err(Unread::Refused(refusal)) => return Err(refusal),
        Err(Unread::NoAnswer(why)) => return Ok(Ending { outcome: "no-answer", why: Some(why), ..ending }),
    };
    (ending.election, ending.has_more_roles) = (place.election, seen.mapping.is_some());
    if !force && let Some(why) = nobody_to_end(&ending.election, &seen) {
        return Ok(Ending { outcome: NOBODY_TO_END, why: Some(why), ..ending });
    }
    if !is_confirmed && io::stdin().is_terminal() && !is_wanted(&ending.election, &seen) {
        return Ok(Ending { outcome: "not-confirmed", why: Some("it was not confirmed".to_owned()), ..ending });
    }
    let body = Body::Request { what: What::End, term: None, by: Some(operator()), reason: reason.clone() };
    Ok(match append(&access, &ending.election, look.timeout, record(&ending.election, body)).await? {
        Appended::Yes => ending,
        Appended::No { why } => Ending { outcome: "no-answer", why: Some(why), ..ending },
    })
}

/// A request to end binds leader and standbys only: without them it would change nothing, and the name may be
/// mistyped.
const NOBODY_TO_END: &str = "nobody-stands";

/// Why a request to end would bind no candidate, if so.
fn nobody_to_end(election: &ElectionId, seen: &Seen) -> Option<String> {
    let at = read_at();
    let current = seen.observer.leadership(at);
    if matches!(current, Leadership::Led { .. } | Leadership::Unknown) || !seen.observer.standbys(at).is_empty() {
        return None;
    }
    let why = seen.no_record(election).unwrap_or_else(|| format!("{}, and nobody stands by", leadership(current)));
    Some(format!("{why}; --force writes the request all the same"))
}

/// What the candidates do after the request.
const fn consequence(has_more_roles: bool) -> &'static str {
    if has_more_roles {
        "its candidates stop its job, and exit with 0 when no other role is left to them"
    } else {
        "its candidates stop their jobs and exit with 0"
    }
}

/// Asks at the terminal.
fn is_wanted(election: &ElectionId, seen: &Seen) -> bool {
    let at = read_at();
    let standbys = seen.observer.standbys(at).len();
    let question = format!(
        "{}: {}; {standbys} stand by. If it is ended, {}. What starts candidates anew (systemd's Restart=always, Kubernetes) must be \
         stopped before, or they stand again.\nEnd this election? [y/N] ",
        one_line(&named(election)),
        one_line(&leadership(seen.observer.leadership(at))),
        consequence(seen.mapping.is_some())
    );
    is_answered_yes(&question)
}

/// Whether the answer at the terminal is yes.
pub(super) fn is_answered_yes(question: &str) -> bool {
    let mut answer = String::new();
    let is_asked = io::stderr().write_all(question.as_bytes()).is_ok();
    is_asked
        && io::stdin().lock().read_line(&mut answer).is_ok()
        && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

/// A request of this operator as it stands in the journal: its Kafka key, and its line.
fn record(election: &ElectionId, body: Body) -> (String, Vec<u8>) {
    (election.key(), Record { member: None, name: Some(operator()), seq: None, body }.to_bytes())
}

/// Whether Kafka has accepted a record in time.
pub(super) enum Appended {
    Yes,
    No { why: String },
}

/// Appends a record, given by its Kafka key and its line, to the partition of this election.
pub(super) async fn append(
    access: &Access,
    election: &ElectionId,
    timeout: Duration,
    (key, line): (String, Vec<u8>),
) -> Result<Appended, StartupError> {
    let (sender, mut reports) = channel(REPORTS);
    let producer = Producer::start(access, &Elections::from(election), timeout, sender).map_err(StartupError::new)?;
    producer.send(election, Some(0), &key, &line).map_err(StartupError::new)?;
    let mut timer = reading::timer()?;
    let (mut trouble, mut failed) = (None, None);
    loop {
        let report = tokio::select! {
            biased;
            report = reports.recv() => report,
            () = timer.due() => None,
        };
        match report {
            Some(KafkaEvent::Delivered { .. }) => return Ok(Appended::Yes),
            Some(KafkaEvent::Refused { error }) => return Err(StartupError::new(error)),
            Some(KafkaEvent::AppendRefused { error }) => trouble = Some(error),
            Some(KafkaEvent::NotDelivered { error, .. }) => {
                failed = Some(trouble.take().unwrap_or(error));
                timer.set(Some(clock::now() + REFUSAL_WITHIN));
            }
            Some(_) => {}
            None => {
                let why = failed.ok_or_else(|| StartupError::new("the producer is gone"))?;
                return Ok(Appended::No { why });
            }
        }
    }
}

/// Who asks: `ann@db1`.
pub(super) fn operator() -> Box<str> {
    let uid = getuid();
    let name = User::from_uid(uid).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name);
    let host = gethostname().unwrap_or_default();
    format!("{name}@{}", host.to_string_lossy()).into()
}
