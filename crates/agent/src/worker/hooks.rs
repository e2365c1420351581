//! Running a container's hooks. How long one may take is its caller's matter: dropping it ends the wait.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ExecAction, LifecycleHandler};
use oarsman_core::ids::ContainerId;
use oarsman_cri::CriError;
use oarsman_cri_types::v1::ExecSyncRequest;

use super::room::Room;

/// Why a hook failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum HookError {
    /// The runtime could not run the command.
    #[error(transparent)]
    Runtime(#[from] CriError),
    /// The command said no.
    #[error("command {command:?} exited with {code}: {output}")]
    Exit { command: Vec<String>, code: i32, output: String },
    /// A connection alone tells a container nothing.
    #[error("tcpSocket hooks are not supported; use exec, httpGet or sleep")]
    TcpSocket,
    /// Nothing we know how to do.
    #[error("the hook names no action; give it exec, httpGet or sleep")]
    Nothing,
    /// It was given up.
    #[error("the hook was not over when the grace period was")]
    Overdue,
}

/// The end of a command's output is enough to tell why it failed.
const OUTPUT: usize = 1024;

/// Runs a hook to its end.
pub(super) async fn run(
    room: &Room,
    container: &ContainerId,
    hook: &LifecycleHandler,
) -> Result<(), HookError> {
    if let Some(exec) = &hook.exec {
        return run_command(room, container, exec).await;
    }
    if let Some(sleep) = &hook.sleep {
        tokio::time::sleep(Duration::from_secs(sleep.seconds.max(0).unsigned_abs())).await;
        return Ok(());
    }
    Err(if hook.tcp_socket.is_some() { HookError::TcpSocket } else { HookError::Nothing })
}

async fn run_command(
    room: &Room,
    container: &ContainerId,
    exec: &ExecAction,
) -> Result<(), HookError> {
    let command = exec.command.clone().unwrap_or_default();
    let request = ExecSyncRequest {
        container_id: container.to_string(),
        cmd: command.clone(),
        ..ExecSyncRequest::default()
    };
    let answer = room.node.seams.runtime.exec_sync(request).await?;
    if answer.exit_code == 0 {
        return Ok(());
    }
    let output = [answer.stdout, answer.stderr].concat();
    let output = String::from_utf8_lossy(&output[output.len().saturating_sub(OUTPUT)..]).into();
    Err(HookError::Exit { command, code: answer.exit_code, output })
}
