//! What a run ran with, and when.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use oarsman_rig::parts;

use crate::command::said;
use crate::subject::Kubelet;

/// By name, as each program tells it of itself.
pub(super) fn all(root: &Path, kubelet: Kubelet) -> Result<BTreeMap<String, String>> {
    let parts = parts::prepare()?;
    let mut versions = BTreeMap::from([
        (kubelet.shown(), said(Command::new(kubelet.program()?).arg("--version"))?),
        ("containerd", said(Command::new(parts.containerd.join("containerd")).arg("--version"))?),
        ("runc", said(Command::new(parts.runc.join("runc")).arg("--version"))?),
        ("kernel", said(Command::new("uname").args(["--kernel-release", "--machine"]))?),
        ("processors", said(&mut Command::new("nproc"))?),
    ]);
    if kubelet == Kubelet::Oarsman {
        let mut git = Command::new("git");
        git.current_dir(root).args(["describe", "--always", "--dirty"]);
        versions.insert("commit", said(&mut git)?);
    }
    let owned = versions.into_iter().map(|(name, version)| (name.to_owned(), version));
    Ok(owned.collect())
}

/// This minute, in universal time.
pub(super) fn time() -> Result<String> {
    said(Command::new("date").args(["--utc", "+%Y-%m-%d %H:%M"]))
}
