//! All cgroup hierarchies of a machine as one tree of groups below a root group.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use oarsman_core::ids::PodUid;
use oarsman_core::resources::CgroupVersion;
use oarsman_core::resources::names::CgroupNames;

use super::{CgroupError, Hierarchy, HierarchyKind, files, hierarchies};
use crate::{descriptor_reserve, mounts};

/// The v1 hierarchies that a group of ours is in, as far as they are mounted.
const V1_NEEDED: [&str; 10] = [
    "cpu",
    "cpuacct",
    "cpuset",
    "memory",
    "pids",
    "hugetlb",
    "devices",
    "freezer",
    "blkio",
    "name=systemd",
];
/// The v2 controllers that a group of ours has, as far as the machine has them.
const V2_NEEDED: [&str; 5] = ["cpu", "cpuset", "memory", "hugetlb", "pids"];

/// How a machine has arranged its control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CgroupLayout {
    /// A tree for each controller.
    V1,
    /// As v1, with a v2 tree beside. What limits containers is in the v1 trees.
    Hybrid,
    /// One tree for everything.
    V2,
}

/// The control groups below one root, in all hierarchies of this machine at once.
#[derive(Debug, Clone)]
pub struct CgroupManager {
    layout: CgroupLayout,
    root: PathBuf,
    /// Hierarchies that a group has to be in.
    pub(super) needed: Vec<Hierarchy>,
    /// All hierarchies: a runtime may have made groups in others too.
    pub(super) all: Vec<Hierarchy>,
    /// The controllers a v2 group has to have.
    pub(super) controllers: BTreeSet<String>,
}

impl CgroupManager {
    /// The hierarchies of this machine, with `root` (an absolute path within them) as the group below which this manager works.
    ///
    /// # Errors
    /// When there are none, or the root is not an absolute path.
    pub fn discover(root: &Path) -> Result<Self, CgroupError> {
        let mounts = mounts::current().map_err(CgroupError::Mounts)?;
        Self::with_hierarchies(hierarchies(&mounts), root)
    }

    /// As [`CgroupManager::discover`], of hierarchies that are known already.
    ///
    /// # Errors
    /// As there.
    pub fn with_hierarchies(all: Vec<Hierarchy>, root: &Path) -> Result<Self, CgroupError> {
        if !is_plain(root) {
            let (group, root) = (root.to_owned(), PathBuf::from("/"));
            return Err(CgroupError::Outside { group, root });
        }
        let layout = layout(&all).ok_or(CgroupError::NotMounted)?;
        descriptor_reserve::hold();
        let needed: Vec<_> = all.iter().filter(|h| is_needed(layout, &h.kind)).cloned().collect();
        let controllers = match (layout, needed.first()) {
            (CgroupLayout::V2, Some(tree)) => v2_controllers(tree)?,
            _ => BTreeSet::new(),
        };
        Ok(Self { layout, root: root.to_owned(), needed, all, controllers })
    }

    /// The layout of this machine.
    pub fn layout(&self) -> CgroupLayout {
        self.layout
    }

    /// The version of the hierarchies in which limits are set.
    pub fn version(&self) -> CgroupVersion {
        match self.layout {
            CgroupLayout::V1 | CgroupLayout::Hybrid => CgroupVersion::V1,
            CgroupLayout::V2 => CgroupVersion::V2,
        }
    }

    /// The hierarchies in which limits are set.
    pub(super) fn hierarchies(&self) -> impl Iterator<Item = &Hierarchy> {
        self.needed.iter()
    }

    /// The root group.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether a group is in every hierarchy it has to be in, with every controller it has to have.
    pub fn exists(&self, group: &Path) -> bool {
        self.check_below_root(group).is_ok() && self.needed.iter().all(|h| self.is_in(h, group))
    }

    /// Whether one hierarchy has all of a group.
    pub(super) fn is_in(&self, hierarchy: &Hierarchy, group: &Path) -> bool {
        let directory = hierarchy.directory(group);
        match &hierarchy.kind {
            HierarchyKind::V1(_) => directory.is_dir(),
            HierarchyKind::V2 => files::read(&directory.join("cgroup.controllers"))
                .is_ok_and(|text| missing(&self.controllers, &text).is_empty()),
        }
    }

