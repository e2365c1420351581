//! `/debug/flags/v`, which sets the verbosity of the agent's log, and `/debug/pprof`, of which a program that is not Go has little.

use std::sync::Arc;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Path, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};

use crate::host_interface::HostInterface;
use crate::node_endpoints::NodeEndpointSettings;

/// A verbosity is a few digits.
const MAX_BODY_BYTES: usize = 64;

const PROFILES: &str = "\
/debug/pprof/

cmdline: the command line of this process

This kubelet is no Go program: it has no other profiles. Use perf or gdb on the node.
";

pub(super) fn routes(settings: &NodeEndpointSettings, host: Arc<dyn HostInterface>) -> Router {
    flag_routes(settings.debug_flags, host).merge(profile_routes(settings.command_line.clone()))
}

fn flag_routes(is_enabled: bool, host: Arc<dyn HostInterface>) -> Router {
    let route = if is_enabled { any(set_verbosity) } else { any(flags_disabled) };
    Router::new().route("/debug/flags/v", route).with_state(host)
}

async fn flags_disabled() -> Response {
    (StatusCode::METHOD_NOT_ALLOWED, "flags endpoint is disabled.\n").into_response()
}

async fn set_verbosity(State(host): State<Arc<dyn HostInterface>>, request: Request) -> Response {
    if request.method() != Method::PUT {
        return (StatusCode::NOT_ACCEPTABLE, "unsupported http method\n").into_response();
    }
    let refused = |why: String| (StatusCode::BAD_REQUEST, format!("{why}\n")).into_response();
    let body = match to_bytes(request.into_body(), MAX_BODY_BYTES).await {
        Ok(body) => body,
        Err(error) => return refused(format!("error reading request body: {error}")),
    };
    let text = String::from_utf8_lossy(&body);
    match text.trim().parse() {
        Ok(verbosity) => {
            tracing::info!(setting = "v", detail = verbosity, "log verbosity changed by a client");
            host.set_log_verbosity(verbosity);
            format!("successfully set klog.logging.verbosity to {verbosity}\n").into_response()
        }
        Err(error) => refused(format!("failed set klog.logging.verbosity {text}: {error}")),
    }
}

fn profile_routes(command_line: Option<Vec<String>>) -> Router {
    let Some(words) = command_line else {
        let paths = ["/debug/pprof", "/debug/pprof/", "/debug/pprof/{*rest}"];
        let add = |router: Router, path| router.route(path, any(profiles_disabled));
        return paths.into_iter().fold(Router::new(), add);
    };
    // As the Go kubelet writes it: a zero byte between words.
    let words = words.join("\0");
    Router::new()
        .route("/debug/pprof", get(async || PROFILES))
        .route("/debug/pprof/", get(async || PROFILES))
        .route("/debug/pprof/cmdline", get(async move || plain(words.clone())))
        .route("/debug/pprof/{*profile}", get(no_profile))
}

fn plain(text: String) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}

async fn profiles_disabled() -> Response {
    (StatusCode::METHOD_NOT_ALLOWED, "profiling endpoint is disabled.\n").into_response()
}

async fn no_profile(Path(profile): Path<String>) -> Response {
    let said = format!("this kubelet is no Go program: it has no profile {profile:?}\n");
    (StatusCode::NOT_FOUND, said).into_response()
}
