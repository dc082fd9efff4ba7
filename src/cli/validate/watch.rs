//! `--from`: where `watch` begins.

use anyhow::Result;

use super::duration;
use crate::cli::parsed_args::ParsedArgs;
use crate::config::WatchFrom;

const EXPECTED: &str = "must be start, end, an offset (0 or more), or how long ago, such as 30m or 1h";

pub(super) fn from(args: &ParsedArgs) -> Result<Option<WatchFrom>> {
    let Some(value) = args.value("from") else { return Ok(None) };
    let from = match value.text()? {
        "end" => WatchFrom::End,
        "start" => WatchFrom::Start,
        text => match text.parse() {
            Ok(offset) if offset >= 0 => WatchFrom::Offset(offset),
            _ => WatchFrom::Since(duration(&value).map_err(|_| value.refuse(EXPECTED))?),
        },
    };
    Ok(Some(from))
}
