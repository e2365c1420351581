//! A small file system of its own in a file, which a scenario fills up or makes read-only.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use oarsman_host::mounts;

/// The size of the file system.
const BYTES: u64 = 32 << 20;

/// An ext4 file system on a loop device; unmounted when this is dropped, if nothing uses it any more.
pub struct TestDisk {
    image: PathBuf,
    point: PathBuf,
}

impl TestDisk {
    /// Makes the file system in `directory`, and mounts it there.
    ///
    /// # Errors
    /// When there is no loop device, or no mkfs.ext4.
    pub fn create(directory: &Path) -> Result<Self> {
        let disk = Self { image: directory.join("disk.ext4"), point: directory.join("disk") };
        File::create(&disk.image)?.set_len(BYTES)?;
        // Without a reserve for root, and read-only after an error, as installers of systems set it.
        let options = ["-q", "-F", "-m", "0", "-e", "remount-ro"];
        run(Command::new("mkfs.ext4").args(options).arg(&disk.image))?;
        fs::create_dir(&disk.point)?;
        disk.mount()?;
        Ok(disk)
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.point
    }

    /// Mounts it for reading and writing.
    ///
    /// # Errors
    /// When it cannot be mounted.
    pub fn mount(&self) -> Result<()> {
        run(Command::new("mount").args(["-o", "loop"]).arg(&self.image).arg(&self.point))
    }

    /// Unmounts it.
    ///
    /// # Errors
    /// When something uses it.
    pub fn unmount(&self) -> Result<()> {
        run(Command::new("umount").arg(&self.point))
    }

    /// Mounts it for reading only. Nothing may have a file of it open for writing.
    ///
    /// # Errors
    /// When something does.
    pub fn remount(&self, options: &str) -> Result<()> {
        run(Command::new("mount").args(["-o", &format!("remount,{options}")]).arg(&self.point))
    }

    /// Has the kernel find an error in it, after which it is read-only for everything that uses it.
    ///
    /// # Errors
    /// When the kernel does not do so.
    pub fn fail(&self) -> Result<()> {
        let all = mounts::current()?;
        let mount = all.iter().rfind(|mount| mount.point == self.point).context("not mounted")?;
        let device = Path::new(&mount.source).file_name().context("no device")?;
        let trigger = Path::new("/sys/fs/ext4").join(device).join("trigger_fs_error");
        fs::write(&trigger, "1").with_context(|| trigger.display().to_string())?;
        let refused = File::create(self.point.join("probe")).map_err(|error| error.kind());
        ensure!(refused.err() == Some(ErrorKind::ReadOnlyFilesystem), "it can still be written to");
        Ok(())
    }

    /// Fills it up.
    ///
    /// # Errors
    /// When it cannot be written to.
    pub fn fill(&self) -> Result<()> {
        let mut file = File::create(self.point.join("filler"))?;
        // Large pieces first; then what is left of a block.
        for piece in [vec![0; 1 << 16], vec![0; 512]] {
            loop {
                match file.write_all(&piece).and_then(|()| file.sync_data()) {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) => bail!(error),
                }
            }
        }
        Ok(())
    }

    /// Makes room again.
    ///
    /// # Errors
    /// When it cannot be written to.
    pub fn empty(&self) -> Result<()> {
        Ok(fs::remove_file(self.point.join("filler"))?)
    }

    /// Checks the file system, which must not be mounted; an error that [`TestDisk::fail`] made up is taken off first.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn check(&self) -> Result<()> {
        // Replays the journal and clears the mark of an error; 1 stands for that.
        let repaired = Command::new("e2fsck").arg("-p").arg(&self.image).output()?;
        ensure!(matches!(repaired.status.code(), Some(0 | 1)), "{repaired:?}");
        run(Command::new("e2fsck").args(["-f", "-n"]).arg(&self.image))
    }
}

impl Drop for TestDisk {
    fn drop(&mut self) {
        // After a failure an agent may still use it; it goes with the namespace.
        self.unmount().ok();
    }
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {output:?}");
    Ok(())
}
