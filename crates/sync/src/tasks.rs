//! Named tasks: every loop of the program has a name. One that panics is logged, counted and started again, and the others go on.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::sleep;

use crate::{Guarded, TaskName};

#[cfg(test)]
mod tests;

/// How long a task that panicked waits before it is started again: it may well panic again.
pub const RESTART_AFTER: Duration = Duration::from_secs(1);

/// How often each task has panicked.
#[derive(Clone, Debug, Default)]
pub struct TaskPanics(Arc<Guarded<BTreeMap<TaskName, u64>>>);

impl TaskPanics {
    /// Logs and counts a panic of a task that is started again.
    pub fn record(&self, task: TaskName) {
        tracing::error!(%task, "task panicked, will be restarted");
        *self.0.lock().entry(task).or_default() += 1;
    }

    /// The counts so far, by name.
    pub fn counts(&self) -> BTreeMap<TaskName, u64> {
        self.0.lock().clone()
    }
}

/// Runs what `start` makes until it ends, and starts it again after a panic. For a future whose owner awaits its result; loops
/// without one are spawned by [`Tasks`].
pub async fn restarted<T, F>(task: TaskName, panics: TaskPanics, mut start: impl FnMut() -> F) -> T
where
    F: Future<Output = T>,
{
    loop {
        // `start` may panic, too, so it is called inside of the future that catches it.
        let run = async { start().await };
        if let Ok(ended) = AssertUnwindSafe(run).catch_unwind().await {
            return ended;
        }
        panics.record(task);
        sleep(RESTART_AFTER).await;
    }
}

type StartTask = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// Loops that run until this is dropped.
pub struct Tasks {
    running: JoinSet<()>,
    loops: BTreeMap<Id, (TaskName, StartTask)>,
    panics: TaskPanics,
}

impl Tasks {
    /// None yet; panics are counted there.
    pub fn new(panics: TaskPanics) -> Self {
        Self { running: JoinSet::new(), loops: BTreeMap::new(), panics }
    }

    /// Starts a loop; `start` is called again after a panic, so what must survive one is shared and not moved.
    pub fn spawn<F>(&mut self, name: TaskName, start: impl Fn() -> F + Send + Sync + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.spawn_after(Duration::ZERO, name, Arc::new(move || start().boxed()));
    }

    fn spawn_after(&mut self, wait: Duration, name: TaskName, start: StartTask) {
        let again = Arc::clone(&start);
        let handle = self.running.spawn(async move {
            // Even a sleep of zero costs a tick of the timer.
            if !wait.is_zero() {
                sleep(wait).await;
            }
            // Called here and not by the owner, which must survive a panic of `start` itself.
            start().await;
        });
        self.loops.insert(handle.id(), (name, again));
    }

    /// Starts loops again that panicked, until it is dropped.
    pub async fn restart_panicked(&mut self) {
        while let Some(ended) = self.running.join_next_with_id().await {
            self.on_ended(&ended);
        }
        std::future::pending::<()>().await;
    }

    fn on_ended(&mut self, ended: &Result<(Id, ()), JoinError>) {
        let (id, has_panicked) = match ended {
            Ok((id, ())) => (*id, false),
            Err(error) => (error.id(), error.is_panic()),
        };
        let Some((task, start)) = self.loops.remove(&id) else { return };
        if has_panicked {
            self.panics.record(task);
            self.spawn_after(RESTART_AFTER, task, start);
        } else {
            tracing::info!(%task, "task ended");
        }
    }
}
