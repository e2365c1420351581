//! Sends spans to the collector: in batches by number and time, each with a deadline. A collector that hangs, refuses or is slow costs spans and nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use oarsman_clock::Clock;
use oarsman_core::time::Mono;
use tokio::sync::{Mutex, mpsc};
use tokio::time::{sleep, timeout};
use tonic::transport::Channel;

use crate::collector::{self, DEFAULT_COLLECTOR, InvalidCollector};
use crate::ids::IdSource;
use crate::sampler::Sampler;
use crate::tracer::Tracer;
use crate::wire::trace_service_client::TraceServiceClient;
use crate::wire::{
    ExportTraceServiceRequest, InstrumentationScope, KeyValue, Resource, ResourceSpans, ScopeSpans,
    Span,
};

/// The numbers of the OpenTelemetry SDK, which the Go kubelet uses.
pub(crate) const QUEUE_CAPACITY: usize = 2048;
pub(crate) const MAX_BATCH: usize = 512;
pub(crate) const BATCH_DELAY: Duration = Duration::from_secs(5);
pub(crate) const EXPORT_DEADLINE: Duration = Duration::from_secs(10);
/// Dropped spans are logged no more often than this.
const WARNING_INTERVAL: Duration = Duration::from_secs(600);

/// What the name of the code that makes the spans is called in OTLP: that of the Go kubelet, because queries select by it.
const SCOPE: &str = "k8s.io/kubernetes/pkg/kubelet";

/// Whether and where spans are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracingSettings {
    /// The collector; none for `localhost:4317`.
    pub endpoint: Option<String>,
    /// How many of a million traces are sampled.
    pub sampling_rate_per_million: u32,
}

/// The exporter and what feeds it, for the node of that name.
///
/// # Errors
/// When the endpoint is no address.
pub fn start(
    settings: &TracingSettings,
    node_name: &str,
    clock: &Arc<dyn Clock>,
) -> Result<(Arc<Tracer>, Arc<SpanExporter>), InvalidCollector> {
    let endpoint = settings.endpoint.as_deref().filter(|endpoint| !endpoint.is_empty());
    let endpoint = endpoint.unwrap_or(DEFAULT_COLLECTOR).to_owned();
    let (queue, spans) = mpsc::channel(QUEUE_CAPACITY);
    let dropped = Arc::<AtomicU64>::default();
    let attributes =
        vec![KeyValue::text("service.name", "kubelet"), KeyValue::text("host.name", node_name)];
    let exporter = SpanExporter {
        collector: TraceServiceClient::new(collector::channel(&endpoint)?),
        endpoint,
        resource: Resource { attributes },
        dropped: Arc::clone(&dropped),
        clock: Arc::clone(clock),
        state: Mutex::new(ExporterState { spans, batch: Vec::new(), logged: 0, logged_at: None }),
    };
    let tracer = Tracer {
        sampler: Sampler::per_million(settings.sampling_rate_per_million),
        ids: IdSource::default(),
        clock: Arc::clone(clock),
        queue,
        dropped,
    };
    Ok((Arc::new(tracer), Arc::new(exporter)))
}

/// Sends queued spans to the collector.
#[derive(Debug)]
pub struct SpanExporter {
    collector: TraceServiceClient<Channel>,
    endpoint: String,
    resource: Resource,
    /// Also counted by the tracer, when the queue is full.
    dropped: Arc<AtomicU64>,
    clock: Arc<dyn Clock>,
    state: Mutex<ExporterState>,
}

/// What survives a panic of the task, and its end.
#[derive(Debug)]
struct ExporterState {
    spans: mpsc::Receiver<Span>,
    /// Spans that wait for more.
    batch: Vec<Span>,
    /// How many dropped spans were logged, and when last.
    logged: u64,
    logged_at: Option<Mono>,
}

impl SpanExporter {
    /// Runs until the tracer is gone.
    pub async fn run(&self) {
        let mut state = self.state.lock().await;
        loop {
            let ExporterState { spans, batch, .. } = &mut *state;
            collect_batch(spans, batch).await;
            if batch.is_empty() {
                return;
            }
            let batch = std::mem::take(batch);
            let failure = self.export(batch).await;
            self.log_dropped(&mut state, failure);
        }
    }

