//! Who stands before everything that is served over HTTPS.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use oarsman_cluster::review::Reviewer;
use oarsman_core::access::attributes;

use crate::may::{May, Verdict};
use crate::who::{Shown, Who};
use crate::{Authentication, Authorization};

/// Asks everybody who they are, and others what they may.
pub(crate) struct Guard {
    who: Who,
    may: May,
}

impl Guard {
    pub(crate) fn new(
        authentication: &Authentication,
        authorization: Authorization,
        reviewer: Option<Arc<dyn Reviewer>>,
    ) -> Arc<Self> {
        let who = Who::new(authentication, reviewer.clone());
        Arc::new(Self { who, may: May::new(authorization, reviewer) })
    }
}

/// Puts a guard before what is served.
pub(crate) fn before(router: Router, guard: Arc<Guard>) -> Router {
    router.layer(from_fn_with_state(guard, judge))
}

async fn judge(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let shown = request.extensions().get::<Shown>().cloned().unwrap_or_default();
    let token = token(&request);
    let Some(user) = guard.who.is(&shown, token.as_deref()).await else {
        return (StatusCode::UNAUTHORIZED, "Unauthorized").into_response();
    };
    let wanted = attributes(request.method().as_str(), request.uri().path());
    match guard.may.ask(&user, &wanted).await {
        Verdict::Allowed => next.run(request).await,
        Verdict::Denied => (StatusCode::FORBIDDEN, wanted.forbidden(&user.name)).into_response(),
        Verdict::Unknown(why) => {
            tracing::warn!(user = user.name, why, "it could not be found out what somebody may");
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

fn token(request: &Request) -> Option<String> {
    let value = request.headers().get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then(|| token.to_owned())
}
