//! Parses, calls, and turns the outcome into an exit status.

use std::env;
use std::process::ExitCode;

use neli_run::driver::guard;

fn main() -> ExitCode {
    if let Some(call) = guard::called(env::args_os()) {
        return guard::main(call);
    }
    ExitCode::SUCCESS
}
