//! Spans from their beginning to a real collector on loopback, and to none.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use oarsman_clock::{Clock, SystemClock};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

use crate::exporter::{BATCH_DELAY, EXPORT_DEADLINE, MAX_BATCH, QUEUE_CAPACITY, collect_batch};
use crate::wire::trace_service_server::{TraceService, TraceServiceServer};
use crate::wire::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse, KeyValue,
    Span, SpanKind, StatusCode,
};
use crate::{
    SpanDescription, SpanExporter, SpanOutcome, Tracer, TracingSettings, in_span, start,
    traceparent,
};

/// Longer than any machine should need for what is done over loopback.
const LOOPBACK: Duration = Duration::from_secs(600);

/// What a collector does with a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Take,
    Hang,
    RejectOne,
}

struct Collector {
    answer: Answer,
    taken: mpsc::UnboundedSender<ExportTraceServiceRequest>,
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.taken.send(request.into_inner()).ok();
        let mut answer = ExportTraceServiceResponse::default();
        match self.answer {
            Answer::Take => {}
            Answer::Hang => std::future::pending().await,
            Answer::RejectOne => {
                let error_message = "one is too old".to_owned();
                answer.partial_success =
                    Some(ExportTracePartialSuccess { rejected_spans: 1, error_message });
            }
        }
        Ok(Response::new(answer))
    }
}

/// A collector, and the batches that it gets.
async fn collector(
    answer: Answer,
) -> (SocketAddr, mpsc::UnboundedReceiver<ExportTraceServiceRequest>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (taken, batches) = mpsc::unbounded_channel();
    let server = tonic::transport::Server::builder()
        .add_service(TraceServiceServer::new(Collector { answer, taken }))
        .serve_with_incoming(TcpListenerStream::new(listener));
    tokio::spawn(server);
    (address, batches)
}

fn tracer(endpoint: &str, rate: u32) -> (Arc<Tracer>, Arc<SpanExporter>) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let settings =
        TracingSettings { endpoint: Some(endpoint.to_owned()), sampling_rate_per_million: rate };
    start(&settings, "node-1", &clock).unwrap()
}

fn named(name: &'static str) -> impl FnOnce() -> SpanDescription {
    let attributes = vec![KeyValue::text("of", "test")];
    move || SpanDescription { name: name.into(), kind: SpanKind::Internal, attributes }
}

/// A span without work.
async fn brief(tracer: &Arc<Tracer>) {
    in_span(Some(tracer), named("brief"), async {}, |()| SpanOutcome::default()).await;
}

fn spans(request: ExportTraceServiceRequest) -> Vec<Span> {
    let scopes = request.resource_spans.into_iter().flat_map(|of| of.scope_spans);
    scopes.flat_map(|scope| scope.spans).collect()
}

#[tokio::test]
async fn work_inside_of_a_span_is_below_it_and_all_of_the_trace_reaches_the_collector() {
    let (address, mut batches) = collector(Answer::Take).await;
    let (tracer, exporter) = tracer(&address.to_string(), 1_000_000);
    let inner = async { traceparent() };
    let outer = async {
        let failure = Some("é".repeat(1000));
        let attributes = vec![KeyValue::number("code", 5)];
        let outcome = |_: &Option<String>| SpanOutcome { failure, attributes };
        (traceparent(), in_span(Some(&tracer), named("inner"), inner, outcome).await)
    };
    let ran = in_span(Some(&tracer), named("outer"), outer, |_| SpanOutcome::default()).await;
    assert_eq!(traceparent(), None);
    drop(tracer);
    exporter.run().await;
    let request = timeout(LOOPBACK, batches.recv()).await.unwrap().unwrap();
    let resource = request.resource_spans[0].resource.clone().unwrap();
    let of_program =
        [KeyValue::text("service.name", "kubelet"), KeyValue::text("host.name", "node-1")];
    assert_eq!(resource.attributes, of_program);
    let [inner, outer] = &spans(request)[..] else { panic!() };
    assert_eq!((inner.name.as_str(), outer.name.as_str()), ("inner", "outer"));
    assert_eq!(inner.trace_id, outer.trace_id);
    assert_eq!(inner.parent_span_id, outer.span_id);
    assert!(outer.parent_span_id.is_empty());
    assert_eq!((outer.trace_id.len(), outer.span_id.len()), (16, 8));
    assert!(outer.start_time_unix_nano <= inner.start_time_unix_nano);
    assert!(inner.start_time_unix_nano <= inner.end_time_unix_nano);
    assert_eq!(outer.status, None);
    let status = inner.status.clone().unwrap();
    assert_eq!((status.code(), status.message), (StatusCode::Error, "é".repeat(512)));
    assert_eq!(inner.attributes, [KeyValue::text("of", "test"), KeyValue::number("code", 5)]);
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let parent =
        |span: &Span| Some(format!("00-{}-{}-01", hex(&span.trace_id), hex(&span.span_id)));
    assert_eq!(ran, (parent(outer), parent(inner)));
}

#[tokio::test]
async fn below_a_root_that_is_not_sampled_nothing_is() {
    let (tracer, exporter) = tracer("127.0.0.1:1", 0);
    let describe = || panic!("asked for a span that is not sampled");
    let inner = in_span(Some(&tracer), describe, async { traceparent() }, |_| panic!());
    assert_eq!(in_span(Some(&tracer), describe, inner, |_| panic!()).await, None);
    drop(tracer);
    timeout(LOOPBACK, exporter.run()).await.unwrap();
}

