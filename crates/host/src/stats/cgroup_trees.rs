//! In which hierarchy the files of each controller are.

use std::path::PathBuf;

use crate::cgroups::{Hierarchy, HierarchyKind};

/// The hierarchies that numbers are read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CgroupTrees {
    /// A tree for each controller, as far as it is mounted.
    V1(V1Trees),
    /// One tree for everything.
    V2(PathBuf),
}

/// The roots of v1 hierarchies. Two controllers may share one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct V1Trees {
    pub(super) cpu: Option<PathBuf>,
    pub(super) cpuacct: Option<PathBuf>,
    pub(super) memory: Option<PathBuf>,
    pub(super) pids: Option<PathBuf>,
    pub(super) blkio: Option<PathBuf>,
    /// The v2 tree beside them, which has pressure for groups that a runtime has made there, too.
    pub(super) unified: Option<PathBuf>,
}

impl CgroupTrees {
    /// None where neither memory nor CPU time is counted.
    pub(super) fn of(hierarchies: &[Hierarchy]) -> Option<Self> {
        let of_controller = |wanted: &str| {
            let has = |hierarchy: &&Hierarchy| match &hierarchy.kind {
                HierarchyKind::V1(names) => names.iter().any(|name| name == wanted),
                HierarchyKind::V2 => false,
            };
            hierarchies.iter().find(has).map(|hierarchy| hierarchy.root.clone())
        };
        let unified = hierarchies.iter().find(|hierarchy| hierarchy.kind == HierarchyKind::V2);
        let unified = unified.map(|hierarchy| hierarchy.root.clone());
        let trees = V1Trees {
            cpu: of_controller("cpu"),
            cpuacct: of_controller("cpuacct"),
            memory: of_controller("memory"),
            pids: of_controller("pids"),
            blkio: of_controller("blkio"),
            unified: unified.clone(),
        };
        if trees.memory.is_some() || trees.cpuacct.is_some() {
            return Some(Self::V1(trees));
        }
        unified.map(Self::V2)
    }

    /// The tree in which every group is that is read.
    pub(super) fn main(&self) -> Option<&PathBuf> {
        match self {
            Self::V1(trees) => trees.memory.as_ref().or(trees.cpuacct.as_ref()),
            Self::V2(tree) => Some(tree),
        }
    }
}
