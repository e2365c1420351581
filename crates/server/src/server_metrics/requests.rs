//! Counts and measures the requests of the servers, by the route that they are for.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use oarsman_core::exposition::{DEFAULT_SECONDS, Exposition, HistogramBuckets, MetricKind};
use oarsman_sync::Guarded;
use tokio::time::Instant;

use super::ServerMetrics;

/// The methods that are told apart.
const METHODS: [&str; 9] =
    ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"];
/// The endpoints whose requests last as long as their clients want.
const LONG_RUNNING: [&str; 4] = ["attach", "debug", "exec", "portForward"];
/// What is not told apart.
const OTHER: &str = "other";

/// Which server has got a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ServerType {
    /// HTTPS.
    ReadWrite,
    /// The port without authentication.
    ReadOnly,
}

impl ServerType {
    fn label(self) -> &'static str {
        match self {
            Self::ReadWrite => "readwrite",
            Self::ReadOnly => "readonly",
        }
    }
}

/// Measures every request of a router, also one that is refused.
pub(crate) fn with_metrics(
    router: Router,
    metrics: &Arc<ServerMetrics>,
    server_type: ServerType,
) -> Router {
    let requests = Arc::clone(&metrics.requests);
    router.layer(from_fn_with_state((requests, server_type), measure))
}

async fn measure(
    State((requests, server_type)): State<(Arc<RequestMetrics>, ServerType)>,
    mut request: Request,
    next: Next,
) -> Response {
    let method = METHODS.into_iter().find(|known| *known == request.method().as_str());
    let route = request.extensions().get::<MatchedPath>();
    let series = RequestSeries {
        method: method.unwrap_or(OTHER),
        path: route.map_or_else(|| OTHER.to_owned(), |route| first_segment(route.as_str())),
        server_type,
    };
    let measurement = requests.begin(series);
    request.extensions_mut().insert(measurement.clone());
    let answer = next.run(request).await;
    answer.map(|body| Body::new(MeasuredBody { body, _measurement: measurement }))
}

/// What a route begins with; the endpoints below `/metrics` are told apart.
fn first_segment(route: &str) -> String {
    let mut segments = route.trim_start_matches('/').split('/');
    match (segments.next().unwrap_or_default(), segments.next()) {
        ("metrics", Some(below)) => format!("metrics/{below}"),
        (first, _) => first.to_owned(),
    }
}

/// The labels of a series. The path comes from a route, so that no client can add one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RequestSeries {
    method: &'static str,
    path: String,
    server_type: ServerType,
}

impl RequestSeries {
    fn labels(&self) -> [(&str, &str); 4] {
        let is_long = LONG_RUNNING.contains(&self.path.as_str());
        [
            ("method", self.method),
            ("path", &self.path),
            ("server_type", self.server_type.label()),
            ("long_running", if is_long { "true" } else { "false" }),
        ]
    }
}

/// The requests of all servers.
#[derive(Debug, Default)]
pub(super) struct RequestMetrics(Guarded<BTreeMap<RequestSeries, RequestCounts>>);

#[derive(Debug)]
struct RequestCounts {
    begun: u64,
    in_flight: u64,
    durations: HistogramBuckets,
}

impl Default for RequestCounts {
    fn default() -> Self {
        Self { begun: 0, in_flight: 0, durations: HistogramBuckets::new(DEFAULT_SECONDS) }
    }
}

impl RequestMetrics {
    fn begin(self: &Arc<Self>, series: RequestSeries) -> RequestMeasurement {
        let mut requests = self.0.lock();
        let counts = requests.entry(series.clone()).or_default();
        counts.begun += 1;
        counts.in_flight += 1;
        let (metrics, began) = (Arc::clone(self), Instant::now());
        RequestMeasurement(Arc::new(MeasuredRequest { metrics, series, began }))
    }

    /// Writes the families of requests.
    pub(super) fn write(&self, out: &mut Exposition) {
        let requests = self.0.lock();
        let help = "Requests to the kubelet's servers.";
        let mut family = out.family("kubelet_http_requests_total", MetricKind::Counter, help);
        for (series, counts) in &*requests {
            family.sample(&series.labels(), counts.begun as f64);
        }
        let help = "How long requests took until their answers were sent, in seconds.";
        let name = "kubelet_http_requests_duration_seconds";
        let mut family = out.family(name, MetricKind::Histogram, help);
        for (series, counts) in &*requests {
            family.histogram(&series.labels(), &counts.durations.snapshot());
        }
        let help = "Requests that are being answered.";
        let mut family = out.family("kubelet_http_inflight_requests", MetricKind::Gauge, help);
        for (series, counts) in &*requests {
            family.sample(&series.labels(), counts.in_flight as f64);
        }
    }
}

