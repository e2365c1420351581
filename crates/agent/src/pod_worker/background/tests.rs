//! Background tasks beside a pod worker over the simulated world, in virtual time.

use std::collections::BTreeMap;
use std::future::pending;

use oarsman_core::view::ContainerState;
use oarsman_sync::{Guarded, TaskName};
use tokio::time::{Duration, sleep};

use super::*;
use crate::testing::{TestNode, TestWorker, deleted, pod, seconds};

const UID: &str = "uid-web";

/// Makes a liveness and a readiness task for every container that runs. Tasks hint once, after a second.
#[derive(Default)]
struct FakeProbes {
    /// How many tasks of each kind were started.
    starts: Guarded<BTreeMap<&'static str, u32>>,
    /// The tasks that there are.
    live: Arc<Guarded<BTreeSet<TaskKey>>>,
    /// Where the next call or poll panics, once.
    panics_in: Guarded<Option<&'static str>>,
}

impl FakeProbes {
    fn pass(&self, place: &str) {
        let fires = self.panics_in.lock().take_if(|armed| *armed == place).is_some();
        assert!(!fires, "a panic on purpose");
    }

    fn starts(&self, kind: &str) -> u32 {
        self.starts.lock().get(kind).copied().unwrap_or_default()
    }

    fn live(&self) -> Vec<&'static str> {
        self.live.lock().iter().map(|key| key.kind).collect()
    }
}

/// Handed to the node; the test keeps the other clone.
struct SharedProbes(Arc<FakeProbes>);

impl BackgroundTasks for SharedProbes {
    fn wanted(
        &self,
        _: &PodContext,
        _: &Pod,
        view: &PodView,
        is_terminating: bool,
    ) -> BTreeSet<TaskKey> {
        self.0.pass("wanted");
        let is_running = |state: &ContainerState| matches!(state, ContainerState::Running { .. });
        let running = view.containers.iter().filter(|container| is_running(&container.state));
        let kinds = if is_terminating { &["readiness"][..] } else { &["liveness", "readiness"] };
        let keys = running.flat_map(|container| {
            kinds.iter().map(|kind| TaskKey { kind, object: container.id.to_string() })
        });
        keys.collect()
    }

    fn start(&self, _: &Arc<PodContext>, _: &Arc<Pod>, key: &TaskKey) -> BoxStream<'static, Hint> {
        self.0.pass("start");
        *self.0.starts.lock().entry(key.kind).or_default() += 1;
        self.0.live.lock().insert(key.clone());
        let alive = TaskGuard { live: Arc::clone(&self.0.live), key: key.clone() };
        let probes = Arc::clone(&self.0);
        let hint = async move {
            sleep(Duration::from_secs(1)).await;
            probes.pass("poll");
            Hint::Probe
        };
        let never = async move {
            let _alive = alive;
            pending().await
        };
        stream::once(hint).chain(stream::once(never)).boxed()
    }
}

/// Takes the task off the list when it is dropped.
struct TaskGuard {
    live: Arc<Guarded<BTreeSet<TaskKey>>>,
    key: TaskKey,
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        self.live.lock().remove(&self.key);
    }
}

fn start(script: &[&str], probes: &Arc<FakeProbes>) -> (TestNode, Arc<Pod>, TestWorker) {
    let test =
        TestNode::with(|node| node.background = vec![Arc::new(SharedProbes(Arc::clone(probes)))]);
    let pod = Arc::new(pod("web", script));
    let worker = test.start(&pod);
    (test, pod, worker)
}

#[tokio::test(start_paused = true)]
async fn a_background_task_lives_as_long_as_its_container_and_its_hint_causes_a_sync() {
    let probes = Arc::<FakeProbes>::default();
    let (test, _, worker) = start(&["sleep:60s", "exit:1"], &probes);
    seconds(30).await;
    assert_eq!(probes.live(), ["liveness", "readiness"]);
    assert_eq!(test.log.times(UID, "StartSync Hinted(Probe)").len(), 2, "one for each task");
    let syncs = || test.log.times(UID, "SyncDone").len();
    let before = syncs();
    worker.mailbox.hint(Hint::Runtime);
    seconds(5).await;
    assert_eq!(syncs(), before + 1);
    assert_eq!((probes.starts("liveness"), probes.starts("readiness")), (1, 1), "they are kept");
    seconds(30).await;
    worker.mailbox.hint(Hint::Runtime);
    seconds(5).await;
    assert_eq!(test.starts(&UID.into()).len(), 2, "{:?}", test.log.entries_text());
    assert_eq!((probes.starts("liveness"), probes.starts("readiness")), (2, 2));
    assert_eq!(probes.live(), ["liveness", "readiness"], "those of the dead container have ended");
}

#[tokio::test(start_paused = true)]
async fn a_terminating_pod_has_no_liveness_tasks_and_an_ended_one_has_none() {
    let probes = Arc::<FakeProbes>::default();
    let (test, pod, worker) = start(&["on-term:sleep:9s,exit:0", "forever"], &probes);
    seconds(5).await;
    assert_eq!(probes.live(), ["liveness", "readiness"]);
    worker.mailbox.update_pod(deleted(&pod, 30));
    seconds(5).await;
    assert_eq!(probes.live(), ["readiness"]);
    seconds(10).await;
    assert_eq!(probes.live(), [""; 0]);
    assert_eq!((probes.starts("liveness"), probes.starts("readiness")), (1, 1));
    assert_eq!(test.node.metrics.panics.counts(), BTreeMap::new());
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_a_task_ends_neither_the_worker_nor_the_task_for_good() {
    for place in ["wanted", "start", "poll"] {
        let probes = Arc::<FakeProbes>::default();
        *probes.panics_in.lock() = Some(place);
        let (test, _, worker) = start(&["forever"], &probes);
        seconds(10).await;
        assert_eq!(
            test.node.metrics.panics.counts(),
            [(TaskName::BackgroundTask, 1)].into(),
            "{place}"
        );
        assert!(!worker.task.is_finished(), "{place}");
        assert_eq!(test.log.times(UID, "Begin Wanted").len(), 1, "{place}");
        assert_eq!(probes.live(), ["liveness", "readiness"], "{place}");
    }
}
