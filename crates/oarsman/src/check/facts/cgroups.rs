//! The machine's control groups.

use std::collections::BTreeSet;
use std::path::Path;

use oarsman_host::cgroups::{self as host, Hierarchy, Kind, Layout};
use oarsman_host::mounts;
use rustix::fs::{Access, access};

use super::text;

/// What was found of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cgroups {
    /// None where none are mounted.
    pub(crate) layout: Option<Layout>,
    /// The controllers that limits can be set by.
    pub(crate) controllers: BTreeSet<String>,
    /// Those among them whose tree cannot be written.
    pub(crate) unwritable: BTreeSet<String>,
}

impl Cgroups {
    pub(super) fn look() -> Self {
        let all = host::hierarchies(&mounts::current().unwrap_or_default());
        let layout = host::CgroupTree::of(all.clone(), Path::new("/")).ok().map(|all| all.layout());
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

/// Beside v1 trees, the v2 tree limits nothing.
fn is_limiting(layout: Option<Layout>, kind: &Kind) -> bool {
    (layout == Some(Layout::V2)) == (*kind == Kind::V2)
}

fn controllers_of(tree: &Hierarchy) -> Vec<String> {
    match &tree.kind {
        Kind::V1(names) => names.clone(),
        Kind::V2 => {
            let names = text(tree.root.join("cgroup.controllers"));
            names.split_ascii_whitespace().map(str::to_owned).collect()
        }
    }
}
