//! The value of each option: from the command line, otherwise from the environment, otherwise the default. Each value has its source, so
//! that a refusal can name the option or the variable.

use std::ffi::{OsStr, OsString};
use std::ops::RangeBounds;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::ArgMatches;
use clap::parser::ValueSource;
use strsim::levenshtein;

use crate::cli::options::{Opt, RIVALS, options, variable};
use crate::config::{VARIABLE_PREFIX, job_variables};
use crate::text::{parse_duration, quoted};

/// Whether Kubernetes may have set this variable for a service whose name begins with `neli-run`: `NELI_RUN_SERVICE_HOST`, `NELI_RUN_PORT_80_TCP_ADDR`.
/// No option has such a name.
fn is_service_link(name: &str) -> bool {
    name.contains("_SERVICE_") || name.contains("_PORT")
}

/// The variable of an option whose name is similar to this one.
fn nearest(name: &str) -> Option<String> {
    let variables = options().map(|option| (levenshtein(&option.variable(), name), option.variable()));
    variables.filter(|(letters, _)| *letters <= 2).min().map(|(_, variable)| variable)
}

/// The parsed command line, and the environment of this process at its start.
#[derive(Debug)]
pub struct ParsedArgs {
    matches: ArgMatches,
    environment: Vec<(OsString, OsString)>,
    subcommand: Option<String>,
}

/// One value of an option, and its source.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Value {
    /// The option.
    long: &'static str,
    /// The value; empty for a flag.
    pub text: OsString,
    /// Where it comes from: the command line, the option's variable, or its default.
    pub source: ValueSource,
}

impl ParsedArgs {
    /// The values of a command line and an environment.
    pub(crate) fn new(mut matches: ArgMatches, environment: Vec<(OsString, OsString)>) -> Self {
        match matches.remove_subcommand() {
            Some((name, matches)) => Self { matches, environment, subcommand: Some(name) },
            None => Self { matches, environment, subcommand: None },
        }
    }

    /// The subcommand; without one the process stands for election and runs COMMAND.
    pub fn subcommand(&self) -> Option<&str> {
        self.subcommand.as_deref()
    }

    /// The value of a variable; an empty one counts as not set.
    pub(crate) fn nonempty_variable(&self, name: &str) -> Option<&OsStr> {
        self.raw_variable(name).filter(|value| !value.is_empty())
    }

