//! The versions of programs and the time of a run.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use oarsman_rig::parts;

use super::record::RunSubject;
use super::runtime::TestedRuntime;
use crate::command::first_line;
use crate::kubelet_kind::KubeletKind;

/// By name, as each program prints it.
pub(super) fn all(root: &Path, subject: RunSubject) -> Result<BTreeMap<String, String>> {
    let RunSubject { kubelet, runtime, .. } = subject;
    let mut versions = BTreeMap::from([
        (kubelet.shown(), first_line(Command::new(kubelet.program()?).arg("--version"))?),
        ("kernel", first_line(Command::new("uname").args(["--kernel-release", "--machine"]))?),
        ("processors", first_line(&mut Command::new("nproc"))?),
    ]);
    if runtime == TestedRuntime::Containerd {
        let parts = parts::prepare()?;
        for (name, directory) in [("containerd", &parts.containerd), ("runc", &parts.runc)] {
            versions.insert(name, first_line(Command::new(directory.join(name)).arg("--version"))?);
        }
    }
    if kubelet == KubeletKind::Oarsman || runtime.is_ours() {
        let mut git = Command::new("git");
        git.current_dir(root).args(["describe", "--always", "--dirty"]);
        versions.insert("commit", first_line(&mut git)?);
    }
    let owned = versions.into_iter().map(|(name, version)| (name.to_owned(), version));
    Ok(owned.collect())
}

/// The current minute, in UTC.
pub(super) fn time() -> Result<String> {
    first_line(Command::new("date").args(["--utc", "+%Y-%m-%d %H:%M"]))
}
