//! A socket in a temporary directory, servers on it, and clients of it.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use oarsman_cri::{Deadlines, RemoteRuntime, Runtime, ServeError, serve};
use tempfile::TempDir;
use tokio::net::UnixListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::transport::Server;

/// A temporary directory with a socket.
pub(crate) struct SocketFixture {
    _dir: TempDir,
    path: PathBuf,
}

impl SocketFixture {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cri.sock");
        Self { _dir: dir, path }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("unix://{}", self.path.display())
    }

    pub(crate) fn client(&self) -> RemoteRuntime {
        RemoteRuntime::new(&self.endpoint(), None, Deadlines::default()).unwrap()
    }

    /// Serves a runtime here, in place of any earlier server.
    pub(crate) fn serve(&self, runtime: Arc<dyn Runtime>) -> RunningServer {
        let stop = CancellationToken::new();
        let serving = serve(runtime, self.listen(), stop.clone().cancelled_owned());
        RunningServer { stop, task: tokio::spawn(serving) }
    }

    /// Serves raw HTTP here, for answers that no runtime of ours would give.
    pub(crate) fn serve_raw<F>(&self, answer: impl Fn(Request<Body>) -> F + Clone + Send + 'static)
    where
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        let service = tower::service_fn(move |request| {
            let answered = answer(request);
            async move { Ok::<_, std::convert::Infallible>(answered.await) }
        });
        let incoming = tokio_stream::wrappers::UnixListenerStream::new(self.listen());
        tokio::spawn(Server::builder().serve_with_incoming(service, incoming));
    }

    fn listen(&self) -> UnixListener {
        let _nothing_there = std::fs::remove_file(&self.path);
        UnixListener::bind(&self.path).unwrap()
    }
}

/// A server under way.
pub(crate) struct RunningServer {
    stop: CancellationToken,
    task: JoinHandle<Result<(), ServeError>>,
}

impl RunningServer {
    /// Asks the server to stop and waits until it has.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        with_timeout(self.task).await.unwrap().unwrap();
    }

    /// Drops the server in the middle of whatever it does.
    pub(crate) async fn kill(self) {
        self.task.abort();
        assert!(with_timeout(self.task).await.unwrap_err().is_cancelled());
    }
}

/// Fails if the future takes longer than any machine should need.
pub(crate) async fn with_timeout<T>(future: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(600);
    tokio::time::timeout(limit, future).await.expect("in time")
}
