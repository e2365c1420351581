//! The log of a container: lines as CRI has them, and the file that they go to.

mod file;
mod lines;

pub(crate) use file::CriLogFile;
pub(crate) use lines::CriLineSplitter;

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
