//! `cargo xtask takeover COMMIT`: running pods are taken over from the program of a commit by ours, and back, undisturbed.

use std::path::Path;

use anyhow::Result;

use crate::command::cargo_with;
use crate::commit::Commit;
use crate::kubelet_kind::KubeletKind;

/// Read by testing/e2e: the program that runs the pods at first, and the one that takes them over.
const FROM: &str = "OARSMAN_TAKEOVER_FROM";
const PROGRAM: &str = "OARSMAN_E2E_PROGRAM";

/// Builds both programs for release and runs the takeover on the rig.
pub(crate) fn run(root: &Path, commit: &str) -> Result<()> {
    let commit = Commit::find(root, commit)?;
    commit.build(root)?;
    KubeletKind::Oarsman.prepare(root)?;
    let (theirs, ours) = (commit.program()?, KubeletKind::Oarsman.program()?);
    let environment = [(FROM, theirs.as_os_str()), (PROGRAM, ours.as_os_str())];
    cargo_with(root, &["test", "--workspace", "--test", "takeover"], &environment)?;
    println!(
        "takeover: from {} to ours and back: 0 container restarts, 0 readiness flips, no sandbox replaced",
        commit.short()
    );
    Ok(())
}
