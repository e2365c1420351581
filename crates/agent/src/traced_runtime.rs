//! A span for every call to the runtime, named as the Go kubelet's gRPC client names them. A call in the sync of a pod is below the sync's span; any other is a trace
//! of its own.

use std::any::Any;
use std::sync::Arc;

use oarsman_cri::{CriError, Runtime};
use oarsman_seam::{Call, Middleware, SeamError, WithMiddleware};
use oarsman_spans::wire::{KeyValue, SpanKind};
use oarsman_spans::{SpanDescription, SpanOutcome, Tracer, in_span};

/// The calls of CRI's image service; all others are of the runtime service.
const IMAGE_CALLS: &[&str] =
    &["ImageFsInfo", "ImageStatus", "ListImages", "PullImage", "RemoveImage"];

/// The runtime, with a span for every call.
pub fn traced_runtime(runtime: Arc<dyn Runtime>, tracer: &Arc<Tracer>) -> Arc<dyn Runtime> {
    Arc::new(WithMiddleware::new(runtime, TracedCalls { tracer: Arc::clone(tracer) }))
}

struct TracedCalls {
    tracer: Arc<Tracer>,
}

impl Middleware for TracedCalls {
    async fn around<T, E>(
        &self,
        call: Call,
        answer: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: SeamError,
    {
        let describe = move || description(call.name);
        let outcome = |answer: &Result<T, E>| outcome(answer.as_ref().err());
        in_span(Some(&self.tracer), describe, answer, outcome).await
    }
}

fn description(call: &'static str) -> SpanDescription {
    let service = match IMAGE_CALLS.contains(&call) {
        true => "runtime.v1.ImageService",
        false => "runtime.v1.RuntimeService",
    };
    SpanDescription {
        name: format!("{service}/{call}").into(),
        kind: SpanKind::Client,
        attributes: vec![
            KeyValue::text("rpc.system", "grpc"),
            KeyValue::text("rpc.service", service),
            KeyValue::text("rpc.method", call),
        ],
    }
}

fn outcome<E: SeamError>(error: Option<&E>) -> SpanOutcome {
    let code = match error {
        None => Some(0),
        // Always one of CRI: this is only around runtimes.
        Some(error) => {
            let error: &dyn Any = error;
            error.downcast_ref::<CriError>().map(|error| error.code() as i64)
        }
    };
    let code = code.map(|code| KeyValue::number("rpc.grpc.status_code", code));
    SpanOutcome { failure: error.map(ToString::to_string), attributes: code.into_iter().collect() }
}
