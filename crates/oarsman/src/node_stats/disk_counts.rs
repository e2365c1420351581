//! Counts volumes and files of pods: at most once a minute each, and only while requests come.
//!
//! A count may take longer than a request waits. It goes on then, and the next request finds its result.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use oarsman_clock::Clock;
use oarsman_core::active_pods::ActivePod;
use oarsman_core::disk_usage::{EmptyDirUsage, PodFileUsage};
use oarsman_core::ids::PodUid;
use oarsman_core::pod::PodExt;
use oarsman_core::stats::{MeasuredPod, MeasuredVolume};
use oarsman_core::time::Mono;
use oarsman_state::PodFiles;
use oarsman_sync::Guarded;
use oarsman_volumes::Volumes;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// A count is this old at most, as with the Go kubelet.
const KEPT_FOR: Duration = Duration::from_secs(60);
/// The longest a request waits for counts.
const REQUEST_WAIT: Duration = Duration::from_secs(5);
/// The longest one pod is counted. One that takes longer has no count.
const POD_TIMEOUT: Duration = Duration::from_secs(120);

/// The counts of all pods.
pub(super) struct DiskCounts {
    counter: Arc<PodCounter>,
    /// The counting that is under way.
    under_way: Guarded<Option<CountingTask>>,
}

/// A task that counts pods.
struct CountingTask {
    task: AbortOnDropHandle<()>,
    /// Cancelled when the task has ended.
    ended: CancellationToken,
}

struct PodCounter {
    volumes: Arc<dyn Volumes>,
    pod_files: Arc<dyn PodFiles>,
    clock: Arc<dyn Clock>,
    counts: Guarded<BTreeMap<PodUid, Arc<PodDisks>>>,
}

/// What one pod held.
struct PodDisks {
    mono: Mono,
    wall: Timestamp,
    volumes: Option<Vec<EmptyDirUsage>>,
    files: Option<PodFileUsage>,
}

impl DiskCounts {
    pub(super) fn new(
        volumes: Arc<dyn Volumes>,
        pod_files: Arc<dyn PodFiles>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let counts = Guarded::default();
        let counter = Arc::new(PodCounter { volumes, pod_files, clock, counts });
        Self { counter, under_way: Guarded::default() }
    }

    /// Adds what is known of these pods, after what is too old was counted again.
    pub(super) async fn add_to(&self, measured: &mut [MeasuredPod], pods: &[Arc<ActivePod>]) {
        self.counter.forget_others(pods);
        self.count_old(measured, pods).await;
        let counts = self.counter.counts.lock().clone();
        for pod in measured {
            if let Some(disks) = counts.get(&pod.uid) {
                add(pod, disks);
            }
        }
    }

    /// Waits for the counts, but not for ever. The counting goes on when the request is given up.
    async fn count_old(&self, measured: &[MeasuredPod], pods: &[Arc<ActivePod>]) {
        let ended = {
            let mut under_way = self.under_way.lock();
            let current = under_way.take().filter(|it| !it.task.is_finished());
            let counting = current.or_else(|| {
                let old = self.counter.old(measured, pods);
                (!old.is_empty()).then(|| self.start(old))
            });
            let ended = counting.as_ref().map(|it| it.ended.clone());
            *under_way = counting;
            ended
        };
        let Some(ended) = ended else { return };
        // One that takes longer is found by the next request.
        timeout(REQUEST_WAIT, ended.cancelled()).await.ok();
    }

    fn start(&self, pods: Vec<Arc<ActivePod>>) -> CountingTask {
        let (counter, ended) = (Arc::clone(&self.counter), CancellationToken::new());
        let end = ended.clone().drop_guard();
        let task = tokio::spawn(async move {
            let _end = end;
            for pod in pods {
                counter.count(&pod).await;
            }
        });
        CountingTask { task: AbortOnDropHandle::new(task), ended }
    }
}

impl PodCounter {
    /// The pods that have a group and no recent count, those without any first.
    fn old(&self, measured: &[MeasuredPod], pods: &[Arc<ActivePod>]) -> Vec<Arc<ActivePod>> {
        let (now, counts) = (self.clock.mono(), self.counts.lock());
        let age = |uid: &PodUid| counts.get(uid).map(|disks| now.since(disks.mono));
        let is_old = |uid: &PodUid| age(uid).is_none_or(|age| age >= KEPT_FOR);
        let has_group = |uid: &PodUid| measured.iter().any(|pod| pod.uid == *uid);
        let old = pods.iter().filter(|pod| {
            let uid = pod.pod.uid();
            is_old(&uid) && has_group(&uid)
        });
        let mut old: Vec<_> = old.cloned().collect();
        old.sort_by_key(|pod| age(&pod.pod.uid()).is_some());
        old
    }

    async fn count(&self, pod: &ActivePod) {
        let uid = pod.pod.uid();
        let both = async {
            let (volumes, files) =
                (self.volumes.empty_dir_usage(&pod.pod).await, self.pod_files.usage(&uid).await);
            (volumes.map_err(|error| told(&uid, &error)), files.map_err(|error| told(&uid, &error)))
        };
        let (volumes, files) = timeout(POD_TIMEOUT, both).await.unwrap_or((Err(()), Err(())));
        let now = self.clock.now();
        let disks =
            PodDisks { mono: now.mono, wall: now.wall, volumes: volumes.ok(), files: files.ok() };
        self.counts.lock().insert(uid, Arc::new(disks));
    }

    fn forget_others(&self, pods: &[Arc<ActivePod>]) {
        self.counts.lock().retain(|uid, _| pods.iter().any(|pod| pod.pod.uid() == *uid));
    }
}

fn told(uid: &PodUid, error: &dyn std::fmt::Display) {
    tracing::debug!(pod = %uid, %error, "disk usage of the pod not counted");
}

fn add(pod: &mut MeasuredPod, disks: &PodDisks) {
    let volume = |it: &EmptyDirUsage| MeasuredVolume {
        name: it.volume.clone(),
        usage: it.usage,
        size_limit: it.size_limit,
        is_on_disk: it.is_on_disk,
    };
    pod.counted = Some(disks.wall);
    pod.volumes = disks.volumes.as_ref().map(|all| all.iter().map(volume).collect());
    let Some(files) = &disks.files else { return };
    pod.other_files = Some(files.hosts + files.termination_messages);
    for container in &mut pod.containers {
        container.logs = files.logs.get(&container.name).copied();
    }
}
