//! Where the socket is, also below a directory whose path is longer than the kernel takes for a socket.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

/// What the socket is called in an agent's root directory.
const NAME: &str = "oarsman.sock";
/// As many bytes may a socket's path have.
const LONGEST: usize = 107;

/// A path of the socket, for as long as this is there.
#[derive(Debug)]
pub(super) struct SocketPath {
    path: PathBuf,
    /// What a short path leads through.
    _directory: Option<OwnedFd>,
}

impl SocketPath {
    /// The socket of the agent with that root directory, by a path that fits.
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
