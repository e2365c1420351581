//! The background tasks of a pod: long-lived futures beside its one piece of work, such as the probes of its containers.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{self, Poll};

use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use oarsman_core::lifecycle::Hint;
use oarsman_core::view::PodView;
use oarsman_sync::{RESTART_AFTER, TaskName};

use super::context::PodContext;

#[cfg(test)]
mod tests;

/// What a background task is known by: whose it is and what it concerns.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TaskKey {
    /// The kind, such as `readiness`.
    pub(crate) kind: &'static str,
    /// What it is about, such as the id of a container: a new container gets a new task.
    pub(crate) object: String,
}

/// Makes the background tasks of pods. Everything a task does concerns its own pod; what it finds makes the worker look again.
pub(crate) trait BackgroundTasks: Send + Sync + 'static {
    /// The tasks that a pod should have, by its spec and what the runtime has of it. A pod that is terminating is not to be
    /// restarted, whatever a probe finds.
    fn wanted(
        &self,
        context: &PodContext,
        pod: &Pod,
        view: &PodView,
        is_terminating: bool,
    ) -> BTreeSet<TaskKey>;

    /// One of them. It lives until it ends by itself or is no longer wanted; every item makes the worker look again.
    fn start(
        &self,
        context: &Arc<PodContext>,
        pod: &Arc<Pod>,
        key: &TaskKey,
    ) -> BoxStream<'static, Hint>;
}

/// The background tasks of one pod.
pub(super) struct Background {
    context: Arc<PodContext>,
    /// By maker and key. One that has ended by itself stays, so that it is not started again.
    tasks: BTreeMap<(usize, TaskKey), Option<BoxStream<'static, Hint>>>,
    is_terminating: bool,
    is_stopped: bool,
}

impl Background {
    pub(super) fn new(context: Arc<PodContext>) -> Self {
        Self { context, tasks: BTreeMap::new(), is_terminating: false, is_stopped: false }
    }

    /// Starts what the pod lacks and drops what it should not have any more. To be called after every read of the pod.
    pub(super) fn reconcile(&mut self, pod: Option<&Arc<Pod>>) {
        let Some(pod) = pod.filter(|_| !self.is_stopped) else { return };
        let node = Arc::clone(&self.context.node);
        if node.background.is_empty() {
            return;
        }
        let view = self.context.reader.view();
        self.context.forget_probes_of_gone_containers(&view);
        for (index, maker) in node.background.iter().enumerate() {
            let wanted = || maker.wanted(&self.context, pod, &view, self.is_terminating);
            let Ok(wanted) = catch_unwind(AssertUnwindSafe(wanted)) else {
                node.metrics.panics.record(TaskName::BackgroundTask);
                continue;
            };
            self.tasks.retain(|(of, key), _| *of != index || wanted.contains(key));
            for key in wanted {
                let start = || Some(restarted(maker, &self.context, pod, key.clone()));
                self.tasks.entry((index, key.clone())).or_insert_with(start);
            }
        }
    }

    /// The pod is going down: the next read drops what would restart it.
    pub(super) fn pod_is_terminating(&mut self) {
        self.is_terminating = true;
    }

    /// Nothing of the pod runs any more.
    pub(super) fn stop(&mut self) {
        self.is_stopped = true;
        self.tasks.clear();
    }

    /// What a task found next; never when there is none. In the order of their keys, so that a simulation repeats itself.
    pub(super) async fn next(&mut self) -> Hint {
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut task::Context<'_>) -> Poll<Hint> {
        for task in self.tasks.values_mut() {
            let Some(stream) = task else { continue };
            match stream.poll_next_unpin(cx) {
                Poll::Ready(Some(hint)) => return Poll::Ready(hint),
                Poll::Ready(None) => *task = None,
                Poll::Pending => {}
            }
        }
        Poll::Pending
    }
}

/// The task, which is started again after a panic: one must not end the worker, nor the probe of a container that runs on.
fn restarted(
    maker: &Arc<dyn BackgroundTasks>,
    context: &Arc<PodContext>,
    pod: &Arc<Pod>,
    key: TaskKey,
) -> BoxStream<'static, Hint> {
    let (maker, context, pod) = (Arc::clone(maker), Arc::clone(context), Arc::clone(pod));
    let metrics = Arc::clone(&context.node.metrics);
    let start = Arc::new(move || maker.start(&context, &pod, &key));
    let next = move |task: Option<BoxStream<'static, Hint>>| {
        let (start, metrics) = (Arc::clone(&start), Arc::clone(&metrics));
        async move {
            let mut task = task;
            loop {
                let next = async { task.get_or_insert_with(|| start()).next().await };
                match AssertUnwindSafe(next).catch_unwind().await {
                    Ok(hint) => return hint.map(|hint| (hint, task)),
                    Err(_) => metrics.panics.record(TaskName::BackgroundTask),
                }
                task = None;
                tokio::time::sleep(RESTART_AFTER).await;
            }
        }
    };
    stream::unfold(None, next).boxed()
}
