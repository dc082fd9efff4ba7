//! `--from`: where `watch` begins.

use crate::cli::parsed_args::ParsedArgs;
use crate::config::WatchFrom;
use crate::exit::StartupError;

pub(super) fn from(args: &ParsedArgs) -> Result<WatchFrom, StartupError> {
    let Some(value) = args.value("from") else { return Ok(WatchFrom::End) };
    match value.text()? {
        "end" => Ok(WatchFrom::End),
        "start" => Ok(WatchFrom::Start),
        text => match text.parse() {
            Ok(offset) if offset >= 0 => Ok(WatchFrom::Offset(offset)),
            _ => Err(value.refuse("must be start, end or an offset (0 or more)")),
        },
    }
}

/// Whether something is asked for that only lines show.
pub(super) fn wants_lines(args: &ParsedArgs) -> Result<bool, StartupError> {
    let flags = [args.flag("json")?, args.flag("until-end")?];
    Ok(args.value("from").is_some() || flags.iter().any(Option::is_some))
}