/// A request under way, until the last of its clones is dropped: a connection that was upgraded keeps one until it is closed.
#[derive(Clone, Debug)]
pub(crate) struct RequestMeasurement(#[expect(dead_code, reason = "dropped")] Arc<MeasuredRequest>);

#[derive(Debug)]
struct MeasuredRequest {
    metrics: Arc<RequestMetrics>,
    series: RequestSeries,
    began: Instant,
}

impl Drop for MeasuredRequest {
    fn drop(&mut self) {
        if let Some(counts) = self.metrics.0.lock().get_mut(&self.series) {
            counts.in_flight = counts.in_flight.saturating_sub(1);
            counts.durations.add_duration(self.began.elapsed());
        }
    }
}

/// The body of an answer, whose request lasts until it is sent or given up.
struct MeasuredBody {
    body: Body,
    _measurement: RequestMeasurement,
}

impl HttpBody for MeasuredBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use axum::body::to_bytes;
    use axum::http::StatusCode;
    use axum::routing::get;
    use oarsman_core::exposition::Exposition;
    use tower::ServiceExt;

    use super::*;
    use crate::metrics_source::MetricsSource;

    struct NoSource;

    #[async_trait]
    impl MetricsSource for NoSource {
        async fn write_kubelet_metrics(&self, _: &mut Exposition) {}
        fn write_probe_metrics(&self, _: &mut Exposition) {}
    }

    async fn samples(metrics: &ServerMetrics) -> Vec<String> {
        let text = metrics.kubelet_text().await;
        let is_sample = |line: &&str| !line.starts_with('#') && !line.contains("seconds");
        text.lines().filter(is_sample).map(str::to_owned).collect()
    }

    async fn ask(router: &Router, method: &str, path: &str) -> Response {
        let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
        router.clone().oneshot(request).await.unwrap()
    }

    #[tokio::test]
    async fn requests_are_counted_by_route_and_method_whatever_clients_send() {
        let metrics = ServerMetrics::new(Arc::new(NoSource));
        let router = Router::new()
            .route("/exec/{namespace}/{pod}", get(async || "executed"))
            .route("/metrics/probes", get(async || "probes"));
        let router = with_metrics(router, &metrics, ServerType::ReadWrite);
        let rows = [
            ("GET", "/exec/a/b", 200),
            ("GET", "/exec/c/d?x=y", 200),
            ("GET", "/exec/c", 404),
            ("GET", "/made/up/by/a/client", 404),
            ("BREW", "/metrics/probes", 405),
        ];
        for (method, path, status) in rows {
            let answer = ask(&router, method, path).await;
            assert_eq!(answer.status(), StatusCode::from_u16(status).unwrap(), "{path}");
        }
        let series = |path: &str, method: &str, is_long: bool| {
            format!(
                r#"{{method="{method}",path="{path}",server_type="readwrite",long_running="{is_long}"}}"#
            )
        };
        let [exec, other, probes] = [
            series("exec", "GET", true),
            series("other", "GET", false),
            series("metrics/probes", "other", false),
        ];
        let expected = [
            format!("kubelet_http_requests_total{exec} 2"),
            format!("kubelet_http_requests_total{other} 2"),
            format!("kubelet_http_requests_total{probes} 1"),
            format!("kubelet_http_inflight_requests{exec} 0"),
            format!("kubelet_http_inflight_requests{other} 0"),
            format!("kubelet_http_inflight_requests{probes} 0"),
        ];
        assert_eq!(samples(&metrics).await, expected);
    }

    #[tokio::test]
    async fn a_request_is_in_flight_until_its_answer_is_sent_and_its_connection_closed() {
        let metrics = ServerMetrics::new(Arc::new(NoSource));
        let kept: Arc<Guarded<Option<RequestMeasurement>>> = Arc::default();
        let keep = Arc::clone(&kept);
        let handler = async move |request: Request| {
            *keep.lock() = request.extensions().get::<RequestMeasurement>().cloned();
            "answer"
        };
        let router = with_metrics(
            Router::new().route("/exec", get(handler)),
            &metrics,
            ServerType::ReadOnly,
        );
        let in_flight = async || {
            let last = samples(&metrics).await.pop().unwrap();
            last.rsplit_once(' ').unwrap().1.to_owned()
        };
        let answer = ask(&router, "GET", "/exec").await;
        assert_eq!(in_flight().await, "1", "the answer is not sent yet");
        assert_eq!(to_bytes(answer.into_body(), 100).await.unwrap(), "answer");
        assert_eq!(in_flight().await, "1", "the upgraded connection is open");
        kept.lock().take();
        assert_eq!(in_flight().await, "0");
        assert!(metrics.kubelet_text().await.contains("seconds_count{method=\"GET\",path=\"exec\",server_type=\"readonly\",long_running=\"true\"} 1\n"));
    }
}
