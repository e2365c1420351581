//! Root file systems, image volumes and mounts of containers. All of this blocks.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use oarsman_cri_types::v1::{ContainerConfig, Mount, MountPropagation};
use oarsman_image_store::{Digest, MappedUsers, ReadOnlyOptions, RootKind, StoredImage};
use oarsman_pod_network::NamespaceKind;
use rustix::process::{Gid, Uid};

use crate::error::{EmbeddedRuntimeError, Outcome, failed};
use crate::inner::RuntimeInner;
use crate::oci::users::ImageUsers;
use crate::records::StoredSandbox;
use crate::sandbox_files::unmount_all;
use crate::state_directory::{make_directory, names_in, remove_tree};

/// The user namespace of a pod, with the user and the group of the node that are root in it.
#[derive(Debug)]
pub(crate) struct PodUsers {
    namespace: File,
    uid: u32,
    gid: u32,
}

impl PodUsers {
    fn mapped(&self) -> MappedUsers<'_> {
        MappedUsers {
            namespace: self.namespace.as_fd(),
            root_uid: Uid::from_raw(self.uid),
            root_gid: Gid::from_raw(self.gid),
        }
    }
}

/// An image that is the volume of that number of a container.
struct ImageVolume<'a> {
    id: &'a str,
    number: usize,
    image: &'a str,
}

impl RuntimeInner {
    /// The image of that name or id.
    pub(crate) fn find_image(&self, name: &str) -> Outcome<StoredImage> {
        Ok(self.images.image(name)?)
    }

    /// The users of a pod that has a user namespace of its own.
    pub(crate) fn mapped_users(&self, sandbox: &StoredSandbox) -> Outcome<Option<PodUsers>> {
        let Some((uid, gid)) = sandbox.root() else { return Ok(None) };
        let namespace = self.network.pins().open(&sandbox.id, NamespaceKind::User)?;
        Ok(Some(PodUsers { namespace, uid, gid }))
    }

    /// Mounts the root file system of a new container, and tells the users that it knows.
    pub(crate) fn make_root(
        &self,
        id: &str,
        image: &Digest,
        users: Option<&PodUsers>,
    ) -> Outcome<ImageUsers> {
        self.images.prepare(id, image, RootKind::Writable)?;
        let root = self.directory.rootfs(id);
        make_directory(&root)?;
        self.mount_image(id, &root, ReadOnlyOptions { exec: true }, users)?;
        ImageUsers::read(&root).map_err(failed("read the users of", &root))
    }

    fn mount_image(
        &self,
        key: &str,
        at: &Path,
        options: ReadOnlyOptions,
        users: Option<&PodUsers>,
    ) -> Outcome<()> {
        let mounted = match users {
            None => self.images.mount_with(key, at, options),
            Some(users) => self.images.mount_mapped(key, at, options, users.mapped()),
        };
        Ok(mounted?)
    }

    /// The mounts of a container with sources that exist: image volumes are mounted, and what is missing is made.
    pub(crate) fn make_mounts(
        &self,
        id: &str,
        config: &ContainerConfig,
        users: Option<&PodUsers>,
    ) -> Outcome<Vec<Mount>> {
        let mut mounts = config.mounts.clone();
        for (number, mount) in mounts.iter_mut().enumerate() {
            match mount.image.clone().filter(|image| !image.image.is_empty()) {
                Some(image) => {
                    let volume = ImageVolume { id, number, image: &image.image };
                    mount.host_path = self.make_image_volume(volume, mount, users)?;
                    mount.readonly = true;
                    // Its files have been mapped where they lie.
                    mount.uid_mappings.clear();
                    mount.gid_mappings.clear();
                }
                None => prepare_source(mount)?,
            }
        }
        Ok(mounts)
    }

    fn make_image_volume(
        &self,
        ImageVolume { id, number, image }: ImageVolume<'_>,
        mount: &Mount,
        users: Option<&PodUsers>,
    ) -> Outcome<String> {
        let key = volume_key(id, number);
        self.images.prepare(&key, &self.find_image(image)?.id, RootKind::ReadOnly)?;
        let place = self.directory.volumes(id).join(number.to_string());
        make_directory(&place)?;
        self.mount_image(&key, &place, ReadOnlyOptions { exec: false }, users)?;
        let below = place.join(mount.image_sub_path.trim_start_matches('/'));
        let below = below.canonicalize().map_err(failed("find the image's sub-path", &below))?;
        match below.starts_with(&place) {
            true => Ok(below.to_string_lossy().into_owned()),
            false => Err(EmbeddedRuntimeError::Invalid(format!(
                "the sub-path {:?} leads out of image {image:?}",
                mount.image_sub_path
            ))),
        }
    }

    /// Unmounts what a container has mounted; what was written to it stays.
    pub(crate) fn unmount_container(&self, id: &str) -> Outcome<()> {
        unmount_all(&self.directory.rootfs(id))?;
        for name in names_in(&self.directory.volumes(id))? {
            unmount_all(&self.directory.volumes(id).join(name))?;
        }
        Ok(())
    }

    /// Removes all that a container has on disk, but for its log. Fine when a part of it is gone.
    pub(crate) fn remove_container_files(&self, id: &str) -> Outcome<()> {
        self.unmount_container(id)?;
        for name in names_in(&self.directory.volumes(id))? {
            self.images.remove_root(&format!("{id}-volume{name}"))?;
        }
        self.images.remove_root(id)?;
        remove_tree(&self.directory.container(id))
    }
}

fn volume_key(id: &str, number: usize) -> String {
    format!("{id}-volume{number}")
}

/// Finds what a link leads to, and makes a directory of what does not exist, as other runtimes do.
fn prepare_source(mount: &mut Mount) -> Outcome<()> {
    let path = PathBuf::from(&mount.host_path);
    if !path.is_absolute() {
        return Ok(());
    }
    if fs::metadata(&path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        fs::create_dir_all(&path).map_err(failed("make the directory", &path))?;
    }
    let path = path.canonicalize().map_err(failed("find", &path))?;
    if mount.propagation() == MountPropagation::PropagationBidirectional {
        require_shared(&path)?;
    }
    mount.host_path = path.to_string_lossy().into_owned();
    Ok(())
}

/// A mount that passes mounts on to the node has to be on a mount that takes them.
fn require_shared(path: &Path) -> Outcome<()> {
    let mounts = oarsman_host::mounts::current().map_err(failed("read the mounts of", path))?;
    match oarsman_host::mounts::mount_of(&mounts, path).is_some_and(|mount| mount.is_shared()) {
        true => Ok(()),
        false => Err(EmbeddedRuntimeError::Invalid(format!(
            "{} is on a mount that is not shared: bidirectional mount propagation is not possible",
            path.display()
        ))),
    }
}
