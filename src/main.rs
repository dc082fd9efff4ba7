//! Parses the command line, runs the request, and converts the result into an exit status.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use neli_run::cli;
use neli_run::cli::parsed_args::ParsedArgs;
use neli_run::cli::validate::{self, look};
use neli_run::command;
use neli_run::exit::{self, ExitStatus};
use neli_run::guard;
use neli_run::process::memory_files::{self, Deliverer};
use neli_run::process::system;
use neli_run::release;
use neli_run::report::log::{Level, is_stderr_the_journal};
use neli_run::supervise::{self, AtStart};
use neli_run::text::one_line;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    // The hidden modes are recognized before the options are parsed: by descriptors that a user can't open from a shell.
    if let [_, mode, config] = arguments.as_slice()
        && mode == "guard"
        && let Some(config) = memory_files::sealed(config)
    {
        return guard::main(config);
    }
    let at_start = AtStart::now();
    let done = match arguments.as_slice() {
        [_, mode, requests, appended] if mode == "release" => {
            Deliverer::named_by(requests, appended).map_or_else(|| perform(&arguments, at_start), release::main)
        }
        _ => perform(&arguments, at_start),
    };
    let status = done.unwrap_or_else(|error| {
        say(Level::Error, &exit::line_of(&error));
        exit::status_of(&error)
    });
    system::exit_at_once(status.code())
}

fn perform(arguments: &[OsString], at_start: AtStart) -> anyhow::Result<ExitStatus> {
    let args = match cli::parse(arguments, std::env::vars_os().collect()) {
        Ok(args) => args,
        // --help or --version.
        Err(text) if !text.use_stderr() => return command::output::written(text.print()),
        Err(error) => return Err(cli::refusal(&error, arguments)),
    };
    match args.subcommand() {
        None => supervise::run(validate::config(&args)?, at_start),
        Some("assert") => command::assert::main(&look::assert(&args)?, || warned(&args, look::look)),
        Some("broker") => command::broker::main(look::idle_timeout(&args)?),
        Some("completions") => command::completions::main(&args),
        Some("doctor") => command::doctor::main(&validate::doctor(&args)?),
        Some("end") => command::end::main(&warned(&args, look::end)?),
        Some("forget") => command::forget::main(&warned(&args, look::forget)?),
        Some("history") => command::history::main(&warned(&args, look::history)?),
        Some("list") => command::list::main(&warned(&args, look::list)?),
        Some("man") => command::man::main(&args),
        Some("observe") => command::observe::main(&warned(&args, look::observe)?),
        Some("status") => {
            let key = look::key_of_status(&args)?;
            command::status::main(&warned(&args, look::look)?, key.as_deref())
        }
        Some("resign") => command::resign::main(&warned(&args, look::resign)?),
        Some("watch") => command::watch::main(&warned(&args, look::watch)?),
        Some(name) => anyhow::bail!("{name}: no such subcommand"),
    }
}

/// The settings of a subcommand. Each problem that does not prevent it is a warning on stderr.
fn warned<T>(
    args: &ParsedArgs,
    read: impl FnOnce(&ParsedArgs, &mut Vec<String>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut warnings = args.warnings();
    let settings = read(args, &mut warnings)?;
    for warning in warnings {
        say(Level::Warning, &format!("warning: {}", one_line(&warning)));
    }
    Ok(settings)
}

/// Prints one line on stderr. If stderr is closed, the line is lost.
fn say(level: Level, line: &str) {
    let priority = if is_stderr_the_journal() { level.priority() } else { "" };
    let _ = writeln!(std::io::stderr(), "{priority}neli-run: {line}");
}
