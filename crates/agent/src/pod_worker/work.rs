//! The piece of work that a pod worker has under way, and how it is cancelled or shortened.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use oarsman_core::lifecycle::{
    Event, Grace, HeldResource, KillOutcome, KillReason, SyncOutcome, SyncReason,
};
use oarsman_core::pod::PodExt;
use oarsman_core::time::{Mono, wall_between};
use oarsman_spans::in_span;
use oarsman_sync::ordered_watch;

use super::context::PodContext;
use super::{cleanup, kill, release, spans, sync};

/// Work under way. It ends in the `…Done` event of the effect that started it, also when it panics.
pub(super) struct Work {
    future: BoxFuture<'static, Event>,
    cancel: ordered_watch::Sender<bool>,
    grace: ordered_watch::Sender<Grace>,
}

/// Tells work that its result is no longer wanted. Waits race against it; calls that change the runtime do not.
#[derive(Clone, Debug)]
pub(super) struct Cancel(ordered_watch::Receiver<bool>);

/// The result of a wait that was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cancelled;

impl Cancel {
    /// Fails once the result is no longer wanted: to be asked before every call that changes something.
    pub(super) fn check(&self) -> Result<(), Cancelled> {
        if self.0.get() { Err(Cancelled) } else { Ok(()) }
    }

    /// Waits, but not beyond the cancellation. What is waited for is dropped then.
    pub(super) async fn race<T>(&self, wait: impl Future<Output = T>) -> Result<T, Cancelled> {
        let mut cancelled = self.0.clone();
        tokio::select! {
            biased;
            _ = cancelled.wait_for(|is| *is) => Err(Cancelled),
            done = wait => Ok(done),
        }
    }
}

impl Work {
    /// The first read of the pod.
    pub(super) fn read(context: Arc<PodContext>, pod: Option<Arc<Pod>>) -> Self {
        Self::start(
            Grace::SHORTEST,
            |_, _| async move { context.first_read(pod.as_deref()).await },
            |read| Event::ReadDone(read.unwrap_or_else(|| Err(panic_message()))),
        )
    }

    pub(super) fn sync(context: Arc<PodContext>, pod: Arc<Pod>, why: SyncReason) -> Self {
        Self::start(
            Grace::SHORTEST,
            move |cancel, _| async move {
                if why == SyncReason::First {
                    measure_worker_start(&context, &pod);
                }
                let began = context.now();
                let span = || spans::sync(&context, sync_operation(why));
                let syncing = sync::sync_pod(&context, &pod, &cancel);
                let tracer = context.node.tracer.as_ref();
                let outcome = |synced: &(SyncOutcome, _)| spans::sync_outcome(&synced.0);
                let synced = in_span(tracer, span, syncing, outcome).await;
                measure_work(&context, sync_operation(why), began);
                synced
            },
            |synced| {
                let failed = || (SyncOutcome::Failed(panic_message()), None);
                let (outcome, look_again) = synced.unwrap_or_else(failed);
                Event::SyncDone { outcome, look_again }
            },
        )
    }

    pub(super) fn kill(
        context: Arc<PodContext>,
        pod: Option<Arc<Pod>>,
        grace: Grace,
        why: KillReason,
    ) -> Self {
        let kill = |_, grace| async move {
            let began = context.now();
            context.record_unless_recorded().await;
            let killing = kill::kill_pod(&context, pod.as_deref(), why, grace);
            let (tracer, span) = (context.node.tracer.as_ref(), || spans::kill(&context));
            let killed = in_span(tracer, span, killing, spans::kill_outcome).await;
            measure_work(&context, "kill", began);
            killed
        };
        Self::start(grace, kill, kill_done)
    }

    /// For a pod that has ended: a start that was given up may have taken effect after all.
    pub(super) fn kill_leftovers(context: Arc<PodContext>, pod: Option<Arc<Pod>>) -> Self {
        let kill =
            |_, grace| async move { kill::kill_leftovers(&context, pod.as_deref(), grace).await };
        Self::start(Grace::SHORTEST, kill, kill_done)
    }

    pub(super) fn release(context: Arc<PodContext>, part: HeldResource) -> Self {
        Self::start(
            Grace::SHORTEST,
            move |_, _| async move {
                let releasing = release::release(&context, part);
                let (tracer, span) =
                    (context.node.tracer.as_ref(), || spans::release(&context, part));
                in_span(tracer, span, releasing, spans::release_outcome).await
            },
            |released| Event::ReleaseDone(released.unwrap_or_else(|| Err(panic_message()))),
        )
    }

    pub(super) fn record(context: Arc<PodContext>) -> Self {
        Self::start(
            Grace::SHORTEST,
            |_, _| async move { context.record().await.map_err(|error| error.to_string()) },
            |recorded| Event::RecordDone(recorded.unwrap_or_else(|| Err(panic_message()))),
        )
    }

    pub(super) fn cleanup(context: Arc<PodContext>) -> Self {
        Self::start(
            Grace::SHORTEST,
            |_, _| async move { cleanup::cleanup(&context).await },
            |cleaned| Event::CleanupDone(cleaned.unwrap_or_else(|| Err(panic_message()))),
        )
    }

    /// Starts work; `done` makes its event, of nothing when it panicked.
    fn start<F: Future + Send + 'static>(
        grace: Grace,
        work: impl FnOnce(Cancel, ordered_watch::Receiver<Grace>) -> F,
        done: impl FnOnce(Option<F::Output>) -> Event + Send + 'static,
    ) -> Self {
        let (cancel, cancelled) = ordered_watch::channel(false);
        let (grace, shortened) = ordered_watch::channel(grace);
        let work = AssertUnwindSafe(work(Cancel(cancelled), shortened)).catch_unwind();
        Self { future: work.map(|ended| done(ended.ok())).boxed(), cancel, grace }
    }

    pub(super) fn cancel(&self) {
        self.cancel.send_replace(true);
    }

    pub(super) fn shorten(&self, grace: Grace) {
        self.grace.send_replace(grace);
    }
}

/// The value of the label `operation_type`.
fn sync_operation(why: SyncReason) -> &'static str {
    match why {
        SyncReason::First => "create",
        SyncReason::Updated => "update",
        SyncReason::Due | SyncReason::Hinted(_) | SyncReason::Reset => "sync",
    }
}

fn measure_work(context: &PodContext, operation: &'static str, began: Mono) {
    let duration = context.now().since(began);
    context.node.metrics.pod_worker.observe_duration(operation, duration);
}

/// How long the pod has waited for its worker since it was first seen.
fn measure_worker_start(context: &PodContext, pod: &Pod) {
    if let Some(seen) = pod.first_seen() {
        let waited = wall_between(seen, context.node.seams.clock.wall());
        context.node.metrics.pod_worker_start.observe_duration(waited);
    }
}

fn kill_done(killed: Option<KillOutcome>) -> Event {
    Event::KillDone(killed.unwrap_or_else(|| KillOutcome::Failed(panic_message())))
}

/// Waits for the work's end; for ever when there is none.
pub(super) async fn wait_until_done(work: &mut Option<Work>) -> Event {
    match work {
        Some(work) => (&mut work.future).await,
        None => std::future::pending().await,
    }
}

/// A bug in our code is one pod's failure, and it is tried again.
fn panic_message() -> String {
    "the agent made a mistake (a panic, see its log); it will try again".to_owned()
}
