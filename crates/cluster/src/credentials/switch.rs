//! The HTTP service under the agent's client; it can be replaced while the client stays the same.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::{BoxFuture, ready};
use hyper::{Request, Response};
use kube::client::{Body, ConfigExt};
use oarsman_sync::Guarded;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tower::util::BoxCloneService;
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt};

use super::connector::Connector;
use super::kubeconfig::Access;
use super::lanes::{Answer, Lanes};
use super::{CredentialsError, Result};

/// How long requests in flight may take to end after the identity was replaced.
const LAST_WORDS: Duration = Duration::from_secs(30);

type Way = BoxCloneService<Request<Body>, Response<Answer>, BoxError>;

/// The current service, or none yet.
#[derive(Clone, Default)]
pub(super) struct Switch {
    state: Arc<Guarded<State>>,
}

#[derive(Default)]
struct State {
    way: Option<Way>,
    cut: CancellationToken,
    /// Why there is none.
    none: String,
}

impl fmt::Debug for Switch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Switch").field("is_open", &self.state.lock().way.is_some()).finish()
    }
}

impl Switch {
    /// A client over this service.
    pub(super) fn client(&self) -> kube::Client {
        kube::Client::new(self.clone(), "default")
    }

    /// Removes the service; requests fail with `why`.
    pub(super) fn close(&self, why: &str) {
        let mut state = self.state.lock();
        (state.way, state.none) = (None, why.to_owned());
    }

    /// Uses this identity for new requests. The returned token closes the connections of the old one.
    pub(super) fn turn_to(&self, access: &Access) -> Result<CancellationToken> {
        let cut = CancellationToken::new();
        let way = way(access, cut.clone())?;
        let mut state = self.state.lock();
        state.way = Some(way);
        Ok(std::mem::replace(&mut state.cut, cut))
    }
}

/// Closes the connections of an old identity after requests in flight have had time to end.
pub(super) async fn close_in_time(old: CancellationToken) {
    sleep(LAST_WORDS).await;
    old.cancel();
}

fn way(access: &Access, cut: CancellationToken) -> Result<Way> {
    let config = &access.config;
    let wrong = |why: kube::Error| {
        let why = format!("{why}; see the user and the cluster of its current context");
        CredentialsError::Unusable { file: access.file.clone(), why }
    };
    // A new configuration each time: resumed TLS sessions would have the old identity.
    let mut tls = config.rustls_client_config().map_err(wrong)?;
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let connector = Connector::new(Arc::new(tls), config.tls_server_name.clone(), cut);
    let authorization = config.auth_layer().map_err(wrong)?;
    let headers = config.extra_headers_layer().map_err(wrong)?;
    let inner = headers.layer(Lanes::new(connector));
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(authorization)
        .map_err(BoxError::from)
        .service(inner);
    Ok(service.boxed_clone())
}

impl Service<Request<Body>> for Switch {
    type Response = Response<Answer>;
    type Error = BoxError;
    type Future = BoxFuture<'static, std::result::Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let state = self.state.lock();
        match &state.way {
            Some(way) => Box::pin(way.clone().oneshot(request)),
            None => Box::pin(ready(Err(state.none.clone().into()))),
        }
    }
}
