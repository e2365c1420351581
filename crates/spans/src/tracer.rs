//! Begins and ends spans.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::Either;
use jiff::Timestamp;
use oarsman_clock::Clock;
use oarsman_core::time::{Mono, Now};
use tokio::sync::mpsc;

use crate::current::{CURRENT, CurrentSpan, current};
use crate::ids::IdSource;
use crate::sampler::Sampler;
use crate::wire::{KeyValue, Span, SpanKind, Status, StatusCode};

/// The message of a failure is cut here: runtimes may answer with the output of a program.
const MAX_MESSAGE: usize = 1024;

/// What a span is about.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanDescription {
    /// What is done, such as `syncPod`.
    pub name: Cow<'static, str>,
    /// Whether the work is ours or a call to another program.
    pub kind: SpanKind,
    /// To what, and how.
    pub attributes: Vec<KeyValue>,
}

/// Begins spans, and queues those that have ended.
#[derive(Debug)]
pub struct Tracer {
    pub(crate) sampler: Sampler,
    pub(crate) ids: IdSource,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) queue: mpsc::Sender<Span>,
    pub(crate) dropped: Arc<AtomicU64>,
}

/// How work ended, for its span.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpanOutcome {
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// What is known of it only now.
    pub attributes: Vec<KeyValue>,
}

/// Runs work in a span if there is a tracer, below the span that the caller is in, if any. `describe` and `outcome` are called only if the span is sampled.
/// The span ends with the work, also when that is dropped.
pub fn in_span<W, D, O>(
    tracer: Option<&Arc<Tracer>>,
    describe: D,
    work: W,
    outcome: O,
) -> impl Future<Output = W::Output> + use<W, D, O>
where
    W: Future,
    D: FnOnce() -> SpanDescription,
    O: FnOnce(&W::Output) -> SpanOutcome,
{
    let Some(tracer) = tracer else { return Either::Left(work) };
    let tracer = Arc::clone(tracer);
    // On the heap, so that work without a tracer is no larger for it.
    Either::Right(Box::pin(async move {
        let (current, span) = tracer.begin(describe);
        let answer = CURRENT.scope(current, work).await;
        if let Some(span) = span {
            span.end(outcome(&answer));
        }
        answer
    }))
}

impl Tracer {
    /// How many spans were dropped so far.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn begin(
        &self,
        describe: impl FnOnce() -> SpanDescription,
    ) -> (CurrentSpan, Option<ActiveSpan<'_>>) {
        let (trace, parent) = match current() {
            Some(CurrentSpan::Sampled { trace, span }) => (trace, span.to_bytes()),
            Some(CurrentSpan::NotSampled) => return (CurrentSpan::NotSampled, None),
            None => (self.ids.trace(), Vec::new()),
        };
        if parent.is_empty() && !self.sampler.samples(trace) {
            return (CurrentSpan::NotSampled, None);
        }
        let SpanDescription { name, kind, attributes } = describe();
        let (id, Now { wall, mono }) = (self.ids.span(), self.clock.now());
        let span = Span {
            trace_id: trace.to_bytes(),
            span_id: id.to_bytes(),
            parent_span_id: parent,
            name: name.into_owned(),
            kind: kind.into(),
            start_time_unix_nano: nanoseconds(wall),
            attributes,
            // What it has if it is dropped.
            status: Some(failed("cancelled")),
            ..Span::default()
        };
        let current = CurrentSpan::Sampled { trace, span: id };
        (current, Some(ActiveSpan { tracer: self, span, began: mono }))
    }
}

/// A span that has not ended. It ends when it is dropped.
struct ActiveSpan<'t> {
    tracer: &'t Tracer,
    span: Span,
    began: Mono,
}

impl ActiveSpan<'_> {
    fn end(mut self, SpanOutcome { failure, attributes }: SpanOutcome) {
        self.span.status = failure.map(|message| failed(&message));
        self.span.attributes.extend(attributes);
    }
}

impl Drop for ActiveSpan<'_> {
    fn drop(&mut self) {
        let lasted = self.tracer.clock.mono().since(self.began);
        let mut span = std::mem::take(&mut self.span);
        let lasted = u64::try_from(lasted.as_nanos()).unwrap_or(u64::MAX);
        span.end_time_unix_nano = span.start_time_unix_nano.saturating_add(lasted);
        if self.tracer.queue.try_send(span).is_err() {
            self.tracer.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn failed(message: &str) -> Status {
    let message = message[..message.floor_char_boundary(MAX_MESSAGE)].to_owned();
    Status { message, code: StatusCode::Error.into() }
}

/// Nanoseconds since 1970; zero before.
fn nanoseconds(at: Timestamp) -> u64 {
    u64::try_from(at.as_nanosecond()).unwrap_or_default()
}
