//! Metrics of the agent: what is counted and measured as it happens. The endpoints read it when they are asked; [`AgentMetrics::write`]
//! is the list of families.

mod calls;
mod claims;
mod families;
mod images;
mod probes;
mod series;
mod startup;
#[cfg(test)]
mod tests;
mod volumes;

use std::sync::Arc;

use jiff::Timestamp;
use oarsman_cluster::PodCertificateStates;
use oarsman_core::exposition::DEFAULT_SECONDS;
use oarsman_core::image::policy::PullPolicy;
use oarsman_core::node::startup::NodeStartup;
use oarsman_core::pod::ContainerKind;
use oarsman_core::start_error::StartReason;
use oarsman_core::time::{Mono, Now};
use oarsman_core::view::Exit;
use oarsman_sync::{Guarded, TaskPanics};

pub use calls::{measured_cgroups, measured_runtime};
pub use claims::ClaimMounts;
pub use families::write_pod_counts;
pub(crate) use images::ImageMetrics;
pub use probes::{ProbeMetrics, ProbeSeries};
pub(crate) use series::{Counter, CounterVec, Histogram, HistogramVec};
pub(crate) use startup::PodStartTracker;
pub(crate) use volumes::VolumeCounts;

/// The upper bounds of counts of containers.
const CONTAINERS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0];
/// The upper bounds of the starts of pods, in seconds.
const POD_START: &[f64] = &[
    0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 20.0, 30.0, 45.0, 60.0, 120.0, 180.0, 240.0,
    300.0, 360.0, 480.0, 600.0, 900.0, 1200.0, 1800.0, 2700.0, 3600.0,
];
/// The upper bounds of the time that a status takes to reach the API server, in seconds.
const STATUS_SYNC: &[f64] = &[0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0];
/// The upper bounds of runtime calls, in seconds: each is two and a half times the one before.
const RUNTIME_CALL: &[f64] = &[
    0.005,
    0.0125,
    0.03125,
    0.078125,
    0.1953125,
    0.48828125,
    1.220703125,
    3.0517578125,
    7.62939453125,
    19.073486328125,
    47.6837158203125,
    119.20928955078125,
    298.0232238769531,
    745.0580596923828,
];
/// The upper bounds of image pulls, in seconds.
const IMAGE_PULL: &[f64] =
    &[1.0, 5.0, 10.0, 20.0, 30.0, 60.0, 180.0, 300.0, 600.0, 900.0, 1200.0, 1800.0, 2700.0, 3600.0];

