//! The path of the local socket, also below a directory whose path is longer than the kernel takes for a socket.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

/// The name of the socket in an agent's root directory.
const NAME: &str = "oarsman.sock";
/// The longest path of a socket, in bytes.
const LONGEST: usize = 107;

/// A path of the socket, valid for as long as this lives.
#[derive(Debug)]
pub(super) struct SocketPath {
    path: PathBuf,
    /// The directory that a shortened path leads through, by its file descriptor.
    _directory: Option<OwnedFd>,
}

impl SocketPath {
    /// The socket of the agent with that root directory, by a path that is short enough.
    pub(super) fn below(root: &Path) -> io::Result<Self> {
        let path = root.join(NAME);
        if path.as_os_str().len() <= LONGEST {
            return Ok(Self { path, _directory: None });
        }
        let directory =
            open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/{NAME}", directory.as_raw_fd()));
        Ok(Self { path, _directory: Some(directory) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