    /// Sends what is queued, without waiting for more, when [`Self::run`] was dropped: the agent ends. What is not taken within the deadline is lost.
    pub async fn flush(&self, deadline: Duration) {
        let sent = timeout(deadline, async {
            let mut state = self.state.lock().await;
            loop {
                let mut batch = std::mem::take(&mut state.batch);
                while batch.len() < MAX_BATCH
                    && let Ok(span) = state.spans.try_recv()
                {
                    batch.push(span);
                }
                if batch.is_empty() {
                    return;
                }
                let failure = self.export(batch).await;
                self.log_dropped(&mut state, failure);
            }
        });
        if sent.await.is_err() {
            let (endpoint, error) = (&self.endpoint, format!("no answer within {deadline:?}"));
            tracing::warn!(endpoint, error, "spans dropped, the collector does not take them");
        }
    }

    /// Sends one batch, once: a second try would hold up the spans behind it. Says why spans of it were dropped, if they were.
    async fn export(&self, batch: Vec<Span>) -> Option<String> {
        let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        let mut collector = self.collector.clone();
        let (dropped, failure) =
            match timeout(EXPORT_DEADLINE, collector.export(self.request(batch))).await {
                Err(_) => (count, format!("no answer within {EXPORT_DEADLINE:?}")),
                Ok(Err(status)) => (count, error_text(&status)),
                Ok(Ok(answer)) => {
                    let rejected = answer.into_inner().partial_success.unwrap_or_default();
                    (rejected.rejected_spans.unsigned_abs().min(count), rejected.error_message)
                }
            };
        self.dropped.fetch_add(dropped, Ordering::Relaxed);
        (dropped > 0).then_some(failure)
    }

    fn request(&self, spans: Vec<Span>) -> ExportTraceServiceRequest {
        let scope = InstrumentationScope {
            name: SCOPE.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let spans = ResourceSpans {
            resource: Some(self.resource.clone()),
            scope_spans: vec![ScopeSpans { scope: Some(scope), spans }],
        };
        ExportTraceServiceRequest { resource_spans: vec![spans] }
    }

    fn log_dropped(&self, state: &mut ExporterState, failure: Option<String>) {
        let (dropped, now) = (self.dropped.load(Ordering::Relaxed), self.clock.mono());
        let is_due = state.logged_at.is_none_or(|last| now.since(last) >= WARNING_INTERVAL);
        if dropped == state.logged || !is_due {
            return;
        }
        let (endpoint, count) = (&self.endpoint, dropped - state.logged);
        let error = failure.unwrap_or_else(|| "the queue was full".to_owned());
        tracing::warn!(endpoint, count, error, "spans dropped, the collector does not take them");
        (state.logged, state.logged_at) = (dropped, Some(now));
    }
}

/// Waits for a span, and for more until the batch is full or the first has waited long enough. The batch stays empty when no more come.
pub(crate) async fn collect_batch(spans: &mut mpsc::Receiver<Span>, batch: &mut Vec<Span>) {
    if batch.is_empty() && spans.recv_many(batch, MAX_BATCH).await == 0 {
        return;
    }
    let mut due = std::pin::pin!(sleep(BATCH_DELAY));
    while batch.len() < MAX_BATCH {
        let room = MAX_BATCH - batch.len();
        tokio::select! {
            biased;
            more = spans.recv_many(batch, room) => if more == 0 { break },
            () = &mut due => break,
        }
    }
}

/// The status and its causes: a collector that cannot be reached is named only there.
fn error_text(status: &tonic::Status) -> String {
    let first: &(dyn std::error::Error + 'static) = status;
    let causes = std::iter::successors(first.source(), |&cause| cause.source());
    let words: Vec<String> = causes.map(ToString::to_string).collect();
    if words.is_empty() { status.to_string() } else { words.join(": ") }
}
