//! A machine with a linker, the C library and Rust: a root made by debootstrap, into which the pinned toolchain and cargo's crates are mounted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::time::Instant;

use super::command::FirstCommand;
use crate::command::{cache, first_line, run};

const RELEASE: &str = "bookworm";
const PACKAGES: &str = "--include=gcc,libc6-dev";
/// Directories in the new root.
const SOURCE: &str = "/src";
const TOOLCHAIN: &str = "/opt/rust";
const CARGO: &str = "/root/.cargo";
/// Written when debootstrap has done all.
const DONE: &str = "debootstrap-done";

/// The root.
pub(super) struct BareMachine {
    root: PathBuf,
}

impl BareMachine {
    /// Makes the root, once for all times, and puts the last commit into it.
    pub(super) fn prepare(workspace: &Path) -> Result<()> {
        let root = directory()?.join("root");
        let done = directory()?.join(DONE);
        if !done.exists() {
            fs::create_dir_all(&root)?;
            let mut debootstrap = Command::new("debootstrap");
            debootstrap.args(["--variant=minbase", PACKAGES, RELEASE]).arg(&root);
            run(&mut debootstrap).context("debootstrap is a package of its own")?;
            fs::write(done, "")?;
        }
        let source = root.join(SOURCE.trim_start_matches('/'));
        if source.exists() {
            fs::remove_dir_all(&source)?;
        }
        let mut clone = Command::new("git");
        clone.args(["clone", "--quiet", "--depth=1"]);
        clone.arg(format!("file://{}", workspace.display())).arg(&source);
        run(&mut clone)
    }

    /// Mounts what it needs. To be called in a mount namespace that ends with this program.
    pub(super) fn enter() -> Result<Self> {
        let machine = Self { root: directory()?.join("root") };
        let sysroot = first_line(Command::new("rustc").args(["--print", "sysroot"]))?;
        let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
        let registry = home.context("neither CARGO_HOME nor HOME is set")?.join("registry");
        machine.bind(Path::new(&sysroot), TOOLCHAIN)?;
        machine.bind(&registry, &format!("{CARGO}/registry"))?;
        for directory in ["/dev", "/proc", "/sys"] {
            machine.bind(Path::new(directory), directory)?;
        }
        Ok(machine)
    }

    fn bind(&self, from: &Path, to: &str) -> Result<()> {
        let to = self.root.join(to.trim_start_matches('/'));
        fs::create_dir_all(&to)?;
        run(Command::new("mount").arg("--rbind").arg(from).arg(to))
    }

    /// Builds the program as the first command does.
    pub(super) fn build(&self) -> Result<Duration> {
        let begun = Instant::now();
        let script = format!(
            "cd {SOURCE} && export PATH={TOOLCHAIN}/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root CARGO_NET_OFFLINE=true && cargo build --release"
        );
        let mut chroot = Command::new("chroot");
        chroot.arg(&self.root).args(["env", "--ignore-environment", "sh", "-c", &script]);
        run(&mut chroot)?;
        Ok(begun.elapsed())
    }

    pub(super) fn first_command(&self) -> FirstCommand {
        FirstCommand::within(&self.root, SOURCE)
    }
}

fn directory() -> Result<PathBuf> {
    Ok(cache()?.join("first-run"))
}
