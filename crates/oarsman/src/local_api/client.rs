//! The client of the local socket, which the commands use.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use oarsman_core::report::NodeReport;
use oarsman_core::stats::StatsSummary;
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::{ErrorBody, REPORT, SOCKET, STATS, STOP, StopRequest};
use crate::socket_path::SocketPath;

/// An agent that runs answers at once.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// The longest answer that is read, in bytes: more than the report of any node.
const LONGEST_ANSWER: usize = 256 * 1024 * 1024;

/// The client of the agent of one root directory.
#[derive(Clone, Debug)]
pub(crate) struct LocalClient {
    root: PathBuf,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// No agent runs with this root directory.
    #[error("no agent answers in {0}")]
    NotRunning(PathBuf),
    /// The socket is for root only.
    #[error("the agent in {0} answers root only: run this as root")]
    Forbidden(PathBuf),
    /// The agent refused the request.
    #[error("{0}")]
    Refused(String),
    /// Any other failure.
    #[error("cannot ask the agent in {0}: {1}")]
    Other(PathBuf, String),
}

impl LocalClient {
    /// For the agent with that root directory.
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// The agent's report.
    pub(crate) async fn report(&self) -> Result<NodeReport, ClientError> {
        let answer = self.request(Method::GET, REPORT, Bytes::new()).await?;
        serde_json::from_slice(&answer).map_err(|error| self.other(&error))
    }

    /// CPU time and memory of the node and its pods, measured now.
    pub(crate) async fn stats(&self) -> Result<StatsSummary, ClientError> {
        let answer = self.request(Method::GET, STATS, Bytes::new()).await?;
        serde_json::from_slice(&answer).map_err(|error| self.other(&error))
    }

    /// Asks the agent to stop pods. They are not gone yet when this returns.
    pub(crate) async fn stop(&self, request: &StopRequest) -> Result<(), ClientError> {
        let body = serde_json::to_vec(request).map_err(|error| self.other(&error))?;
        self.request(Method::POST, STOP, body.into()).await.map(drop)
    }

    async fn request(&self, method: Method, what: &str, body: Bytes) -> Result<Bytes, ClientError> {
        let talk = timeout(MAX_WAIT, self.send(method, what, body)).await;
        let late = |_| Err(self.other(&format!("no answer within {MAX_WAIT:?}")));
        let (status, answer) = talk.unwrap_or_else(late)?;
        match status {
            StatusCode::OK | StatusCode::ACCEPTED => Ok(answer),
            StatusCode::FORBIDDEN => Err(self.forbidden()),
            status => Err(ClientError::Refused(
                serde_json::from_slice(&answer)
                    .map_or_else(|_| format!("it answered {status}"), |ErrorBody { error }| error),
            )),
        }
    }

    async fn send(
        &self,
        method: Method,
        what: &str,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), ClientError> {
        let socket = self.socket()?;
        let stream =
            UnixStream::connect(socket.path()).await.map_err(|error| self.connect_error(&error))?;
        let other = |error: &dyn std::fmt::Display| self.other(error);
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| other(&error))?;
        let connection = tokio::spawn(connection);
        let request = Request::builder().method(method).uri(what).header("Host", "localhost");
        let request = request.body(Full::new(body)).map_err(|error| other(&error))?;
        let answer = sender.send_request(request).await.map_err(|error| other(&error))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), LONGEST_ANSWER).collect().await;
        connection.abort();
        Ok((status, body.map_err(|error| other(&error))?.to_bytes()))
    }

    pub(super) fn socket(&self) -> Result<SocketPath, ClientError> {
        SocketPath::of(&self.root, SOCKET).map_err(|error| self.connect_error(&error))
    }

    pub(super) fn forbidden(&self) -> ClientError {
        ClientError::Forbidden(self.root.clone())
    }

    /// Why the socket could not be connected.
    pub(super) fn connect_error(&self, error: &io::Error) -> ClientError {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                ClientError::NotRunning(self.root.clone())
            }
            io::ErrorKind::PermissionDenied => ClientError::Forbidden(self.root.clone()),
            _ => self.other(error),
        }
    }

    pub(super) fn other(&self, error: &(impl std::fmt::Display + ?Sized)) -> ClientError {
        ClientError::Other(self.root.clone(), error.to_string())
    }
}
