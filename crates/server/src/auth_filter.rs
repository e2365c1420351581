//! The filter before every HTTPS endpoint: authenticates and authorizes each request.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use oarsman_cluster::review::Reviewer;
use oarsman_core::access::{ANONYMOUS, attributes};

use crate::authenticator::{AuthenticationError, Authenticator, ClientCertificates};
use crate::authorizer::{AccessDecision, Authorizer};
use crate::connections::ConnectionHandle;
use crate::{AuthenticationSettings, AuthorizationSettings};

/// Authenticates and authorizes each request.
pub(crate) struct AuthFilter {
    authenticator: Authenticator,
    authorizer: Authorizer,
}

impl AuthFilter {
    pub(crate) fn new(
        authentication: &AuthenticationSettings,
        authorization: AuthorizationSettings,
        reviewer: Option<Arc<dyn Reviewer>>,
    ) -> Arc<Self> {
        let who = Authenticator::new(authentication, reviewer.clone());
        Arc::new(Self { authenticator: who, authorizer: Authorizer::new(authorization, reviewer) })
    }
}

/// The name of the user whose request it is, among the extensions of the request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClientUser(Arc<str>);

impl From<&str> for ClientUser {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

/// Adds the filter to a router.
pub(crate) fn with_auth(router: Router, filter: Arc<AuthFilter>) -> Router {
    router.layer(from_fn_with_state(filter, check_access))
}

async fn check_access(
    State(filter): State<Arc<AuthFilter>>,
    mut request: Request,
    next: Next,
) -> Response {
    let certificates =
        request.extensions().get::<ClientCertificates>().cloned().unwrap_or_default();
    let token = bearer_token(&request);
    let handle = request.extensions().get::<ConnectionHandle>().cloned();
    let client = handle.as_ref().map_or(IpAddr::from(Ipv6Addr::UNSPECIFIED), |it| it.address());
    let authenticator = &filter.authenticator;
    let user = match authenticator.authenticate(&certificates, token.as_deref(), client).await {
        Ok(user) => user,
        // A client that is unknown keeps no connection.
        Err(AuthenticationError::Unauthenticated) => {
            let close = [(header::CONNECTION, "close")];
            return (StatusCode::UNAUTHORIZED, close, "Unauthorized").into_response();
        }
        Err(AuthenticationError::Throttled) => return too_many_requests(client),
    };
    let wanted = attributes(request.method().as_str(), request.uri().path());
    match filter.authorizer.authorize(&user, &wanted, client).await {
        AccessDecision::Allowed => {
            if let Some(handle) = handle.filter(|_| user.name != ANONYMOUS) {
                handle.keep(&user.name);
            }
            request.extensions_mut().insert(ClientUser::from(user.name.as_str()));
            next.run(request).await
        }
        AccessDecision::Throttled => too_many_requests(client),
        AccessDecision::Denied => {
            (StatusCode::FORBIDDEN, wanted.forbidden(&user.name)).into_response()
        }
        AccessDecision::Unknown(why) => {
            tracing::debug!(client = user.name, error = why, "request refused");
            let said = format!(
                "Authorization error (user={}, verb={}, resource=nodes, subresource(s)=[{}])",
                user.name,
                wanted.verb,
                wanted.subresources.join(" ")
            );
            (StatusCode::INTERNAL_SERVER_ERROR, said).into_response()
        }
    }
}

/// The API server is asked again when the client asks again.
fn too_many_requests(client: IpAddr) -> Response {
    tracing::debug!(%client, "request refused: too many reviews for its address");
    let headers = [(header::RETRY_AFTER, "1"), (header::CONNECTION, "close")];
    (StatusCode::TOO_MANY_REQUESTS, headers, "too many reviews, try again later").into_response()
}

fn bearer_token(request: &Request) -> Option<String> {
    let value = request.headers().get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then(|| token.to_owned())
}
