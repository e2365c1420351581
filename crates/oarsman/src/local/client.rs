//! The commands' side of the socket.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use oarsman_core::report::NodeReport;
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::address::Address;
use super::{REPORT, Refusal, STOP, StopRequest};

/// An agent that lives answers in a moment.
const PATIENCE: Duration = Duration::from_secs(10);
/// No node knows more, in bytes.
const LONGEST_ANSWER: usize = 256 * 1024 * 1024;

/// Asks the agent of one root directory.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    root: PathBuf,
}

/// Why an agent gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Silence {
    /// None is there.
    #[error("no agent answers in {0}")]
    Nobody(PathBuf),
    /// It does not talk to everybody.
    #[error("the agent in {0} answers root only: run this as root")]
    Forbidden(PathBuf),
    /// It will not.
    #[error("{0}")]
    Refused(String),
    /// Something else is wrong.
    #[error("cannot ask the agent in {0}: {1}")]
    Other(PathBuf, String),
}

impl Client {
    /// For the agent with that root directory.
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// What the agent knows.
    pub(crate) async fn report(&self) -> Result<NodeReport, Silence> {
        let answer = self.ask(Method::GET, REPORT, Bytes::new()).await?;
        serde_json::from_slice(&answer).map_err(|error| self.other(&error))
    }

    /// Asks it to stop pods. They are not gone when this returns.
    pub(crate) async fn stop(&self, request: &StopRequest) -> Result<(), Silence> {
        let body = serde_json::to_vec(request).map_err(|error| self.other(&error))?;
        self.ask(Method::POST, STOP, body.into()).await.map(drop)
    }

    async fn ask(&self, method: Method, what: &str, body: Bytes) -> Result<Bytes, Silence> {
        let talk = timeout(PATIENCE, self.talk(method, what, body)).await;
        let late = |_| Err(self.other(&format!("no answer within {PATIENCE:?}")));
        let (status, answer) = talk.unwrap_or_else(late)?;
        match status {
            StatusCode::OK | StatusCode::ACCEPTED => Ok(answer),
            StatusCode::FORBIDDEN => Err(Silence::Forbidden(self.root.clone())),
            status => Err(Silence::Refused(
                serde_json::from_slice(&answer)
                    .map_or_else(|_| format!("it answered {status}"), |Refusal { error }| error),
            )),
        }
    }

    async fn talk(
        &self,
        method: Method,
        what: &str,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), Silence> {
        let socket = Address::below(&self.root).map_err(|error| self.unheard(&error))?;
        let stream =
            UnixStream::connect(socket.path()).await.map_err(|error| self.unheard(&error))?;
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

    /// What a socket that does not let us in tells.
    fn unheard(&self, error: &io::Error) -> Silence {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                Silence::Nobody(self.root.clone())
            }
            io::ErrorKind::PermissionDenied => Silence::Forbidden(self.root.clone()),
            _ => self.other(error),
        }
    }

    fn other(&self, error: &(impl std::fmt::Display + ?Sized)) -> Silence {
        Silence::Other(self.root.clone(), error.to_string())
    }
}
