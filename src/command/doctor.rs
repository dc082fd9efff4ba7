//! `doctor`: finds every reason at once why a candidate on this machine would not work, and how to fix it. It joins no group and writes
//! nothing.

use std::time::Duration;

use anyhow::{Result, ensure};
use neli_kafka::{Elections, Examination, FactsSettings, NewTopic, clock, facts_to_create, journal_to_create};

use crate::cli::parsed_args::ParsedArgs;
use crate::cli::validate;
use crate::command::look::{TIMEOUT, access_of, timeout};
use crate::command::output::{self, Style};
use crate::command::reading::read_at;
use crate::config::Config;
use crate::exit::ExitStatus;
use findings::{Findings, Fixes};

mod candidates;
mod findings;
mod kafka;
mod machine;
mod topic;

/// At least one check fails.
const FAILS: ExitStatus = ExitStatus::Answer(1);

/// The replicas of a topic if the number of brokers is unknown.
const USUAL_BROKERS: usize = 3;

/// Runs all checks and prints the findings.
///
/// # Errors
/// A setting is missing, invalid or contradicts another; or stdout can't be written.
pub fn main(args: &ParsedArgs) -> Result<ExitStatus> {
    let (timeout, config) = (timeout(args, TIMEOUT)?, &validate::doctor(args)?);
    let (group, is_json) =
        (Some(&*config.elections.group).filter(|group| !group.is_empty()), args.flag("json")?.is_some());
    if args.flag("print-topic")?.is_some() {
        ensure!(group.is_some(), "--group is required with --print-topic: the topic is named after it");
        ensure!(!is_json, "--print-topic: can't be combined with --json: it prints commands for a shell");
        return print_topic(config, timeout);
    }
    let mut findings = Findings::default();
    let clock = clock::beside_hardware();
    for warning in &config.warnings {
        findings.warn("options", warning, None);
    }
    // Before other threads start: they would inherit this thread's priority.
    let command = (!config.command.is_empty()).then(|| validate::find_command(args, config));
    let has_enough = machine::examine(config, command, &mut findings);
    if has_enough {
        kafka::examine(config, timeout, &mut findings);
    } else {
        // Without a thread or descriptor librdkafka aborts or blocks for ever.
        let text = "Kafka was not checked: its client needs the threads and files that are missing here";
        findings.skipped("brokers", text);
    }
    // This is the last check, because a longer time gives a more exact result.
    machine::examine_clock_rate(&clock, &mut findings);
    let (have_failure, summary) = (findings.have_failure(), findings.summary());
    if config.log.verbosity < 0 {
        findings.keep_problems();
    }
    let text = if is_json { findings.json(read_at(), group) } else { findings.text(Style::of_stdout()) + &summary };
    output::print(&text)?;
    Ok(if have_failure { FAILS } else { ExitStatus::SUCCESS })
}

/// The commands that create the topics of this election.
fn print_topic(config: &Config, timeout: Duration) -> Result<ExitStatus> {
    let access = access_of(&config.client)?;
    let examination = Examination::start(&access, Some(&config.elections.topic), timeout).inspect_err(|unreachable| {
        let (_, why) = &unreachable;
        output::say(&format!("warning: the number of brokers is unknown ({why}): three are assumed"));
    });
    let examination = examination.ok();
    let brokers = examination.as_ref().map_or(USUAL_BROKERS, Examination::brokers);
    let fixes = Fixes::of(&config.client, &access.bootstrap);
    let create = |(elections, facts): &(Elections, Option<FactsSettings>)| {
        let topic = planned(elections, *facts, brokers);
        let topic = match &examination {
            Some(examination) => examination.try_to_create(elections, topic).unwrap_or_else(|(_, topic)| topic),
            None => topic,
        };
        fixes.create(&topic) + "\n"
    };
    output::print(&topics(config).iter().map(create).collect::<String>())
}

/// The topic as a candidate would create it.
fn planned(elections: &Elections, facts: Option<FactsSettings>, brokers: usize) -> NewTopic<'_> {
    match facts {
        Some(wanted) => facts_to_create(&elections.topic, wanted, brokers.clamp(1, 3)),
        None => journal_to_create(elections, brokers),
    }
}

/// The topics of this candidate: the journal, and with `--once`, `--window` or `--schedule` that of facts, which has settings of its own.
fn topics(config: &Config) -> Vec<(Elections, Option<FactsSettings>)> {
    let facts = config.once.as_ref().map(|once| {
        let topic = format!("{}{}", config.elections.topic, neli_proto::fact::TOPIC_SUFFIX);
        (Elections { topic, ..config.elections.clone() }, Some(once.topic_settings()))
    });
    [(config.elections.clone(), None)].into_iter().chain(facts).collect()
}
