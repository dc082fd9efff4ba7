//! `assert`: whether a job may still act, for scripts: `neli-run assert && pay`.
//! Inside a job the lease descriptor answers, without Kafka. If the descriptor is missing or belongs to another term
//! (some languages close it in their children), in another time namespace, and outside a job, the journal answers.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use neli_kafka::clock;
use neli_proto::record::Offset;
use neli_proto::time::millis;
use serde_json::json;

use crate::cli::parsed_args::{ParsedArgs, Value};
use crate::cli::validate::duration;
use crate::command::look::{Look, TIMEOUT};
use crate::command::output;
use crate::command::reading::{self, read_at};
use crate::command::request::see;
use crate::config::job_variables;
use crate::exit::{ExitStatus, or_no_answer, with_status};
use crate::guard::lease;
use crate::process::procfs;
use crate::report::election::sentence;
use crate::text::{json, quoted, span, spoken, timestamp};

/// What is asked: by `--epoch` from outside, or by the variables that a job has.
struct Assert {
    term: Offset,
    /// The number of the job's lease descriptor; `None` if the journal has to be read.
    descriptor: Option<i32>,
    /// The required rest of the lease.
    min_left: Duration,
}

/// Reports whether the term is led with at least the requested rest of its lease.
///
/// # Errors
/// The term is not led (83), or that is unknown (4), with the reason; or a setting for reading the journal is missing
/// or invalid.
pub fn main(args: &ParsedArgs) -> Result<ExitStatus> {
    let (assert, is_json) = (&Assert::of(args)?, args.flag("json")?.is_some());
    // The author of a job does not expect a question for Kafka's address.
    let look = || {
        let look = Look::of(args, TIMEOUT);
        let Some(number) = assert.descriptor else { return look };
        look.with_context(|| {
            format!(
                "descriptor {number} (NELI_LEASE_FD) tells nothing here: a program on the way has closed it (in Python pass it by pass_fds), \
                 or this process is in another time namespace than the job, whose clock may be shifted; so the journal is read"
            )
        })
    };
    let (by, answer) = match by_descriptor(assert, args) {
        Some(left) => ("lease", Ok(left)),
        None => ("journal", or_no_answer(by_journal(assert, &look()?), |why| Err((None, why)))?),
    };
    let left = answer.as_ref().ok().copied();
    let (leads, why) = match answer {
        Ok(left) if left.is_zero() => (Some(false), Some(format!("the lease of term {} is over", assert.term))),
        Ok(left) if left < assert.min_left => {
            let min_left = spoken(assert.min_left);
            (Some(false), Some(format!("{} of the lease is left, and --min-left is {min_left}", span(left))))
        }
        Ok(_) => (Some(true), None),
        Err((leads, why)) => (leads, Some(why)),
    };
    let status = match leads {
        Some(true) => ExitStatus::SUCCESS,
        Some(false) => ExitStatus::NOT_LEADER,
        None => ExitStatus::UNKNOWN,
    };
    if is_json {
        let ts = timestamp(clock::wall_ms());
        let line = json!({
            "ts": ts, "term": assert.term, "leads": leads, "by": by, "left_ms": left.map(millis), "why": why,
        });
        output::print(&(json(&line) + "\n"))?;
        return Ok(status);
    }
    let Some(why) = why else { return Ok(status) };
    let what = match leads {
        None => format!("can't tell whether term {} is led", assert.term),
        Some(_) if left.is_some_and(|left| !left.is_zero()) => "the leader, but not for long enough".to_owned(),
        Some(_) => "not the leader".to_owned(),
    };
    Err(with_status(status, format!("{what}: {why}")))
}

impl Assert {
    fn of(args: &ParsedArgs) -> Result<Self> {
        let of_job = |name: &str| args.raw_variable(name);
        let parsed = |text: &str| text.parse().ok().filter(|term| *term >= 0);
        let (term, descriptor) = if let Some(value) = args.value("epoch") {
            let Some(term) = parsed(value.text()?) else {
                return Err(value.refuse("must be a term (0 or more), as in NELI_EPOCH"));
            };
            (term, None)
        } else if let Some(text) = of_job(job_variables::EPOCH) {
            let Some(term) = text.to_str().and_then(parsed) else {
                let (text, why) = (quoted(text), "must be a term (0 or more); outside a job use --epoch");
                bail!("NELI_EPOCH={text}: {why}");
            };
            if let Some(refusal) = of_another_election(args) {
                return Err(refusal);
            }
            (term, of_job(job_variables::LEASE_FD).and_then(|number| number.to_str()?.parse().ok()))
        } else {
            bail!("--epoch is required outside a job: NELI_EPOCH is not set");
        };
        let min_left = args.value("min-left").map_or(Ok(Duration::ZERO), |value| duration(&value))?;
        Ok(Self { term, descriptor, min_left })
    }
}

