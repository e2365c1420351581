//! The agent's local socket: who may use it, and one for each agent.

use std::os::unix::fs::PermissionsExt;

use anyhow::{Result, ensure};
use oarsman_e2e::agent_process::AgentSetup;
use oarsman_e2e::manifest::{pod, script_container};
use oarsman_e2e::scenario::ScenarioContext;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::Command;

use super::shows::until_shown;

pub(super) async fn only_root_can_use_the_socket(cx: &ScenarioContext) -> Result<()> {
    let agent = cx.agent()?;
    agent.apply("web", &pod("web").container(script_container("main", &["forever"])))?;
    until_shown(&agent, &[&["web-node", "Running"]]).await?;
    let socket = agent.root().join("oarsman.sock");
    let mode = std::fs::metadata(&socket)?.permissions().mode() & 0o777;
    ensure!(mode == 0o600, "{mode:o}");
    let mut stream = UnixStream::connect(&socket).await?;
    let request = "GET /v1/report HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    ensure!(answer.contains("application/json") && answer.contains("web-node"), "{answer}");
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups", "test", "-w"];
    let reached = Command::new("setpriv").args(nobody).arg(&socket).status().await?;
    ensure!(!reached.success(), "nobody reaches the socket");
    Ok(())
}

pub(super) async fn two_agents_answer_at_their_own_sockets(cx: &ScenarioContext) -> Result<()> {
    let kubelet = cx.agent()?;
    kubelet.apply("ours", &pod("ours").container(script_container("main", &["forever"])))?;
    let run_mode = cx.prepare(AgentSetup::on(cx.rig(), "guest")?.in_run_mode())?;
    let theirs = pod("theirs").with("terminationGracePeriodSeconds", 1);
    run_mode.apply("theirs", &theirs.container(script_container("main", &["forever"])))?;
    run_mode.start()?;
    let of_kubelet = until_shown(&kubelet, &[&["ours-node", "Running"]]).await?;
    let of_run_mode = until_shown(&run_mode, &[&["theirs", "Running"]]).await?;
    ensure!(
        !of_kubelet.contains("theirs") && !of_run_mode.contains("ours"),
        "{of_kubelet}{of_run_mode}"
    );
    Ok(())
}
