//! What subcommands that show an election or send it a request have in common on the command line.

use std::ops::Bound;
use std::time::Duration;

use anyhow::Result;
use neli_kafka::{Client, ElectionId};

use crate::cli::parsed_args::ParsedArgs;
use crate::cli::validate::{self, LONGEST};
use crate::command::output;
use crate::config::job_variables;
use crate::report::log::Level;

/// The default limit for Kafka's answers (`--timeout`).
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);
/// The default where an answer takes longer: `resign` waits until another candidate leads.
pub(super) const LONG_TIMEOUT: Duration = Duration::from_secs(30);

/// The settings of a subcommand about one election.
#[derive(Clone, Debug)]
pub(super) struct Look {
    pub(super) election: ElectionId,
    pub(super) client: Client,
    /// `--json`.
    pub(super) json: bool,
    /// `--timeout`: the limit for Kafka's answers.
    pub(super) timeout: Duration,
}

impl Look {
    /// Reads them; the last thing that is read, since the connection's warnings are said.
    pub(super) fn of(args: &ParsedArgs, default_timeout: Duration) -> Result<Self> {
        let (election, json) = (election(args)?, args.flag("json")?.is_some());
        let timeout = timeout(args, default_timeout)?;
        Ok(Self { election, json, timeout, client: client(args)? })
    }
}

/// The connection to Kafka. Each problem that does not prevent it is a warning on stderr.
pub(super) fn client(args: &ParsedArgs) -> Result<Client> {
    let mut warnings = args.warnings();
    let client = validate::client(args, &mut warnings)?;
    for warning in warnings {
        output::say_at(Level::Warning, &format!("warning: {warning}"));
    }
    Ok(client)
}

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
    let Some(value) = args.value(long) else { return Ok(None) };
    let bounds = (Bound::Excluded(Duration::ZERO), Bound::Included(LONGEST));
    value.duration_in(bounds, || "must be more than 0, and at most 365d".to_owned()).map(Some)
}