/// The refusal of an option that names another election than that of the job, whose term and lease the variables give. Variables of options
/// are the candidate's, and don't name another.
fn of_another_election(args: &ParsedArgs) -> Option<anyhow::Error> {
    // The same brokers may be named in other words.
    let names = [("group", job_variables::GROUP), ("topic", job_variables::TOPIC), ("role", job_variables::ROLE)];
    names.into_iter().find_map(|(long, name)| {
        let (given, own) = (args.value(long).filter(Value::is_option)?, args.raw_variable(name)?);
        let why = || format!("this job's election is another ({name}={}); about others give --epoch", quoted(own));
        (given.text != own).then(|| given.refuse(why()))
    })
}

/// The rest of the lease by the lease descriptor, if there is one for the term.
fn by_descriptor(assert: &Assert, args: &ParsedArgs) -> Option<Duration> {
    let (term, deadline) = lease::read(assert.descriptor?)?;
    // In another time namespace than the job's the deadline can't be compared with this process's clock.
    let namespaces = procfs::time_namespace().zip(args.raw_variable(job_variables::TIME_NAMESPACE));
    if term != assert.term || namespaces.is_some_and(|(own, of_job)| *own != *of_job) {
        return None;
    }
    Some(deadline.since(clock::now()))
}

/// The rest of the lease by the journal, from outside; or whether the term is led by somebody else or not at all, as far as that is known, and why.
fn by_journal(assert: &Assert, look: &Look) -> Result<Result<Duration, (Option<bool>, String)>> {
    let observation = reading::run(see(look, Some("--role says of which the term is")))?;
    let seen = observation.first()?;
    let current = seen.read.observer().leadership(read_at());
    let why = match current.lease() {
        Some((leader, left)) if leader.term == assert.term => return Ok(Ok(left)),
        Some((leader, _)) => format!("{} leads, term {}", leader.shown(), leader.term),
        None => seen.no_record().filter(|_| current.is_vacant()).unwrap_or_else(|| sentence(current)),
    };
    Ok(Err(((!current.is_unknown()).then_some(false), why)))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    #[test]
    fn a_term_in_the_environment_that_is_none_is_named() {
        for (text, shown) in [("x", "x"), ("-1", "-1"), ("", "''")] {
            let line = ["neli-run".into(), "assert".into()];
            let args = crate::cli::parse(&line, vec![("NELI_EPOCH".into(), text.into())]).unwrap();
            let refusal = Assert::of(&args).err().unwrap().to_string();
            assert_eq!(refusal, format!("NELI_EPOCH={shown}: must be a term (0 or more); outside a job use --epoch"));
        }
    }

    /// The descriptor is of the job's own lease.
    #[test]
    fn an_option_that_names_another_election_than_the_job_s_is_refused() {
        let of_job = [
            ("NELI_EPOCH", "7"),
            ("NELI_LEASE_FD", "3"),
            ("NELI_GROUP", "as"),
            ("NELI_TOPIC", "as.neli"),
            ("NELI_ROLE", "0"),
            ("NELI_BROKERS", "kafka:9092"),
            ("NELI_RUN_GROUP", "of-a-shell"),
        ];
        let of = |words: &[&str]| {
            let line: Vec<OsString> = ["neli-run", "assert"].iter().chain(words).map(OsString::from).collect();
            let environment = of_job.map(|(name, value)| (name.into(), value.into())).to_vec();
            let assert = Assert::of(&crate::cli::parse(&line, environment).unwrap());
            assert.map(|assert| assert.descriptor).map_err(|refusal| refusal.to_string())
        };
        for own in [&[][..], &["--group", "as"], &["--role", "0", "--topic", "as.neli", "--brokers", "kafka-1:9092"]] {
            assert_eq!(of(own), Ok(Some(3)), "{own:?}");
        }
        for (option, name) in [("group", "as"), ("topic", "as.neli"), ("role", "0")] {
            let (long, variable) = (format!("--{option}"), option.to_uppercase());
            let refusal = of(&[&long, "other"]).unwrap_err();
            assert_eq!(
                refusal,
                format!(
                    "{long} other: this job's election is another (NELI_{variable}={name}); about others give --epoch"
                )
            );
            assert_eq!(of(&[&long, "other", "--epoch", "7"]), Ok(None), "the journal answers");
        }
    }
}
