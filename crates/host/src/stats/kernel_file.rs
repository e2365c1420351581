//! Reads files of `/proc` and of control groups into one buffer that is used again.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};

/// The longest file that is read; those of a group with thousands of processes are longer, and only their beginning counts.
const LIMIT: usize = 1 << 20;
/// The kernel writes records of a file until its page is full: after less than half of one there is no more.
const WHOLE_BELOW: usize = 2048;
const FIRST_SIZE: usize = 16 * 1024;

/// A buffer for files of the kernel.
#[derive(Debug, Default)]
pub(super) struct KernelFiles {
    buffer: Vec<u8>,
}

impl KernelFiles {
    /// The text of a file; none if it is gone or cannot be read.
    pub(super) fn text(&mut self, path: &Path) -> Option<&str> {
        self.read(&openat(CWD, path, FLAGS, Mode::empty()).ok()?)
    }

    /// The text of a file in an open directory.
    pub(super) fn text_in(&mut self, directory: impl AsFd, name: &str) -> Option<&str> {
        self.read(&openat(directory, name, FLAGS, Mode::empty()).ok()?)
    }

    /// Files of a control group that is removed while they are open give ENODEV: it is gone.
    fn read(&mut self, file: &OwnedFd) -> Option<&str> {
        let mut length = 0;
        loop {
            if self.buffer.len() < length + FIRST_SIZE {
                self.buffer.resize(length + FIRST_SIZE, 0);
            }
            let read = rustix::io::read(file, &mut self.buffer[length..]).ok()?;
            length += read;
            if read < WHOLE_BELOW || length >= LIMIT {
                break;
            }
        }
        std::str::from_utf8(&self.buffer[..length]).ok()
    }
}

const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC);
