//! What a second process must not take away from the first.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};
use oarsman_cri::Runtime;
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::program;
use oarsman_e2e::scenario::ScenarioContext;

use super::MAX_WAIT;

/// What `oarsman cri` says that has to end by itself.
fn refused(listen: &Path, root: &Path) -> Result<String> {
    let mut command = Command::new(program::path()?);
    command.arg("cri").arg("--listen").arg(listen).arg("--root-dir").arg(root);
    let output = command.stdin(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.code() == Some(1), "{}: {said}", output.status);
    Ok(said)
}

pub(super) async fn a_second_process_on_its_directory_or_its_socket_is_refused(
    cx: &ScenarioContext,
) -> Result<()> {
    let place = |name: &str| cx.scratch().join(name);
    let said = refused(&place("cri.sock"), &cx.rig().images())?;
    ensure!(said.contains("is in use by process") && said.contains("another directory"), "{said}");
    let said = refused(&cx.rig().socket(), &place("root"))?;
    ensure!(said.contains("a process listens at"), "{said}");
    // The first one is as it was.
    cx.rig().client()?.version().await?;
    Ok(())
}

pub(super) async fn a_socket_that_was_left_by_a_killed_process_is_replaced(
    cx: &ScenarioContext,
) -> Result<()> {
    cx.rig().kill()?;
    ensure!(cx.rig().socket().exists(), "nothing removes the socket of a killed process");
    cx.rig().restart().await?;
    let client = cx.rig().client()?;
    let version = async || Ok(client.version().await?.runtime_name);
    eventually(MAX_WAIT, "it answers", version, |name| name == "oarsman").await.map(drop)
}
