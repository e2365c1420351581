//! Root file systems for user namespaces: the layers are seen through a mount of the store that maps users, so that the files of one layer serve
//! containers with any mapping, and none of them is changed.
//!
//! Overlayfs takes such mounts as lower layers. Its writable layer and its own directory stay as they are: it works there as the root of the host, who is
//! `nobody` in the mapping. What is written there has the ids of the host, which is fine, because no other container uses it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use oarsman_host::mount_trees::{self, MountChanges, Propagation};
use oarsman_host::namespaces::NamespaceKind;
use oarsman_host::thread_namespaces;
use rustix::mount::MountAttrFlags;
use rustix::process::{Gid, Uid};

use crate::overlay::{OverlayLayers, mount_at};

/// The directory of a store where it is mounted once more.
pub(crate) const MAPPED: &str = "mapped";

/// The users of a container in a user namespace.
#[derive(Clone, Copy, Debug)]
pub struct MappedUsers<'a> {
    /// The namespace.
    pub namespace: BorrowedFd<'a>,
    /// The user of the host that is root in it.
    pub root_uid: Uid,
    /// The group of the host that is root's in it.
    pub root_gid: Gid,
}

/// A store whose layers are to be seen as in a user namespace.
pub(crate) struct MappedStore<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) users: MappedUsers<'a>,
}

impl MappedStore<'_> {
    /// Mounts layers at a directory. The mount of the store is in a mount namespace of a thread that ends: nothing is left of it, whatever happens.
    pub(crate) fn mount(
        &self,
        layers: &OverlayLayers,
        target: &Path,
        attributes: MountAttrFlags,
    ) -> io::Result<()> {
        let store = self.mapped()?;
        let layers = self.moved(layers);
        let made = thread_namespaces::in_new(&[NamespaceKind::Mount], || {
            self.assemble(&store, &layers, target, attributes)
        });
        mount_trees::attach_at(made??.as_fd(), target)
    }

    fn mapped(&self) -> io::Result<OwnedFd> {
        let store = mount_trees::copy(self.directory, false)?;
        let changes = MountChanges {
            set: MountAttrFlags::MOUNT_ATTR_RDONLY,
            user_namespace: Some(self.users.namespace),
            ..MountChanges::default()
        };
        mount_trees::change(store.as_fd(), changes).map_err(|error| {
            let why = "the file system of the images cannot map users and groups";
            io::Error::new(error.kind(), format!("{why}: {error}"))
        })?;
        Ok(store)
    }

    fn assemble(
        &self,
        store: &OwnedFd,
        layers: &OverlayLayers,
        target: &Path,
        attributes: MountAttrFlags,
    ) -> io::Result<OwnedFd> {
        let propagation = Some(Propagation::Private);
        let changes = MountChanges { propagation, recursive: true, ..MountChanges::default() };
        mount_trees::change_at(Path::new("/"), changes)?;
        mount_trees::attach_at(store.as_fd(), &self.directory.join(MAPPED))?;
        mount_at(layers, target, attributes).map_err(|error| {
            let why = "overlayfs takes layers with mapped users since Linux 5.19";
            io::Error::new(error.kind(), format!("{error}; {why}"))
        })?;
        mount_trees::copy(target, false)
    }

    /// The same layers in the mapped mount.
    fn moved(&self, layers: &OverlayLayers) -> OverlayLayers {
        let mapped = self.directory.join(MAPPED);
        let move_one = |path: &PathBuf| match path.strip_prefix(self.directory) {
            Ok(below) => mapped.join(below),
            Err(_) => path.clone(),
        };
        OverlayLayers {
            lower: layers.lower.iter().map(move_one).collect(),
            upper: layers.upper.clone(),
        }
    }
}
