//! The requests that an operator writes into the journal: `resign` and `end`.

use std::io::{self, BufRead, IsTerminal, Write};
use std::time::Duration;

use anyhow::{Context as _, Error, Result, bail};
use neli_kafka::{Access, ElectionId, Elections, KafkaEvent, Producer, SessionEvent, clock};
use neli_proto::hello::question;
use neli_proto::record::{Body, Record};
use neli_proto::time::Time;
use nix::unistd::{User, gethostname, getuid};
use serde_json::{Value, json};
use tokio::sync::mpsc::channel;

use crate::cli::parsed_args::ParsedArgs;
use crate::command::look::Look;
use crate::command::output;
use crate::command::reading::{FoundElections, Observation};
use crate::exit::{ExitStatus, line_of, with_status};
use crate::report::json::{election, joined};
use crate::text::{self, one_line};

/// The capacity of the queue of reports about one record.
const REPORTS: usize = 16;

/// librdkafka takes no longer time limit for a record.
const LONGEST_DELIVERY: Duration = Duration::from_millis(i32::MAX as u64);

/// Before nobody counts as a standby, the candidates are asked for one: after a lead a candidate says nothing for 2 s.
pub(super) const HEARD_WITHIN: Duration = Duration::from_secs(3);

/// A record has at most 1 KiB.
const LONGEST_REASON: usize = 400;

/// The settings of a subcommand that asks for something. One that lacks an option leaves it unset.
pub(super) struct Ask {
    pub(super) look: Look,
    /// `--all-roles`: the elections of all roles of the group.
    pub(super) all_roles: bool,
    /// `--yes`: do not ask for confirmation.
    is_confirmed: bool,
    /// `--force`: even if it would have no effect, or may do harm.
    pub(super) force: bool,
    /// `--reason`.
    pub(super) reason: Option<Box<str>>,
}

impl Ask {
    /// Reads them; the last thing that is read, as of [`Look`].
    pub(super) fn of(args: &ParsedArgs, default_timeout: Duration) -> Result<Self> {
        let all = args.flag("all-roles")?;
        if let (Some(all), Some(role)) = (&all, args.value("role")) {
            return Err(role.refuse(format!("can't be combined with {}", all.name())));
        }
        let (is_confirmed, force) = (args.flag("yes")?.is_some(), args.flag("force")?.is_some());
        let (reason, mut look) = (reason(args)?, Look::of(args, default_timeout)?);
        if all.is_some() {
            // Also in a job of one of them.
            look.election.role_name = None;
        }
        Ok(Self { look, all_roles: all.is_some(), is_confirmed, force, reason })
    }

    /// Whether it is to be done: without `--yes` a user at a terminal is asked this question.
    pub(super) fn is_wanted(&self, question: impl FnOnce() -> String) -> bool {
        if self.is_confirmed || !io::stdin().is_terminal() {
            return true;
        }
        let mut answer = String::new();
        let is_asked = io::stderr().write_all(question().as_bytes()).is_ok();
        is_asked
            && io::stdin().lock().read_line(&mut answer).is_ok()
            && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
    }
}

fn reason(args: &ParsedArgs) -> Result<Option<Box<str>>> {
    let Some(value) = args.value("reason") else { return Ok(None) };
    let text = value.text()?;
    if text.len() > LONGEST_REASON || text.chars().any(char::is_control) {
        return Err(value.refuse(format!("must be at most {LONGEST_REASON} bytes, without control characters")));
    }
    Ok((!text.trim().is_empty()).then(|| text.into()))
}

/// How a request ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Outcome {
    /// As in JSON.
    pub(super) word: &'static str,
    /// The exit status: with 0 what was asked for is done.
    pub(super) status: u8,
}

/// Kafka has not said that it took the request.
pub(super) const NO_ANSWER: Outcome = Outcome { word: "no-answer", status: 1 };
/// The user has not confirmed it.
pub(super) const NOT_CONFIRMED: Outcome = Outcome { word: "not-confirmed", status: 1 };

