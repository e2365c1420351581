//! Ends a rig: kills all its processes, then removes what is left.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use oarsman_host::{cgroups, mounts, namespaces, processes};
use rustix::process::Signal;

use crate::clock::wait_until;
use crate::rig::RigLayout;
use crate::run::remove_group;
use crate::signals::send;

/// How long containerd may take to end by itself.
const GRACE: Duration = Duration::from_secs(10);
/// How long killed processes may take to be gone.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// Goes on after an error, so that one failure does not keep the rest; the errors are joined in the end.
pub(super) fn tear_down(layout: &RigLayout, containerd: Option<Child>) -> Result<()> {
    let steps = [
        containerd.map_or(Ok(()), end_containerd),
        end_processes(layout),
        detach_mounts(layout),
        remove_bridge(layout),
        super::embedded::remove_networks(),
        remove_groups(layout),
        remove_files(layout),
    ];
    let errors: Vec<String> =
        steps.into_iter().filter_map(Result::err).map(|error| format!("{error:#}")).collect();
    ensure!(errors.is_empty(), "the rig did not end cleanly: {}", errors.join("; "));
    Ok(())
}

/// Sends SIGTERM first. A paused containerd handles it only when it continues.
fn end_containerd(mut containerd: Child) -> Result<()> {
    send(containerd.id(), Signal::TERM);
    send(containerd.id(), Signal::CONT);
    if !wait_until(GRACE, || !matches!(containerd.try_wait(), Ok(None))) {
        containerd.kill()?;
        containerd.wait()?;
    }
    Ok(())
}

/// Shims outlive their containerd, and containers their shims: so all of them are searched and killed until none is found.
pub(super) fn end_processes(layout: &RigLayout) -> Result<()> {
    let gone = wait_until(MAX_WAIT, || {
        let found = processes_of(layout).unwrap_or_default();
        found.iter().for_each(|pid| send(*pid, Signal::KILL));
        found.is_empty()
    });
    ensure!(gone, "processes {:?} do not die", processes_of(layout)?);
    Ok(())
}

/// The shims, which have the socket's path or a path below the directories of runtime and agents among their arguments, all their descendants, and all
/// processes in the rig's cgroups.
fn processes_of(layout: &RigLayout) -> Result<BTreeSet<u32>> {
    let all = processes::list()?;
    let (socket, below) = (layout.socket(), [layout.root(), layout.agents()]);
    let shims: Vec<u32> = all
        .iter()
        .map(|process| process.pid)
        .filter(|pid| {
            let is_ours = |argument: &Path| {
                argument == socket || below.iter().any(|directory| argument.starts_with(directory))
            };
            processes::arguments(*pid).iter().any(|argument| is_ours(argument.as_ref()))
        })
        .collect();
    let mut found: BTreeSet<u32> = processes::family(&all, &shims).into_iter().collect();
    for hierarchy in cgroups::hierarchies(&mounts::current()?) {
        found.extend(hierarchy.processes(&layout.cgroup_parent())?);
    }
    Ok(found)
}

/// The last mount is detached first.
pub(super) fn detach_mounts(layout: &RigLayout) -> Result<()> {
    let all = mounts::current()?;
    let ours: Vec<&mounts::Mount> = mounts::beneath(&all, layout.directory()).collect();
    for mount in ours.into_iter().rev() {
        namespaces::detach(&mount.point)
            .with_context(|| format!("cannot unmount {}", mount.point.display()))?;
    }
    Ok(())
}

pub(super) fn remove_bridge(layout: &RigLayout) -> Result<()> {
    let bridge = layout.bridge();
    if !fs::exists(format!("/proc/sys/net/ipv4/conf/{bridge}"))? {
        return Ok(());
    }
    let output = Command::new("ip").args(["link", "delete", &bridge]).output()?;
    if !output.status.success() {
        bail!("cannot delete the bridge: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

pub(super) fn remove_groups(layout: &RigLayout) -> Result<()> {
    for hierarchy in cgroups::hierarchies(&mounts::current()?) {
        remove_group(&hierarchy, &layout.cgroup_parent())?;
    }
    Ok(())
}

fn remove_files(layout: &RigLayout) -> Result<()> {
    match fs::remove_dir_all(layout.directory()) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", layout.directory().display()))
        }
        _ => Ok(()),
    }
}
