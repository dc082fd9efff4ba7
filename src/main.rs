//! Parses the command line, runs the request, and converts the result into an exit status.

use std::ffi::OsString;
use std::os::fd::RawFd;
use std::process::ExitCode;

use neli_proto::time::Time;
use neli_run::cli;
use neli_run::cli::validate;
use neli_run::command;
use neli_run::exit::{self, ExitStatus};
use neli_run::guard;
use neli_run::process::memory_files::{self, Deliverer};
use neli_run::process::system;
use neli_run::release;
use neli_run::report::log::{Level, say_at};
use neli_run::supervise;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    // The hidden modes are recognized before the options are parsed: by descriptors that a user can't open from a shell.
    if let [_, mode, config] = arguments.as_slice()
        && mode == "guard"
        && let Some(config) = memory_files::sealed(config)
    {
        return guard::main(config);
    }
    let begun = supervise::begin();
    let done = match arguments.as_slice() {
        [_, mode, queue] if mode == "release" => {
            Deliverer::named_by(queue).map_or_else(|| perform(&arguments, begun), release::main)
        }
        _ => perform(&arguments, begun),
    };
    let status = done.unwrap_or_else(|error| {
        say_at(Level::Error, &exit::line_of(&error));
        exit::status_of(&error)
    });
    system::exit_at_once(status.code())
}

fn perform(arguments: &[OsString], begun: (Time, Vec<RawFd>)) -> anyhow::Result<ExitStatus> {
    let args = match cli::parse(arguments, std::env::vars_os().collect()) {
        Ok(args) => args,
        // --help or --version.
        Err(text) if !text.use_stderr() => return command::output::written(text.print()),
        Err(error) => return Err(cli::refusal(&error, arguments)),
    };
    match args.subcommand() {
        None => supervise::run(validate::config(&args)?, begun),
        Some("assert") => command::assert::main(&args),
        Some("broker") => command::broker::main(&args),
        Some("completions") => command::completions::main(&args),
        Some("doctor") => command::doctor::main(&args),
        Some("end") => command::end::main(&args),
        Some("forget") => command::forget::main(&args),
        Some("history") => command::history::main(&args),
        Some("list") => command::list::main(&args),
        Some("man") => command::man::main(&args),
        Some("observe") => command::observe::main(&args),
        Some("resign") => command::resign::main(&args),
        Some("status") => command::status::main(&args),
        Some("watch") => command::watch::main(&args),
        Some(name) => anyhow::bail!("{name}: no such subcommand"),
    }
}