/// The agent's metrics.
#[derive(Debug)]
pub struct AgentMetrics {
    /// How often each task has panicked.
    pub panics: TaskPanics,
    /// What probes came to, by container and kind, and how long they took.
    pub probes: ProbeMetrics,
    /// The number of containers of each admitted pod.
    pub(crate) containers_per_pod: Histogram,
    /// From when a pod was first seen until all its containers have been started.
    pub(crate) pod_start: Histogram,
    /// From the creation of a pod until the API server shows that all of it runs.
    pub(crate) startup: PodStartTracker,
    /// One piece of work of a pod worker: create, update, sync or kill.
    pub(crate) pod_worker: HistogramVec<&'static str>,
    /// From when a pod was first seen until its worker began to sync it.
    pub(crate) pod_worker_start: Histogram,
    /// From the change of a status until the API server has it.
    pub(crate) status_sync: Histogram,
    /// The relists.
    pub(crate) relists: RelistMetrics,
    /// Calls to the runtime by operation; how often each was made is the count of its histogram.
    pub(crate) runtime_calls: HistogramVec<&'static str>,
    /// Those that failed.
    pub(crate) runtime_errors: CounterVec<&'static str>,
    /// Work on cgroups of pods by operation.
    pub(crate) cgroup_calls: HistogramVec<&'static str>,
    /// Creating a sandbox, by runtime handler.
    pub(crate) sandboxes: HistogramVec<String>,
    /// Sandboxes that were not created, by runtime handler.
    pub(crate) sandbox_errors: CounterVec<String>,
    /// Sandboxes with a user namespace that were asked for.
    pub(crate) started_user_namespaces: Counter,
    /// Those of them that were not made.
    pub(crate) user_namespace_errors: Counter,
    /// Containers that have ended, by type, exit code and reason.
    pub(crate) terminated_containers: CounterVec<(&'static str, u8, &'static str)>,
    /// Images that containers need.
    pub(crate) image_requests: CounterVec<ImageRequestLabels>,
    /// Starts of containers, also of those that failed.
    pub(crate) started_containers: CounterVec<&'static str>,
    /// Starts that failed, by reason.
    pub(crate) start_errors: CounterVec<(&'static str, StartReason)>,
    /// Pulls of images that succeeded, by the size of the image.
    pub(crate) pulls: HistogramVec<&'static str>,
    /// Unused images that were removed, by reason.
    pub(crate) removed_images: CounterVec<&'static str>,
    /// Pods that were rejected, by reason.
    pub(crate) rejections: CounterVec<&'static str>,
    /// Pods that were preempted, by the resource that was needed.
    pub(crate) preemptions: CounterVec<&'static str>,
    /// Pods that only the runtime or the disk knew of.
    pub(crate) orphaned_pods: Counter,
    /// Pods that came back while they were being terminated, by whether they are static.
    pub(crate) restarted_pods: CounterVec<bool>,
    /// Volumes that pods should have and have.
    pub(crate) volumes: VolumeCounts,
    /// Checks of credentials for images, image volumes and credential provider plugins.
    pub(crate) images: ImageMetrics,
    /// Sleeps of lifecycle hooks that ended before their time.
    pub(crate) sleeps_terminated_early: Counter,
    /// HTTPS hooks that were answered in plain HTTP.
    pub(crate) http_fallbacks: Counter,
    /// Where the volumes of claims are mounted.
    pub claims: ClaimMounts,
    /// How long the node took until it was ready.
    pub node_startup: Guarded<NodeStartup>,
    /// What became of the certificates of pods.
    pub pod_certificates: PodCertificateStates,
}

impl Default for AgentMetrics {
    fn default() -> Self {
        Self {
            panics: TaskPanics::default(),
            probes: ProbeMetrics::default(),
            containers_per_pod: Histogram::new(CONTAINERS),
            pod_start: Histogram::new(POD_START),
            startup: PodStartTracker::new(POD_START),
            pod_worker: HistogramVec::new(DEFAULT_SECONDS),
            pod_worker_start: Histogram::new(DEFAULT_SECONDS),
            status_sync: Histogram::new(STATUS_SYNC),
            relists: RelistMetrics::default(),
            runtime_calls: HistogramVec::new(RUNTIME_CALL),
            runtime_errors: CounterVec::default(),
            cgroup_calls: HistogramVec::new(DEFAULT_SECONDS),
            sandboxes: HistogramVec::new(DEFAULT_SECONDS),
            sandbox_errors: CounterVec::default(),
            started_user_namespaces: Counter::default(),
            user_namespace_errors: Counter::default(),
            terminated_containers: CounterVec::default(),
            image_requests: CounterVec::default(),
            started_containers: CounterVec::default(),
            start_errors: CounterVec::default(),
            pulls: HistogramVec::new(IMAGE_PULL),
            removed_images: CounterVec::default(),
            rejections: CounterVec::default(),
            preemptions: CounterVec::default(),
            orphaned_pods: Counter::default(),
            restarted_pods: CounterVec::default(),
            volumes: VolumeCounts::default(),
            images: ImageMetrics::default(),
            sleeps_terminated_early: Counter::default(),
            http_fallbacks: Counter::default(),
            claims: ClaimMounts::default(),
            node_startup: Guarded::default(),
            pod_certificates: PodCertificateStates::default(),
        }
    }
}

/// How often and how long runtime and disk are listed.
#[derive(Debug)]
pub(crate) struct RelistMetrics {
    pub(crate) durations: Histogram,
    intervals: Histogram,
    last: Guarded<Option<Now>>,
}

impl Default for RelistMetrics {
    fn default() -> Self {
        let durations = Histogram::new(DEFAULT_SECONDS);
        let intervals = Histogram::new(DEFAULT_SECONDS);
        Self { durations, intervals, last: Guarded::default() }
    }
}

impl RelistMetrics {
    /// A relist begins.
    pub(crate) fn begin(&self, now: Now) {
        if let Some(last) = self.last.lock().replace(now) {
            self.intervals.observe_duration(now.mono.since(last.mono));
        }
    }

