//! The piece of work a worker has under way, and the ways to hurry it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use oarsman_core::lifecycle::{
    Event, Grace, KillOutcome, KillReason, Part, ReleaseOutcome, SyncOutcome,
};

use super::room::Room;
use super::{kill, release, sync};
use crate::latest;

/// Work under way.
pub(super) struct Work {
    future: BoxFuture<'static, Event>,
    cancel: latest::Sender<bool>,
    grace: latest::Sender<Grace>,
}

/// Tells work that its result is no longer wanted. Waits race against it; calls that change the runtime do not.
#[derive(Clone, Debug)]
pub(super) struct Cancel(latest::Receiver<bool>);

/// What a wait gives that was cancelled.
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
    pub(super) fn sync(room: Arc<Room>, pod: Arc<Pod>) -> Self {
        Self::new(Grace::SHORTEST, |cancel, _| async move {
            let began = room.now();
            let attempt = AssertUnwindSafe(sync::sync(&room, &pod, &cancel)).catch_unwind().await;
            room.node.measures.sync.took(room.now().since(began));
            let (outcome, look_again) =
                attempt.unwrap_or_else(|_| (SyncOutcome::Failed(panicked()), None));
            Event::SyncDone { outcome, look_again }
        })
    }

    pub(super) fn kill(
        room: Arc<Room>,
        pod: Option<Arc<Pod>>,
        grace: Grace,
        why: KillReason,
    ) -> Self {
        Self::new(grace, |_, grace| async move {
            let attempt = kill::kill(&room, pod.as_deref(), why, grace);
            let outcome = AssertUnwindSafe(attempt).catch_unwind().await;
            Event::KillDone(outcome.unwrap_or_else(|_| KillOutcome::Failed(panicked())))
        })
    }

    /// For a pod that is done with: a start that nobody waited for any more may have taken effect after all.
    pub(super) fn quell(room: Arc<Room>, pod: Option<Arc<Pod>>) -> Self {
        Self::new(Grace::SHORTEST, |_, grace| async move {
            let quiet = room.look().await.is_ok_and(|view| view.is_quiet());
            let attempt = async {
                match quiet {
                    true => KillOutcome::Ok,
                    false => kill::kill(&room, pod.as_deref(), KillReason::Terminal, grace).await,
                }
            };
            let outcome = AssertUnwindSafe(attempt).catch_unwind().await;
            Event::KillDone(outcome.unwrap_or_else(|_| KillOutcome::Failed(panicked())))
        })
    }

    pub(super) fn release(room: Arc<Room>, part: Part) -> Self {
        Self::new(Grace::SHORTEST, |_, _| async move {
            let outcome = AssertUnwindSafe(release::release(&room, part)).catch_unwind().await;
            Event::ReleaseDone(outcome.unwrap_or_else(|_| ReleaseOutcome::Failed(panicked())))
        })
    }

    fn new<F: Future<Output = Event> + Send + 'static>(
        grace: Grace,
        work: impl FnOnce(Cancel, latest::Receiver<Grace>) -> F,
    ) -> Self {
        let (cancel, cancelled) = latest::channel(false);
        let (grace, shortened) = latest::channel(grace);
        Self { future: work(Cancel(cancelled), shortened).boxed(), cancel, grace }
    }

    pub(super) fn cancel(&self) {
        self.cancel.send_replace(true);
    }

    pub(super) fn shorten(&self, grace: Grace) {
        self.grace.send_replace(grace);
    }
}

/// Waits for the work's end; for ever when there is none.
pub(super) async fn done(work: &mut Option<Work>) -> Event {
    match work {
        Some(work) => (&mut work.future).await,
        None => std::future::pending().await,
    }
}

/// A bug in our code is one pod's failure, and it is tried again.
fn panicked() -> String {
    "the agent made a mistake (a panic, see its log); it will try again".to_owned()
}
