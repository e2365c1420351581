//! The log of a container: lines as CRI has them, and the file that they go to.

mod file;
mod lines;

pub(crate) use file::LogFile;
pub(crate) use lines::LineSplitter;

/// One of the two streams that a container writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OutputStream {
    Stdout,
    Stderr,
}

impl OutputStream {
    fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}
