//! The whole text of `/metrics`, read as strictly as Prometheus does.

use std::collections::BTreeSet;

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use oarsman_clock::SystemClock;
use oarsman_core::exposition::strict;
use oarsman_core::ids::FullName;
use oarsman_core::stats::{FileSystemStats, MeasuredClaim};
use oarsman_core::time::Mono;
use oarsman_state::PullRecordFiles;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::node_stats::ClaimSizes;

/// One volume of a claim.
struct OneClaim;

#[async_trait]
impl ClaimSizes for OneClaim {
    async fn claim_sizes(&self) -> Vec<MeasuredClaim> {
        let claim = FullName { name: "db-0".to_owned(), namespace: "shop".to_owned() };
        let fs = FileSystemStats { capacity: 5000, ..FileSystemStats::default() };
        vec![MeasuredClaim { volume: "db".to_owned(), claim, fs }]
    }
}

/// An agent that has registered its node, which is ready.
fn started() -> Arc<AgentMetrics> {
    let agent = Arc::<AgentMetrics>::default();
    let at = |seconds| Mono(Duration::from_secs(seconds));
    let condition = json!({ "type": "Ready", "status": "True" });
    let node: Node =
        serde_json::from_value(json!({ "status": { "conditions": [condition] } })).unwrap();
    let mut startup = agent.node_startup.lock();
    startup.begin(at(1));
    startup.attempt(at(3));
    startup.register(at(6));
    startup.report(&node, at(10));
    drop(startup);
    agent
}

/// With the directory of the records of pulls.
fn metrics(root: &TempDir, is_in_cluster: bool) -> KubeletMetrics {
    let pull_records = Arc::new(PullRecordFiles::open(root.path()));
    KubeletMetrics {
        agent: if is_in_cluster { started() } else { Arc::default() },
        disks: DiskMetrics { pull_records, claims: Arc::new(OneClaim) },
        providers_hash: is_in_cluster.then(|| "sha256:00".to_owned()),
        pods: ActivePodsReader::default(),
        node: "node-1".to_owned(),
        features: FeatureGates::default(),
        cgroup_version: CgroupVersion::V2,
        client_certificate: is_in_cluster.then(CertificateRecord::default),
        serving_certificate: Guarded::new(Some(CertificateRecord::default())),
        process: ProcessReader::new().ok(),
        tracer: None,
        clock: Arc::new(SystemClock::start()),
    }
}

async fn text(is_in_cluster: bool) -> String {
    let root = tempfile::tempdir().unwrap();
    let mut out = Exposition::default();
    metrics(&root, is_in_cluster).write_kubelet_metrics(&mut out).await;
    out.into_text()
}

#[tokio::test]
async fn the_text_is_strictly_what_prometheus_reads() {
    let values = strict::read(&text(true).await).unwrap();
    let platform = format!("linux/{}", go_architecture(env::consts::ARCH));
    let build = format!(
        "kubernetes_build_info{{major=\"1\",minor=\"36\",git_version=\"{}\",platform=\"{platform}\"}}",
        kubernetes_version()
    );
    let rows = [
        ("kubelet_node_name{node=\"node-1\"}", 1.0),
        ("kubelet_cgroup_version", 2.0),
        ("kubelet_running_pods", 0.0),
        ("kubelet_mirror_pods", 0.0),
        ("kubelet_certificate_manager_client_expiration_renew_errors", 0.0),
        ("kubelet_certificate_manager_server_rotation_seconds_count", 0.0),
        ("kubernetes_feature_enabled{name=\"EnvFiles\",stage=\"BETA\"}", 1.0),
        ("kubernetes_feature_enabled{name=\"ContainerStopSignals\",stage=\"ALPHA\"}", 0.0),
        (&build, 1.0),
        ("kubelet_imagemanager_ondisk_pullintents", 0.0),
        ("kubelet_imagemanager_ondisk_pulledrecords", 0.0),
        ("kubelet_credential_provider_config_info{hash=\"sha256:00\"}", 1.0),
        ("kubelet_node_startup_pre_registration_duration_seconds", 2.0),
        ("kubelet_node_startup_registration_duration_seconds", 3.0),
        ("kubelet_node_startup_post_registration_duration_seconds", 4.0),
        (
            "kubelet_volume_stats_capacity_bytes{namespace=\"shop\",persistentvolumeclaim=\"db-0\"}",
            5000.0,
        ),
    ];
    for (series, value) in rows {
        assert_eq!(values.get(series), Some(&value), "{series}");
    }
    let pre_kubelet = values["kubelet_node_startup_pre_kubelet_duration_seconds"];
    let total = values["kubelet_node_startup_duration_seconds"];
    assert!((total - pre_kubelet - 9.0).abs() < 0.001, "{total} with {pre_kubelet} before");
    for process in ["process_open_fds", "process_resident_memory_bytes", "process_max_fds"] {
        assert!(values[process] > 0.0, "{process}");
    }
}

#[tokio::test]
async fn what_is_not_known_is_absent() {
    let values = strict::read(&text(false).await).unwrap();
    let absent = [
        "kubelet_mirror_pods",
        "kubelet_certificate_manager_client_ttl_seconds",
        "kubelet_certificate_manager_client_expiration_renew_errors",
        "kubelet_certificate_manager_server_ttl_seconds",
        "kubelet_pleg_last_seen_seconds",
        "kubelet_first_network_pod_start_sli_duration_seconds",
        "kubelet_node_startup_pre_kubelet_duration_seconds",
        "kubelet_node_startup_duration_seconds",
        "kubelet_credential_provider_config_info",
    ];
    for series in absent {
        assert_eq!(values.get(series), None, "{series}");
    }
}

/// The names in the first column of the tables of docs/metrics.md, up to the families that are absent.
fn documented() -> BTreeSet<String> {
    let document = include_str!("../../../../../docs/metrics.md");
    let (present, _) = document.split_once("## Families that are absent").unwrap();
    let names = present.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    names.map(str::to_owned).collect()
}

#[tokio::test]
async fn every_family_is_documented() {
    let documented = documented();
    let text = text(true).await;
    let families = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let unknown: Vec<&str> = families.filter(|name| !documented.contains(*name)).collect();
    assert_eq!(unknown, [""; 0], "docs/metrics.md has a row for each family");
}
