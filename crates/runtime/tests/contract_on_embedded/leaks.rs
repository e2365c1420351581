//! What a test could leave on the host: mounts, links, control groups and processes.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Result, ensure};
use oarsman_host::{cgroups, mounts, processes};

use crate::harness::cgroup;

/// All of it, in words.
pub(crate) fn scan() -> Result<BTreeSet<String>> {
    let mounted = mounts::current()?;
    let mut all: BTreeSet<String> =
        mounted.iter().map(|mount| format!("mount {}", mount.point.display())).collect();
    for line in fs::read_to_string("/proc/self/net/dev")?.lines().skip(2) {
        let name = line.split(':').next().unwrap_or_default().trim();
        all.insert(format!("link {name}"));
    }
    for hierarchy in cgroups::hierarchies(&mounted) {
        let groups = hierarchy.groups()?.into_iter().filter(|group| group.starts_with(cgroup()));
        all.extend(groups.map(|group| format!("cgroup {}", group.display())));
    }
    let ours = std::env::current_exe()?;
    for process in processes::list()?.iter().filter(|process| process.state != 'Z') {
        let is_shim =
            processes::arguments(process.pid).first().is_some_and(|it| it == "oarsman-shim");
        let program = fs::read_link(format!("/proc/{}/exe", process.pid)).unwrap_or_default();
        // A program of a read-only mount is named by its file alone.
        if is_shim && program.file_name() == ours.file_name() {
            all.insert(format!("shim {}", process.pid));
        }
    }
    Ok(all)
}

/// Fails when there is something that was not there before.
pub(crate) fn check(before: &BTreeSet<String>) -> Result<()> {
    let after = scan()?;
    let left: Vec<&String> = after.difference(before).collect();
    ensure!(left.is_empty(), "left behind: {left:#?}");
    Ok(())
}
