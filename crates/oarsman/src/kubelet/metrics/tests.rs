//! The whole text of `/metrics`, read as strictly as Prometheus does.

use std::collections::BTreeSet;

use oarsman_clock::SystemClock;
use oarsman_core::exposition::strict;

use super::*;

fn metrics(is_in_cluster: bool) -> KubeletMetrics {
    KubeletMetrics {
        agent: Arc::default(),
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

fn text(metrics: &KubeletMetrics) -> String {
    let mut out = Exposition::default();
    metrics.write_kubelet_metrics(&mut out);
    out.into_text()
}

#[test]
fn the_text_is_strictly_what_prometheus_reads() {
    let values = strict::read(&text(&metrics(true))).unwrap();
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
    ];
    for (series, value) in rows {
        assert_eq!(values.get(series), Some(&value), "{series}");
    }
    for process in ["process_open_fds", "process_resident_memory_bytes", "process_max_fds"] {
        assert!(values[process] > 0.0, "{process}");
    }
}

#[test]
fn what_is_not_known_is_absent() {
    let values = strict::read(&text(&metrics(false))).unwrap();
    let absent = [
        "kubelet_mirror_pods",
        "kubelet_certificate_manager_client_ttl_seconds",
        "kubelet_certificate_manager_client_expiration_renew_errors",
        "kubelet_certificate_manager_server_ttl_seconds",
        "kubelet_pleg_last_seen_seconds",
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

#[test]
fn every_family_is_documented() {
    let documented = documented();
    let text = text(&metrics(true));
    let families = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let unknown: Vec<&str> = families.filter(|name| !documented.contains(*name)).collect();
    assert_eq!(unknown, [""; 0], "docs/metrics.md has a row for each family");
}
