//! The runs of `--once`, `--window` or `--schedule`, for `status --json` and `/status`.

use neli_proto::fact::{Account, Fact, Outcome, Runs};
use serde::Serialize;

use crate::report::log::timestamp;

/// All runs of a key, or of an election's windows.
#[derive(Serialize)]
pub(crate) struct RunsPart<'a> {
    count: u32,
    failures: u32,
    last: Option<RunPart<'a>>,
    last_success: Option<SuccessPart<'a>>,
    next_window: Option<String>,
}

/// A run that has ended.
#[derive(Serialize)]
struct RunPart<'a> {
    key: &'a str,
    outcome: Outcome,
    exit: Option<u8>,
    attempt: u32,
    by: Option<&'a str>,
    at: Option<String>,
}

/// A run that has succeeded.
#[derive(Serialize)]
pub(crate) struct SuccessPart<'a> {
    window_start: Option<String>,
    by: Option<&'a str>,
    at: Option<String>,
}

impl<'a> RunsPart<'a> {
    pub(crate) fn of(runs: &'a Runs, next_window_ms: Option<u64>) -> Self {
        let Runs { account, last } = runs;
        Self {
            count: account.runs,
            failures: account.failures,
            last: last.as_ref().map(RunPart::of),
            last_success: SuccessPart::of(account),
            next_window: next_window_ms.map(timestamp),
        }
    }
}

impl<'a> RunPart<'a> {
    fn of(fact: &'a Fact) -> Self {
        Self {
            key: &fact.key,
            outcome: fact.outcome,
            exit: fact.exit,
            attempt: fact.attempt,
            by: fact.name.as_deref(),
            at: fact.at_ms.map(timestamp),
        }
    }
}

impl<'a> SuccessPart<'a> {
    pub(crate) fn of(account: &'a Account) -> Option<Self> {
        let success = account.success.as_ref()?;
        Some(Self {
            window_start: success.window.map(|window| timestamp(window.from_ms)),
            by: success.by.as_deref(),
            at: success.at_ms.map(timestamp),
        })
    }
}
