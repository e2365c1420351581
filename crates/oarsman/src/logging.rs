//! The agent's log: text by default or JSON, to stderr or to a file.
//!
//! Every line is written at once. Nothing is buffered, so nothing is lost when the agent is killed, and there is nothing to flush.

mod file;
mod json;
mod single_line;
mod verbosity;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use oarsman_clock::Clock;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

pub(crate) use file::RotationLimits;
pub(crate) use verbosity::Verbosity;

use file::LogFile;
use json::JsonLayer;
use single_line::SingleLine;

/// How and where the agent speaks.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogSettings {
    pub(crate) verbosity: Verbosity,
    pub(crate) format: LogLineFormat,
    /// None for stderr.
    pub(crate) file: Option<(PathBuf, RotationLimits)>,
}

/// What lines look like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogLineFormat {
    /// For people.
    #[default]
    Text,
    /// For those who collect logs.
    Json,
}

impl LogSettings {
    /// Installs the log for the whole process.
    pub(crate) fn start(self, clock: &Arc<dyn Clock>) -> Result<()> {
        let colours = self.file.is_none() && io::stderr().is_terminal();
        let writer = match self.file {
            Some((path, limits)) => to_file(&path, limits, Arc::clone(clock))?,
            None => BoxMakeWriter::new(io::stderr),
        };
        let loudness = self.verbosity.filter();
        let lines = match self.format {
            LogLineFormat::Text => {
                let writer = SingleLine { writer, colours };
                tracing_subscriber::fmt::layer().with_ansi(colours).with_writer(writer).boxed()
            }
            LogLineFormat::Json => JsonLayer::new(writer, Arc::clone(clock)).boxed(),
        };
        tracing_subscriber::registry().with(lines.with_filter(loudness)).init();
        Ok(())
    }
}

fn to_file(path: &Path, limits: RotationLimits, clock: Arc<dyn Clock>) -> Result<BoxMakeWriter> {
    let cannot = format!("cannot write the log to {}", path.display());
    Ok(BoxMakeWriter::new(LogFile::open(path, limits, clock).context(cannot)?))
}

/// Writes one line; a log that cannot be written is no reason to stop.
fn write_line<'a>(writer: &'a impl MakeWriter<'a>, line: &[u8]) {
    io::Write::write_all(&mut writer.make_writer(), line).ok();
}
