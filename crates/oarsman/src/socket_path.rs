//! Sockets of an agent, also below a directory whose path is longer than the kernel takes for a socket.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

/// The longest path of a socket, in bytes.
const LONGEST: usize = 107;

/// A path of a socket, valid for as long as this lives.
#[derive(Debug)]
pub(crate) struct SocketPath {
    path: PathBuf,
    /// The directory that a shortened path leads through, by its file descriptor.
    _directory: Option<OwnedFd>,
}

impl SocketPath {
    /// The socket of that name in a directory, by a path that is short enough.
    pub(crate) fn of(directory: &Path, name: &str) -> io::Result<Self> {
        let path = directory.join(name);
        if path.as_os_str().len() <= LONGEST {
            return Ok(Self { path, _directory: None });
        }
        let directory =
            open(directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/{name}", directory.as_raw_fd()));
        Ok(Self { path, _directory: Some(directory) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Listens there, for root only. The directory must be locked by this agent: a socket that is there then is a dead agent's.
    pub(crate) fn listen(&self) -> io::Result<UnixListener> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&self.path)?;
        fs::set_permissions(&self.path, Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }

    /// One that cannot be removed is replaced by the next agent.
    pub(crate) fn remove(&self) {
        fs::remove_file(&self.path).ok();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_socket_in_a_deep_directory_is_reached_and_only_by_its_owner() {
        let scratch = tempfile::tempdir().unwrap();
        let deep = scratch.path().join("d".repeat(60)).join("e".repeat(60));
        fs::create_dir_all(&deep).unwrap();
        for directory in [scratch.path(), &deep] {
            let socket = SocketPath::of(directory, "s.sock").unwrap();
            assert!(socket.path().as_os_str().len() <= LONGEST);
            let _listener = socket.listen().unwrap();
            let mode = fs::metadata(directory.join("s.sock")).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            UnixStream::connect(socket.path()).unwrap();
            let _next = socket.listen().unwrap();
            socket.remove();
            assert!(!directory.join("s.sock").exists());
        }
    }
}
