//! A log on its way to a client: read piece by piece on threads for blocking work, and sent without holding one.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use oarsman_core::ids::FullName;
use oarsman_core::log_request::is_log_complete;
use oarsman_host::inotify::DirectoryChanges;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::limits::{LogLimits, LogPermit};
use crate::host_interface::{HostInterface, LogDirectory};
use crate::logs::{LogFollower, LogPrinter, ReadProgress};

/// How often it is looked whether the container runs still.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Whose log it is that is followed.
pub(super) struct FollowedContainer {
    pub(super) host: Arc<dyn HostInterface>,
    pub(super) pod: FullName,
    pub(super) container: String,
    pub(super) start: u32,
    pub(super) log_directory: LogDirectory,
}

impl FollowedContainer {
    fn has_ended(&self) -> bool {
        let pod = self.host.pod(&self.pod);
        pod.is_none_or(|pod| is_log_complete(pod.status(), &self.container, self.start))
    }
}

/// A log on its way.
pub(super) struct LogResponse {
    follower: LogFollower,
    printer: LogPrinter,
    output: LimitedBuffer,
}

impl LogResponse {
    /// Not more than `limit` bytes of it.
    pub(super) fn new(follower: LogFollower, printer: LogPrinter, limit: Option<u64>) -> Self {
        Self { follower, printer, output: LimitedBuffer { bytes: Vec::new(), left: limit } }
    }

    /// Reads a piece into the buffer.
    fn read(&mut self, is_over: bool) -> io::Result<ReadProgress> {
        let Self { follower, printer, output } = self;
        // Both streams go the same way.
        follower.read_start(is_over, &mut |line| printer.print_joined(line, output))
    }
}

/// Why a log is sent no further.
enum LogEnd {
    /// All was sent that was asked for.
    Complete,
    /// The client has gone.
    ClientGone,
    Failed(io::Error),
}

/// Sends a log to its end. It ends with its client, too: a connection that takes nothing for long is closed.
pub(super) async fn send(
    log: LogResponse,
    follow: Option<FollowedContainer>,
    permit: LogPermit,
    sender: mpsc::Sender<io::Result<Bytes>>,
) {
    let limits = Arc::clone(permit.limits());
    if let LogEnd::Failed(error) = send_all(log, follow, &limits, &sender).await {
        tracing::debug!(pod = %permit.pod(), %error, "container log not sent to its end");
        sender.send(Err(error)).await.ok();
    }
}

async fn send_all(
    mut log: LogResponse,
    follow: Option<FollowedContainer>,
    limits: &LogLimits,
    sender: &mpsc::Sender<io::Result<Bytes>>,
) -> LogEnd {
    let mut changes = follow.as_ref().and_then(|followed| {
        limits.inotify().and_then(|inotify| inotify.watch(&followed.log_directory.0).ok())
    });
    loop {
        // Whether it is over is asked before the last reading, so that nothing is written after that.
        let over = follow.as_ref().is_none_or(FollowedContainer::has_ended);
        log = match send_what_is_there(log, over, limits, sender).await {
            Ok(log) => log,
            Err(end) => return end,
        };
        if over {
            return LogEnd::Complete;
        }
        tokio::select! {
            () = changed_or_never(&mut changes) => {}
            () = sleep(POLL_INTERVAL) => {}
            () = sender.closed() => return LogEnd::ClientGone,
        }
    }
}

async fn changed_or_never(changes: &mut Option<DirectoryChanges>) {
    match changes {
        Some(changes) => changes.changed().await,
        None => std::future::pending().await,
    }
}

/// Sends piece by piece, and looks between any two whether the client is still there.
async fn send_what_is_there(
    mut log: LogResponse,
    over: bool,
    limits: &LogLimits,
    sender: &mpsc::Sender<io::Result<Bytes>>,
) -> Result<LogResponse, LogEnd> {
    loop {
        let read = limits.read(move || {
            let read = log.read(over);
            (log, read)
        });
        let (back, read) = read.await.map_err(LogEnd::Failed)?;
        log = back;
        let piece = Bytes::from(std::mem::take(&mut log.output.bytes));
        if sender.is_closed() || (!piece.is_empty() && sender.send(Ok(piece)).await.is_err()) {
            return Err(LogEnd::ClientGone);
        }
        match read {
            Ok(ReadProgress::More) => {}
            Ok(ReadProgress::CaughtUp) => return Ok(log),
            Err(_) if log.output.left == Some(0) => return Err(LogEnd::Complete),
            Err(error) => return Err(LogEnd::Failed(error)),
        }
    }
}

/// Takes not more than was asked for.
struct LimitedBuffer {
    bytes: Vec<u8>,
    left: Option<u64>,
}

impl Write for LimitedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let most = self.left.map_or(bytes.len(), |left| {
            bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX))
        });
        if most == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.bytes.extend_from_slice(&bytes[..most]);
        let written = u64::try_from(most).unwrap_or_default();
        self.left = self.left.map(|left| left.saturating_sub(written));
        Ok(most)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