    /// The value of another program's variable; an empty one counts as set.
    pub(crate) fn raw_variable(&self, name: &str) -> Option<&OsStr> {
        self.environment.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_os_str())
    }

    /// Whether the command line had no argument at all.
    pub(crate) fn is_bare(&self) -> bool {
        !self.matches.args_present()
    }

    /// The value of an option: the command line's, else its variable's, else its default.
    pub fn value(&self, long: &'static str) -> Option<Value> {
        let given = self.on_command_line_each(long).last().map(|text| (text.as_os_str(), ValueSource::CommandLine));
        let given = given.or_else(|| Some((self.variable(long)?, ValueSource::EnvVariable)));
        let default = || Some((OsStr::new(Opt::find(long)?.default?), ValueSource::DefaultValue));
        given.or_else(default).map(|(text, source)| Value { long, text: text.to_owned(), source })
    }

    /// The value of an option that has a default.
    pub(crate) fn setting(&self, long: &'static str) -> Value {
        self.value(long).unwrap_or_else(|| Value { long, text: OsString::new(), source: ValueSource::DefaultValue })
    }

    /// All values of a repeatable option. Those of the variable come first, so that the command line takes precedence if the last value
    /// counts.
    pub(crate) fn each(&self, long: &'static str) -> Vec<Value> {
        let variable = self.variable(long).unwrap_or_default();
        let lines: Vec<&OsStr> = match variable.to_str() {
            Some(text) => text.lines().map(str::trim).filter(|line| !line.is_empty()).map(OsStr::new).collect(),
            // It is not UTF-8. A caller that needs text refuses it.
            None => vec![variable],
        };
        let from_variable =
            lines.into_iter().map(|line| Value { long, text: line.into(), source: ValueSource::EnvVariable });
        let values = self.on_command_line_each(long);
        let from_option = values.map(|text| Value { long, text: text.clone(), source: ValueSource::CommandLine });
        from_variable.chain(from_option).collect()
    }

    /// A flag, if it is set.
    ///
    /// # Errors
    /// Its variable is neither `1`, `true`, `0` nor `false`.
    pub(crate) fn flag(&self, long: &'static str) -> Result<Option<Value>> {
        if self.on_command_line(long) {
            return Ok(Some(Value { long, text: OsString::new(), source: ValueSource::CommandLine }));
        }
        let Some(text) = self.variable(long) else { return Ok(None) };
        let value = Value { long, text: text.to_owned(), source: ValueSource::EnvVariable };
        let is_set = value.one_of(&[("1", true), ("true", true), ("0", false), ("false", false)])?;
        Ok(is_set.then_some(value))
    }

    /// The value of an option that may be given without one, if the option is set. Its variable may also have the words of a flag.
    pub(crate) fn value_or_flag(&self, long: &'static str) -> Option<Value> {
        let value = self.value(long)?;
        let meant = Opt::find(long).and_then(Opt::value_if_missing);
        match (value.source, value.text.to_str()) {
            (ValueSource::EnvVariable, Some("0" | "false")) => None,
            (ValueSource::EnvVariable, Some("1" | "true")) => meant.map(|text| Value { text: text.into(), ..value }),
            _ => Some(value),
        }
    }

    /// The positional arguments of this name.
    pub(crate) fn words(&self, name: &str) -> Vec<OsString> {
        self.on_command_line_each(name).cloned().collect()
    }

    /// Warnings about input without effect: variables that belong to no option, and all values of `--group` but the last.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = self.warnings_of_variables();
        let groups: Vec<&OsString> = self.on_command_line_each("group").collect();
        if let Some((last, others)) = groups.split_last()
            && let Some(other) = others.iter().find(|other| *other != last)
        {
            let (last, other) = (quoted(last), quoted(other));
            warnings.push(format!("--group is given more than once: it is {last}, and not {other}"));
        }
        warnings
    }

    /// A warning for each variable `NELI_RUN_*` that belongs to no option, because it has no effect.
    fn warnings_of_variables(&self) -> Vec<String> {
        let strange = self.environment.iter().map(|(name, _)| name.to_string_lossy()).filter(|name| {
            // A job that runs neli-run has NELI_RUN_PID in its environment, and a hook NELI_RUN_SECONDS.
            name.starts_with(VARIABLE_PREFIX)
                && name != "NELI_RUN_PID"
                && name != job_variables::RUN_SECONDS
                && !is_service_link(name)
                && !options().any(|option| option.variable() == **name)
        });
        strange
            .map(|name| {
                let near = nearest(&name).map_or_else(String::new, |near| format!("; did you mean {near}?"));
                format!("{name} is set, and no option has this variable: it has no effect{near}")
            })
            .collect()
    }

    fn on_command_line_each(&self, name: &str) -> impl Iterator<Item = &OsString> {
        self.matches.try_get_many::<OsString>(name).ok().flatten().into_iter().flatten()
    }

    /// The variable of an option, unless the command line has the rival option.
    fn variable(&self, long: &str) -> Option<&OsStr> {
        let rival = RIVALS.iter().find_map(|&(one, other)| match long {
            _ if long == one => Some(other),
            _ if long == other => Some(one),
            _ => None,
        });
        if rival.is_some_and(|rival| self.on_command_line(rival)) {
            return None;
        }
        Opt::find(long).and_then(|option| self.nonempty_variable(&option.variable()))
    }

    fn on_command_line(&self, long: &str) -> bool {
        self.matches.try_contains_id(long).unwrap_or(false)
            && self.matches.value_source(long) == Some(ValueSource::CommandLine)
    }
}

impl Value {
    /// The value as text.
    ///
    /// # Errors
    /// It is not UTF-8.
    pub(crate) fn text(&self) -> Result<&str> {
        self.text.to_str().ok_or_else(|| self.refuse("must be UTF-8"))
    }

    /// The value as text that is right by this function, which otherwise says what would be.
    ///
    /// # Errors
    /// It is not UTF-8, or not right.
    pub(crate) fn text_if(&self, validate: impl FnOnce(&str) -> Result<(), String>) -> Result<String> {
        let text = self.text()?;
        validate(text).map_err(|why| self.refuse(why)).map(|()| text.to_owned())
    }

    /// The value as a duration: `500ms`, `5s`, `2m`, `0`.
    ///
    /// # Errors
    /// It is not a duration.
    pub(crate) fn duration(&self) -> Result<Duration> {
        let duration = parse_duration(self.text()?);
        duration.ok_or_else(|| self.refuse("must be a duration with its unit, such as 500ms, 5s or 2m"))
    }

    /// The value as a duration in these bounds, which `must_be` names.
    ///
    /// # Errors
    /// It is not a duration, or out of the bounds.
    pub(crate) fn duration_in(
        &self,
        bounds: impl RangeBounds<Duration>,
        must_be: impl FnOnce() -> String,
    ) -> Result<Duration> {
        let duration = self.duration()?;
        if bounds.contains(&duration) { Ok(duration) } else { Err(self.refuse(must_be())) }
    }

