//! Output of the commands: text with colours on terminals only, JSON or YAML; a closed pipe is no failure.

use std::io::{self, Write};

use anyhow::Result;
use clap::ValueEnum;
use oarsman_streaming::command_client::CommandError;
use serde::Serialize;

use crate::control_sequences::strip_control_sequences;

/// How programs want it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    Json,
    Yaml,
}

/// Writes to stdout; colours are left out unless that is a terminal, or where NO_COLOR is set. Messages of containers are in it.
pub(super) fn print(text: &str) -> Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(strip_control_sequences(text).as_bytes())?;
    Ok(out.flush()?)
}

/// Writes a line to stderr.
pub(super) fn print_stderr(text: &str) -> Result<()> {
    Ok(writeln!(anstream::stderr().lock(), "{text}")?)
}

/// A value as text in the given format.
pub(super) fn formatted(what: &impl Serialize, format: OutputFormat) -> Result<String> {
    Ok(match format {
        OutputFormat::Json => format!("{}\n", serde_json::to_string_pretty(what)?),
        OutputFormat::Yaml => serde_saphyr::to_string(what)?,
    })
}

/// Whether an error is only that the reader of our output has closed the pipe.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let error = match error.downcast_ref::<CommandError>() {
        Some(CommandError::Output(error)) => Some(error),
        _ => error.downcast_ref::<io::Error>(),
    };
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
