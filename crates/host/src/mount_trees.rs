//! Mounts that are prepared before they are attached anywhere: copies of what is mounted at a path, with attributes of their own.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::CWD;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

/// How mounts and unmounts below a mount reach its copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// Not at all.
    Private,
    /// From the original to the copy.
    Slave,
    /// Both ways.
    Shared,
}

impl Propagation {
    fn bits(self) -> u64 {
        match self {
            Self::Private => libc::MS_PRIVATE,
            Self::Slave => libc::MS_SLAVE,
            Self::Shared => libc::MS_SHARED,
        }
    }
}

/// Changes of a mount; what is not named stays.
#[derive(Clone, Copy, Debug)]
pub struct MountChanges<'a> {
    /// Attributes that it gets.
    pub set: MountAttrFlags,
    /// How it propagates.
    pub propagation: Option<Propagation>,
    /// Users and groups on the disk are seen as those that this user namespace maps them to. Only for a mount that is not attached, of a file
    /// system that can do it: Linux 5.12 for most disks, 6.3 for tmpfs; overlayfs cannot.
    pub user_namespace: Option<BorrowedFd<'a>>,
    /// Also for all mounts below it.
    pub recursive: bool,
}

impl Default for MountChanges<'_> {
    fn default() -> Self {
        let set = MountAttrFlags::empty();
        Self { set, propagation: None, user_namespace: None, recursive: false }
    }
}

/// The kernel's `struct mount_attr`.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Copies the mount of a file or directory, from that path on, with all mounts below it if wanted. Nothing sees the copy until it is attached, and
/// it ends with its descriptor.
///
/// # Errors
/// When there is nothing at the path, or we may not mount.
pub fn copy(path: &Path, recursive: bool) -> io::Result<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    if recursive {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    Ok(open_tree(CWD, path, flags)?)
}

/// The same of the file or directory that a descriptor stands for.
///
/// # Errors
/// As [`copy`].
pub fn copy_opened(opened: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    Ok(open_tree(opened, c"", flags | OpenTreeFlags::AT_EMPTY_PATH)?)
}

/// An empty directory in memory that nothing can be written to, not attached anywhere.
///
/// # Errors
/// When the kernel refuses.
pub fn empty_directory() -> io::Result<OwnedFd> {
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "source", "tmpfs")?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// Attaches a copy over a file or directory, which a descriptor stands for.
///
/// # Errors
/// When one of them is a directory and the other is not, or we may not mount.
pub fn attach(copy: BorrowedFd<'_>, at: BorrowedFd<'_>) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(copy, c"", at, c"", flags)?)
}

/// Attaches a copy at a path.
///
/// # Errors
/// As [`attach`].
pub fn attach_at(copy: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    Ok(move_mount(copy, c"", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

/// Changes a mount, which a descriptor of its root stands for.
///
/// # Errors
/// When the kernel is older than 5.12, or its file system cannot do what is asked for.
pub fn change(mount: BorrowedFd<'_>, changes: MountChanges<'_>) -> io::Result<()> {
    let set = u64::from(changes.set.bits());
    let mapped = changes.user_namespace.map(|namespace| namespace.as_raw_fd());
    let attributes = MountAttributes {
        set: if mapped.is_some() { set | libc::MOUNT_ATTR_IDMAP } else { set },
        clear: 0,
        propagation: changes.propagation.map_or(0, Propagation::bits),
        user_namespace: mapped.and_then(|number| u64::try_from(number).ok()).unwrap_or(0),
    };
    let flags = libc::AT_EMPTY_PATH | if changes.recursive { libc::AT_RECURSIVE } else { 0 };
    #[expect(unsafe_code, reason = "rustix has no mount_setattr")]
    // SAFETY: the path is an empty C string, the attributes live until the call returns, and their size is told.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Changes what is mounted at a path, which has to be a mount point.
///
/// # Errors
/// As [`change`].
pub fn change_at(path: &Path, changes: MountChanges<'_>) -> io::Result<()> {
    let opened = open_tree(CWD, path, OpenTreeFlags::OPEN_TREE_CLOEXEC)?;
    change(opened.as_fd(), changes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::namespaces::NamespaceKind;
    use crate::thread_namespaces;

    #[test]
    fn a_copy_has_attributes_of_its_own_and_is_seen_when_it_is_attached() {
        let files = tempfile::tempdir().unwrap();
        let (from, to) = (files.path().join("from"), files.path().join("to"));
        fs::create_dir(&from).unwrap();
        fs::create_dir(&to).unwrap();
        fs::write(from.join("file"), "text").unwrap();
        let Ok(tree) = copy(&from, true) else {
            // Without the right to mount there is nothing to see.
            assert!(!rustix::process::getuid().is_root());
            return;
        };
        let changes = MountChanges {
            set: MountAttrFlags::MOUNT_ATTR_RDONLY,
            propagation: Some(Propagation::Private),
            recursive: true,
            ..MountChanges::default()
        };
        change(tree.as_fd(), changes).unwrap();
        thread_namespaces::in_new(&[NamespaceKind::Mount], || {
            change_at(
                Path::new("/"),
                MountChanges {
                    propagation: Some(Propagation::Private),
                    recursive: true,
                    ..MountChanges::default()
                },
            )
            .unwrap();
            attach_at(tree.as_fd(), &to).unwrap();
            assert_eq!(fs::read_to_string(to.join("file")).unwrap(), "text");
            let error = fs::write(to.join("file"), "other").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ReadOnlyFilesystem);
        })
        .unwrap();
        fs::write(from.join("file"), "other").unwrap();
    }
}
