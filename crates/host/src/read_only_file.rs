//! A file through a read-only mount of its own, so that a descriptor of it can never be turned into a writable one.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::CWD;
use rustix::mount::{OpenTreeFlags, open_tree};

/// The kernel's `struct mount_attr`.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Opens a file by a detached mount of it alone that is read-only.
///
/// Whoever gets at the file by this descriptor, or by `/proc/PID/exe` of a process that was executed from it, gets at it through that mount,
/// and the mount cannot be made writable once the descriptor is closed: it is in no mount namespace. The pages are those of the file itself.
///
/// # Errors
/// When there is no such file, the kernel is older than 5.12, or we may not mount.
pub fn open_read_only(path: &Path) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let tree = open_tree(CWD, path, flags)?;
    set_read_only(&tree)?;
    Ok(tree)
}

fn set_read_only(tree: &OwnedFd) -> io::Result<()> {
    let attributes = MountAttributes {
        set: libc::MOUNT_ATTR_RDONLY,
        clear: 0,
        propagation: 0,
        user_namespace: 0,
    };
    #[expect(unsafe_code, reason = "rustix has no mount_setattr")]
    // SAFETY: the path is an empty C string, the attributes live until the call returns, and their size is told.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};
    use std::io::Read;

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
