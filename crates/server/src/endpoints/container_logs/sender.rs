//! A log on its way to a client: read piece by piece on threads for blocking work, and sent without holding one.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::log_request::is_log_complete;
use oarsman_core::pod::PodExt;
use oarsman_host::inotify::DirectoryChanges;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::limits::{LogLimits, LogPermit};
use crate::host_interface::{HostInterface, LogDirectory};
use crate::logs::{LogFollower, LogPrinter, ReadProgress, files};

/// How often it is looked whether the container runs still.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// What is written soon after a write is read together with it: a container that writes byte by byte costs no read for each.
const COALESCE_INTERVAL: Duration = Duration::from_millis(50);

/// Whose log it is that is followed.
pub(super) struct FollowedContainer {
    pub(super) host: Arc<dyn HostInterface>,
    pub(super) pod: FullName,
    pub(super) uid: PodUid,
    pub(super) container: String,
    pub(super) start: u32,
    pub(super) log_directory: LogDirectory,
}

impl FollowedContainer {
    fn has_ended(&self) -> bool {
        let pod = self.host.pod(&self.pod).filter(|pod| pod.pod.uid() == self.uid);
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
    let end = tokio::select! {
        end = send_all(log, follow, &limits, &sender) => end,
        () = permit.revoked() => LogEnd::Failed(io::Error::other("too many logs are read")),
    };
    if let LogEnd::Failed(error) = end {
        tracing::debug!(pod = %permit.pod(), %error, "container log not sent to its end");
        // The place is free at once: a client that takes nothing is told when it does.
        drop(permit);
        sender.send(Err(error)).await.ok();
    }
}

async fn send_all(
    mut log: LogResponse,
    follow: Option<FollowedContainer>,
    limits: &LogLimits,
    sender: &mpsc::Sender<io::Result<Bytes>>,
) -> LogEnd {
    let mut changes = match &follow {
        Some(followed) => changes_in(&followed.log_directory, limits).await,
        None => None,
    };
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
            () = changed_or_never(&mut changes) => sleep(COALESCE_INTERVAL).await,
            () = sleep(POLL_INTERVAL) => {}
            () = sender.closed() => return LogEnd::ClientGone,
        }
    }
}

/// The directory is opened where it may take long; what has its path later is not watched.
async fn changes_in(directory: &LogDirectory, limits: &LogLimits) -> Option<DirectoryChanges> {
    let (inotify, directory) = (limits.inotify()?, directory.0.clone());
    let opened = limits.read(move || files::open_directory(&directory)).await;
    inotify.watch(&opened.flatten().ok()?).ok()
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
