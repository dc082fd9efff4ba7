//! `doctor`: all that would keep a candidate on this machine from its work, at once, and what fixes it. It joins nothing and writes nothing.

use std::io::{self, Write};

use neli::program::{Elections, Examination, FactsSettings, clock, facts_to_create, journal_to_create};

use crate::command::page::Style;
use crate::command::reading::{access, read_at};
use crate::command::stdout;
use crate::config::{Config, Doctor};
use crate::exit::{ExitStatus, StartupError};
use findings::Findings;
use fixes::Fixes;

mod candidates;
mod clock_rate;
mod findings;
mod fixes;
mod kafka;
mod machine;
mod topic;

/// Something fails.
const FAILS: ExitStatus = ExitStatus::Answer(1);

/// A topic gets so many replicas where nobody tells how many brokers there are.
const USUAL_BROKERS: usize = 3;

/// Looks at everything, and tells what it has found.
///
/// # Errors
///
/// `--print-topic`: Kafka's address is not known; or stdout takes nothing more.
pub fn main(doctor: &Doctor) -> Result<ExitStatus, StartupError> {
    if doctor.print_topic {
        return print_topic(doctor);
    }
    let mut findings = Findings::default();
    let clock = clock::beside_hardware();
    for warning in &doctor.candidate.warnings {
        findings.warn("options", warning, None);
    }
    // Before there are threads, which would have this thread's priority.
    let has_enough = machine::examine(doctor, &mut findings);
    if has_enough {
        kafka::examine(doctor, &mut findings);
    } else {
        // Where librdkafka can have no thread or descriptor it aborts, or waits for ever.
        findings
            .skipped("brokers", "Kafka is not looked at: its client needs the threads and files that are missing here");
    }
    // At the end: the longer the span, the more exact is what is told of it.
    clock_rate::examine(&clock, &mut findings);
    let text = if doctor.json { findings.json(read_at(), group(doctor)) } else { findings.text(Style::of_stdout()) };
    stdout::written(io::stdout().write_all(text.as_bytes()))?;
    Ok(if findings.have_failure() { FAILS } else { ExitStatus::Success })
}

fn group(doctor: &Doctor) -> Option<&str> {
    doctor.has_group.then_some(doctor.candidate.election.group.as_str())
}

/// The commands that make the topics of this election.
fn print_topic(doctor: &Doctor) -> Result<ExitStatus, StartupError> {
    let config = &doctor.candidate;
    let access = access(&config.client)?;
    let elections = config.elections();
    let brokers = match Examination::start(&access, Some(&elections.topic), doctor.timeout) {
        Ok(examination) => examination.brokers(),
        Err(unreachable) => {
            let why = unreachable.why;
            let line =
                format!("neli-run: warning: how many brokers there are is not known ({why}): three are assumed\n");
            // Where stderr is closed there is nobody to tell.
            let _ = io::stderr().write_all(line.as_bytes());
            USUAL_BROKERS
        }
    };
    let fixes = Fixes::of(&config.client, &access.bootstrap);
    let mut lines = fixes.create(&journal_to_create(&elections, brokers)) + "\n";
    if let Some((topic, facts_settings)) = topic_of_facts(config) {
        lines += &fixes.create(&facts_to_create(&topic.topic, facts_settings, brokers.clamp(1, 3)));
        lines.push('\n');
    }
    stdout::written(io::stdout().write_all(lines.as_bytes()))
}

/// The topic of facts, as that of an election, and how it keeps them; none without `--once` and its like.
fn topic_of_facts(config: &Config) -> Option<(Elections, FactsSettings)> {
    let once = config.once.as_ref()?;
    let topic = format!("{}{}", config.election.topic, neli_proto::fact::TOPIC_SUFFIX);
    Some((Elections { topic, ..Elections::from(&config.election) }, once.topic_settings()))
}
