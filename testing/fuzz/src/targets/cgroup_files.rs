//! Files of control groups and of `/proc/<pid>/stat`, below a directory that stands for a mounted hierarchy.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, thread_local};

use oarsman_core::resources::names::{CgroupDriver, CgroupNames};
use oarsman_core::resources::{CgroupValues, CpuQuota};
use oarsman_host::cgroups::{CgroupManager, Hierarchy, HierarchyKind};
use oarsman_host::processes;
use tempfile::TempDir;

use super::texts;
use crate::FuzzTarget;

pub(crate) const TARGET: FuzzTarget =
    FuzzTarget { name: "cgroup-files", max_len: 1024, run, seeds };

/// Separates the files in an input.
const SEPARATOR: u8 = 0;

/// The files of an input, in order, in the hierarchy of each version.
const V2_FILES: [&str; 8] = [
    "cgroup.controllers",
    "cgroup.subtree_control",
    "kubepods/cgroup.controllers",
    "kubepods/cgroup.subtree_control",
    "kubepods/pod1/cgroup.procs",
    "kubepods/pod1/cpu.max",
    "kubepods/pod1/memory.max",
    "kubepods/pod1/pids.max",
];
const V1_FILES: [&str; 8] = [
    "cpuset.cpus",
    "cpuset.mems",
    "kubepods/cpuset.cpus",
    "kubepods/cpuset.mems",
    "kubepods/pod1/cgroup.procs",
    "kubepods/pod1/cpu.shares",
    "kubepods/pod1/memory.limit_in_bytes",
    "kubepods/pod1/pids.max",
];

thread_local! {
    static DIRECTORY: Option<TempDir> = tempfile::tempdir().ok();
}

fn run(bytes: &[u8]) {
    if let Some(process) = processes::parse_stat(bytes) {
        assert!(process.name.len() <= 3 * bytes.len(), "a name longer than its text");
    }
    DIRECTORY.with(|directory| {
        let Some(directory) = directory else { return };
        hierarchy(directory.path(), HierarchyKind::V2, &V2_FILES, bytes);
        let controllers = ["cpu", "cpuset", "memory", "pids"].map(str::to_owned).to_vec();
        hierarchy(directory.path(), HierarchyKind::V1(controllers), &V1_FILES, bytes);
    });
}

/// No process is killed: only `destroy` does that, and the pids of an input are those of others.
fn hierarchy(root: &Path, kind: HierarchyKind, files: &[&str], bytes: &[u8]) {
    let group = PathBuf::from("/kubepods/pod1");
    if fs::create_dir_all(root.join("kubepods/pod1")).is_err() {
        return;
    }
    let contents = bytes.split(|byte| *byte == SEPARATOR).chain(std::iter::repeat(&[][..]));
    for (file, content) in files.iter().zip(contents) {
        if fs::write(root.join(file), content).is_err() {
            return;
        }
    }
    let tree = Hierarchy { kind, root: root.to_owned() };
    let Ok(manager) = CgroupManager::with_hierarchies(vec![tree], Path::new("/")) else {
        return;
    };
    if let Ok(found) = manager.processes(&group) {
        assert!(found.len() <= bytes.len(), "more processes than bytes");
    }
    if manager.create(&group, &values()).is_ok() {
        assert!(manager.create(&group, &values()).is_ok(), "what was set cannot be set again");
    }
    manager.exists(&group);
    let names = CgroupNames::new(CgroupDriver::default(), "/");
    assert!(manager.pods_below(&names).is_ok(), "groups cannot be listed");
}

fn values() -> CgroupValues {
    CgroupValues {
        shares: Some(1024),
        quota: Some(CpuQuota::Micros(50_000)),
        period: Some(100_000),
        memory_max: Some(64 << 20),
        hugetlb: BTreeMap::new(),
        pids_max: Some(100),
    }
}

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "cpu memory pids hugetlb\n\0cpu memory\n\0cpu memory pids\n\0\x001\n23\n\0max 100000\n\0max\n\0max\n",
        "0-3\n\x000\n\x000-3\n\x000\n\x001\n\x0018446744073709551615\n\x0067108865\n\x00100\n",
        "1 (a b) c) S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 0 0",
    ])
}
