//! A streaming connection within this process.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};
use tokio_util::task::AbortOnDropHandle;

/// Bytes that either side may be behind.
const BUFFER: usize = 64 << 10;

/// What a session is about, and so which protocol is spoken on it: the runtime behaves as a server of SPDY/3.1 after the upgrade, with
/// this subprotocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionPurpose {
    /// A command, or the first process of a container: `v4.channel.k8s.io`.
    Command {
        /// Whether its input is the client's.
        stdin: bool,
        /// Whether the client gets its output.
        stdout: bool,
        /// Whether the client gets its error output apart.
        stderr: bool,
        /// Whether it has a terminal.
        tty: bool,
    },
    /// Ports of a sandbox: `portforward.k8s.io`.
    PortForward {
        /// Those that the caller has named; a client may name others.
        ports: Vec<u16>,
    },
}

impl SessionPurpose {
    /// The subprotocol that is spoken, as clients offer it.
    pub fn subprotocol(&self) -> &'static str {
        match self {
            Self::Command { .. } => "v4.channel.k8s.io",
            Self::PortForward { .. } => "portforward.k8s.io",
        }
    }
}

type Serve = Box<dyn FnOnce(DuplexStream) -> BoxFuture<'static, ()> + Send>;

/// A connection that the runtime is ready to serve. Nothing is begun before it is opened, which can be done once.
#[derive(Clone)]
pub struct StreamingSession {
    purpose: Arc<SessionPurpose>,
    serve: Arc<Mutex<Option<Serve>>>,
}

impl StreamingSession {
    /// A session that is served by what `serve` makes of the runtime's end.
    pub fn new<F>(
        purpose: SessionPurpose,
        serve: impl FnOnce(DuplexStream) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let serve: Serve = Box::new(move |stream| Box::pin(serve(stream)));
        Self { purpose: Arc::new(purpose), serve: Arc::new(Mutex::new(Some(serve))) }
    }

    /// What it is about.
    pub fn purpose(&self) -> &SessionPurpose {
        &self.purpose
    }

    /// Begins the session, and gives the client's end of it; none when it was opened before.
    pub fn open(&self) -> Option<SessionStream> {
        let serve = self.serve.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let (stream, runtimes_end) = duplex(BUFFER);
        let serving = AbortOnDropHandle::new(tokio::spawn(serve(runtimes_end)));
        Some(SessionStream { stream, _serving: serving })
    }
}

impl fmt::Debug for StreamingSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamingSession").field("purpose", &self.purpose).finish_non_exhaustive()
    }
}

/// Sessions are equal when they are the same one.
impl PartialEq for StreamingSession {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.serve, &other.serve)
    }
}

impl Eq for StreamingSession {}

/// The client's end of a session. It owns the task that serves the other end: a client that goes away ends what the runtime does for it, even
/// where that waits for something else.
#[derive(Debug)]
pub struct SessionStream {
    stream: DuplexStream,
    _serving: AbortOnDropHandle<()>,
}

impl AsyncRead for SessionStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for SessionStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::oneshot;

    use super::*;

    fn ports() -> SessionPurpose {
        SessionPurpose::PortForward { ports: Vec::new() }
    }

    #[tokio::test]
    async fn a_session_is_begun_by_its_opening_and_opened_once() {
        let session = StreamingSession::new(ports(), |mut stream| async move {
            stream.write_all(b"served").await.unwrap();
        });
        let other = session.clone();
        assert_eq!(session, other);
        let mut said = String::new();
        other.open().unwrap().read_to_string(&mut said).await.unwrap();
        assert_eq!(said, "served");
        assert!(session.open().is_none());
    }

    #[tokio::test]
    async fn a_client_that_goes_away_ends_what_is_done_for_it() {
        let (held, ended) = oneshot::channel::<()>();
        let session = StreamingSession::new(ports(), |_stream| async move {
            let _held = held;
            std::future::pending::<()>().await;
        });
        drop(session.open().unwrap());
        // Dropped with the task.
        ended.await.unwrap_err();
    }
}
