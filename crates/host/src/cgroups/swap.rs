//! Whether the kernel limits swap in control groups.

use std::fs;
use std::path::PathBuf;

use super::{CgroupManager, Hierarchy, HierarchyKind};

/// The file of a v2 group that limits its swap. The root group has none.
const V2_LIMIT: &str = "memory.swap.max";
/// The file of a v2 group that is there whenever its memory is counted.
const V2_MEMORY: &str = "memory.current";
/// The file of a v1 group that limits memory and swap together.
const V1_LIMIT: &str = "memory.memsw.limit_in_bytes";

impl CgroupManager {
    /// Whether groups can have a limit of swap: not so for a kernel without swap, or one that was started without its accounting. Where
    /// no group shows it, it is taken for granted: a runtime that is asked in vain says so.
    pub fn limits_swap(&self) -> bool {
        self.hierarchies().all(|hierarchy| match &hierarchy.kind {
            HierarchyKind::V1(controllers) => {
                let has_memory = controllers.iter().any(|name| name == "memory");
                !has_memory || hierarchy.root.join(V1_LIMIT).exists()
            }
            HierarchyKind::V2 => v2_limits_swap(hierarchy),
        })
    }
}

fn v2_limits_swap(hierarchy: &Hierarchy) -> bool {
    let mut counting = groups(hierarchy).filter(|group| group.join(V2_MEMORY).exists());
    counting.next().is_none_or(|group| group.join(V2_LIMIT).exists())
}

/// The groups below the root.
fn groups(hierarchy: &Hierarchy) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(&hierarchy.root).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir())
}
