//! The versions of programs and the time of a run.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use oarsman_rig::parts;

use crate::command::first_line;
use crate::kubelet_kind::KubeletKind;

/// By name, as each program prints it.
pub(super) fn all(root: &Path, kubelet: KubeletKind) -> Result<BTreeMap<String, String>> {
    let parts = parts::prepare()?;
    let mut versions = BTreeMap::from([
        (kubelet.shown(), first_line(Command::new(kubelet.program()?).arg("--version"))?),
        (
            "containerd",
            first_line(Command::new(parts.containerd.join("containerd")).arg("--version"))?,
        ),
        ("runc", first_line(Command::new(parts.runc.join("runc")).arg("--version"))?),
        ("kernel", first_line(Command::new("uname").args(["--kernel-release", "--machine"]))?),
        ("processors", first_line(&mut Command::new("nproc"))?),
    ]);
    if kubelet == KubeletKind::Oarsman {
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
