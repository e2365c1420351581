//! Every endpoint and method, and which single right lets a client use it. The default is no.

use axum::Router;
use axum::body::Body;
use axum::http::{Request, header};
use tower::ServiceExt;

use super::*;

/// Every part of a node that a right can be about.
const RIGHTS: [&str; 10] =
    ["proxy", "stats", "metrics", "log", "checkpoint", "statusz", "configz", "pods", "healthz", ""];
const VERBS: [&str; 5] = ["get", "create", "update", "patch", "delete"];

/// A method and a path, and the verb and the rights of which each alone is enough.
type AccessRow = (&'static str, &'static str, &'static str, &'static [&'static str]);

const TABLE: [AccessRow; 56] = [
    ("GET", "/healthz", "get", &["healthz", "proxy"]),
    ("GET", "/healthz/ping", "get", &["healthz", "proxy"]),
    ("GET", "/healthz/log", "get", &["healthz", "proxy"]),
    ("GET", "/healthz/syncloop", "get", &["healthz", "proxy"]),
    ("POST", "/healthz", "create", &["healthz", "proxy"]),
    ("GET", "/pods", "get", &["pods", "proxy"]),
    ("GET", "/pods/", "get", &["pods", "proxy"]),
    ("POST", "/pods", "create", &["pods", "proxy"]),
    ("GET", "/runningpods", "get", &["pods", "proxy"]),
    ("GET", "/runningpods/", "get", &["pods", "proxy"]),
    ("GET", "/configz", "get", &["configz", "proxy"]),
    ("PUT", "/configz", "update", &["configz", "proxy"]),
    ("GET", "/stats/summary", "get", &["stats"]),
    ("POST", "/stats/summary", "create", &["stats"]),
    ("GET", "/metrics", "get", &["metrics"]),
    ("GET", "/metrics/cadvisor", "get", &["metrics"]),
    ("GET", "/metrics/resource", "get", &["metrics"]),
    ("GET", "/metrics/probes", "get", &["metrics"]),
    ("GET", "/metrics/slis", "get", &["metrics"]),
    ("DELETE", "/metrics/slis", "delete", &["metrics"]),
    ("GET", "/logs", "get", &["log"]),
    ("GET", "/logs/", "get", &["log"]),
    ("GET", "/logs/0.log", "get", &["log"]),
    ("GET", "/logs/?query=none", "get", &["log"]),
    ("POST", "/logs/", "create", &["log"]),
    ("POST", "/checkpoint/default/web/c", "create", &["checkpoint"]),
    ("GET", "/checkpoint/default/web/c", "get", &["checkpoint"]),
    ("GET", "/statusz", "get", &["statusz"]),
    ("GET", "/flagz", "get", &["configz"]),
    ("GET", "/containerLogs/default/web/c", "get", &["proxy"]),
    ("GET", "/containerLogs/default/web/c?follow=true", "get", &["proxy"]),
    ("POST", "/containerLogs/default/web/c", "create", &["proxy"]),
    // A WebSocket begins with a GET: who may read may not act by it.
    ("GET", "/exec/default/web/c?command=ls&output=1", "create", &["proxy"]),
    ("POST", "/exec/default/web/c?command=ls&output=1", "create", &["proxy"]),
    ("GET", "/exec/default/web/web/c?command=ls&output=1", "create", &["proxy"]),
    ("GET", "/attach/default/web/c?output=1", "create", &["proxy"]),
    ("POST", "/attach/default/web/c?output=1", "create", &["proxy"]),
    ("GET", "/portForward/default/web", "create", &["proxy"]),
    ("POST", "/portForward/default/web", "create", &["proxy"]),
    ("GET", "/run/default/web/c?cmd=ls", "create", &["proxy"]),
    ("POST", "/run/default/web/c?cmd=ls", "create", &["proxy"]),
    ("PUT", "/run/default/web/c?cmd=ls", "create", &["proxy"]),
    ("PUT", "/debug/flags/v", "update", &["proxy"]),
    ("GET", "/debug/flags/v", "get", &["proxy"]),
    ("GET", "/debug/pprof/", "get", &["proxy"]),
    ("GET", "/debug/pprof/cmdline", "get", &["proxy"]),
    ("GET", "/debug/pprof/heap", "get", &["proxy"]),
    // What does not exist is not told to those without rights.
    ("GET", "/", "get", &["proxy"]),
    ("GET", "/nothing/here", "get", &["proxy"]),
    ("PATCH", "/nothing/here", "patch", &["proxy"]),
    ("DELETE", "/nothing/here", "delete", &["proxy"]),
    ("GET", "/podsandmore", "get", &["proxy"]),
    ("GET", "//pods", "get", &["proxy"]),
    ("GET", "/Pods", "get", &["proxy"]),
    // Methods without a verb: no right is about them.
    ("HEAD", "/pods", "", &[]),
    ("OPTIONS", "/pods", "", &[]),
];

/// Knows the user of every token `of:user`; the user `may:verb:part` has that one right.
struct RightsReviewer;

#[async_trait]
impl Reviewer for RightsReviewer {
    async fn review_token(&self, token: &str) -> oarsman_cluster::Result<Option<User>> {
        let user = |name: &str| User { name: name.to_owned(), ..User::default() };
        Ok(token.strip_prefix("of:").map(user))
    }

    async fn review_access(
        &self,
        user: &User,
        verb: &str,
        subresource: &str,
    ) -> oarsman_cluster::Result<bool> {
        Ok(user.name == format!("may:{verb}:{subresource}"))
    }
}

/// Each client has a server of its own, whose reviews are not limited by those of others.
struct AccessFixture {
    _directory: TempDir,
    router: Router,
}

fn fixture(anonymous: bool) -> AccessFixture {
    let directory = tempfile::tempdir().unwrap();
    let router = endpoints::all(
        &endpoint_state(ended(directory.path())),
        Some(streaming()),
        &node_endpoints(directory.path()),
    );
    let authentication = AuthenticationSettings { client_ca: None, tokens: Some(LONG), anonymous };
    let authorization = AuthorizationSettings::Webhook { allowed: LONG, denied: LONG };
    let filter = AuthFilter::new(&authentication, authorization, Some(Arc::new(RightsReviewer)));
    AccessFixture { _directory: directory, router: auth_filter::with_auth(router, filter) }
}

impl AccessFixture {
    async fn status(&self, method: &str, path: &str, token: Option<&str>) -> u16 {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(token) = token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(Body::empty()).unwrap();
        self.router.clone().oneshot(request).await.unwrap().status().as_u16()
    }
}

#[tokio::test]
async fn clients_that_are_unknown_or_have_no_right_get_nothing() {
    let rows = [
        ("anonymous, not allowed", false, None, 401),
        ("anonymous, allowed", true, None, 403),
        ("a bad token", false, Some("wrong"), 401),
        ("a bad token, anonymous allowed", true, Some("wrong"), 401),
        ("a node", false, Some("of:system:node:other"), 403),
        ("a user without rights", false, Some("of:ann"), 403),
    ];
    for (who, anonymous, token, expected) in rows {
        let fixture = fixture(anonymous);
        for (method, path, _, _) in TABLE {
            let status = fixture.status(method, path, token).await;
            assert_eq!(status, expected, "{method} {path}: {who}");
        }
    }
}

#[tokio::test]
async fn each_right_opens_the_endpoints_that_it_is_for_and_no_other() {
    for (right, verb) in RIGHTS.iter().flat_map(|right| VERBS.map(|verb| (*right, verb))) {
        let fixture = fixture(false);
        let token = format!("of:may:{verb}:{right}");
        for (method, path, wanted, rights) in TABLE {
            let status = fixture.status(method, path, Some(&token)).await;
            let is_refused =
                matches!(status, 401 | 403 | 429 | 500) && !is_without_runtime(path, status);
            let may = verb == wanted && rights.contains(&right);
            assert_eq!(!is_refused, may, "{method} {path} by {token}: {status}");
        }
    }
}

/// No runtime answers here: a checkpoint that is allowed fails.
fn is_without_runtime(path: &str, status: u16) -> bool {
    path.starts_with("/checkpoint") && status == 500
}
