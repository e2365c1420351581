//! The filter before every HTTPS endpoint: authenticates and authorizes each request.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use oarsman_cluster::review::Reviewer;
use oarsman_core::access::attributes;

use crate::authenticator::{Authenticator, ClientCertificates};
use crate::authorizer::{AccessDecision, Authorizer};
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

/// Adds the filter to a router.
pub(crate) fn with_auth(router: Router, filter: Arc<AuthFilter>) -> Router {
    router.layer(from_fn_with_state(filter, check_access))
}

async fn check_access(
    State(filter): State<Arc<AuthFilter>>,
    request: Request,
    next: Next,
) -> Response {
    let certificates =
        request.extensions().get::<ClientCertificates>().cloned().unwrap_or_default();
    let token = bearer_token(&request);
    let Some(user) = filter.authenticator.authenticate(&certificates, token.as_deref()).await
    else {
        return (StatusCode::UNAUTHORIZED, "Unauthorized").into_response();
    };
    let wanted = attributes(request.method().as_str(), request.uri().path());
    match filter.authorizer.authorize(&user, &wanted).await {
        AccessDecision::Allowed => next.run(request).await,
        AccessDecision::Denied => {
            (StatusCode::FORBIDDEN, wanted.forbidden(&user.name)).into_response()
        }
        AccessDecision::Unknown(why) => {
            tracing::warn!(
                client = user.name,
                call = "SubjectAccessReview",
                error = why,
                "authorization check failed, request refused"
            );
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

fn bearer_token(request: &Request) -> Option<String> {
    let value = request.headers().get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then(|| token.to_owned())
}
