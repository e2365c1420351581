//! The errors of control groups.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;

use super::RemoveGroupError;

/// A control group that could not be made, looked at or taken away.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum CgroupError {
    /// There is no hierarchy to make groups in.
    #[error("no control groups are mounted: mount cgroup2 at /sys/fs/cgroup")]
    NotMounted,
    /// What is mounted cannot be read.
    #[error("cannot tell which control groups are mounted: {0}")]
    Mounts(#[source] io::Error),
    /// The group is outside of the root.
    #[error("the control group {} is not below {}, so it is left alone", .group.display(), .root.display())]
    Outside { group: PathBuf, root: PathBuf },
    /// A directory could not be made.
    #[error("cannot create the control group {}: {source}", .directory.display())]
    Create { directory: PathBuf, source: io::Error },
    /// A control file or a directory could not be read.
    #[error("cannot read {}: {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    /// A control file did not take a value.
    #[error("cannot write {text:?} to {}: {source}", .path.display())]
    Write { path: PathBuf, text: String, source: io::Error },
    /// This process is in the group that is to be destroyed.
    #[error("cannot destroy the control group {}: this process lives in it; move it out first", .group.display())]
    Ourselves { group: PathBuf },
    /// A process could not be killed.
    #[error("cannot kill process {pid} in the control group {}: {source}", .group.display())]
    Kill { group: PathBuf, pid: u32, source: io::Error },
    /// A process did not die when it was killed; most often it waits for a disk or a network file system.
    #[error("cannot remove the control group {}: process {pid} ({name}) was killed and is still there", .group.display())]
    Survivor {
        group: PathBuf,
        pid: u32,
        /// The name of its program.
        name: String,
    },
    /// A directory could not be removed.
    #[error(transparent)]
    Remove(#[from] RemoveGroupError),
}

impl CgroupError {
    /// Whether this process, or the machine, could not open one more file.
    pub(super) fn is_out_of_descriptors(&self) -> bool {
        let source = match self {
            Self::Mounts(source)
            | Self::Create { source, .. }
            | Self::Read { source, .. }
            | Self::Write { source, .. }
            | Self::Kill { source, .. }
            | Self::Remove(RemoveGroupError { source, .. }) => source,
            Self::NotMounted
            | Self::Outside { .. }
            | Self::Ourselves { .. }
            | Self::Survivor { .. } => return false,
        };
        let errno = Errno::from_io_error(source);
        matches!(errno, Some(Errno::MFILE | Errno::NFILE))
    }
}