/// The answer about one election.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) election: ElectionId,
    pub(super) outcome: Outcome,
    /// Why it is not done, if so.
    pub(super) why: Option<String>,
    /// The whole answer.
    pub(super) sentence: String,
    /// `forget`: an object with the key, or null if it is not known.
    pub(super) key: Value,
    /// `resign`: an object that says who led before and after.
    pub(super) handover: Value,
}

impl Answer {
    /// The answer in this sentence, which says why if it is not done.
    pub(super) fn new(election: &ElectionId, outcome: Outcome, sentence: String) -> Self {
        let why = (outcome.status != 0).then(|| sentence.clone());
        Self { election: election.clone(), outcome, why, sentence, key: Value::Null, handover: Value::Null }
    }

    fn json(&self) -> String {
        let Self { outcome, why, key, handover, .. } = self;
        let outcome = json!({ "outcome": outcome.word, "why": why });
        text::json(&joined([election(clock::wall_ms(), &self.election), key.clone(), outcome, handover.clone()]))
    }
}

/// Adds the answer about the next election, or what the refusal says of it: what was done before is to be printed. Returns whether to go on with the
/// elections after it.
///
/// # Errors
///
/// Kafka refuses for good, and there is no answer yet.
pub(super) fn add(answers: &mut Vec<Answer>, next: Result<Answer>, of: impl FnOnce(&str) -> Answer) -> Result<bool> {
    let is_done = next.is_ok();
    answers.push(match next {
        Err(refusal) if answers.is_empty() => return Err(refusal),
        Err(refusal) => of(&line_of(&refusal)),
        Ok(answer) => answer,
    });
    Ok(is_done)
}

/// Prints the answers: with `--json` a line each, otherwise the sentences; those without success are an error. The exit status is the worst
/// of them.
pub(super) fn answered(answers: &[Answer], is_json: bool) -> Result<ExitStatus> {
    let worst = answers.iter().map(|answer| answer.outcome.status).max().unwrap_or_default();
    let (done, failed): (Vec<&Answer>, Vec<&Answer>) =
        answers.iter().partition(|answer| is_json || answer.outcome.status == 0);
    let text = |answer: &Answer| if is_json { answer.json() } else { one_line(&answer.sentence) };
    let printed = output::print(&done.iter().map(|answer| text(answer) + "\n").collect::<String>());
    // It was done all the same, and is not to be asked for again.
    let said = || done.iter().map(|answer| one_line(&answer.sentence)).collect::<Vec<_>>().join("; ");
    printed.with_context(|| format!("{}; this could not be printed", said()))?;
    let errors: Vec<&str> = failed.into_iter().map(|answer| answer.sentence.as_str()).collect();
    let status = ExitStatus::Answer(worst);
    if errors.is_empty() { Ok(status) } else { Err(with_status(status, errors.join("; "))) }
}

/// Reads the election of `--role`, or those of all roles, with their candidates' hellos. `only_one`: there must be one, and this says what is to be
/// given otherwise.
pub(super) async fn see(look: &Look, only_one: Option<&str>) -> Result<Observation> {
    let found = FoundElections::find(look, |_| {}).await?;
    if let Some(otherwise) = only_one {
        found.one(otherwise)?;
    }
    Observation::of_leaders(look, found).await
}

