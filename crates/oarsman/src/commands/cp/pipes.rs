//! A pipe between a task and a thread that blocks: archives are read and written by calls that block.

use std::io;

/// Both ends; what is written is read. A socket pair, so that each end may block or not.
pub(super) fn pipe() -> io::Result<(tokio::net::UnixStream, std::os::unix::net::UnixStream)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((tokio::net::UnixStream::from_std(ours)?, theirs))
}
