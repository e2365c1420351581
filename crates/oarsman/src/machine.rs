//! What the agent reads of the machine and sets on its own process: name, memory, swap, limits.

pub(crate) mod cpus;
pub(crate) mod facts;
pub(crate) mod swap;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use oarsman_core::resources::{NodeResources, Swap};
use oarsman_host::cgroups::CgroupManager;
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::settings::AgentSettings;

/// The node's name: the configured one, or the host name.
pub(crate) fn node_name(told: Option<&str>) -> Result<String> {
    let machine = rustix::system::uname();
    let name = told.map_or_else(|| machine.nodename().to_string_lossy(), Into::into);
    let name = Some(name.trim().to_lowercase()).filter(|name| !name.is_empty());
    name.context("this machine has no name: give the node one with --hostname-override")
}

/// A root directory as a path that does not depend on the working directory.
pub(crate) fn absolute(root: &Path) -> Result<PathBuf> {
    std::path::absolute(root).with_context(|| format!("--root-dir {}", root.display()))
}

/// The same without links, as far as it exists. Found once at the start: the kernel names mounts by such paths, and a link that is
/// changed later must not lead half of the agent elsewhere.
pub(crate) fn canonical_root(root: &Path) -> Result<PathBuf> {
    let root = absolute(root)?;
    let real = |there: &Path| Some((there.canonicalize().ok()?, root.strip_prefix(there).ok()?));
    let found = root.ancestors().find_map(real);
    Ok(found.map_or_else(
        || root.clone(),
        |(there, rest)| there.components().chain(rest.components()).collect(),
    ))
}

/// What the numbers of containers depend on.
pub(crate) fn resources(
    cgroups: &CgroupManager,
    settings: &AgentSettings,
) -> Result<NodeResources> {
    let containers = settings.containers;
    let swap = match (cgroups.limits_swap(), containers.may_swap) {
        (false, _) => Swap::Unlimitable,
        (true, true) => Swap::Limited { capacity: meminfo("SwapTotal:")? },
        (true, false) => Swap::Forbidden,
    };
    Ok(NodeResources {
        cgroups: cgroups.version(),
        swap,
        cfs_quota: containers.cfs_quota,
        cfs_period: containers.cfs_period,
        single_process_oom_kill: containers.single_process_oom_kill,
        pod_pids_limit: settings.pod_pids_limit,
        lowest_oom_score_adj: lowest_oom_score_adj(),
        hugepage_sizes: oarsman_host::hugepages::sizes().unwrap_or_default(),
        ..NodeResources::of_memory(meminfo("MemTotal:")?)
    })
}

/// An amount of memory in bytes, from `/proc/meminfo`.
fn meminfo(name: &str) -> Result<u64> {
    let text = fs::read_to_string("/proc/meminfo").context("cannot read /proc/meminfo")?;
    let amount = text.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes =
        amount.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    Ok(kilobytes.with_context(|| format!("/proc/meminfo does not tell {name}"))? * 1024)
}

/// The devices and files that this machine swaps to.
pub(crate) fn swaps() -> Result<Vec<String>> {
    let swaps = swap::parse(&read_or_empty("/proc/swaps".as_ref())?);
    Ok(swaps.into_iter().map(|swap| swap.name).collect())
}

/// Sets the oom_score_adj of this process.
pub(crate) fn set_oom_score_adj(score: i32) -> Result<()> {
    let file = "/proc/self/oom_score_adj";
    fs::write(file, score.to_string()).with_context(|| format!("cannot write {score} to {file}"))
}

/// Sets the limit of open files of this process.
pub(crate) fn set_open_files(most: u64) -> Result<()> {
    let limit = Rlimit { current: Some(most), maximum: Some(most) };
    setrlimit(Resource::Nofile, limit).with_context(|| format!("cannot raise the limit to {most}"))
}

/// Without CAP_SYS_RESOURCE a process cannot go below the value it was started with, and neither can a runtime that was started by the same
/// unit.
fn lowest_oom_score_adj() -> i64 {
    const SYS_RESOURCE: u32 = 24;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    if effective.is_none_or(|bits| bits & (1 << SYS_RESOURCE) != 0) {
        return -1000;
    }
    let own = fs::read_to_string("/proc/self/oom_score_adj").unwrap_or_default();
    own.trim().parse().unwrap_or(0)
}

/// Whether the kernel of this machine enforces AppArmor profiles.
pub(crate) fn has_app_armor() -> bool {
    let enabled = fs::read_to_string("/sys/module/apparmor/parameters/enabled");
    Path::new("/sys/kernel/security/apparmor").exists()
        && enabled.is_ok_and(|text| text.starts_with('Y'))
}

/// Paths below `/proc` and `/sys` that are hidden from containers, as far as this machine has them.
pub(crate) fn masked_paths() -> Vec<String> {
    let cpus = fs::read_dir("/sys/devices/system/cpu").into_iter().flatten().flatten();
    let throttle = cpus.map(|cpu| cpu.path().join("thermal_throttle"));
    let mut found: Vec<String> =
        throttle.filter(|path| path.is_dir()).map(|path| path.display().to_string()).collect();
    found.sort();
    found
}

/// The text of a file; empty if there is no such file.
pub(crate) fn read_or_empty(path: &Path) -> Result<String> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_root_directory_behind_a_link_is_the_one_that_it_leads_to() {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().canonicalize().unwrap().join("real");
        let link = directory.path().join("link");
        fs::create_dir(&real).unwrap();
        symlink(&real, &link).unwrap();
        assert_eq!(canonical_root(&link).unwrap(), real);
        assert_eq!(canonical_root(&link.join("not/yet")).unwrap(), real.join("not/yet"));
        assert_eq!(
            canonical_root(Path::new("/nowhere/at/all")).unwrap(),
            Path::new("/nowhere/at/all")
        );
    }
}
