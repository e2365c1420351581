//! The program. It has no commands yet: see CHANGELOG.md for what is there, and ARCHITECTURE.md for what comes.

use std::process::ExitCode;

#[expect(clippy::print_stderr, reason = "telling the person at the terminal is this program's job")]
fn main() -> ExitCode {
    eprintln!(
        "oarsman {}: the program has no commands yet; the libraries below it are tested by ./test",
        env!("CARGO_PKG_VERSION")
    );
    ExitCode::FAILURE
}
