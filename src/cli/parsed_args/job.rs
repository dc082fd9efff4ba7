//! A subcommand inside a job looks at the job's election: what the command line and the options' variables leave open is taken from the variables
//! that the job got. A candidate takes nothing from them: a job that starts a `neli-run` of its own stands in an election of its own.

use std::ffi::{OsStr, OsString};

use super::{Environment, ParsedArgs};
use crate::cli::options::variable;
use crate::config::job_variables;

/// Options whose variables the job gets, if they had an effect.
const KEPT: [&str; 4] = ["brokers", "embedded", "group", "properties"];

impl ParsedArgs {
    /// The same, with the options that are left open as in the candidate of this job.
    #[must_use]
    pub fn with_election_of_job(mut self) -> Self {
        let of_job = |name: &str| self.environment.get(name).map(OsStr::to_owned);
        let Some(group) = of_job(job_variables::GROUP) else { return self };
        let mut fills: Vec<(&str, OsString)> = Vec::new();
        if self.value("group").is_none_or(|given| given.text == group) {
            fills.push(("group", group));
            fills.extend(of_job(job_variables::TOPIC).map(|topic| ("topic", topic)));
        }
        let (given, brokers) = (self.value("brokers").map(|given| given.text), of_job(job_variables::BROKERS));
        // The properties may hold a password, which no other Kafka is sent.
        let has_other_brokers = given.is_some() && given != brokers;
        if !has_other_brokers && !self.is_given("properties") {
            fills.extend(of_job(job_variables::PROPERTIES).map(|file| ("properties", file)));
        }
        if given.is_none() && self.flag("embedded").is_ok_and(|flag| flag.is_none()) {
            fills.extend(brokers.map(|brokers| ("brokers", brokers)));
            fills.extend(of_job(job_variables::EMBEDDED).map(|embedded| ("embedded", embedded)));
        }
        for (long, value) in fills {
            self.environment.set(&variable(long), value);
        }
        self
    }

    /// Whether the election is that of the job in which this runs.
    #[must_use]
    pub fn is_about_election_of_job(&self) -> bool {
        let group = self.environment.get(job_variables::GROUP);
        group.is_some_and(|group| self.value("group").is_some_and(|given| given.text == group))
    }

    /// The variables of options that have no effect, since the command line says otherwise.
    #[must_use]
    pub fn overridden(&self) -> Vec<OsString> {
        let is_overridden = |long: &&str| {
            let Some(set) = self.environment.get(&variable(long)) else { return false };
            match self.on_command_line_each(long).last() {
                Some(given) => given != set,
                // The command line gives its rival.
                None => self.variable(long).is_none(),
            }
        };
        KEPT.iter().filter(|long| is_overridden(long)).map(|long| variable(long).into()).collect()
    }

    fn is_given(&self, long: &'static str) -> bool {
        self.on_command_line(long) || self.variable(long).is_some()
    }
}

impl Environment {
    fn set(&mut self, name: &str, value: OsString) {
        self.0.retain(|(key, _)| key != name);
        self.0.push((name.into(), value));
    }
}
