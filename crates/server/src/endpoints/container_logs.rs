//! `/containerLogs`: streams a container's log, and follows it on request.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path as PathOf, RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream::unfold;
use oarsman_core::ids::FullName;
use oarsman_core::log_request::{
    ContainerLogOptions, LogError, is_log_complete, log_restart_count,
};
use oarsman_host::inotify::AsyncInotify;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::EndpointState;
use crate::host_interface::{HostInterface, LogDirectory};
use crate::logs::{LogFollower, LogPrinter, PrintOptions};
use crate::query;

/// Chunks that may wait for the client.
const CHANNEL_CAPACITY: usize = 4;
/// The size of a chunk, in bytes.
const CHUNK_SIZE: usize = 32 * 1024;
/// How often a followed container is checked for its end.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// `/containerLogs/{namespace}/{pod}/{container}`.
pub(super) async fn serve(
    State(endpoint_state): State<Arc<EndpointState>>,
    PathOf((namespace, name, container)): PathOf<(String, String, String)>,
    RawQuery(query): RawQuery,
) -> Response {
    let options =
        match ContainerLogOptions::read(&query::read(query.as_deref().unwrap_or_default())) {
            Ok(options) => options,
            Err(why) => return refuse(&why),
        };
    let full_name = FullName { name, namespace };
    let name = &full_name.name;
    let Some(pod) = endpoint_state.host.pod(&full_name) else {
        return refuse(&LogError::Unknown(format!("pod {name:?} does not exist")));
    };
    let start = match log_restart_count(&pod.pod, pod.status(), &container, options.previous) {
        Ok(start) => start,
        Err(why) => return refuse(&why),
    };
    let place = endpoint_state.host.log_directory(&pod.pod, &container);
    let follower = match LogFollower::at(&place.0, start, options.tail) {
        Ok(follower) => follower,
        Err(error) => {
            let why = format!(
                "the log of container {container:?} in pod {name:?} cannot be read: {error}"
            );
            return refuse(&LogError::Absent(why));
        }
    };
    let (sender, receiver) = mpsc::channel(CHANNEL_CAPACITY);
    let writer = ChunkWriter { sender, chunk: Vec::new(), left: options.limit };
    let style = PrintOptions {
        since: options.since(endpoint_state.clock.wall()),
        prefix: None,
        timestamps: options.timestamps,
    };
    let log = LogResponse { follower, printer: LogPrinter::new(style), writer };
    let host = Arc::clone(&endpoint_state.host);
    let followed =
        FollowedContainer { host, pod: full_name, container, start, log_directory: place };
    // The task ends with its client: sending fails once the client is gone.
    tokio::spawn(send(log, options.follow.then_some(followed)));
    let stream = unfold(receiver, async |mut receiver| {
        let chunk: io::Result<Bytes> = receiver.recv().await?;
        Some((chunk, receiver))
    });
    ([(header::CONTENT_TYPE, "text/plain")], Body::from_stream(Box::pin(stream))).into_response()
}

fn refuse(why: &LogError) -> Response {
    let (status, said) = match why {
        LogError::Invalid(said) => (StatusCode::UNPROCESSABLE_ENTITY, said),
        LogError::Unknown(said) => (StatusCode::NOT_FOUND, said),
        LogError::Absent(said) => (StatusCode::BAD_REQUEST, said),
    };
    (status, said.clone()).into_response()
}

/// The container whose log is followed.
struct FollowedContainer {
    host: Arc<dyn HostInterface>,
    pod: FullName,
    container: String,
    start: u32,
    log_directory: LogDirectory,
}

impl FollowedContainer {
    fn has_ended(&self) -> bool {
        let pod = self.host.pod(&self.pod);
        pod.is_none_or(|pod| is_log_complete(pod.status(), &self.container, self.start))
    }
}

/// A response under way.
struct LogResponse {
    follower: LogFollower,
    printer: LogPrinter,
    writer: ChunkWriter,
}

impl LogResponse {
    /// Sends what the log has by now.
    fn send(&mut self, is_log_complete: bool) -> io::Result<()> {
        let Self { follower, printer, writer } = self;
        // Both streams go into one response.
        let mut each = |line: &[u8]| printer.print_joined(line, writer);
        follower.read_start(is_log_complete, &mut each)?;
        self.writer.flush()
    }
}

async fn send(mut log: LogResponse, follow: Option<FollowedContainer>) {
    let mut listener = None;
    if let Some(followed) = &follow {
        listener = AsyncInotify::watching_writes().ok();
        watch(&mut listener, &followed.log_directory.0);
    }
    loop {
        // Whether the container has ended is read before the last read of its log, so that nothing can be written after that read.
        let over = follow.as_ref().is_none_or(FollowedContainer::has_ended);
        let sent = spawn_blocking(move || {
            let sent = log.send(over);
            (log, sent)
        });
        let Ok((back, sent)) = sent.await else { return };
        log = back;
        match sent {
            Ok(()) if !over => {}
            // The client has as many bytes as it asked for, or is gone.
            Ok(()) => return,
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return,
            Err(error) => {
                log.writer.sender.send(Err(error)).await.ok();
                return;
            }
        }
        tokio::select! {
            () = AsyncInotify::changed_or_never(&mut listener) => {}
            () = sleep(POLL_INTERVAL) => {}
            () = log.writer.sender.closed() => return,
        }
    }
}

fn watch(listener: &mut Option<AsyncInotify>, directory: &Path) {
    if listener.as_mut().is_some_and(|it| it.watch(directory, None).is_err()) {
        *listener = None;
    }
}

/// Sends chunks, up to the number of bytes that was asked for.
struct ChunkWriter {
    sender: mpsc::Sender<io::Result<Bytes>>,
    chunk: Vec<u8>,
    left: Option<u64>,
}

impl Write for ChunkWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let most = self.left.map_or(bytes.len(), |left| {
            bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX))
        });
        if most == 0 && !bytes.is_empty() {
            self.flush()?;
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.chunk.extend_from_slice(&bytes[..most]);
        self.left =
            self.left.map(|left| left.saturating_sub(u64::try_from(most).unwrap_or_default()));
        if self.chunk.len() >= CHUNK_SIZE {
            self.flush()?;
        }
        Ok(most)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let chunk = Bytes::from(std::mem::take(&mut self.chunk));
        self.sender.blocking_send(Ok(chunk)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
