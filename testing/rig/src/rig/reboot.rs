//! Simulates a power failure for one rig.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use oarsman_host::mounts;
use rustix::mount::{UnmountFlags, mount_bind, unmount};

use super::embedded;
use super::teardown::{detach_mounts, end_processes, remove_bridge, remove_groups};
use crate::rig::RigLayout;

/// The kernel's file with the boot id.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// The kernel's file with another UUID each time it is read.
const NEW_UUID: &str = "/proc/sys/kernel/random/uuid";
/// In memory on every machine.
const RUN: &str = "/run";

/// Removes all that does not survive a power failure; the runtime is dead already.
pub(super) fn remove_volatile_state(layout: &RigLayout) -> Result<()> {
    end_processes(layout)?;
    detach_mounts(layout)?;
    remove_bridge(layout)?;
    embedded::remove_networks()?;
    remove_groups(layout)?;
    layout.create_groups()?;
    for directory in [layout.state(), layout.runc_root(), layout.shim_sockets(), RUN.into()] {
        empty(&directory).with_context(|| format!("cannot empty {}", directory.display()))?;
    }
    show_another_boot_id(layout)
}

/// Empties a directory, which need not exist.
fn empty(directory: &Path) -> Result<()> {
    if !directory.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() && !path.is_symlink() {
            fs::remove_dir_all(&path)?;
        } else {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Shows another boot id to all processes in our mount namespace.
fn show_another_boot_id(layout: &RigLayout) -> Result<()> {
    let file: PathBuf = layout.directory().join("boot_id");
    // A mount on top of an earlier one would show at that one's file too, and fails when that file is gone with its rig.
    while mounts::is_mount_point(Path::new(BOOT_ID))? {
        unmount(BOOT_ID, UnmountFlags::DETACH)?;
    }
    fs::write(&file, fs::read_to_string(NEW_UUID)?)?;
    mount_bind(&file, BOOT_ID).with_context(|| format!("cannot mount over {BOOT_ID}"))
}
