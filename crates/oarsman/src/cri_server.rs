//! The embedded runtime's own socket: CRI for crictl and other clients, for root only.

use std::io;
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

/// The name of the socket in the runtime's directory.
const NAME: &str = "cri.sock";

/// The socket exists, and is served, until this is dropped.
#[derive(Debug)]
pub(crate) struct CriServer {
    socket: SocketPath,
    _task: AbortOnDropHandle<()>,
}

impl Drop for CriServer {
    fn drop(&mut self) {
        self.socket.remove();
    }
}

/// Serves a runtime in its directory, which only root may enter and which this agent must have locked. Its sessions get URLs of a port on
/// 127.0.0.1 that is free.
pub(crate) async fn serve(
    directory: &Path,
    runtime: Arc<dyn Runtime>,
    panics: TaskPanics,
) -> Result<CriServer> {
    let cannot = || format!("cannot make the socket {NAME} in {}", directory.display());
    let socket = SocketPath::of(directory, NAME).with_context(cannot)?;
    let listener = Arc::new(socket.listen().with_context(cannot)?);
    let urls =
        SessionUrls::bind().await.context("cannot listen on 127.0.0.1 for exec and attach")?;
    let runtime = urls.runtime_with_urls(runtime);
    let task = restarted(TaskName::CriServer, panics, move || {
        let (runtime, listener) = (Arc::clone(&runtime), Arc::clone(&listener));
        let streaming = Arc::clone(&urls).serve(CancellationToken::new());
        async move {
            let served = tokio::select! {
                served = run(runtime, &listener) => served,
                () = streaming => Ok(()),
            };
            if let Err(error) = served {
                let error = format!("{error:#}");
                tracing::error!(
                    task = "cri server",
                    error,
                    "CRI not served, crictl does not reach the embedded runtime"
                );
            }
        }
    });
    Ok(CriServer { socket, _task: AbortOnDropHandle::new(tokio::spawn(task)) })
}

async fn run(runtime: Arc<dyn Runtime>, listener: &UnixListener) -> Result<()> {
    let listener: io::Result<_> = listener.try_clone().and_then(tokio::net::UnixListener::from_std);
    // It is dropped when it is to end.
    let never = CancellationToken::new().cancelled_owned();
    Ok(oarsman_cri::serve(runtime, listener?, never).await?)
}
