//! Taking connections. Whoever hangs, or sends nonsense, harms nobody but themselves.

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use crate::who::Shown;

/// So many may talk at once; others wait.
const MOST_TALKS: usize = 1024;
/// So long somebody may take to agree on encryption.
const LONGEST_HANDSHAKE: Duration = Duration::from_secs(10);
/// So long somebody may take to say what they want, or to say the next thing.
const SILENCE: Duration = Duration::from_secs(90);
/// In all, as with the Go kubelet: also who follows a log has to come again.
const LONGEST_TALK: Duration = Duration::from_secs(4 * 60 * 60);
/// Nobody needs more for the head of a request, in bytes.
const LARGEST_HEAD: usize = 1 << 20;
/// After a connection that could not be taken: what is short then, is short for a while.
const AFTER_A_FAILURE: Duration = Duration::from_millis(100);

/// One place where we listen.
pub(crate) struct Door {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
}

impl fmt::Debug for Door {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Door").field("listener", &self.listener).finish_non_exhaustive()
    }
}

impl Door {
    pub(crate) fn plain(listener: TcpListener, router: Router) -> Self {
        Self { listener, tls: None, router }
    }

    pub(crate) fn encrypted(listener: TcpListener, tls: TlsAcceptor, router: Router) -> Self {
        Self { listener, tls: Some(tls), router }
    }

    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Takes connections for ever. Each is a task of its own, so that a mistake in one ends that one only.
    pub(crate) async fn serve(self) -> Infallible {
        let mut talks = JoinSet::new();
        loop {
            tokio::select! {
                came = self.listener.accept(), if talks.len() < MOST_TALKS => match came {
                    Ok((stream, _)) => {
                        talks.spawn(talk(stream, self.tls.clone(), self.router.clone()));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "somebody could not be heard at our server");
                        sleep(AFTER_A_FAILURE).await;
                    }
                },
                Some(_) = talks.join_next() => {}
            }
        }
    }
}

async fn talk(tcp: TcpStream, tls: Option<TlsAcceptor>, router: Router) {
    tcp.set_nodelay(true).ok();
    let Some(tls) = tls else { return answer(tcp, Shown::default(), router).await };
    match timeout(LONGEST_HANDSHAKE, tls.accept(tcp)).await {
        Ok(Ok(stream)) => {
            let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
            let shown = Shown(Arc::from(
                chain.iter().map(|it| it.clone().into_owned()).collect::<Vec<_>>(),
            ));
            answer(stream, shown, router).await;
        }
        Ok(Err(error)) => tracing::debug!(%error, "somebody did not agree on encryption"),
        Err(_) => tracing::debug!("somebody did not agree on encryption in time"),
    }
}

async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    shown: Shown,
    router: Router,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(SILENCE).max_buf_size(LARGEST_HEAD);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(shown.clone());
        router.clone().oneshot(request)
    });
    // How it went is the other side's matter: it has had its answer, or will ask again.
    timeout(LONGEST_TALK, http.serve_connection(TokioIo::new(stream), service)).await.ok();
}
