//! The embedded runtime's own socket: CRI for kubelets, crictl and other clients, for root only.

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use oarsman_cri::Runtime;
use oarsman_server::SessionUrls;
use oarsman_sync::{TaskName, TaskPanics, restarted};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::socket_path::SocketPath;

/// The name of the socket of an agent in its runtime's directory.
const NAME: &str = "cri.sock";

/// A runtime with a socket to serve it at, which is to be closed in the end.
pub(crate) struct CriServer {
    socket: SocketPath,
    listener: UnixListener,
    runtime: Arc<dyn Runtime>,
    urls: Arc<SessionUrls>,
}

impl CriServer {
    /// Listens. What is at the socket's path is replaced. Sessions of exec and the like get URLs of a port on 127.0.0.1 that is free.
    pub(crate) async fn bind(socket: SocketPath, runtime: Arc<dyn Runtime>) -> Result<Self> {
        let cannot = || format!("cannot make the socket {}", socket.path().display());
        let listener = socket.listen().with_context(cannot)?;
        let urls =
            SessionUrls::bind().await.context("cannot listen on 127.0.0.1 for exec and attach")?;
        let runtime = urls.runtime_with_urls(runtime);
        Ok(Self { socket, listener, runtime, urls })
    }

    /// Serves until `end` is cancelled: then event streams end, and calls under way have a few seconds.
    ///
    /// # Errors
    /// When the socket cannot be served.
    pub(crate) async fn run(&self, end: CancellationToken) -> Result<()> {
        let listener = self.listener.try_clone().and_then(tokio::net::UnixListener::from_std);
        let runtime = Arc::clone(&self.runtime);
        let serving = oarsman_cri::serve(runtime, listener?, end.clone().cancelled_owned());
        let streaming = async {
            Arc::clone(&self.urls).serve(end).await;
            std::future::pending().await
        };
        tokio::select! {
            served = serving => Ok(served?),
            served = streaming => served,
        }
    }

    /// Removes the socket, before another process may listen there.
    pub(crate) fn close(&self) {
        self.socket.remove();
    }
}

/// A runtime is served, and its socket exists, until this is dropped.
pub(crate) struct CriServerTask {
    server: Arc<CriServer>,
    _task: AbortOnDropHandle<()>,
}

impl Drop for CriServerTask {
    fn drop(&mut self) {
        self.server.close();
    }
}

/// Serves a runtime in its directory, which only root may enter and which this agent must have locked, in a task of its own.
pub(crate) async fn serve_in(
    directory: &Path,
    runtime: Arc<dyn Runtime>,
    panics: TaskPanics,
) -> Result<CriServerTask> {
    let socket = SocketPath::of(directory, NAME)
        .with_context(|| format!("cannot make the socket {NAME} in {}", directory.display()))?;
    let server = Arc::new(CriServer::bind(socket, runtime).await?);
    let served = Arc::clone(&server);
    let task = restarted(TaskName::CriServer, panics, move || {
        let server = Arc::clone(&served);
        async move {
            // It is dropped when it is to end.
            if let Err(error) = server.run(CancellationToken::new()).await {
                let error = format!("{error:#}");
                tracing::error!(
                    task = "cri server",
                    error,
                    "CRI not served, crictl does not reach the embedded runtime"
                );
            }
        }
    });
    Ok(CriServerTask { server, _task: AbortOnDropHandle::new(tokio::spawn(task)) })
}
