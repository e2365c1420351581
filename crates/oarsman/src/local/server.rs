//! The agent's side of the socket. Whoever hangs, or sends nonsense, harms nobody but themselves.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use oarsman_agent::{Book, latest};
use serde::Serialize;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::address::Address;
use super::away::Absentees;
use super::stopping::{Objection, judge};
use super::{REPORT, Refusal, STOP, StopRequest};

#[cfg(test)]
mod tests;

/// Nobody needs more for a request, in bytes.
const LONGEST_BODY: usize = 64 * 1024;
/// So long somebody may take to say what they want, or to say the next thing.
const SILENCE: Duration = Duration::from_secs(10);
/// After this long they have to come again.
const LONGEST_TALK: Duration = Duration::from_secs(60);
/// So many may talk at once; others wait.
const MOST_TALKS: usize = 32;
/// After a connection that could not be taken: what is short then, is short for a while.
const AFTER_A_FAILURE: Duration = Duration::from_millis(100);

/// What can be done here.
#[derive(Debug)]
pub(crate) struct Desk {
    /// What the agent knows.
    pub(crate) book: Arc<Book>,
    /// Who is asked to stop.
    pub(crate) away: latest::Sender<Absentees>,
    /// Done when the agent is asked to take its pods down and to end.
    pub(crate) leave: CancellationToken,
}

/// The socket is there, and is answered, until this is dropped.
#[derive(Debug)]
pub(crate) struct Served {
    socket: Address,
    answering: AbortHandle,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.answering.abort();
        // When it is gone already, so much the better; one that stays is replaced by the next agent.
        fs::remove_file(self.socket.path()).ok();
    }
}

/// Answers at the socket in an agent's root directory, which must be locked: a socket that is there then is a dead agent's.
pub(crate) fn serve(root: &Path, desk: Desk) -> Result<Served> {
    let cannot = || format!("cannot make the socket for commands in {}", root.display());
    let socket = Address::below(root).with_context(cannot)?;
    let listener = listen(socket.path()).with_context(cannot)?;
    let router = router(Arc::new(desk));
    let answering = tokio::spawn(answer(listener, router)).abort_handle();
    Ok(Served { socket, answering })
}

fn listen(path: &Path) -> io::Result<UnixListener> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    // Whoever came in between is looked at all the same.
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Takes connections for ever. Each is a task of its own, so that a mistake in one ends that one only.
async fn answer(listener: UnixListener, router: Router) {
    let mut talks = JoinSet::new();
    loop {
        tokio::select! {
            came = listener.accept(), if talks.len() < MOST_TALKS => match came {
                Ok((stream, _)) => drop(talks.spawn(talk(stream, router.clone()))),
                Err(error) => {
                    tracing::warn!(%error, "somebody could not be heard at the local socket");
                    sleep(AFTER_A_FAILURE).await;
                }
            },
            Some(_) = talks.join_next() => {}
        }
    }
}

async fn talk(stream: UnixStream, router: Router) {
    let router = if may_ask(&stream) { router } else { Router::new().fallback(forbidden) };
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(SILENCE);
    let service = TowerToHyperService::new(router);
    // How it went is the other side's matter: it has had its answer, or will ask again.
    timeout(LONGEST_TALK, http.serve_connection(TokioIo::new(stream), service)).await.ok();
}

/// Root, and whoever the agent is.
fn may_ask(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| is_trusted(peer.uid(), own))
}

fn is_trusted(peer: u32, own: u32) -> bool {
    peer == 0 || peer == own
}

fn router(desk: Arc<Desk>) -> Router {
    Router::new()
        .route(REPORT, get(report))
        .route(STOP, post(stop))
        .fallback(nothing_here)
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .with_state(desk)
}

async fn report(State(desk): State<Arc<Desk>>) -> Response {
    json(StatusCode::OK, &desk.book.report())
}

async fn stop(State(desk): State<Arc<Desk>>, body: Bytes) -> Response {
    let request: StopRequest = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(error) => return refuse(StatusCode::BAD_REQUEST, &format!("not a request: {error}")),
    };
    match judge(&desk.book.report(), &request) {
        Ok(None) => desk.leave.cancel(),
        Ok(Some(names)) => desk.away.send_modify(|away| away.extend(names)),
        Err(Objection::Senseless(why)) => return refuse(StatusCode::BAD_REQUEST, &why),
        Err(Objection::Unknown(why)) => return refuse(StatusCode::NOT_FOUND, &why),
        Err(Objection::NotByAsking(why)) => return refuse(StatusCode::CONFLICT, &why),
    }
    json(StatusCode::ACCEPTED, &request)
}

async fn nothing_here() -> Response {
    let there = format!("there is nothing here; ask for {REPORT} or {STOP}");
    refuse(StatusCode::NOT_FOUND, &there)
}

async fn forbidden() -> Response {
    refuse(StatusCode::FORBIDDEN, "only root and the agent's own user may ask")
}

fn refuse(status: StatusCode, error: &str) -> Response {
    json(status, &Refusal { error: error.to_owned() })
}

fn json(status: StatusCode, what: &impl Serialize) -> Response {
    match serde_json::to_vec(what) {
        Ok(text) => (status, [(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
