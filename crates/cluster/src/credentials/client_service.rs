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

use super::connection_pools::{ConnectionPools, TrackedBody};
use super::connector::Connector;
use super::kubeconfig::ApiAccess;
use super::{CredentialsError, Result};

/// How long requests in flight may take to end after the identity was replaced.
const DRAIN_TIME: Duration = Duration::from_secs(30);

type HttpService = BoxCloneService<Request<Body>, Response<TrackedBody>, BoxError>;

/// The current service, or none yet.
#[derive(Clone, Default)]
pub(super) struct ClientService {
    state: Arc<Guarded<ClientServiceState>>,
}

#[derive(Default)]
struct ClientServiceState {
    service: Option<HttpService>,
    cut: CancellationToken,
    /// Why there is none.
    none: String,
}

impl fmt::Debug for ClientService {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Switch")
            .field("is_open", &self.state.lock().service.is_some())
            .finish()
    }
}

impl ClientService {
    /// A client over this service.
    pub(super) fn client(&self) -> kube::Client {
        kube::Client::new(self.clone(), "default")
    }

    /// Removes the service; requests fail with `why`.
    pub(super) fn set_unavailable(&self, why: &str) {
        let mut state = self.state.lock();
        (state.service, state.none) = (None, why.to_owned());
    }

    /// Uses this identity for new requests. The returned token closes the connections of the old one.
    pub(super) fn set_identity(&self, access: &ApiAccess) -> Result<CancellationToken> {
        let cut = CancellationToken::new();
        let service = build_service(access, cut.clone())?;
        let mut state = self.state.lock();
        state.service = Some(service);
        Ok(std::mem::replace(&mut state.cut, cut))
    }
}

/// Closes the connections of an old identity after requests in flight have had time to end.
pub(super) async fn close_after_drain(old: CancellationToken) {
    sleep(DRAIN_TIME).await;
    old.cancel();
}

fn build_service(access: &ApiAccess, cut: CancellationToken) -> Result<HttpService> {
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
    let inner = headers.layer(ConnectionPools::new(connector));
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(authorization)
        .map_err(BoxError::from)
        .service(inner);
    Ok(service.boxed_clone())
}

impl Service<Request<Body>> for ClientService {
    type Response = Response<TrackedBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, std::result::Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let state = self.state.lock();
        match &state.service {
            Some(service) => Box::pin(service.clone().oneshot(request)),
            None => Box::pin(ready(Err(state.none.clone().into()))),
        }
    }
}
