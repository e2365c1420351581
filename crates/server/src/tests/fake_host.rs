//! An agent as the server sees it, with two pods and a few numbers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use k8s_openapi::api::core::v1::Pod;
use oarsman_core::active_pods::{ActivePod, ActivePods, PodStage};
use oarsman_core::exposition::{Exposition, MetricKind};
use oarsman_core::ids::FullName;
use oarsman_core::lifecycle::Stage;
use oarsman_core::stats::{StatsScope, StatsSnapshot};
use oarsman_sync::Guarded;
use serde_json::{Value, json};

use crate::endpoints::stats::tests::snapshot;
use crate::{HostInterface, LogDirectory, MetricsSource, StatsError, StatsProvider};

/// A pod with logs in a directory, and another one; counts queries.
pub(crate) struct FakeHost {
    pub(super) logs: PathBuf,
    pub(super) pods: Guarded<ActivePods>,
    pub(super) lists: AtomicUsize,
    pub(super) lookups: AtomicUsize,
    /// Whether its sync loop does not run.
    pub(super) is_stuck: AtomicBool,
    /// Whether its log takes nothing.
    pub(super) is_log_blocked: AtomicBool,
    /// The verbosity that was set last.
    pub(super) verbosity: AtomicUsize,
}

impl FakeHost {
    pub(crate) fn with_state(logs: &Path, state: &Value) -> Arc<Self> {
        let node = Self {
            logs: logs.to_owned(),
            pods: Guarded::default(),
            lists: AtomicUsize::default(),
            lookups: AtomicUsize::default(),
            is_stuck: AtomicBool::default(),
            is_log_blocked: AtomicBool::default(),
            verbosity: AtomicUsize::default(),
        };
        node.set_state("web", state);
        node.set_state("idle", &json!({ "terminated": { "exitCode": 0 } }));
        Arc::new(node)
    }

    pub(super) fn set_state(&self, pod: &str, state: &Value) {
        self.set_pod(pod, pod, state);
    }

    /// Only a pod of that name and another UID.
    pub(super) fn replace(&self, pod: &str, state: &Value) {
        *self.pods.lock() = ActivePods::default();
        self.set_pod(pod, "another", state);
    }

    fn set_pod(&self, pod: &str, uid: &str, state: &Value) {
        let pod = serde_json::from_value(json!({
            "metadata": { "name": pod, "namespace": "default", "uid": uid },
            "spec": { "containers": [{ "name": "c" }] },
            "status": { "containerStatuses": [{
                "name": "c", "image": "i", "imageID": "", "ready": true, "restartCount": 0, "state": state,
            }]},
        }));
        let stage = PodStage::Worker(Stage::Syncing);
        self.pods.lock().set_pod(&Arc::new(pod.unwrap()), stage);
    }

    pub(super) fn queries(&self) -> (usize, usize) {
        (self.lists.load(Ordering::SeqCst), self.lookups.load(Ordering::SeqCst))
    }
}

impl HostInterface for FakeHost {
    fn pods(&self) -> Vec<Arc<ActivePod>> {
        self.lists.fetch_add(1, Ordering::SeqCst);
        self.pods.lock().all().cloned().collect()
    }

    fn pod(&self, name: &FullName) -> Option<Arc<ActivePod>> {
        self.lookups.fetch_add(1, Ordering::SeqCst);
        self.pods.lock().by_name(name).cloned()
    }

    fn sync_loop_health(&self) -> Result<(), String> {
        let is_stuck = self.is_stuck.load(Ordering::SeqCst);
        if is_stuck { Err("it does not run".to_owned()) } else { Ok(()) }
    }

    fn log_health(&self) -> Result<(), String> {
        let is_blocked = self.is_log_blocked.load(Ordering::SeqCst);
        if is_blocked { Err("it takes nothing".to_owned()) } else { Ok(()) }
    }

    fn set_log_verbosity(&self, verbosity: u32) {
        self.verbosity.store(usize::try_from(verbosity).unwrap(), Ordering::SeqCst);
    }

    fn log_directory(&self, _: &Pod, _: &str) -> LogDirectory {
        LogDirectory(self.logs.clone())
    }

    fn stats_provider(&self) -> Arc<dyn StatsProvider> {
        Arc::new(FakeNodeStats)
    }
}

/// A node that is measured.
struct FakeNodeStats;

#[async_trait]
impl StatsProvider for FakeNodeStats {
    async fn stats(&self, _: StatsScope) -> Result<Arc<StatsSnapshot>, StatsError> {
        Ok(Arc::new(snapshot()))
    }
}

/// One number of the agent and one of its probes.
pub(super) struct FakeMetrics;

#[async_trait]
impl MetricsSource for FakeMetrics {
    async fn write_kubelet_metrics(&self, out: &mut Exposition) {
        out.single("kubelet_running_pods", MetricKind::Gauge, "Pods.", 2.0);
    }

    fn write_probe_metrics(&self, out: &mut Exposition) {
        out.single("prober_probe_total", MetricKind::Counter, "Probes.", 7.0);
    }
}
