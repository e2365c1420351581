//! Which servers a configuration gives, and what they serve of the active pods.

use std::path::Path;

use oarsman_core::active_pods::{ActivePods, PodStage};
use oarsman_core::lifecycle::Stage;
use oarsman_core::stats::{StatsScope, StatsSnapshot};
use oarsman_kubelet_config::flags;
use oarsman_server::StatsError;

use super::*;

fn planned(words: &[&str]) -> ServingPlan {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let given = flags::parse(&words).unwrap();
    let loaded = oarsman_kubelet_config::load(None, &[], &given.layers).unwrap();
    ServingPlan::new(&loaded.configuration, &given.program, "a")
}

#[test]
fn servers_listen_where_they_are_told_to() {
    let plan =
        planned(&["--address=127.0.0.1", "--port=1", "--read-only-port=2", "--healthz-port=3"]);
    let address = |port| Some(SocketAddr::from(([127, 0, 0, 1], port)));
    let settings = plan.settings;
    assert_eq!(
        (settings.secure, settings.read_only, settings.health),
        (address(1), address(2), address(3))
    );
    let none =
        planned(&["--enable-server=false", "--read-only-port=0", "--healthz-port=0"]).settings;
    assert_eq!((none.secure, none.read_only, none.health), (None, None, None));
}

#[test]
fn the_values_of_headers_for_manifests_are_not_shown() {
    let words = [
        "--manifest-url-header=Authorization:secret",
        "--manifest-url-header=X-Node:a",
        "--manifest-url=https://me:secret@h:8443/p?t=secret@x",
    ];
    let shown = planned(&words).settings.configuration;
    assert!(!shown.to_string().contains("secret"), "{shown}");
    assert_eq!(shown["staticPodURLHeader"]["Authorization"][0], "<masked>");
    assert_eq!(shown["staticPodURL"], "https://<masked>@h:8443/p?<masked>");
    for url in ["", "http://h/p", "https://[fd00::1]:1/a@b", "h"] {
        assert_eq!(without_secrets(url), url);
    }
}

#[test]
fn certificates_come_from_files_from_the_cluster_or_from_ourselves() {
    let files = ["--tls-cert-file=/c", "--tls-private-key-file=/k"];
    let origin = planned(&files).origin(None, &NodeAddresses::default());
    assert!(
        matches!(origin, ServingCertificateSource::Files { certificate, key, reloads: true } if certificate == Path::new("/c") && key == Path::new("/k"))
    );
    let origin = planned(&["--cert-dir=/pki"]).origin(None, &NodeAddresses::default());
    assert!(
        matches!(origin, ServingCertificateSource::SelfSigned { cert_dir, host } if cert_dir == Path::new("/pki") && host == "a")
    );
    assert!(!planned(&files).signed_by_cluster);
}

#[test]
fn a_feature_gate_switches_whether_renewed_certificate_files_are_loaded() {
    let off = "--feature-gates=ReloadKubeletServerCertificateFile=false";
    assert!(planned(&[]).reloads_files && !planned(&[off]).reloads_files);
}

#[test]
fn a_server_is_known_by_the_addresses_of_its_node() {
    let addresses = NodeAddresses::default();
    let source = planned(&[]).addresses(&addresses);
    let spell = || -> Vec<String> {
        source().iter().map(|it| format!("{}={}", it.type_, it.address)).collect()
    };
    assert_eq!(spell(), ["Hostname=a"]);
    addresses.set(&["10.0.0.1".parse().unwrap()]);
    assert_eq!(spell(), ["InternalIP=10.0.0.1", "Hostname=a"], "once they are found");
}

#[test]
fn pods_are_listed_by_namespace_and_name_and_the_one_that_waits_last() {
    let syncing = PodStage::Worker(Stage::Syncing);
    let rows = [
        ("1", "b", "web", PodStage::Waiting),
        ("2", "b", "web", syncing),
        ("3", "b", "app", syncing),
        ("4", "a", "web", syncing),
    ];
    let mut pods = ActivePods::default();
    for (uid, namespace, name, stage) in rows {
        let mut pod = Pod::default();
        pod.metadata.uid = Some(uid.to_owned());
        pod.metadata.namespace = Some(namespace.to_owned());
        pod.metadata.name = Some(name.to_owned());
        pods.set_pod(&Arc::new(pod), stage);
    }
    let listed = by_namespace_and_name(pods.all().cloned().collect());
    let uids: Vec<String> = listed.iter().map(|pod| pod.pod.uid().to_string()).collect();
    assert_eq!(uids, ["4", "3", "2", "1"]);
}

fn host() -> AgentHost {
    AgentHost {
        pods: ActivePodsReader::default(),
        pod_logs: PathBuf::from("/logs"),
        sync_loop_monitor: SyncLoopMonitor::default(),
        sync_frequency: Duration::from_secs(60),
        log: LogControl::of_nothing(),
        clock: Arc::new(oarsman_clock::SystemClock::start()),
        stats: Arc::new(UnreadableNode),
    }
}

/// Cannot be measured.
struct UnreadableNode;

#[async_trait::async_trait]
impl StatsProvider for UnreadableNode {
    async fn stats(&self, _: StatsScope) -> Result<Arc<StatsSnapshot>, StatsError> {
        Err(StatsError("no files".to_owned()))
    }
}

#[test]
fn logs_are_below_the_directory_of_pod_logs() {
    let source = host();
    let mut pod = Pod::default();
    pod.metadata.uid = Some("u".to_owned());
    pod.metadata.name = Some("web".to_owned());
    assert_eq!(
        source.log_directory(&pod, "c"),
        LogDirectory(PathBuf::from("/logs/default_web_u/c"))
    );
    assert_eq!(source.pod(&pod.full_name()), None);
}
