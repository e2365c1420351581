//! Looking at everything that can be left behind.

mod containerd;
mod files;
mod nftables;

use std::collections::BTreeSet;
use std::fs;

use anyhow::Result;
use oarsman_host::namespaces::{self, Kind};
use oarsman_host::{cgroups, mounts, processes};

use super::Thing;
use crate::parts::Parts;
use crate::rig::Layout;

/// All that there is.
pub(super) async fn at_everything(layout: &Layout, parts: &Parts) -> Result<BTreeSet<Thing>> {
    let mut things = at_mounts()?;
    things.extend(at_cgroups()?);
    things.extend(at_processes(layout)?);
    things.extend(at_links(layout)?);
    things.extend(files::look(layout)?);
    things.extend(nftables::look().await?);
    things.extend(containerd::look(layout, parts).await?);
    Ok(things)
}

/// Mounts; those that keep a network namespace alive are told as such.
pub(crate) fn at_mounts() -> Result<BTreeSet<Thing>> {
    Ok(mounts::current()?
        .into_iter()
        .map(|mount| match mount.root.to_str() {
            Some(name) if mount.fs_type == "nsfs" && name.starts_with("net:") => {
                let place = format!("mounted at {}", mount.point.display());
                Thing::NetworkNamespace { name: name.to_owned(), place }
            }
            _ => Thing::Mount { point: mount.point, fs_type: mount.fs_type, id: mount.id },
        })
        .collect())
}

/// The groups of every hierarchy.
pub(crate) fn at_cgroups() -> Result<BTreeSet<Thing>> {
    let mut things = BTreeSet::new();
    for hierarchy in cgroups::hierarchies(&mounts::current()?) {
        let name = match &hierarchy.kind {
            cgroups::Kind::V1(controllers) => controllers.join(","),
            cgroups::Kind::V2 => "v2".to_owned(),
        };
        let groups = hierarchy.groups()?.into_iter();
        things.extend(groups.map(|group| Thing::Cgroup { hierarchy: name.clone(), group }));
    }
    Ok(things)
}

/// Processes and the network namespaces they are in. containerd itself may be another process
/// than before.
fn at_processes(layout: &Layout) -> Result<BTreeSet<Thing>> {
    let mut things = BTreeSet::new();
    for process in processes::list()? {
        let arguments = processes::arguments(process.pid);
        if arguments.iter().any(|argument| *argument == *layout.config()) {
            continue;
        }
        let mut command: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
        if command.is_empty() {
            command.push(process.name.into());
        }
        things.insert(Thing::Process { pid: process.pid, command: command.join(" ") });
        if let Ok(name) = namespaces::of_process(process.pid, Kind::Network) {
            things.insert(Thing::NetworkNamespace { name, place: "of a process".to_owned() });
        }
    }
    Ok(things)
}

/// Links of our network namespace. The pods' bridge comes with the first pod and goes with the rig.
fn at_links(layout: &Layout) -> Result<BTreeSet<Thing>> {
    let text = fs::read_to_string("/proc/net/dev")?;
    let names = text.lines().skip(2).filter_map(|line| line.split_once(':'));
    let names = names.map(|(name, _)| name.trim()).filter(|name| *name != layout.bridge());
    Ok(names.map(|name| Thing::Link { name: name.to_owned() }).collect())
}
