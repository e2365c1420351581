//! `/flagz` and `/statusz`, in the text form.

use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use oarsman_clock::Clock;
use oarsman_core::time::wall_between;
use oarsman_core::zpages::{self, MEDIA_TYPE};

use crate::node_endpoints::NodeEndpointSettings;

const COMPONENT: &str = "kubelet";

/// Those whose gates are on; the status names these paths.
pub(super) fn routes(
    settings: &NodeEndpointSettings,
    clock: &Arc<dyn Clock>,
    paths: Vec<&'static str>,
) -> Router {
    let mut router = Router::new();
    if let Some(flags) = &settings.flags {
        let text = zpages::flags(COMPONENT, flags);
        let answer = async move |headers: HeaderMap| page(&headers, || text.clone());
        router = router.route("/flagz", get(answer));
    }
    if let Some(facts) = settings.status.clone() {
        let clock = Arc::clone(clock);
        let answer = async move |headers: HeaderMap| {
            let up = wall_between(facts.started, clock.wall());
            page(&headers, || zpages::status(COMPONENT, &facts, up, &paths))
        };
        router = router.route("/statusz", get(answer));
    }
    router
}

fn page(headers: &HeaderMap, text: impl FnOnce() -> String) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    if !zpages::accepts_text(accept.unwrap_or_default()) {
        let said = "media type not acceptable, must be: text/plain";
        return (StatusCode::NOT_ACCEPTABLE, said).into_response();
    }
    ([(header::CONTENT_TYPE, MEDIA_TYPE)], text()).into_response()
}
