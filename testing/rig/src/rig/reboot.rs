//! A loss of power, as far as one rig can tell.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::mount::mount_bind;

use super::teardown::{detach_mounts, end_processes, remove_bridge, remove_groups};
use crate::rig::RigLayout;

/// Where the kernel tells which boot this is.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// Another one each time it is read.
const NEW_UUID: &str = "/proc/sys/kernel/random/uuid";
/// In memory on every machine.
const RUN: &str = "/run";

/// Takes away all that does not survive one, containerd being dead already.
pub(super) fn lose_power(layout: &RigLayout) -> Result<()> {
    end_processes(layout)?;
    detach_mounts(layout)?;
    remove_bridge(layout)?;
    remove_groups(layout)?;
    layout.create_groups()?;
    for directory in [layout.state(), layout.runc_root(), layout.shim_sockets(), RUN.into()] {
        empty(&directory).with_context(|| format!("cannot empty {}", directory.display()))?;
    }
    show_another_boot_id(layout)
}

/// One that is not there is empty.
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

/// To everybody in our mount namespace.
fn show_another_boot_id(layout: &RigLayout) -> Result<()> {
    let file: PathBuf = layout.directory().join("boot_id");
    // Over one that was shown before: the newest is seen.
    fs::write(&file, fs::read_to_string(NEW_UUID)?)?;
    mount_bind(&file, BOOT_ID).with_context(|| format!("cannot mount over {BOOT_ID}"))
}
