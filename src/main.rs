//! Parses the command line, runs the request, and converts the result into an exit status.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use neli_run::cli;
use neli_run::cli::validate::{self, look};
use neli_run::command;
use neli_run::exit::{self, ExitStatus};
use neli_run::guard;
use neli_run::process::{memory_files::Deliverer, system};
use neli_run::release;
use neli_run::report::log::{Level, is_stderr_the_journal};
use neli_run::supervise::{self, AtStart};
use neli_run::text::one_line;

fn main() -> ExitCode {
    if let Some(arguments) = guard::Arguments::parse(std::env::args_os()) {
        return guard::main(arguments);
    }
    let at_start = AtStart::now();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    // The hidden mode is recognized before the options are parsed: by descriptors that a user can't open from a shell.
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
        Some("assert") => command::assert::main(&look::assert(&args)?, || {
            let look = look::look(&args)?;
            warn(&look.warnings);
            Ok(look)
        }),
        Some("broker") => command::broker::main(look::idle_timeout(&args)?),
        Some("completions") => command::completions::main(&args),
        Some("doctor") => command::doctor::main(&validate::doctor(&args)?),
        Some("end") => {
            let end = look::end(&args)?;
            warn(&end.look.warnings);
            command::end::main(&end)
        }
        Some("forget") => {
            let forget = look::forget(&args)?;
            warn(&forget.look.warnings);
            command::forget::main(&forget)
        }
        Some("history") => {
            let history = look::history(&args)?;
            warn(&history.look.warnings);
            command::history::main(&history)
        }
        Some("list") => {
            let list = look::list(&args)?;
            warn(&list.warnings);
            command::list::main(&list)
        }
        Some("man") => command::man::main(&args),
        Some("observe") => {
            let observe = look::observe(&args)?;
            warn(&observe.warnings);
            command::observe::main(&observe)
        }
        Some("status") => {
            let (look, key) = (look::look(&args)?, look::key_of_status(&args)?);
            warn(&look.warnings);
            command::status::main(&look, key.as_deref())
        }
        Some("resign") => {
            let resign = look::resign(&args)?;
            warn(&resign.look.warnings);
            command::resign::main(&resign)
        }
        Some("watch") => {
            let watch = look::watch(&args)?;
            warn(&watch.look.warnings);
            command::watch::main(&watch)
        }
        Some(name) => anyhow::bail!("{name}: no such subcommand"),
    }
}

fn warn(warnings: &[String]) {
    for warning in warnings {
        say(Level::Warning, &format!("warning: {}", one_line(warning)));
    }
}

/// Prints one line on stderr. If stderr is closed, the line is lost.
fn say(level: Level, line: &str) {
    let priority = if is_stderr_the_journal() { level.priority() } else { "" };
    let _ = writeln!(std::io::stderr(), "{priority}neli-run: {line}");
}
