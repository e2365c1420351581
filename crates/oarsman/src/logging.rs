//! The agent's log: text by default or JSON, to stderr or to a file.
//!
//! Lines pass a bounded queue and are written at once by a thread of their own: a terminal, pipe or disk that takes none stops no pod.

mod file;
mod json;
mod queue;
mod single_line;
mod verbosity;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;

use oarsman_clock::Clock;
use oarsman_core::healthz::LogProgress;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

pub(crate) use file::RotationLimits;
pub(crate) use verbosity::Verbosity;

use file::LogFile;
use json::JsonLayer;
use queue::{LogFlush, LogQueue};
use single_line::SingleLine;
use verbosity::VerbosityControl;

/// How and where the agent speaks.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogSettings {
    pub(crate) verbosity: Verbosity,
    pub(crate) format: LogLineFormat,
    /// None for stderr.
    pub(crate) file: Option<(PathBuf, RotationLimits)>,
}

/// The log of this process; its last lines are written when it is dropped.
#[derive(Debug)]
#[must_use = "the last lines are lost when nothing waits for them"]
pub(crate) struct AgentLog {
    control: LogControl,
    _flush: LogFlush,
}

impl AgentLog {
    pub(crate) fn control(&self) -> LogControl {
        self.control.clone()
    }
}

/// What the running agent knows of its log, and changes of it.
#[derive(Clone, Debug)]
pub(crate) struct LogControl {
    queue: LogQueue,
    verbosity: VerbosityControl,
}

impl LogControl {
    /// Of a log that is not written.
    #[cfg(test)]
    pub(crate) fn of_nothing() -> Self {
        let queue = LogQueue::new(Arc::new(oarsman_clock::SystemClock::start()));
        Self { queue, verbosity: Verbosity::default().filter().1 }
    }

    /// How lines are written.
    pub(crate) fn progress(&self) -> LogProgress {
        self.queue.progress()
    }

    /// Changes which lines are written, until the process ends.
    pub(crate) fn set_verbosity(&self, verbosity: u32) {
        self.verbosity.set(verbosity);
    }
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
    /// Installs the log for the whole process. A disk that is full or read-only must not keep pods from being looked after: a log file that
    /// cannot be opened is replaced by stderr.
    ///
    /// # Errors
    /// When the thread that writes lines cannot be started.
    pub(crate) fn start(self, clock: &Arc<dyn Clock>) -> io::Result<AgentLog> {
        let colours = self.file.is_none() && io::stderr().is_terminal();
        let (file, failure) = open(self.file, clock);
        let log: Box<dyn Write + Send> = match file {
            Some(file) => Box::new(file),
            None => Box::new(io::stderr()),
        };
        let writer = LogQueue::start(log, Arc::clone(clock))?;
        let flush = writer.flush_at_end();
        let (loudness, verbosity) = self.verbosity.filter();
        let control = LogControl { queue: writer.clone(), verbosity };
        let lines = match self.format {
            LogLineFormat::Text => {
                let writer = SingleLine { writer, colours };
                tracing_subscriber::fmt::layer().with_ansi(colours).with_writer(writer).boxed()
            }
            LogLineFormat::Json => JsonLayer::new(writer, Arc::clone(clock)).boxed(),
        };
        tracing_subscriber::registry().with(lines.with_filter(loudness)).init();
        if let Some((path, error)) = failure {
            tracing::error!(path = %path.display(), %error, "log file not opened, logging to stderr");
        }
        Ok(AgentLog { control, _flush: flush })
    }
}

/// The log file, unless it is stderr that is wanted or the file cannot be opened; then with the cause.
fn open(
    wanted: Option<(PathBuf, RotationLimits)>,
    clock: &Arc<dyn Clock>,
) -> (Option<LogFile>, Option<(PathBuf, io::Error)>) {
    let Some((path, limits)) = wanted else { return (None, None) };
    match LogFile::open(&path, limits, Arc::clone(clock)) {
        Ok(file) => (Some(file), None),
        Err(error) => (None, Some((path, error))),
    }
}

/// Writes one line; a log that cannot be written is no reason to stop.
fn write_line<'a>(writer: &'a impl MakeWriter<'a>, line: &[u8]) {
    writer.make_writer().write_all(line).ok();
}

#[cfg(test)]
mod tests {
    use std::fs;

    use oarsman_clock::SystemClock;

    use super::*;

    /// Row H20 of docs/security.md. A file in place of the directory stands for a disk on which no file can be made.
    #[test]
    fn a_log_file_that_cannot_be_opened_does_not_stop_the_start() {
        let directory = tempfile::tempdir().unwrap();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
        let place = |name: &str| Some((directory.path().join(name), RotationLimits::default()));
        fs::write(directory.path().join("file"), "").unwrap();
        let (file, failure) = open(place("file/oarsman.log"), &clock);
        assert!(file.is_none() && failure.unwrap().0.ends_with("file/oarsman.log"));
        let (file, failure) = open(place("oarsman.log"), &clock);
        assert!(file.is_some() && failure.is_none());
    }
}