    /// The processes in a group or below it, in any hierarchy.
    ///
    /// # Errors
    /// When a hierarchy cannot be read, or the group is outside of the root.
    pub fn processes(&self, group: &Path) -> Result<BTreeSet<u32>, CgroupError> {
        self.check_ours(group)?;
        let mut found = BTreeSet::new();
        for hierarchy in &self.all {
            let failed = |source| CgroupError::Read { path: hierarchy.directory(group), source };
            found.extend(hierarchy.processes(group).map_err(failed)?);
        }
        Ok(found)
    }

    /// The pods that have a group in any hierarchy, each with its groups: more than one when a
    /// pod's class was not always the same.
    ///
    /// # Errors
    /// When a hierarchy cannot be read, or the names are outside of the root.
    pub fn pods_below(
        &self,
        names: &CgroupNames,
    ) -> Result<BTreeMap<PodUid, BTreeSet<PathBuf>>, CgroupError> {
        let mut found: BTreeMap<PodUid, BTreeSet<PathBuf>> = BTreeMap::new();
        for parent in names.parents().map(PathBuf::from) {
            self.check_below_root(&parent)?;
            for name in self.children(&parent)? {
                if let Some(uid) = names.pod_uid(&name) {
                    found.entry(uid).or_default().insert(parent.join(name));
                }
            }
        }
        Ok(found)
    }

    fn children(&self, parent: &Path) -> Result<BTreeSet<String>, CgroupError> {
        let mut found = BTreeSet::new();
        for hierarchy in &self.all {
            let failed = |source| CgroupError::Read { path: hierarchy.directory(parent), source };
            let names = hierarchy.below(parent).map_err(failed)?;
            found.extend(names.into_iter().filter_map(|name| name.into_string().ok()));
        }
        Ok(found)
    }

    /// Refuses what is not below the root.
    pub(super) fn check_below_root(&self, group: &Path) -> Result<(), CgroupError> {
        if group != self.root { self.check_ours(group) } else { Err(self.outside(group)) }
    }

    /// Refuses what is neither below the root nor the root itself. The root of a hierarchy is always refused.
    pub(super) fn check_ours(&self, group: &Path) -> Result<(), CgroupError> {
        let ours = is_plain(group) && group.starts_with(&self.root) && group != Path::new("/");
        if ours { Ok(()) } else { Err(self.outside(group)) }
    }

    fn outside(&self, group: &Path) -> CgroupError {
        CgroupError::Outside { group: group.to_owned(), root: self.root.clone() }
    }
}

/// Whether a path is absolute and without `..`.
fn is_plain(path: &Path) -> bool {
    let plain = |part| matches!(part, Component::RootDir | Component::Normal(_));
    path.is_absolute() && path.components().all(plain)
}

/// A v1 hierarchy without controllers, such as systemd's own, makes no v1 machine.
fn layout(all: &[Hierarchy]) -> Option<CgroupLayout> {
    let controls = |name: &String| !name.starts_with("name=");
    let v1 = all
        .iter()
        .any(|h| matches!(&h.kind, HierarchyKind::V1(names) if names.iter().any(controls)));
    let v2 = all.iter().any(|h| h.kind == HierarchyKind::V2);
    match (v1, v2) {
        (true, false) => Some(CgroupLayout::V1),
        (true, true) => Some(CgroupLayout::Hybrid),
        (false, true) => Some(CgroupLayout::V2),
        (false, false) => None,
    }
}

fn is_needed(layout: CgroupLayout, kind: &HierarchyKind) -> bool {
    match (layout, kind) {
        (CgroupLayout::V2, kind) => *kind == HierarchyKind::V2,
        (_, HierarchyKind::V1(names)) => {
            names.iter().any(|name| V1_NEEDED.contains(&name.as_str()))
        }
        (_, HierarchyKind::V2) => false,
    }
}

fn v2_controllers(tree: &Hierarchy) -> Result<BTreeSet<String>, CgroupError> {
    let text = files::read(&tree.root.join("cgroup.controllers"))?;
    let there = text.split_ascii_whitespace().filter(|name| V2_NEEDED.contains(name));
    Ok(there.map(str::to_owned).collect())
}

/// Those of `wanted` that a list of controllers lacks.
pub(super) fn missing<'a>(wanted: &'a BTreeSet<String>, list: &str) -> Vec<&'a str> {
    let has = |name: &str| list.split_ascii_whitespace().any(|there| there == name);
    wanted.iter().map(String::as_str).filter(|name| !has(name)).collect()
}