    /// It has ended, with whatever result.
    pub(crate) fn end(&self, began: Mono, now: Mono) {
        self.durations.observe_duration(now.since(began));
    }

    /// When the last one began.
    pub(crate) fn last_seen(&self) -> Option<Timestamp> {
        self.last.lock().map(|last| last.wall)
    }
}

/// Metrics that several parts of the agent write.
pub(crate) type SharedMetrics = Arc<AgentMetrics>;

/// The value of the label `container_type`.
pub(crate) fn container_type(kind: ContainerKind) -> &'static str {
    match kind {
        ContainerKind::Init | ContainerKind::Sidecar => "init_container",
        ContainerKind::Regular => "container",
        ContainerKind::Ephemeral => "ephemeral_container",
    }
}

/// The labels of `kubelet_image_manager_ensure_image_requests_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ImageRequestLabels {
    /// Whether the image was there; none if that is not known.
    pub(crate) present_locally: Option<bool>,
    pub(crate) pull_policy: &'static str,
    /// Whether it had to be pulled; none if that is not known.
    pub(crate) pull_required: Option<bool>,
}

/// The value of the label `pull_policy`.
pub(crate) fn pull_policy(policy: PullPolicy) -> &'static str {
    match policy {
        PullPolicy::Always => "always",
        PullPolicy::IfNotPresent => "ifnotpresent",
        PullPolicy::Never => "never",
    }
}

/// The values of the labels `exit_code` and `reason`. Runtimes give codes of one byte, and few reasons.
pub(crate) fn exit_labels(exit: &Exit) -> (u8, &'static str) {
    const REASONS: [&str; 5] =
        ["Completed", "ContainerCannotRun", "Error", "OOMKilled", "StartError"];
    let reason = REASONS.into_iter().find(|known| *known == exit.reason);
    (u8::try_from(exit.code).unwrap_or(u8::MAX), reason.unwrap_or("Other"))
}

/// The value of the label `preemption_signal`: resources that only some nodes have are not told apart.
pub(crate) fn preemption_signal(resource: &str) -> &'static str {
    let known = ["cpu", "memory", "ephemeral-storage", "pods"];
    known.into_iter().find(|known| *known == resource).unwrap_or("other")
}

/// The value of the label `image_size_in_bytes`: the range that the size lies in, or that it is unknown.
pub(crate) fn image_size_range(bytes: u64) -> &'static str {
    const MIB: u64 = 1024 * 1024;
    const GIB: u64 = 1024 * MIB;
    const RANGES: [(u64, &str); 12] = [
        (0, "N/A"),
        (10 * MIB, "0-10MB"),
        (100 * MIB, "10MB-100MB"),
        (500 * MIB, "100MB-500MB"),
        (GIB, "500MB-1GB"),
        (5 * GIB, "1GB-5GB"),
        (10 * GIB, "5GB-10GB"),
        (20 * GIB, "10GB-20GB"),
        (30 * GIB, "20GB-30GB"),
        (40 * GIB, "30GB-40GB"),
        (60 * GIB, "40GB-60GB"),
        (100 * GIB, "60GB-100GB"),
    ];
    let range = RANGES.iter().find(|(end, _)| bytes < *end || bytes == 0);
    range.map_or("GT100GB", |(_, label)| label)
}
