//! What `watch` is told, validated.

use neli::election::{Client, Election};

use crate::cli::parsed_args::ParsedArgs;
use crate::config::{client, election};
use crate::exit::StartupError;

/// What `watch` is told.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The election.
    pub election: Election,
    /// How Kafka is reached.
    pub client: Client,
    /// `--json`: every record, with the law's verdict.
    pub json: bool,
    /// `--from`.
    pub from: WatchFrom,
    /// `--until-end`.
    pub until_end: bool,
    /// What is no reason to refuse, and ought to be known.
    pub warnings: Vec<String>,
}

/// `--from`: where `watch` begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WatchFrom {
    /// At the end.
    End,
    /// At this offset.
    Offset(i64),
    /// At the first record that is kept.
    Start,
}

impl Watch {
    /// Proves what was given.
    ///
    /// # Errors
    ///
    /// When something is missing or out of its bounds.
    pub fn validate(given: &ParsedArgs) -> Result<Self, StartupError> {
        let mut warnings = given.environment().warnings();
        Ok(Self {
            election: election(given)?,
            client: client(given, &mut warnings)?,
            json: given.flag("json")?.is_some(),
            from: from(given)?,
            until_end: given.flag("until-end")?.is_some(),
            warnings,
        })
    }
}

fn from(given: &ParsedArgs) -> Result<WatchFrom, StartupError> {
    let Some(value) = given.value("from") else { return Ok(WatchFrom::End) };
    match value.text()? {
        "end" => Ok(WatchFrom::End),
        "start" => Ok(WatchFrom::Start),
        text => match text.parse() {
            Ok(offset) if offset >= 0 => Ok(WatchFrom::Offset(offset)),
            _ => Err(value.refuse("must be start, end or an offset (0 or more)")),
        },
    }
}
