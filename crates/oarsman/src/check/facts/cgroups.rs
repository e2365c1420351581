//! Facts about the machine's cgroups.

use std::collections::BTreeSet;
use std::path::Path;

use oarsman_host::cgroups::{self as host, CgroupLayout, Hierarchy, HierarchyKind};
use oarsman_host::mounts;
use rustix::fs::{Access, access};

use super::read_text;

/// The mounted cgroup hierarchies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CgroupFacts {
    /// None where no cgroup hierarchy is mounted.
    pub(crate) layout: Option<CgroupLayout>,
    /// The controllers that can set limits.
    pub(crate) controllers: BTreeSet<String>,
    /// The controllers whose hierarchy cannot be written.
    pub(crate) unwritable: BTreeSet<String>,
}

impl CgroupFacts {
    pub(super) fn read() -> Self {
        let all = host::hierarchies(&mounts::current().unwrap_or_default());
        let layout = host::CgroupManager::with_hierarchies(all.clone(), Path::new("/"))
            .ok()
            .map(|all| all.layout());
        let limiting = all.iter().filter(|tree| is_limiting(layout, &tree.kind));
        let (mut controllers, mut unwritable) = (BTreeSet::new(), BTreeSet::new());
        for tree in limiting {
            let own = controllers_of(tree);
            if access(&tree.root, Access::WRITE_OK).is_err() {
                unwritable.extend(own.iter().cloned());
            }
            controllers.extend(own);
        }
        Self { layout, controllers, unwritable }
    }
}

/// In the hybrid layout, beside v1 hierarchies, the v2 hierarchy has no controllers.
fn is_limiting(layout: Option<CgroupLayout>, kind: &HierarchyKind) -> bool {
    (layout == Some(CgroupLayout::V2)) == (*kind == HierarchyKind::V2)
}

fn controllers_of(tree: &Hierarchy) -> Vec<String> {
    match &tree.kind {
        HierarchyKind::V1(names) => names.clone(),
        HierarchyKind::V2 => {
            let names = read_text(tree.root.join("cgroup.controllers"));
            names.split_ascii_whitespace().map(str::to_owned).collect()
        }
    }
}
