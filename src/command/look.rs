//! What subcommands that show an election or send it a request have in common on the command line.

use std::time::Duration;

use anyhow::{Result, anyhow};
use neli_kafka::{Access, Client, ElectionId, embedded};

use crate::cli::parsed_args::ParsedArgs;
use crate::cli::validate;
use crate::config::{WORDS, job_variables};
use crate::text::reason;

/// The default limit for Kafka's answers (`--timeout`).
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);
/// The default where an answer takes longer: `resign` waits until another candidate leads.
pub(super) const LONG_TIMEOUT: Duration = Duration::from_secs(30);

/// The settings of a subcommand about one election.
#[derive(Clone)]
pub(super) struct Look {
    pub(super) election: ElectionId,
    pub(super) access: Access,
    /// `--json`.
    pub(super) json: bool,
    /// `--timeout`: the limit for Kafka's answers.
    pub(super) timeout: Duration,
}

impl Look {
    /// Reads them; the last thing that is read, since warnings are said.
    pub(super) fn of(args: &ParsedArgs, default_timeout: Duration) -> Result<Self> {
        let (election, json) = (election(args)?, args.flag("json")?.is_some());
        let timeout = timeout(args, default_timeout)?;
        Ok(Self { election, json, timeout, access: access(args)? })
    }
}

/// The access to Kafka. Each problem that does not prevent it is a warning on stderr.
///
/// # Errors
///
/// A setting is missing or invalid; or as for [`access_of`].
pub(super) fn access(args: &ParsedArgs) -> Result<Access> {
    let mut warnings = args.warnings();
    let client = validate::client(args, &mut warnings)?;
    validate::warn(&warnings);
    access_of(&client)
}

/// The access of this client.
///
/// # Errors
///
/// `--embedded`, and no such broker runs.
pub(super) fn access_of(client: &Client) -> Result<Access> {
    let access = if let Some(bootstrap) = &client.bootstrap {
        Access::at(bootstrap, &client.properties)
    } else {
        let found = embedded::BrokerFinder::of_user().and_then(|finder| finder.find());
        let connection = found.map_err(|error| anyhow!("--embedded: {NO_BROKER} ({})", reason(&error)))?;
        Access::embedded(&connection, &client.properties)
    };
    Ok(Access { words: &WORDS, ..access })
}

const NO_BROKER: &str = "no broker runs for this user; a candidate with --embedded starts one";

/// The election. `--role` is taken as its role's name, even if it is a number, until the hellos show which role it
/// is. In a job of one of several roles it is the job's role, unless `--role` names another.
fn election(args: &ParsedArgs) -> Result<ElectionId> {
    let of_job = || {
        let is_one_of_several =
            args.is_about_election_of_job() && args.nonempty_variable(job_variables::ROLES).is_some();
        let role = args.nonempty_variable(job_variables::ROLE).filter(|_| is_one_of_several)?;
        role.to_str().map(str::to_owned)
    };
    Ok(ElectionId { role_name: validate::role(args)?.or_else(of_job), ..validate::election(args)? })
}

/// `--timeout`.
pub(super) fn timeout(args: &ParsedArgs, default: Duration) -> Result<Duration> {
    Ok(limit(args, "timeout")?.unwrap_or(default))
}

/// A time limit, if it is given.
pub(super) fn limit(args: &ParsedArgs, long: &'static str) -> Result<Option<Duration>> {
    args.value(long).map(|value| validate::positive_duration(&value)).transpose()
}
