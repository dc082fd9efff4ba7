//! Parses the command line, runs the request, and converts the result into an exit status.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use neli_run::cli::parsed_args::Environment;
use neli_run::cli::validate::{self, look};
use neli_run::cli::{self, Request};
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
    let environment = Environment(std::env::vars_os().collect());
    match cli::parse(arguments, environment)? {
        Request::Assert(args) => command::assert::main(&look::assert(&args)?, || {
            let look = look::look(&args)?;
            warn(&look.warnings);
            Ok(look)
        }),
        Request::Broker(args) => command::broker::main(look::idle_timeout(&args)?),
        Request::Completions(args) => command::completions::main(&args),
        Request::Doctor(args) => command::doctor::main(&validate::doctor(&args)?),
        Request::End(args) => {
            let end = look::end(&args)?;
            warn(&end.look.warnings);
            command::end::main(&end)
        }
        Request::Forget(args) => {
            let forget = look::forget(&args)?;
            warn(&forget.look.warnings);
            command::forget::main(&forget)
        }
        Request::Help(text) => command::output::written(text.print()),
        Request::History(args) => {
            let history = look::history(&args)?;
            warn(&history.look.warnings);
            command::history::main(&history)
        }
        Request::List(args) => {
            let list = look::list(&args)?;
            warn(&list.warnings);
            command::list::main(&list)
        }
        Request::Man(args) => command::man::main(&args),
        Request::Observe(args) => {
            let observe = look::observe(&args)?;
            warn(&observe.warnings);
            command::observe::main(&observe)
        }
        Request::Status(args) => {
            let status = look::status(&args)?;
            warn(&status.look.warnings);
            command::status::main(&status)
        }
        Request::Resign(args) => {
            let resign = look::resign(&args)?;
            warn(&resign.look.warnings);
            command::resign::main(&resign)
        }
        Request::Run(args) => supervise::run(validate::config(&args)?, at_start),
        Request::Watch(args) => {
            let watch = look::watch(&args)?;
            warn(&watch.look.warnings);
            command::watch::main(&watch)
        }
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
