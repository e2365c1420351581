//! Running a container's hooks. How long one may take is its caller's matter: dropping it ends the wait.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerPort, ExecAction, HTTPGetAction, LifecycleHandler, Pod};
use oarsman_core::event::PodEvent;
use oarsman_core::hook::{HttpRequest, RequestError};
use oarsman_core::ids::ContainerId;
use oarsman_core::pod::PodExt;
use oarsman_cri::CriError;
use oarsman_cri_types::v1::ExecSyncRequest;

use super::room::Room;
use oarsman_net::{HttpGet, NetworkError, Scheme, Trust};

/// Why a hook failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum HookError {
    /// The runtime could not run the command.
    #[error(transparent)]
    Runtime(#[from] CriError),
    /// The command said no.
    #[error("command {command:?} exited with {code}: {output}")]
    Exit { command: Vec<String>, code: i32, output: String },
    /// There is nobody to ask.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Nobody answered.
    #[error(transparent)]
    Network(#[from] NetworkError),
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
/// Nobody answers later than that; a hook before a stop is given up long before.
const PATIENCE: Duration = Duration::from_secs(60 * 60);

/// Whose hook it is.
#[derive(Clone, Copy)]
pub(super) struct Owner<'a> {
    pub(super) room: &'a Room,
    /// None for an orphan.
    pub(super) pod: Option<&'a Pod>,
    pub(super) id: &'a ContainerId,
    pub(super) name: &'a str,
}

impl Owner<'_> {
    /// Runs a hook to its end.
    pub(super) async fn run(&self, hook: &LifecycleHandler) -> Result<(), HookError> {
        if let Some(exec) = &hook.exec {
            return self.run_command(exec).await;
        }
        if let Some(get) = &hook.http_get {
            return self.ask(get).await;
        }
        if let Some(sleep) = &hook.sleep {
            tokio::time::sleep(Duration::from_secs(sleep.seconds.max(0).unsigned_abs())).await;
            return Ok(());
        }
        Err(if hook.tcp_socket.is_some() { HookError::TcpSocket } else { HookError::Nothing })
    }

    async fn run_command(&self, exec: &ExecAction) -> Result<(), HookError> {
        let command = exec.command.clone().unwrap_or_default();
        let request = ExecSyncRequest {
            container_id: self.id.to_string(),
            cmd: command.clone(),
            ..ExecSyncRequest::default()
        };
        let answer = self.room.node.seams.runtime.exec_sync(request).await?;
        if answer.exit_code == 0 {
            return Ok(());
        }
        let output = [answer.stdout, answer.stderr].concat();
        let output = String::from_utf8_lossy(&output[output.len().saturating_sub(OUTPUT)..]).into();
        Err(HookError::Exit { command, code: answer.exit_code, output })
    }

    /// Asks a server. It was told whatever it answers.
    async fn ask(&self, action: &HTTPGetAction) -> Result<(), HookError> {
        let request = HttpRequest::of(action, &self.ports(), self.address().as_deref())?;
        let network = &self.room.node.seams.network;
        match network.get(&http_get(&request)).await {
            Ok(_) => Ok(()),
            Err(plain @ NetworkError::PlainHttp { .. }) => self.ask_in_plain(request, plain).await,
            Err(error) => Err(error.into()),
        }
    }

    /// Asks a server without TLS that does not speak it; somebody should know.
    async fn ask_in_plain(
        &self,
        request: HttpRequest,
        plain: NetworkError,
    ) -> Result<(), HookError> {
        let request = http_get(&request.in_plain());
        if let Err(error) = self.room.node.seams.network.get(&request).await {
            tracing::warn!(pod = %self.room.name, %error, "a hook could not be asked without TLS either");
            return Err(plain.into());
        }
        let message = format!(
            "The HTTPS hook of container {} at {} answered in plain HTTP and was asked that way",
            self.name,
            request.authority()
        );
        self.room.say(self.pod, [PodEvent::warning("LifecycleHTTPFallback", message)]);
        Ok(())
    }

    /// What the spec says, or else what is written on the container.
    fn ports(&self) -> Vec<ContainerPort> {
        let wanted = self.pod.and_then(|pod| pod.container(self.name));
        if let Some(wanted) = wanted {
            return wanted.spec.ports.clone().unwrap_or_default();
        }
        let memory = self.room.memory();
        let container = memory.view.containers.iter().find(|container| container.id == *self.id);
        container.map(|container| container.label.ports.clone()).unwrap_or_default()
    }

    /// The address of the container's sandbox; one that was just made is in the newest.
    fn address(&self) -> Option<String> {
        let view = self.room.memory().view.clone();
        let home = view.containers.iter().find(|c| c.id == *self.id).map(|c| &c.sandbox);
        let home = view.sandboxes.iter().find(|sandbox| Some(&sandbox.id) == home);
        let home = home.or_else(|| view.newest_sandbox())?;
        let of_node = &self.room.node.config.facts.host_ips;
        if home.host_network { of_node } else { &home.ips }.first().cloned()
    }
}

/// Certificates are not looked at: the one who answers was made by the one who wrote the hook.
fn http_get(request: &HttpRequest) -> HttpGet {
    HttpGet {
        scheme: if request.tls { Scheme::Https } else { Scheme::Http },
        host: request.host.clone(),
        port: request.port,
        path_and_query: request.path_and_query.clone(),
        headers: request.headers.clone(),
        timeout: PATIENCE,
        // That there is an answer is all there is to know.
        body_limit: 0,
        trust: Trust::Anybody,
    }
}
