//! Rigs without a containerd, for agents with the embedded runtime: images go to the store of each agent, and what such a runtime makes outside
//! of its directory is known by name.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use oarsman_image_store::{ImageStore, ImportOptions, UnpackBounds};

use super::RigLayout;
use crate::images::{self, OciImage};

/// The directory of the runtime below the root directory of its agent.
const RUNTIME: &str = "runtime";
/// How the names of its bridges and of the pods' links begin, and those of its tables of nftables.
const LINKS: &str = "oar-";
const BRIDGE_DIGITS: usize = 6;
const TABLES: &str = "oarsman-";

/// The directory of an agent's runtime.
pub(crate) fn runtime_directory(root: &Path) -> PathBuf {
    root.join(RUNTIME)
}

/// Keeps images for the agents to come, and gives them to those that there are.
pub(super) fn import(layout: &RigLayout, images: &[OciImage]) -> Result<()> {
    let archives = layout.archives();
    fs::create_dir_all(&archives)?;
    let archive = archives.join(format!("{}.tar", fs::read_dir(&archives)?.count()));
    fs::write(&archive, images::archive(images)?)?;
    for agent in fs::read_dir(layout.agents())? {
        let store = runtime_directory(&agent?.path());
        if store.exists() {
            import_archive(&store, &archive)?;
        }
    }
    Ok(())
}

/// Gives an agent all images of the rig.
pub(super) fn prepare_agent(layout: &RigLayout, root: &Path) -> Result<()> {
    let mut archives = fs::read_dir(layout.archives())?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<Vec<_>>>()?;
    archives.sort();
    archives.iter().try_for_each(|archive| import_archive(&runtime_directory(root), archive))
}

fn import_archive(runtime: &Path, archive: &Path) -> Result<()> {
    let store = ImageStore::open(&runtime.join("images"), UnpackBounds::default())?;
    let shown = archive.display().to_string();
    let file = File::open(archive).with_context(|| shown.clone())?;
    store.import_archive(file, &shown, &ImportOptions::default(), &mut |_| {})?;
    Ok(())
}

/// The directories of an agent's runtime that have an entry or more for each pod. They themselves are made at its start and stay.
pub(crate) fn by_pod(root: &Path) -> Vec<PathBuf> {
    let directory = runtime_directory(root);
    let directories = ["sandboxes", "containers", "shims", "images/roots", "images/leases"];
    directories.map(|name| directory.join(name)).to_vec()
}

/// Whether a link is the bridge of an embedded runtime, which stays until its agent ends without pods. Those of pods have longer names.
pub(crate) fn is_bridge(link: &str) -> bool {
    link.strip_prefix(LINKS).is_some_and(|rest| rest.len() == BRIDGE_DIGITS)
}

/// Whether an object of nftables, as the leak check names it, belongs to the table of an embedded runtime.
pub(crate) fn is_of_table(object: &str) -> bool {
    object.split(' ').any(|word| word.starts_with(TABLES))
}

/// Removes what agents that were killed have left outside of their directories.
pub(super) fn remove_networks() -> Result<()> {
    let devices = fs::read_to_string("/proc/net/dev")?;
    let names =
        devices.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim());
    for name in names.filter(|name| name.starts_with(LINKS)) {
        // A pod's link may have gone with its namespace meanwhile.
        Command::new("ip").args(["link", "delete", name]).output()?;
    }
    let listed = Command::new("nft").args(["list", "tables"]).output()?;
    for table in String::from_utf8_lossy(&listed.stdout).lines() {
        let words: Vec<&str> = table.split_whitespace().collect();
        if words.get(2).is_some_and(|name| name.starts_with(TABLES)) {
            let removed = Command::new("nft").arg("delete").args(&words).output()?;
            ensure!(removed.status.success(), "cannot remove {table} of nftables");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_with_an_agent_is_told_from_what_is_of_a_pod() {
        let rows = [
            ("oar-0a1b2c", true),
            ("oar-0a1b2c-7", false),
            ("oar-0a1b2cs7", false),
            ("eth0", false),
        ];
        for (link, expected) in rows {
            assert_eq!(is_bridge(link), expected, "{link}");
        }
        let rows = [
            ("table inet oarsman-0a1b2c", true),
            ("rule inet oarsman-0a1b2c postrouting handle 3", true),
            ("table ip other", false),
        ];
        for (object, expected) in rows {
            assert_eq!(is_of_table(object), expected, "{object}");
        }
    }
}