    /// The value as a number in digits alone in these bounds, which `must_be` names.
    ///
    /// # Errors
    /// It is not such a number, or out of the bounds.
    pub(crate) fn number_in<T: FromStr + PartialOrd>(&self, bounds: impl RangeBounds<T>, must_be: &str) -> Result<T> {
        let digits = self.text.to_str().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let number = digits.and_then(|text| text.parse().ok()).filter(|number| bounds.contains(number));
        number.ok_or_else(|| self.refuse(must_be))
    }

    /// What the value stands for, which is one of these words.
    ///
    /// # Errors
    /// It is none of them.
    pub(crate) fn one_of<T: Copy>(&self, words: &[(&str, T)]) -> Result<T> {
        let text = self.text()?;
        words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning).ok_or_else(|| {
            let (last, others) = words.split_last().map_or(("", String::new()), |((last, _), others)| {
                (*last, others.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", "))
            });
            self.refuse(format!("must be {others} or {last}"))
        })
    }

    /// Whether the command line or the environment gives it.
    pub(crate) fn is_given(&self) -> bool {
        self.source != ValueSource::DefaultValue
    }

    /// Whether it is another than without the option: `0s` is `0`.
    pub(crate) fn is_set(&self) -> bool {
        let default = Opt::find(self.long).and_then(|option| option.default);
        let is_zero = |text: &str| parse_duration(text).is_some_and(|duration| duration.is_zero());
        self.is_given()
            && !default
                .is_some_and(|text| self.text == text || (is_zero(text) && self.text.to_str().is_some_and(is_zero)))
    }

    /// Whether the command line gives it.
    pub(crate) fn is_option(&self) -> bool {
        self.source == ValueSource::CommandLine
    }

    /// The refusal of this value; `why` says what it must be.
    pub(crate) fn refuse(&self, why: impl AsRef<str>) -> anyhow::Error {
        anyhow!("{}: {}", self.shown(), why.as_ref())
    }

    /// The option or variable with its value, as a user would type it.
    pub(crate) fn shown(&self) -> String {
        let (name, text) = (self.name(), quoted(&self.text));
        let separator = if self.source == ValueSource::EnvVariable { "=" } else { " " };
        let default = if self.is_given() { "" } else { " (the default)" };
        format!("{name}{separator}{text}{default}")
    }

    /// The option or variable without its value, which may be a secret.
    pub(crate) fn name(&self) -> String {
        if self.source == ValueSource::EnvVariable { variable(self.long) } else { format!("--{}", self.long) }
    }
}

/// Options whose variables the job gets, if they have an effect: `neli-run assert` needs them there.
const HANDED_ON: [&str; 5] = ["brokers", "embedded", "group", "properties", "topic"];

/// A subcommand inside a job looks at the job's election: what the command line and the options' variables leave open is taken from the
/// variables that the job got. A candidate takes nothing from them: a job that starts a `neli-run` of its own stands in an election of its own.
impl ParsedArgs {
    /// The same, with the options that are left open as in the candidate of this job.
    pub(crate) fn with_election_of_job(mut self) -> Self {
        let of_job = |name: &str| self.nonempty_variable(name).map(OsStr::to_owned);
        let Some(group) = of_job(job_variables::GROUP) else { return self };
        let mut fills: Vec<(&str, OsString)> = Vec::new();
        // A list is of all elections, unless one is given.
        let is_about_one = self.subcommand() != Some("list");
        if is_about_one && self.value("group").is_none_or(|given| given.text == group) {
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
            let name = variable(long);
            self.environment.retain(|(key, _)| *key != *name);
            self.environment.push((name.into(), value));
        }
        self
    }

    /// Whether the election is that of the job in which this runs.
    pub(crate) fn is_about_election_of_job(&self) -> bool {
        let group = self.nonempty_variable(job_variables::GROUP);
        group.is_some_and(|group| self.value("group").is_some_and(|given| given.text == group))
    }

    /// The variables of options that the job gets: those that have an effect.
    pub(crate) fn handed_on(&self) -> Vec<OsString> {
        let has_effect = |long: &&'static str| {
            let set = self.nonempty_variable(&variable(long));
            set.is_some() && set == self.value(long).as_ref().map(|value| &*value.text)
        };
        HANDED_ON.into_iter().filter(has_effect).map(|long| variable(long).into()).collect()
    }

    fn is_given(&self, long: &'static str) -> bool {
        self.on_command_line(long) || self.variable(long).is_some()
    }
}
