//! Unix sockets at long paths, and descriptors that are passed over them.

use std::fs::{self, Permissions};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

const SOCKET_MODE: u32 = 0o600;

/// The most descriptors that come with one frame.
pub(crate) const MOST_DESCRIPTORS: usize = 3;

/// A path of a socket is at most 108 bytes long, so the directory is named by a descriptor.
fn with_short_path<T>(
    directory: &Path,
    name: &str,
    act: impl FnOnce(&Path) -> io::Result<T>,
) -> io::Result<T> {
    let directory =
        open(directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    act(Path::new(&format!("/proc/self/fd/{}/{name}", directory.as_raw_fd())))
}

/// Listens at `directory/name`, in the place of what was there.
pub(crate) fn listen(directory: &Path, name: &str) -> io::Result<UnixListener> {
    match fs::remove_file(directory.join(name)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = with_short_path(directory, name, |path| UnixListener::bind(path))?;
    // Who connects can have programs run as root, and the file mode creation mask is whatever the agent was started with.
    fs::set_permissions(directory.join(name), Permissions::from_mode(SOCKET_MODE))?;
    Ok(listener)
}

/// Connects to what listens at `directory/name`.
pub(crate) fn connect(directory: &Path, name: &str) -> io::Result<UnixStream> {
    with_short_path(directory, name, |path| UnixStream::connect(path))
}

/// Sends bytes, and descriptors with the first of them. Gives how many bytes went.
pub(crate) fn send(
    socket: impl AsFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "too many descriptors for one frame",
        ));
    }
    Ok(sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?)
}

/// Receives bytes and the descriptors that came with them; zero bytes are the end.
pub(crate) fn receive(
    socket: impl AsFd,
    buffer: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received =
        recvmsg(socket, &mut [IoSliceMut::new(buffer)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(passed) = message {
            descriptors.extend(passed);
        }
    }
    Ok(received.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_of_a_socket_may_connect_to_it() {
        let directory = tempfile::tempdir().unwrap();
        let _listener = listen(directory.path(), "socket").unwrap();
        let mode = fs::metadata(directory.path().join("socket")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, SOCKET_MODE);
    }
}
