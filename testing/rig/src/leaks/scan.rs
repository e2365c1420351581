//! Scans the host for all resources that can be left behind.

mod containerd;
mod files;
mod nftables;

use std::collections::BTreeSet;
use std::fs;

use anyhow::Result;
use oarsman_host::namespaces::{self, NamespaceKind};
use oarsman_host::{cgroups, mounts, processes};

use super::HostResource;
use crate::parts::Parts;
use crate::rig::RigLayout;

/// All resources.
pub(super) async fn scan_everything(
    layout: &RigLayout,
    parts: &Parts,
) -> Result<BTreeSet<HostResource>> {
    let mut things = scan_mounts()?;
    things.extend(scan_cgroups()?);
    things.extend(scan_processes(layout)?);
    things.extend(scan_links(layout)?);
    things.extend(files::scan(layout)?);
    things.extend(nftables::scan().await?);
    if layout.flavour().is_containerd() {
        things.extend(containerd::scan(layout, parts).await?);
    }
    Ok(things)
}

/// Mounts; those that keep a network namespace alive are reported as such.
pub(crate) fn scan_mounts() -> Result<BTreeSet<HostResource>> {
    Ok(mounts::current()?
        .into_iter()
        .map(|mount| match mount.root.to_str() {
            Some(name) if mount.fs_type == "nsfs" && name.starts_with("net:") => {
                let place = format!("mounted at {}", mount.point.display());
                HostResource::NetworkNamespace { name: name.to_owned(), place }
            }
            _ => HostResource::Mount { point: mount.point, fs_type: mount.fs_type, id: mount.id },
        })
        .collect())
}

/// The groups of every hierarchy.
pub(crate) fn scan_cgroups() -> Result<BTreeSet<HostResource>> {
    let mut things = BTreeSet::new();
    for hierarchy in cgroups::hierarchies(&mounts::current()?) {
        let name = match &hierarchy.kind {
            cgroups::HierarchyKind::V1(controllers) => controllers.join(","),
            cgroups::HierarchyKind::V2 => "v2".to_owned(),
        };
        let groups = hierarchy.groups()?.into_iter();
        things.extend(groups.map(|group| HostResource::Cgroup { hierarchy: name.clone(), group }));
    }
    Ok(things)
}

/// Processes and the network namespaces they are in. The runtime itself may be another process than before.
fn scan_processes(layout: &RigLayout) -> Result<BTreeSet<HostResource>> {
    let mut things = BTreeSet::new();
    for process in processes::list()? {
        let arguments = processes::arguments(process.pid);
        if layout.is_runtime(&arguments) {
            continue;
        }
        let mut command: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
        if command.is_empty() {
            command.push(process.name.into());
        }
        things.insert(HostResource::Process { pid: process.pid, command: command.join(" ") });
        if let Ok(name) = namespaces::of_process(process.pid, NamespaceKind::Network) {
            things
                .insert(HostResource::NetworkNamespace { name, place: "of a process".to_owned() });
        }
    }
    Ok(things)
}

/// Links of our network namespace. The pods' bridge is made for the first pod and removed with the rig.
fn scan_links(layout: &RigLayout) -> Result<BTreeSet<HostResource>> {
    let text = fs::read_to_string("/proc/net/dev")?;
    let names = text.lines().skip(2).filter_map(|line| line.split_once(':'));
    let names = names.map(|(name, _)| name.trim()).filter(|name| *name != layout.bridge());
    Ok(names.map(|name| HostResource::Link { name: name.to_owned() }).collect())
}
