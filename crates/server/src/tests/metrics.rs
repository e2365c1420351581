//! The metrics endpoints over HTTPS and on the read-only port.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode, header};
use oarsman_core::exposition::strict;
use tower::ServiceExt;

use super::*;

/// A reviewer that allows reading metrics, and nothing else.
struct MetricsReader;

#[async_trait]
impl Reviewer for MetricsReader {
    async fn review_token(&self, _: &str) -> oarsman_cluster::Result<Option<User>> {
        Ok(None)
    }

    async fn review_access(
        &self,
        _: &User,
        verb: &str,
        subresource: &str,
    ) -> oarsman_cluster::Result<bool> {
        Ok((verb, subresource) == ("get", "metrics"))
    }
}

async fn read(router: &Router, path: &str) -> (StatusCode, String, String) {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let answer = router.clone().oneshot(request).await.unwrap();
    let content_type = answer.headers().get(header::CONTENT_TYPE);
    let content_type = content_type.map(|it| it.to_str().unwrap().to_owned()).unwrap_or_default();
    let status = answer.status();
    let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    (status, content_type, String::from_utf8(body.to_vec()).unwrap())
}

fn read_only(host: Arc<FakeHost>) -> Router {
    endpoints::read_only(&endpoint_state(host))
}

#[tokio::test]
async fn each_endpoint_has_its_families_and_a_text_that_prometheus_reads() {
    let directory = tempfile::tempdir().unwrap();
    let host = ended(directory.path());
    let router = read_only(Arc::clone(&host));
    assert_eq!(read(&router, "/healthz").await.0, StatusCode::OK);
    host.is_stuck.store(true, Ordering::SeqCst);
    let requests = |path: &str| {
        format!(
            "kubelet_http_requests_total{{method=\"GET\",path=\"{path}\",server_type=\"readonly\",long_running=\"false\"}}"
        )
    };
    let rows = [
        ("/metrics/probes", vec![("prober_probe_total".to_owned(), 7.0)]),
        (
            "/metrics/slis",
            vec![
                ("kubernetes_healthcheck{name=\"ping\",type=\"healthz\"}".to_owned(), 1.0),
                ("kubernetes_healthcheck{name=\"syncloop\",type=\"healthz\"}".to_owned(), 0.0),
                (healthchecks("ping", "success"), 2.0),
                (healthchecks("syncloop", "success"), 1.0),
                (healthchecks("syncloop", "error"), 1.0),
            ],
        ),
        (
            "/metrics",
            vec![
                ("kubelet_running_pods".to_owned(), 2.0),
                (requests("healthz"), 1.0),
                (requests("metrics"), 1.0),
                (requests("metrics/probes"), 1.0),
            ],
        ),
    ];
    for (path, expected) in rows {
        let (status, content_type, text) = read(&router, path).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        assert_eq!(content_type, "text/plain; version=0.0.4; charset=utf-8", "{path}");
        let values = strict::read(&text).unwrap();
        for (series, value) in expected {
            assert_eq!(values.get(&series), Some(&value), "{series} of {path} in {text}");
        }
    }
}

fn healthchecks(name: &str, status: &str) -> String {
    format!("kubernetes_healthchecks_total{{name=\"{name}\",status=\"{status}\",type=\"healthz\"}}")
}

#[tokio::test]
async fn texts_that_clients_do_not_read_are_limited() {
    let directory = tempfile::tempdir().unwrap();
    let router = read_only(ended(directory.path()));
    let ask = async || {
        let request = Request::get("/metrics").body(Body::empty()).unwrap();
        router.clone().oneshot(request).await.unwrap()
    };
    let mut stalled = Vec::new();
    for _ in 0..32 {
        stalled.push(ask().await);
    }
    assert!(stalled.iter().all(|answer| answer.status() == StatusCode::OK));
    assert_eq!(ask().await.status(), StatusCode::TOO_MANY_REQUESTS);
    to_bytes(stalled.remove(0).into_body(), usize::MAX).await.unwrap();
    assert_eq!(ask().await.status(), StatusCode::OK, "one was sent");
}

#[tokio::test]
async fn metrics_need_the_right_to_read_them() {
    let authority = TestAuthority::new();
    let directory = tempfile::tempdir().unwrap();
    let settings = settings(directory.path(), "127.0.0.1:0".parse().unwrap(), &authority, true);
    let guard = AuthFilter::new(
        &settings.authentication,
        settings.authorization,
        Some(Arc::new(MetricsReader)),
    );
    let metrics = ServerMetrics::new(Arc::new(FakeMetrics));
    let router = auth_filter::with_auth(read_only(ended(directory.path())), guard);
    let router = with_metrics(router, &metrics, ServerType::ReadWrite);
    let (certificate, _) = authority.client("prometheus");
    let known = authenticator::ClientCertificates(Arc::new([certificate]));
    let rows = [
        ("/metrics", true, 200),
        ("/metrics/probes", true, 200),
        ("/metrics/slis", true, 200),
        ("/pods", true, 403),
        ("/metrics", false, 401),
    ];
    for (path, is_known, status) in rows {
        let mut request = Request::get(path).body(Body::empty()).unwrap();
        if is_known {
            request.extensions_mut().insert(known.clone());
        }
        let answer = router.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{path} {is_known}");
    }
    let refused =
        "{method=\"GET\",path=\"pods\",server_type=\"readwrite\",long_running=\"false\"} 1";
    let text = metrics.kubelet_text().await;
    assert!(text.contains(refused), "a request that is refused counts: {text}");
}
