//! The control groups that a container sees, where each controller has a tree of its own (v1): its own group of each, as if there were no others.
//!
//! libcontainer 0.7 finds these groups by the number that the container's process has in its own pid namespace, and so takes those of another process
//! when it is not the first one there. With one tree for all (v2) it mounts them.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use oarsman_host::cgroups::{Hierarchy, HierarchyKind, hierarchies};
use oarsman_host::mount_trees::{self, MountChanges};
use oarsman_host::mounts;
use oci_spec::runtime::Mount;
use rustix::mount::MountAttrFlags;

use super::binds::PreparedBind;

#[cfg(test)]
mod tests;

/// A mount of control groups that libcontainer has made an empty directory in memory for.
#[derive(Debug)]
pub(super) struct CgroupMount {
    destination: PathBuf,
    groups: Vec<PreparedBind>,
    /// Names of controllers that share a tree, with the tree's.
    links: Vec<(PathBuf, String)>,
    is_read_only: bool,
}

pub(super) fn is_cgroup(mount: &Mount) -> bool {
    mount.typ().as_deref() == Some("cgroup")
}

/// The trees of v1 with the names of their controllers. One with a name and no controller, such as systemd's, has no group for the container.
fn with_controllers(all: &[Hierarchy]) -> Vec<(&Hierarchy, &[String])> {
    let of_v1 = all.iter().filter_map(|one| match &one.kind {
        HierarchyKind::V1(names) => Some((one, names.as_slice())),
        HierarchyKind::V2 => None,
    });
    of_v1.filter(|(_, names)| names.iter().any(|name| !name.contains('='))).collect()
}

impl CgroupMount {
    /// Takes over a mount of the control groups of a container; none where libcontainer is to make it.
    pub(super) fn take(mount: &mut Mount, group: &Path) -> io::Result<Option<Self>> {
        let all = hierarchies(&mounts::current()?);
        Self::of(&all, mount, group)
    }

    fn of(all: &[Hierarchy], mount: &mut Mount, group: &Path) -> io::Result<Option<Self>> {
        let of_controllers = with_controllers(all);
        if of_controllers.is_empty() {
            return Ok(None);
        }
        let options = mount.options().clone().unwrap_or_default();
        let mut taken = Self {
            destination: mount.destination().clone(),
            groups: Vec::new(),
            links: Vec::new(),
            is_read_only: options.iter().any(|option| option == "ro"),
        };
        for (hierarchy, names) in of_controllers {
            taken.add(hierarchy, names, group)?;
        }
        let options = ["nosuid", "noexec", "nodev", "mode=755"].map(str::to_owned).to_vec();
        mount.set_typ(Some("tmpfs".to_owned())).set_source(Some("tmpfs".into()));
        mount.set_options(Some(options));
        Ok(Some(taken))
    }

    fn add(&mut self, hierarchy: &Hierarchy, names: &[String], group: &Path) -> io::Result<()> {
        let directory = hierarchy.directory(group);
        // libcontainer puts the container there later, and finds it made.
        std::fs::create_dir_all(&directory)?;
        let root = hierarchy.directory(Path::new("/"));
        let Some(tree) = root.file_name().map(|name| name.to_string_lossy().into_owned()) else {
            return Ok(());
        };
        self.groups.push(PreparedBind::of_directory(&directory, self.destination.join(&tree))?);
        let others = names.iter().filter(|name| **name != tree);
        self.links.extend(others.map(|name| (self.destination.join(name), tree.clone())));
        Ok(())
    }

    /// Attaches them, in the container.
    pub(super) fn attach(&self) -> io::Result<()> {
        for group in &self.groups {
            group.attach()?;
        }
        for (link, target) in &self.links {
            symlink(target, link)?;
        }
        let set = match self.is_read_only {
            true => MountAttrFlags::MOUNT_ATTR_RDONLY,
            false => MountAttrFlags::empty(),
        };
        let changes = MountChanges { set, recursive: true, ..MountChanges::default() };
        mount_trees::change_at(&self.destination, changes)
    }
}
