//! A small file system for images, in a file on a loop device.

use std::fs::File;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::rig::RigLayout;

/// Makes it, and mounts it on containerd's root directory. It is unmounted with all that is mounted in the rig's directory, and goes with it.
pub(super) fn mount(layout: &RigLayout, bytes: u64) -> Result<()> {
    let image = layout.directory().join("images.ext4");
    File::create(&image)?.set_len(bytes)?;
    // Without a reserve for root, so that what is used and what is available add up.
    run(Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0"]).arg(&image))?;
    run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(layout.root()))
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {output:?}");
    Ok(())
}
