//! Prepares the machine for the README's commands, and checks that nothing is left afterwards.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use oarsman_e2e::program::workspace;
use oarsman_host::{cgroups, mounts, processes};
use tempfile::TempDir;

/// The default root directory of `run`.
const ROOT: &str = "/var/lib/oarsman";
const GROUP: &str = "/oarsman-var-lib-oarsman";
/// The cgroup that examples/kubelet.yaml names. A kubelet does not remove it.
const EXAMPLE_GROUP: &str = "/oarsman-example";

/// The machine on which the README's commands run.
pub(super) struct ReadmeMachine {
    directory: TempDir,
    /// The link to cargo's build directory, if one had to be made.
    target: Option<PathBuf>,
    /// Whether the root directory existed before.
    had_root: bool,
}

impl ReadmeMachine {
    /// Makes the source tree look as after a plain `cargo build`, wherever builds really are.
    pub(super) fn find() -> Result<Self> {
        let target = workspace().join("target");
        let elsewhere = env::var_os("CARGO_TARGET_DIR").filter(|_| !target.exists());
        if let Some(elsewhere) = &elsewhere {
            symlink(elsewhere, &target).context("cannot link target")?;
        }
        Ok(Self {
            directory: tempfile::tempdir()?,
            target: elsewhere.map(|_| target),
            had_root: Path::new(ROOT).exists(),
        })
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.directory.path().join("tmux")
    }

    /// A new user's cargo has no settings of its build directory. Optimisation is not tested here and would cost minutes.
    pub(super) fn variables() -> [(&'static str, String); 4] {
        [
            ("CARGO_TARGET_DIR", workspace().join("target").display().to_string()),
            ("CARGO_PROFILE_RELEASE_LTO", "off".to_owned()),
            ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16".to_owned()),
            ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0".to_owned()),
        ]
    }

    /// Ends what an earlier run that failed may have left running.
    pub(super) fn clear() {
        let program = workspace().join("target/release/oarsman");
        // Mostly no agent runs.
        Command::new(program).args(["stop", "--all"]).output().ok();
    }

    /// Removes what the test made, and checks that nothing else is left.
    pub(super) fn leave(self) -> Result<()> {
        if let Some(link) = &self.target {
            fs::remove_file(link)?;
        }
        let pods: Vec<_> =
            fs::read_dir(Path::new(ROOT).join("pods")).into_iter().flatten().collect();
        ensure!(pods.is_empty(), "pods are left in {ROOT}: {pods:?}");
        for hierarchy in cgroups::hierarchies(&mounts::current()?) {
            let left = hierarchy.directory(Path::new(GROUP));
            ensure!(!left.exists(), "a cgroup is left: {}", left.display());
            hierarchy.remove(Path::new(EXAMPLE_GROUP))?;
        }
        let agents =
            processes::list()?.into_iter().filter(|process| process.name.starts_with("oarsman"));
        let agents: Vec<u32> = agents.filter(|agent| is_ours(agent.pid)).map(|it| it.pid).collect();
        ensure!(agents.is_empty(), "processes are left: {agents:?}");
        if !self.had_root {
            fs::remove_dir_all(ROOT)?;
        }
        Ok(())
    }
}

/// Whether an agent or a shim was started for the default root directory; other tests may run agents beside this one.
fn is_ours(pid: u32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line);
    let is_agent = line.contains("examples/") && !line.contains("--root-dir");
    is_agent || line.contains(&format!("{ROOT}/"))
}
