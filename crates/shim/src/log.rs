//! The log of a container: lines as CRI has them, and the file that they go to.

mod file;
mod lines;
mod writer;

pub(crate) use file::CriLogFile;
pub(crate) use lines::CriLineSplitter;
pub use lines::fuzz_log_lines;
pub(crate) use writer::LogWriter;

/// One of the two streams that a container writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WrittenStream {
    Stdout,
    Stderr,
}

impl WrittenStream {
    fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}
