//! The agent's tasks: every loop has a name. One that panics is logged, counted and started again, and the others go on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::sleep;

use crate::metrics::AgentMetrics;

/// How long a task that panicked waits before it is started again: it may well panic again.
pub(crate) const RESTART_AFTER: Duration = Duration::from_secs(1);

type StartTask = Box<dyn Fn() -> BoxFuture<'static, ()> + Send>;

/// Loops that run until this is dropped.
pub(crate) struct Tasks {
    running: JoinSet<()>,
    loops: BTreeMap<Id, (&'static str, StartTask)>,
    metrics: Arc<AgentMetrics>,
}

impl Tasks {
    pub(crate) fn new(metrics: Arc<AgentMetrics>) -> Self {
        Self { running: JoinSet::new(), loops: BTreeMap::new(), metrics }
    }

    /// Starts a loop; `start` is called again after a panic, so what must survive one is shared and not moved.
    pub(crate) fn spawn<F>(&mut self, name: &'static str, start: impl Fn() -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.spawn_after(Duration::ZERO, name, Box::new(move || start().boxed()));
    }

    fn spawn_after(&mut self, wait: Duration, name: &'static str, start: StartTask) {
        let task = start();
        let handle = self.running.spawn(async move {
            // Even a sleep of zero costs a tick of the timer.
            if !wait.is_zero() {
                sleep(wait).await;
            }
            task.await;
        });
        self.loops.insert(handle.id(), (name, start));
    }

    /// Starts loops again that panicked, until it is dropped.
    pub(crate) async fn restart_panicked(&mut self) {
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
        let Some((task, start)) = self.loops.remove(&id).filter(|_| has_panicked) else { return };
        self.metrics.task_panicked(task);
        self.spawn_after(RESTART_AFTER, task, start);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_is_restarted_after_a_second_and_others_are_not_affected() {
        let (metrics, began) = (Arc::new(AgentMetrics::default()), Instant::now());
        let (failing, steady) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let mut tasks = Tasks::new(Arc::clone(&metrics));
        let starts = Arc::clone(&failing);
        tasks.spawn("failing", move || {
            let starts = Arc::clone(&starts);
            async move {
                assert!(starts.fetch_add(1, Ordering::Relaxed) >= 2, "a mistake on purpose");
                std::future::pending::<()>().await;
            }
        });
        let ticks = Arc::clone(&steady);
        tasks.spawn("steady", move || {
            let ticks = Arc::clone(&ticks);
            async move {
                loop {
                    sleep(Duration::from_millis(500)).await;
                    ticks.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        tasks.spawn("short", || async {});
        tokio::time::timeout(Duration::from_secs(10), tasks.restart_panicked()).await.unwrap_err();
        assert_eq!(began.elapsed().as_secs(), 10);
        assert_eq!(failing.load(Ordering::Relaxed), 3, "two panics, then it goes on");
        assert!(steady.load(Ordering::Relaxed) >= 19);
        assert_eq!(metrics.task_panics(), [("failing", 2)].into());
    }
}
