//! The spans of a pod's life, as a real collector on loopback gets them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use oarsman_spans::wire::trace_service_server::{TraceService, TraceServiceServer};
use oarsman_spans::wire::{
    ExportTraceServiceRequest, ExportTraceServiceResponse, KeyValue, Span, SpanKind, StatusCode,
};
use oarsman_spans::{SpanExporter, TracingSettings};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::{advance, resume, timeout};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

use crate::testing::{TestNode, deleted, pod, seconds};
use crate::traced_runtime;

/// Longer than any machine should need for what is done over loopback.
const LOOPBACK: Duration = Duration::from_secs(600);
/// After this time spans are sent that do not fill a batch.
const BATCH_DELAY: Duration = Duration::from_secs(5);

struct Collector(mpsc::UnboundedSender<ExportTraceServiceRequest>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.0.send(request.into_inner()).ok();
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

/// A node whose spans are all sampled, and the exporter of them to that address.
fn traced_node(endpoint: String) -> (TestNode, Arc<SpanExporter>) {
    let mut exporter = None;
    let test = TestNode::with(|node| {
        let settings =
            TracingSettings { endpoint: Some(endpoint), sampling_rate_per_million: 1_000_000 };
        let (tracer, of_tracer) = oarsman_spans::start(&settings, "n1", &node.seams.clock).unwrap();
        node.seams.runtime = traced_runtime(Arc::clone(&node.seams.runtime), &tracer);
        node.tracer = Some(tracer);
        exporter = Some(of_tracer);
    });
    (test, exporter.unwrap())
}

/// What is queued now, over a real connection in real time.
async fn exported(listener: TcpListener, exporter: Arc<SpanExporter>) -> Vec<Span> {
    let (sender, mut batches) = mpsc::unbounded_channel();
    tokio::spawn(async move { exporter.run().await });
    tokio::task::yield_now().await;
    advance(BATCH_DELAY).await;
    resume();
    let server = tonic::transport::Server::builder()
        .add_service(TraceServiceServer::new(Collector(sender)))
        .serve_with_incoming(TcpListenerStream::new(listener));
    tokio::spawn(server);
    let batch = timeout(LOOPBACK, batches.recv()).await.unwrap().unwrap();
    let scopes = batch.resource_spans.into_iter().flat_map(|of| of.scope_spans);
    scopes.flat_map(|scope| scope.spans).collect()
}

/// The one span of that name, and the names of the calls below it.
fn with_children<'s>(spans: &'s [Span], name: &str) -> (&'s Span, BTreeSet<&'s str>) {
    let named: Vec<&Span> = spans.iter().filter(|span| span.name == name).collect();
    let [of_pod] = named[..] else { panic!("{name}: {spans:#?}") };
    let is_child = |span: &&Span| span.parent_span_id == of_pod.span_id;
    let children: Vec<&Span> = spans.iter().filter(is_child).collect();
    for child in &children {
        assert_eq!(child.trace_id, of_pod.trace_id, "{}", child.name);
        assert_eq!(child.kind(), SpanKind::Client, "{}", child.name);
        assert!(child.start_time_unix_nano >= of_pod.start_time_unix_nano, "{}", child.name);
        assert!(child.end_time_unix_nano <= of_pod.end_time_unix_nano, "{}", child.name);
    }
    (of_pod, children.into_iter().map(|child| child.name.as_str()).collect())
}

/// The spans of a pod that is started and deleted, on a node whose runtime fails to stop containers so often.
async fn spans_of_a_deleted_pod(failing_stops: u32) -> (Vec<Span>, TestNode) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (test, exporter) = traced_node(listener.local_addr().unwrap().to_string());
    let pod = Arc::new(pod("web", &["forever"]));
    test.calls.fail("StopContainer", failing_stops);
    let worker = test.start(&pod);
    seconds(5).await;
    worker.mailbox.update_pod(deleted(&pod, 1));
    seconds(5).await;
    worker.task.abort();
    (exported(listener, exporter).await, test)
}

#[tokio::test(start_paused = true)]
async fn a_sync_and_a_kill_are_spans_with_the_calls_to_the_runtime_below_them() {
    let (spans, test) = spans_of_a_deleted_pod(1).await;

    let mut attributes = vec![
        KeyValue::text("k8s.pod.uid", "uid-web"),
        KeyValue::text("k8s.pod", "default/web"),
        KeyValue::text("k8s.pod.name", "web"),
        KeyValue::text("k8s.namespace.name", "default"),
    ];
    let (kill, calls) = with_children(&spans, "syncTerminatingPod");
    assert!(kill.parent_span_id.is_empty());
    assert_eq!(kill.attributes, attributes);
    let status = kill.status.clone().unwrap();
    assert_eq!(status.code(), StatusCode::Error);
    assert!(status.message.contains("StopContainer"), "{}", status.message);
    assert!(calls.contains("runtime.v1.RuntimeService/StopContainer"), "{calls:?}");
    let first_sync = spans.iter().position(|span| span.name == "syncPod").unwrap();
    let (sync, calls) = with_children(&spans[..=first_sync], "syncPod");
    assert!(sync.parent_span_id.is_empty());
    assert_eq!(sync.status, None);
    attributes.push(KeyValue::text("k8s.pod.update_type", "create"));
    assert_eq!(sync.attributes, attributes);
    for call in [
        "runtime.v1.ImageService/ImageStatus",
        "runtime.v1.RuntimeService/RunPodSandbox",
        "runtime.v1.RuntimeService/CreateContainer",
        "runtime.v1.RuntimeService/StartContainer",
    ] {
        assert!(calls.contains(call), "{call}: {calls:?}");
    }
    assert_eq!(test.node.tracer.as_ref().unwrap().dropped(), 0);
}

#[tokio::test(start_paused = true)]
async fn each_part_that_an_ended_pod_releases_is_a_span() {
    let (spans, _test) = spans_of_a_deleted_pod(0).await;
    let released: Vec<_> = spans.iter().filter(|span| span.name == "syncTerminatedPod").collect();
    let parts = released.iter().filter_map(|span| span.attributes.last().cloned());
    let expected = ["volumes", "cgroup"].map(|part| KeyValue::text("oarsman.released", part));
    assert_eq!(parts.collect::<Vec<_>>(), expected);
    let is_whole = |span: &&Span| span.status.is_none() && span.parent_span_id.is_empty();
    assert!(released.iter().all(is_whole), "{released:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_of_the_runtime_has_its_method_and_its_status_code() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (test, exporter) = traced_node(listener.local_addr().unwrap().to_string());
    let runtime = Arc::clone(&test.node.seams.runtime);
    runtime.version().await.unwrap();
    runtime.container_status("none").await.unwrap_err();
    let spans = exported(listener, exporter).await;
    let [version, status] = &spans[..] else { panic!("{spans:#?}") };
    let attributes = |method: &str, code| {
        [
            KeyValue::text("rpc.system", "grpc"),
            KeyValue::text("rpc.service", "runtime.v1.RuntimeService"),
            KeyValue::text("rpc.method", method),
            KeyValue::number("rpc.grpc.status_code", code),
        ]
    };
    assert_eq!(version.attributes, attributes("Version", 0));
    assert_eq!(status.attributes, attributes("ContainerStatus", 5));
    assert_eq!(status.status.as_ref().map(|status| status.code()), Some(StatusCode::Error));
    // Each is a trace of its own.
    assert!(spans.iter().all(|span| span.parent_span_id.is_empty()));
    assert_ne!(version.trace_id, status.trace_id);
}
