//! What the first process of a container does to its root directory when it has it: bind mounts, its working directory, and what nothing may be
//! written to or read of.
//!
//! libcontainer has mounted what is no file of the host. It is not given the rest: it opens sources with the rights of a user namespace's root, maps
//! no users, and covers paths before a mount could bring them back.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use oarsman_host::mount_trees::{self, MountChanges, Propagation};
use oci_spec::runtime::Spec;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, major, minor, openat2};
use rustix::mount::MountAttrFlags;

use super::HelperError;
use super::binds::{PreparedBind, is_bind, make_directories};
use super::cgroup_mount::{CgroupMount, is_cgroup};
use super::user_namespace::ContainerUsers;

/// Major and minor number of `/dev/null`.
const NULL: (u32, u32) = (1, 3);

/// What is left to be done in the container.
#[derive(Debug)]
pub(super) struct ContainerRoot {
    cgroups: Vec<CgroupMount>,
    binds: Vec<PreparedBind>,
    working_directory: PathBuf,
    is_shared: bool,
    is_read_only: bool,
    read_only_paths: Vec<String>,
    masked_paths: Vec<String>,
}

impl ContainerRoot {
    /// Takes out of a spec what libcontainer shall not do, and opens the bind mounts.
    pub(super) fn take(spec: &mut Spec, users: &mut ContainerUsers) -> Result<Self, HelperError> {
        let mounts = spec.mounts().clone().unwrap_or_default();
        let (binds, mut others): (Vec<_>, Vec<_>) = mounts.into_iter().partition(is_bind);
        let binds = binds.iter().map(|mount| PreparedBind::open(mount, users));
        let mut root = Self {
            cgroups: Vec::new(),
            binds: binds.collect::<Result<_, _>>()?,
            working_directory: PathBuf::from("/"),
            is_shared: false,
            is_read_only: spec.root().as_ref().is_some_and(|it| it.readonly() == Some(true)),
            read_only_paths: Vec::new(),
            masked_paths: Vec::new(),
        };
        let group = spec.linux().as_ref().and_then(|linux| linux.cgroups_path().clone());
        for mount in others.iter_mut().filter(|mount| is_cgroup(mount)) {
            let taken = CgroupMount::take(mount, group.as_deref().unwrap_or(Path::new("/")));
            root.cgroups.extend(taken.map_err(HelperError::io("cannot open its control groups"))?);
        }
        spec.set_mounts(Some(others));
        if let Some(it) = spec.root_mut() {
            it.set_readonly(Some(false));
        }
        if let Some(process) = spec.process() {
            root.working_directory.clone_from(process.cwd());
        }
        if let Some(linux) = spec.linux_mut() {
            root.is_shared =
                linux.rootfs_propagation().as_deref().is_some_and(|it| it.ends_with("shared"));
            root.read_only_paths = linux.readonly_paths().clone().unwrap_or_default();
            root.masked_paths = linux.masked_paths().clone().unwrap_or_default();
            // Everything is a slave of the host's mounts while it is put together.
            linux.set_rootfs_propagation(None).set_readonly_paths(None).set_masked_paths(None);
        }
        Ok(root)
    }

    /// Does it, in the container.
    pub(super) fn finish(&self) -> Result<(), String> {
        for cgroups in &self.cgroups {
            cgroups.attach().map_err(|error| format!("cannot mount control groups: {error}"))?;
        }
        for bind in &self.binds {
            let shown = bind.destination.display();
            bind.attach().map_err(|error| format!("cannot mount at {shown}: {error}"))?;
        }
        let shown = self.working_directory.display();
        make_directories(&self.working_directory)
            .map_err(|error| format!("cannot make the working directory {shown}: {error}"))?;
        self.protect().map_err(|error| format!("cannot protect its files: {error}"))
    }

    fn protect(&self) -> io::Result<()> {
        let root = Path::new("/");
        if self.is_shared {
            let propagation = Some(Propagation::Shared);
            mount_trees::change_at(root, MountChanges { propagation, ..MountChanges::default() })?;
        }
        let set = MountAttrFlags::MOUNT_ATTR_RDONLY;
        let read_only = MountChanges { set, ..MountChanges::default() };
        if self.is_read_only {
            mount_trees::change_at(root, read_only)?;
        }
        for path in &self.read_only_paths {
            existing(Path::new(path), |found| {
                let copy = mount_trees::copy(Path::new(path), true)?;
                mount_trees::change(copy.as_fd(), read_only)?;
                mount_trees::attach(copy.as_fd(), found.as_fd())
            })?;
        }
        self.masked_paths.iter().try_for_each(|path| existing(Path::new(path), mask))
    }
}

/// Acts on a path of the container; on one that does not exist there is nothing to do.
fn existing(path: &Path, act: impl FnOnce(&OwnedFd) -> io::Result<()>) -> io::Result<()> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    match open_in_container(path) {
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(())
        }
        found => found.and_then(|found| act(&found)).map_err(named),
    }
}

fn open_in_container(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    Ok(openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS)?)
}

/// Covers a directory with an empty one, and anything else with `/dev/null`.
fn mask(found: &OwnedFd) -> io::Result<()> {
    let cover = match FileType::from_raw_mode(fstat(found)?.st_mode) {
        FileType::Directory => mount_trees::empty_directory()?,
        _ => mount_trees::copy_opened(null_device()?.as_fd())?,
    };
    mount_trees::attach(cover.as_fd(), found.as_fd())
}

/// An image or a volume may have something else in its place.
fn null_device() -> io::Result<OwnedFd> {
    let null = open_in_container(Path::new("/dev/null"))?;
    let stat = fstat(&null)?;
    let is_device = FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice;
    match is_device && (major(stat.st_rdev), minor(stat.st_rdev)) == NULL {
        true => Ok(null),
        false => Err(io::Error::other("the container's /dev/null is not the null device")),
    }
}
