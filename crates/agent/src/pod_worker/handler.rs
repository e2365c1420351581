//! Runs lifecycle handlers of containers. How long one may take is the caller's matter: dropping it ends the wait.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ExecAction, HTTPGetAction, LifecycleHandler, Pod};
use oarsman_core::event::PodEvent;
use oarsman_core::handler::{ContainerEndpoint, TargetError};
use oarsman_core::hook::HttpRequest;
use oarsman_core::ids::ContainerId;
use oarsman_cri::CriError;
use oarsman_cri_types::v1::ExecSyncRequest;
use oarsman_net::{HttpGet, NetworkError, Scheme, Trust};

use super::context::PodContext;

/// Why a handler failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum HandlerError {
    /// The runtime could not run the command.
    #[error(transparent)]
    Runtime(#[from] CriError),
    /// The command failed.
    #[error("command {command:?} exited with {code}: {output}")]
    Exit { command: Vec<String>, code: i32, output: String },
    /// The handler means nothing that can be connected to.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The server did not answer.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A TCP connection is no valid lifecycle handler.
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
/// A hook that is not bounded by a grace period is given up after this time.
const TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// Runs handlers of one container.
#[derive(Clone, Copy)]
pub(super) struct HandlerRunner<'a> {
    pub(super) context: &'a PodContext,
    /// None for an orphan.
    pub(super) pod: Option<&'a Pod>,
    pub(super) id: &'a ContainerId,
    pub(super) name: &'a str,
}

impl HandlerRunner<'_> {
    /// Runs a handler to its end.
    pub(super) async fn run(&self, handler: &LifecycleHandler) -> Result<(), HandlerError> {
        if let Some(exec) = &handler.exec {
            return self.exec(exec).await;
        }
        if let Some(get) = &handler.http_get {
            return self.http_get(get).await;
        }
        if let Some(sleep) = &handler.sleep {
            let under_way = SleepUnderWay { of: self, is_over: false };
            tokio::time::sleep(Duration::from_secs(sleep.seconds.max(0).unsigned_abs())).await;
            under_way.end();
            return Ok(());
        }
        Err(match handler.tcp_socket {
            Some(_) => HandlerError::TcpSocket,
            None => HandlerError::Nothing,
        })
    }

    async fn exec(&self, exec: &ExecAction) -> Result<(), HandlerError> {
        let command = exec.command.clone().unwrap_or_default();
        let request = ExecSyncRequest {
            container_id: self.id.to_string(),
            cmd: command.clone(),
            ..ExecSyncRequest::default()
        };
        let answer = self.context.node.seams.runtime.exec_sync(request).await?;
        if answer.exit_code == 0 {
            return Ok(());
        }
        let output = [answer.stdout, answer.stderr].concat();
        let output = String::from_utf8_lossy(&output[output.len().saturating_sub(OUTPUT)..]).into();
        Err(HandlerError::Exit { command, code: answer.exit_code, output })
    }

    /// Asks a server; an answer of any status will do.
    async fn http_get(&self, action: &HTTPGetAction) -> Result<(), HandlerError> {
        let host_ip = || self.context.node.host_ip();
        let endpoint = self
            .context
            .reader
            .with(|view, _| ContainerEndpoint::of(self.pod, view, self.name, self.id, host_ip));
        let request = HttpRequest::of(action, &endpoint)?;
        match self.context.node.seams.network.get(&http_get(&request)).await {
            Ok(_) => Ok(()),
            Err(plain @ NetworkError::PlainHttp { .. }) => self.without_tls(request, plain).await,
            Err(error) => Err(error.into()),
        }
    }

    /// Repeats the request without TLS for a server that does not support it, and records an event.
    async fn without_tls(
        &self,
        request: HttpRequest,
        plain: NetworkError,
    ) -> Result<(), HandlerError> {
        let request = http_get(&request.in_plain());
        if let Err(error) = self.context.node.seams.network.get(&request).await {
            let (pod, uid, container) = (&self.context.name, &self.context.uid, self.name);
            tracing::warn!(%pod, %uid, container, %error, "HTTPS hook failed over plain HTTP too");
            return Err(plain.into());
        }
        let message = format!(
            "The HTTPS hook of container {} at {} answered in plain HTTP and was asked that way",
            self.name,
            request.authority()
        );
        self.context.node.metrics.http_fallbacks.increment();
        let event = PodEvent::warning("LifecycleHTTPFallback", message);
        self.context.record_events(self.pod, [event]);
        Ok(())
    }
}

/// A sleep that counts as terminated early when it is dropped before its end: its container is killed then, or has no time left.
struct SleepUnderWay<'r> {
    of: &'r HandlerRunner<'r>,
    is_over: bool,
}

impl SleepUnderWay<'_> {
    fn end(mut self) {
        self.is_over = true;
    }
}

impl Drop for SleepUnderWay<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.of.context.node.metrics.sleeps_terminated_early.increment();
        }
    }
}

/// Certificates are not checked: the author of the hook made the server too.
fn http_get(request: &HttpRequest) -> HttpGet {
    HttpGet {
        scheme: if request.tls { Scheme::Https } else { Scheme::Http },
        host: request.host.clone(),
        port: request.port,
        path_and_query: request.path_and_query.clone(),
        headers: request.headers.clone(),
        timeout: TIMEOUT,
        // That there is an answer is all there is to know.
        body_limit: 0,
        trust: Trust::AnyCertificate,
    }
}
