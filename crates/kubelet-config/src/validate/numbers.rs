//! Validation of numbers that have bounds.

use super::ProblemCollector;
use crate::configuration::KubeletConfiguration;

const LARGEST_PORT: i32 = 65535;

pub(super) fn validate(kubelet: &KubeletConfiguration, found: &mut ProblemCollector) {
    ports(kubelet, found);
    rates(kubelet, found);
    pulls(kubelet, found);
    counts(kubelet, found);
}

fn ports(kubelet: &KubeletConfiguration, found: &mut ProblemCollector) {
    found.between("port", kubelet.port, 1, LARGEST_PORT);
    found.between("readOnlyPort", kubelet.read_only_port, 0, LARGEST_PORT);
    found.between("healthzPort", kubelet.healthz_port, 0, LARGEST_PORT);
}

fn rates(kubelet: &KubeletConfiguration, found: &mut ProblemCollector) {
    found.at_least("registryPullQPS", kubelet.registry_pull_qps, 0);
    found.at_least("registryBurst", kubelet.registry_burst, 0);
    found.at_least("eventRecordQPS", kubelet.event_record_qps, 0);
    found.at_least("eventBurst", kubelet.event_burst, 0);
    found.at_least("kubeAPIQPS", kubelet.kube_api_qps, 0);
    found.at_least("kubeAPIBurst", kubelet.kube_api_burst, 0);
}

fn pulls(kubelet: &KubeletConfiguration, found: &mut ProblemCollector) {
    let Some(pulls) = kubelet.max_parallel_image_pulls else { return };
    found.at_least("maxParallelImagePulls", pulls, 1);
    if pulls > 1 && kubelet.serialize_image_pulls {
        found.wrong(
            "maxParallelImagePulls",
            format!(
                "{pulls} contradicts serializeImagePulls: true; set that to false, or leave it out"
            ),
        );
    }
}

fn counts(kubelet: &KubeletConfiguration, found: &mut ProblemCollector) {
    found.at_least("nodeLeaseDurationSeconds", kubelet.node_lease_duration_seconds, 1);
    found.between("oomScoreAdj", kubelet.oom_score_adj, -1000, 1000);
    found.at_least("nodeStatusMaxImages", kubelet.node_status_max_images, -1);
    found.at_least("maxOpenFiles", kubelet.max_open_files, 0);
    found.at_least("maxPods", kubelet.max_pods, 0);
    found.at_least("podsPerCore", kubelet.pods_per_core, 0);
    found.between("iptablesMasqueradeBit", kubelet.iptables_masquerade_bit, 0, 31);
    found.between("iptablesDropBit", kubelet.iptables_drop_bit, 0, 31);
    found.at_least("containerLogMaxFiles", kubelet.container_log_max_files, 2);
    found.at_least("containerLogMaxWorkers", kubelet.container_log_max_workers, 1);
    let (high, low) =
        (kubelet.image_gc_high_threshold_percent, kubelet.image_gc_low_threshold_percent);
    found.between("imageGCHighThresholdPercent", high, 0, 100);
    found.between("imageGCLowThresholdPercent", low, 0, 100);
    if low >= high {
        found.wrong(
            "imageGCLowThresholdPercent",
            format!("{low} must be less than imageGCHighThresholdPercent, which is {high}"),
        );
    }
    let factor = kubelet.memory_throttling_factor;
    if !(factor > 0.0 && factor <= 1.0) {
        found.wrong("memoryThrottlingFactor", format!("{factor} must be above 0 and not above 1"));
    }
}