#[tokio::test]
async fn without_a_tracer_work_is_as_it_was() {
    let work = async { [0_u8; 4096].len() };
    let size = size_of_val(&work);
    let describe = || panic!("there is no tracer");
    let work = in_span(None, describe, work, |_| panic!());
    assert!(size_of_val(&work) <= size + 2 * size_of::<usize>());
    assert_eq!(work.await, 4096);
}

#[tokio::test]
async fn work_that_is_dropped_ends_its_span_as_cancelled() {
    let (address, mut batches) = collector(Answer::Take).await;
    let (tracer, exporter) = tracer(&address.to_string(), 1_000_000);
    let hanging = std::future::pending::<()>();
    let mut hanging =
        Box::pin(in_span(Some(&tracer), named("gone"), hanging, |()| SpanOutcome::default()));
    assert!(futures::poll!(&mut hanging).is_pending());
    drop((hanging, tracer));
    exporter.run().await;
    let batch = timeout(LOOPBACK, batches.recv()).await.unwrap().unwrap();
    let [span] = &spans(batch)[..] else { panic!() };
    assert_eq!(span.status.clone().unwrap().message, "cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_sent_when_it_is_full_or_when_its_first_span_has_waited() {
    let (sender, mut receiver) = mpsc::channel(QUEUE_CAPACITY);
    let send = |count: usize| (0..count).for_each(|_| sender.try_send(Span::default()).unwrap());
    send(MAX_BATCH + 3);
    let mut batch = Vec::new();
    let began = Instant::now();
    collect_batch(&mut receiver, &mut batch).await;
    assert_eq!((batch.len(), began.elapsed()), (MAX_BATCH, Duration::ZERO));
    batch.clear();
    collect_batch(&mut receiver, &mut batch).await;
    assert_eq!(batch.len(), 3);
    assert!((BATCH_DELAY..BATCH_DELAY * 2).contains(&began.elapsed()));
    drop(sender);
    batch.clear();
    collect_batch(&mut receiver, &mut batch).await;
    assert!(batch.is_empty());
}

#[tokio::test]
async fn an_agent_that_ends_sends_what_is_queued_and_does_not_wait_for_a_collector_that_hangs() {
    for answer in [Answer::Take, Answer::Hang] {
        let (address, mut batches) = collector(answer).await;
        let (tracer, exporter) = tracer(&address.to_string(), 1_000_000);
        let running = tokio::spawn({
            let exporter = Arc::clone(&exporter);
            async move { exporter.run().await }
        });
        brief(&tracer).await;
        // The exporter has taken the first one and waits for more.
        timeout(LOOPBACK, async {
            while tracer.queue.capacity() < QUEUE_CAPACITY {
                tokio::task::yield_now().await;
            }
        })
        .await
        .unwrap();
        running.abort();
        running.await.unwrap_err();
        brief(&tracer).await;
        exporter.flush(Duration::from_millis(500)).await;
        if answer == Answer::Take {
            assert_eq!(spans(batches.recv().await.unwrap()).len(), 2);
        }
    }
}

#[tokio::test]
async fn a_collector_that_hangs_costs_spans_and_neither_memory_nor_time() {
    let (address, mut batches) = collector(Answer::Hang).await;
    let (tracer, exporter) = tracer(&address.to_string(), 1_000_000);
    for _ in 0..MAX_BATCH {
        brief(&tracer).await;
    }
    let exporting = Arc::clone(&exporter);
    let exporting = tokio::spawn(async move { exporting.run().await });
    let batch = timeout(LOOPBACK, batches.recv()).await.unwrap().unwrap();
    assert_eq!(spans(batch).len(), MAX_BATCH);
    assert_eq!(tracer.dropped(), 0);
    // One batch is under way, the queue takes what it holds, and the rest is gone.
    for _ in 0..QUEUE_CAPACITY + 1000 {
        brief(&tracer).await;
    }
    assert_eq!(tracer.dropped(), 1000);
    tokio::time::pause();
    tokio::time::advance(EXPORT_DEADLINE).await;
    tokio::time::resume();
    // The deadline gave the batch up, and the next one is sent.
    let batch = timeout(LOOPBACK, batches.recv()).await.unwrap().unwrap();
    assert_eq!(spans(batch).len(), MAX_BATCH);
    assert_eq!(tracer.dropped(), 1000 + u64::try_from(MAX_BATCH).unwrap());
    exporting.abort();
}

#[tokio::test]
async fn a_collector_that_refuses_costs_spans() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = nobody.local_addr().unwrap().to_string();
    drop(nobody);
    let (tracer, exporter) = tracer(&address, 1_000_000);
    brief(&tracer).await;
    let counted = Arc::clone(&tracer.dropped);
    drop(tracer);
    timeout(LOOPBACK, exporter.run()).await.unwrap();
    assert_eq!(counted.load(std::sync::atomic::Ordering::Relaxed), 1);
}

#[tokio::test]
async fn spans_that_a_collector_rejects_are_counted() {
    let (address, mut batches) = collector(Answer::RejectOne).await;
    let (tracer, exporter) = tracer(&address.to_string(), 1_000_000);
    brief(&tracer).await;
    brief(&tracer).await;
    let counted = Arc::clone(&tracer.dropped);
    drop(tracer);
    timeout(LOOPBACK, exporter.run()).await.unwrap();
    let batch = timeout(LOOPBACK, batches.recv()).await.unwrap().unwrap();
    assert_eq!(spans(batch).len(), 2);
    assert_eq!(counted.load(std::sync::atomic::Ordering::Relaxed), 1);
}
