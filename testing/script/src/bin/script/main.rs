//! Runs the script in its arguments; the documentation of the library lists the steps.

mod grpc_server;
mod http_server;
mod run_steps;
mod signals;

use std::io::{self, Write};
use std::process::ExitCode;

use oarsman_script::{EXIT_BAD_SCRIPT, EXIT_FAILED_STEP, parse};

use crate::signals::TermHandler;

fn main() -> ExitCode {
    let arguments = std::env::args_os().skip(1);
    let script = parse(arguments.map(|argument| argument.to_string_lossy().into_owned()));
    let steps = match script {
        Ok(steps) => steps,
        Err(error) => return print_error(&error.to_string(), EXIT_BAD_SCRIPT),
    };
    let on_term = TermHandler::default();
    if let Err(error) = signals::watch(&on_term) {
        return print_error(&format!("cannot watch signals: {error}"), EXIT_FAILED_STEP);
    }
    match run_steps::run_all(&steps, &on_term) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print_error(&error.to_string(), EXIT_FAILED_STEP),
    }
}

fn print_error(why: &str, code: u8) -> ExitCode {
    // Nothing can be done if stderr is closed; there is still the exit code.
    writeln!(io::stderr(), "script: {why}").ok();
    ExitCode::from(code)
}
