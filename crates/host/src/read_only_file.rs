//! A file through a read-only mount of its own, so that a descriptor of it can never be turned into a writable one.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::mount::MountAttrFlags;

use crate::mount_trees::{self, MountChanges};

/// Opens a file by a detached mount of it alone that is read-only.
///
/// A process that reaches the file by this descriptor, or by `/proc/PID/exe` of a process that was executed from it, reaches it through that
/// mount, and the mount cannot be made writable once the descriptor is closed: it is in no mount namespace. The pages are those of the file itself.
///
/// # Errors
/// When there is no such file, the kernel is older than 5.12, or we may not mount.
pub fn open_read_only(path: &Path) -> io::Result<OwnedFd> {
    let tree = mount_trees::copy(path, false)?;
    let set = MountAttrFlags::MOUNT_ATTR_RDONLY;
    mount_trees::change(tree.as_fd(), MountChanges { set, ..MountChanges::default() })?;
    Ok(tree)
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};
    use std::io::Read;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_file_behind_a_read_only_mount_is_read_and_never_written() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "text").unwrap();
        let Ok(descriptor) = open_read_only(file.path()) else {
            // Without the right to mount there is nothing to see.
            assert!(!rustix::process::getuid().is_root());
            return;
        };
        let again = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
        let mut text = String::new();
        File::open(&again).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        let error = OpenOptions::new().write(true).open(&again).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ReadOnlyFilesystem);
        // The file itself stays as it is.
        std::fs::write(file.path(), "other").unwrap();
    }
}