/// Asks the candidates for a sign of life, and reads on until what was heard is enough, or this time is over. Returns whether it was, and why
/// Kafka has not taken the question, if so. `is_enough` is told when they were asked.
pub(super) async fn ask_candidates(
    access: &Access,
    observation: &mut Observation,
    within: Duration,
    is_enough: impl Fn(&Observation, Time) -> Result<bool>,
) -> Result<(bool, Option<String>)> {
    let asked = clock::now();
    let of_hellos = ElectionId { partition: Elections::PARTITION_OF_HELLOS, ..observation.first()?.election.clone() };
    let (until, why_not) =
        match append(access, &of_hellos, within, &of_hellos.hello_key(), Some(&question(&operator()))).await? {
            Appended::Yes => (asked + within, None),
            Appended::No(why) => (clock::now(), Some(why)),
            // It may be taken, and a regular hello is as good as an answer.
            Appended::Unknown(why) => (asked + within, Some(why)),
        };
    loop {
        if is_enough(observation, asked)? {
            return Ok((true, why_not));
        }
        if observation.next_or_silence(until).await?.is_none() && clock::now() >= until {
            return Ok((false, why_not));
        }
    }
}

/// Whether Kafka has accepted a record in time, and why not.
pub(super) enum Appended {
    Yes,
    /// Kafka has refused it for good.
    No(String),
    /// Kafka has not answered in time, and may have accepted it.
    Unknown(String),
}

/// Appends this operator's request to the journal.
pub(super) async fn request(look: &Look, election: &ElectionId, body: Body) -> Result<Appended> {
    let record = Record { member: None, name: Some(operator()), seq: None, body };
    append(&look.access, election, look.timeout, &election.key(), Some(&record.to_bytes())).await
}

/// Appends a record to the partition of this election. Without a value it is a tombstone, which deletes the key's record.
pub(super) async fn append(
    access: &Access,
    election: &ElectionId,
    timeout: Duration,
    key: &str,
    value: Option<&[u8]>,
) -> Result<Appended> {
    let (sender, mut reports) = channel(REPORTS);
    let timeout = timeout.min(LONGEST_DELIVERY);
    let producer = Producer::start(access, &Elections::from(election), timeout, sender)?;
    producer.send(election, Some(0), key, value).map_err(Error::msg)?;
    let mut trouble = None;
    loop {
        match reports.recv().await {
            Some(KafkaEvent::Delivered { .. }) => return Ok(Appended::Yes),
            Some(KafkaEvent::Process(SessionEvent::Refused { error, .. })) => bail!(error),
            Some(KafkaEvent::Process(SessionEvent::AppendRefused { error })) => trouble = Some(error),
            Some(KafkaEvent::NotDelivered { error, may_be_in_log, .. }) => {
                let why = trouble.unwrap_or(error);
                return Ok(if may_be_in_log { Appended::Unknown(why) } else { Appended::No(why) });
            }
            Some(_) => {}
            None => bail!("the producer is gone"),
        }
    }
}

/// The name of the operator: `ann@db1`.
pub(super) fn operator() -> Box<str> {
    let uid = getuid();
    let name = User::from_uid(uid).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name);
    let host = gethostname().unwrap_or_default();
    format!("{name}@{}", host.to_string_lossy()).into()
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn what_was_done_before_a_refusal_is_kept() {
        let election = ElectionId { group: "g".into(), topic: "t".into(), partition: 0, role: 0, role_name: None };
        let answer = |sentence: &str| Answer::new(&election, NO_ANSWER, sentence.to_owned());
        let mut answers = Vec::new();
        let refused = || Err(anyhow!("no right to WRITE it"));
        assert!(add(&mut answers, refused(), answer).is_err(), "nothing was done");
        assert!(add(&mut answers, Ok(answer("it is ended")), answer).unwrap());
        assert!(!add(&mut answers, refused(), answer).unwrap());
        let sentences: Vec<&str> = answers.iter().map(|answer| &*answer.sentence).collect();
        assert_eq!(sentences, ["it is ended", "no right to WRITE it"]);
    }

    #[test]
    fn an_empty_reason_is_none() {
        for (text, expected) in [("", None), (" ", None), ("an upgrade", Some("an upgrade"))] {
            let line = ["neli-run", "resign", "--reason", text].map(Into::into);
            let args = crate::cli::parse(&line, Vec::new()).unwrap();
            assert_eq!(reason(&args).unwrap().as_deref(), expected);
        }
    }
}
