//! What the agent says while it runs, for people to read.

use std::io::IsTerminal;

use tracing::Level;

/// Sends the agent's lines to stderr. A verbosity of 4 and more is for those who look for a fault.
pub(crate) fn start(verbosity: u8) {
    let level = match verbosity {
        0..=3 => Level::INFO,
        4..=7 => Level::DEBUG,
        _ => Level::TRACE,
    };
    let colours = std::io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt().with_max_level(level).with_ansi(colours);
    lines.with_writer(std::io::stderr).init();
}
