//! The tasks of a connection's streams, and when one of them has to go.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use hyper::rt::Executor;
use oarsman_sync::Guarded;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};

/// What of a body is given to the connection at a time: what a client does not take waits there.
const PIECE_BYTES: usize = 16 * 1024;

tokio::task_local! {
    static PROGRESS: Arc<StreamProgress>;
}

/// Runs the streams of one connection, each in a task of its own.
#[derive(Clone, Debug)]
pub(super) struct StreamExecutor {
    streams: Arc<watch::Sender<StreamCount>>,
    cancelled: CancellationToken,
    write_timeout: Duration,
}

#[derive(Clone, Copy, Debug)]
struct StreamCount {
    open: usize,
    /// Whether there was one at all.
    had_any: bool,
    /// When the last one ended, or the connection began.
    idle_since: Instant,
}

impl StreamExecutor {
    pub(super) fn new(write_timeout: Duration) -> Self {
        let count = StreamCount { open: 0, had_any: false, idle_since: Instant::now() };
        let streams = Arc::new(watch::Sender::new(count));
        Self { streams, cancelled: CancellationToken::new(), write_timeout }
    }

    /// Ends all streams when the guard is dropped.
    pub(super) fn cancel_on_drop(&self) -> DropGuard {
        self.cancelled.clone().drop_guard()
    }

    /// Waits until there was no stream for so long: none at all from the beginning, or none any more.
    pub(super) async fn idle(&self, first: Duration, later: Duration) {
        let mut streams = self.streams.subscribe();
        loop {
            let StreamCount { open, had_any, idle_since } = *streams.borrow_and_update();
            let until = idle_since + if had_any { later } else { first };
            tokio::select! {
                () = sleep_until(until), if open == 0 => return,
                // The sender is this executor's own.
                _ = streams.changed() => {}
            }
        }
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for StreamExecutor {
    fn execute(&self, stream: F) {
        let (open, cancelled, limit) =
            (OpenStream::new(&self.streams), self.cancelled.clone(), self.write_timeout);
        let progress = Arc::new(StreamProgress::default());
        tokio::spawn(async move {
            let answered = PROGRESS.scope(Arc::clone(&progress), stream);
            // A stream that is dropped before its end is reset.
            tokio::select! {
                () = answered => {}
                () = progress.stalled(limit) => {
                    tracing::debug!("stream reset: its client takes nothing");
                }
                () = cancelled.cancelled() => {}
            }
            drop(open);
        });
    }
}

/// Counts a stream until it is dropped.
struct OpenStream(Arc<watch::Sender<StreamCount>>);

impl OpenStream {
    fn new(streams: &Arc<watch::Sender<StreamCount>>) -> Self {
        streams.send_modify(|count| {
            count.open += 1;
            count.had_any = true;
        });
        Self(Arc::clone(streams))
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.send_modify(|count| {
            count.open -= 1;
            count.idle_since = Instant::now();
        });
    }
}

/// Since when a client takes nothing of a stream's body; none while the body itself has nothing.
#[derive(Debug, Default)]
pub(super) struct StreamProgress(Guarded<Option<Instant>>);

impl StreamProgress {
    /// That of the stream whose task this is.
    pub(super) fn current() -> Option<Arc<Self>> {
        PROGRESS.try_with(Arc::clone).ok()
    }

    /// Waits until the client takes nothing for so long.
    async fn stalled(&self, limit: Duration) {
        loop {
            let since = self.0.lock().unwrap_or_else(Instant::now);
            sleep_until(since + limit).await;
            if self.0.lock().is_some_and(|since| since.elapsed() >= limit) {
                return;
            }
        }
    }
}

/// A body in small pieces, which tells when it is asked for more.
pub(super) struct ProgressBody {
    body: Body,
    /// What is left of a larger piece.
    left: Bytes,
    progress: Arc<StreamProgress>,
}

impl ProgressBody {
    pub(super) fn new(body: Body, progress: Arc<StreamProgress>) -> Self {
        // The head is on its way: it is the client's turn.
        *progress.0.lock() = Some(Instant::now());
        Self { body, left: Bytes::new(), progress }
    }

    fn next_piece(&mut self) -> Frame<Bytes> {
        let piece = self.left.split_to(self.left.len().min(PIECE_BYTES));
        // A copy does not hold the rest.
        Frame::data(Bytes::copy_from_slice(&piece))
    }
}

impl HttpBody for ProgressBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        *self.progress.0.lock() = None;
        let frame = if self.left.is_empty() {
            ready!(Pin::new(&mut self.body).poll_frame(context))
        } else {
            Some(Ok(self.next_piece()))
        };
        let frame = frame.map(|frame| {
            frame.map(|frame| match frame.into_data() {
                Ok(data) if data.len() > PIECE_BYTES => {
                    self.left = data;
                    self.next_piece()
                }
                Ok(data) => Frame::data(data),
                Err(other) => other,
            })
        });
        *self.progress.0.lock() = frame.is_some().then(Instant::now);
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.left.is_empty() { self.body.size_hint() } else { SizeHint::default() }
    }
}
