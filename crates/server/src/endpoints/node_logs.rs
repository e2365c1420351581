//! `/logs/`: the files of the node's log directory, and queries of its services' logs.
//!
//! Pods may have the directory mounted and put links, pipes and devices into it. Only regular files are read, and no link is followed.

mod journal;
mod listing;
mod log_file;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use futures::stream::unfold;
use oarsman_core::node_log_query::{
    JournalOptions, NodeLogQuery, NodeLogQueryError, NodeLogTarget,
};
use oarsman_host::beneath::RootDirectory;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::LogLimits;
use crate::node_endpoints::NodeLogSettings;
use crate::query;
use journal::Journal;
use log_file::{FoundLog, LogFileReader};

const PATHS: [&str; 3] = ["/logs", "/logs/", "/logs/{*path}"];
/// Files and queries that are sent at once; each holds a piece of 64 KiB.
const MAX_RESPONSES: usize = 32;
/// Of these, queries, each of which runs a program.
const MAX_QUERIES: usize = 4;

/// What the handlers share.
pub(super) struct NodeLogState {
    directory: PathBuf,
    has_queries: bool,
    reads: Arc<LogLimits>,
    responses: Arc<Semaphore>,
    queries: Arc<Semaphore>,
    journal: Journal,
}

/// The routes; where the handler is switched off, they say so.
pub(super) fn routes(settings: Option<&NodeLogSettings>, reads: &Arc<LogLimits>) -> Router {
    let Some(settings) = settings else {
        let add = |router: Router, path| router.route(path, any(disabled));
        return PATHS.into_iter().fold(Router::new(), add);
    };
    let state = NodeLogState {
        directory: settings.directory.clone(),
        has_queries: settings.query,
        reads: Arc::clone(reads),
        responses: Arc::new(Semaphore::new(MAX_RESPONSES)),
        queries: Arc::new(Semaphore::new(MAX_QUERIES)),
        journal: Journal::of_system(),
    };
    with_state(Arc::new(state))
}

fn with_state(state: Arc<NodeLogState>) -> Router {
    let add = |router: Router<Arc<NodeLogState>>, path| router.route(path, get(serve));
    PATHS.into_iter().fold(Router::new(), add).with_state(state)
}

async fn disabled() -> Response {
    (StatusCode::METHOD_NOT_ALLOWED, "logs endpoint is disabled.\n").into_response()
}

async fn serve(
    State(state): State<Arc<NodeLogState>>,
    uri: Uri,
    RawQuery(query): RawQuery,
) -> Response {
    let path = uri.path().strip_prefix("/logs").unwrap_or_default();
    let asked = query::read(query.as_deref().unwrap_or_default());
    let asked = if state.has_queries { NodeLogQuery::read(&asked) } else { Ok(None) };
    let Some(asked) = (match asked {
        Ok(asked) => asked,
        Err(error) => return refuse(&error),
    }) else {
        return state.send_path(&query::unescaped_path(path)).await;
    };
    if !matches!(path, "" | "/") {
        return (StatusCode::NOT_ACCEPTABLE, "path not allowed in query mode\n").into_response();
    }
    match asked.target {
        NodeLogTarget::File(file) => state.send_path(&file.replace('\\', "/")).await,
        NodeLogTarget::Services(services) => state.send_services(services, asked.options),
    }
}

fn refuse(error: &NodeLogQueryError) -> Response {
    let (status, said) = match error {
        NodeLogQueryError::Malformed(said) => (StatusCode::BAD_REQUEST, said),
        NodeLogQueryError::Invalid(said) => (StatusCode::NOT_ACCEPTABLE, said),
    };
    (status, format!("{said}\n")).into_response()
}

impl NodeLogState {
    /// The file or the list of the directory at that path below the root.
    async fn send_path(self: &Arc<Self>, path: &str) -> Response {
        let Ok(permit) = Arc::clone(&self.responses).try_acquire_owned() else { return busy() };
        let below = PathBuf::from(path.trim_matches('/'));
        let (root, sought) = (self.directory.clone(), below.clone());
        let found = self.reads.read(move || FoundLog::at(&root, &sought)).await;
        match found.flatten() {
            Ok(FoundLog::Directory(names)) => match path.ends_with('/') || path.is_empty() {
                true => listing::page(&names),
                // A browser resolves the links of the list against the path of the directory.
                false => redirect(&format!("{}/", last_part(&below))),
            },
            Ok(FoundLog::File(_)) if path.ends_with('/') => {
                redirect(&format!("../{}", last_part(&below)))
            }
            Ok(FoundLog::File(reader)) => self.send_file(reader, permit),
            Err(error) => not_read(path, &error),
        }
    }

    fn send_file(
        self: &Arc<Self>,
        reader: LogFileReader,
        permit: OwnedSemaphorePermit,
    ) -> Response {
        let kind =
            if reader.is_text() { "text/plain; charset=utf-8" } else { "application/octet-stream" };
        let state = Arc::clone(self);
        let body = body(async move |sender| {
            let sent = reader.send(&state.reads, &sender).await;
            drop(permit);
            if let Err(error) = sent {
                sender.send(Err(error)).await.ok();
            }
        });
        ([(header::CONTENT_TYPE, kind)], body).into_response()
    }

    fn send_services(self: &Arc<Self>, services: Vec<String>, options: JournalOptions) -> Response {
        let permits = Arc::clone(&self.responses)
            .try_acquire_owned()
            .and_then(|one| Ok((one, Arc::clone(&self.queries).try_acquire_owned()?)));
        let Ok(permits) = permits else { return busy() };
        let state = Arc::clone(self);
        let body = body(async move |sender| {
            state.journal.send(&state, services, options, &sender).await;
            drop(permits);
        });
        ([(header::CONTENT_TYPE, "text/plain;charset=UTF-8")], body).into_response()
    }

    /// Opens the first of the files that a service usually writes; none if there is none.
    async fn open_file_of(&self, service: &str) -> io::Result<Option<LogFileReader>> {
        let names =
            [service.to_owned(), format!("{service}.log"), format!("{service}/{service}.log")];
        let root = self.directory.clone();
        let opened = self.reads.read(move || {
            let root = RootDirectory::open(&root)?;
            for name in names {
                let name = Path::new(&name);
                // The directory of a service has its name, too.
                if root.open_directory(name).is_ok() {
                    continue;
                }
                match LogFileReader::open(&root, name) {
                    Ok(reader) => return Ok(Some(reader)),
                    Err(error) if is_absent(&error) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(None)
        });
        opened.await.flatten()
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotADirectory | io::ErrorKind::NotFound)
}

/// What a task sends; it ends with its client.
fn body<F>(send: impl FnOnce(mpsc::Sender<io::Result<Bytes>>) -> F) -> Body
where
    F: Future<Output = ()> + Send + 'static,
{
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(send(sender));
    let pieces = unfold(receiver, async |mut receiver| {
        let piece: io::Result<Bytes> = receiver.recv().await?;
        Some((piece, receiver))
    });
    Body::from_stream(Box::pin(pieces))
}

fn busy() -> Response {
    let headers = [(header::RETRY_AFTER, "1")];
    (StatusCode::TOO_MANY_REQUESTS, headers, "too many node logs are read at once\n")
        .into_response()
}

fn redirect(to: &str) -> Response {
    (StatusCode::MOVED_PERMANENTLY, [(header::LOCATION, listing::escaped_path(to))]).into_response()
}

fn last_part(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn not_read(path: &str, error: &io::Error) -> Response {
    let status = match error.kind() {
        _ if is_absent(error) => StatusCode::NOT_FOUND,
        io::ErrorKind::TimedOut => StatusCode::INTERNAL_SERVER_ERROR,
        // A link, a pipe, a device, or a path that leads out.
        _ => StatusCode::FORBIDDEN,
    };
    (status, format!("the log {path:?} cannot be read: {error}\n")).into_response()
}
