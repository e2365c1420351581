//! One file: its problems and warnings, decoded strictly and otherwise.

use std::path::Path;

use super::{FILE, load_file};
use crate::ConfigFile;

const HEAD: &str = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

fn yaml(fields: &str) -> String {
    format!("{HEAD}{fields}")
}

fn problems(text: &str) -> Vec<String> {
    let problems = load_file(text).map(|_| Vec::new()).unwrap_or_else(|problems| problems.0);
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn unknown_and_repeated_fields_are_warnings_that_name_them() {
    let text =
        yaml("maxPod: 5\nmaxPods: 6\nauthentication:\n  x509: {clientCaFile: /ca}\nmaxPods: 7\n");
    let loaded = load_file(&text).unwrap();
    assert_eq!(loaded.configuration.max_pods, 7);
    assert_eq!(loaded.written(), ["authentication", "maxPods"]);
    let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            format!("{FILE}: maxPods: is said twice; the last one counts: drop the others"),
            format!(
                "{FILE}: authentication.x509.clientCaFile: is no field that the kubelet has (did you mean clientCAFile?)"
            ),
            format!("{FILE}: maxPod: is no field that the kubelet has (did you mean maxPods?)"),
        ]
    );
}

#[test]
fn strict_checking_reports_unknown_fields_and_broken_rules_at_once() {
    let text =
        yaml("maxPod: 5\nport: 0\nhealthzPort: -1\nevictionHard: {memory.available: 1Gib}\n");
    let check =
        |text: &str| crate::check(ConfigFile { path: Path::new(FILE), bytes: text.as_bytes() });
    let said: Vec<String> = check(&text).iter().map(ToString::to_string).collect();
    let amount = "\"1Gib\" is no amount; write it like 500Mi or 10%";
    assert_eq!(
        said,
        [format!("{FILE}: evictionHard[\"memory.available\"]: {amount}")],
        "types first"
    );
    let text = yaml("maxPod: 5\nhealthzPort: -1\nmaxPods: -1\n");
    let fields: Vec<String> =
        check(&text).iter().map(|problem| problem.field.to_string()).collect();
    assert_eq!(fields, ["maxPod", "healthzPort", "maxPods"]);
    assert_eq!(check(&yaml("maxPods: 5\n")), []);
}

#[test]
fn everything_of_the_wrong_type_is_said_at_once() {
    let text =
        yaml("port: high\nfailSwapOn: maybe\nsyncFrequency: 10\nclusterDNS: [10.0.0.1, a]\n");
    let said = problems(&text);
    let fields = ["clusterDNS[1]", "failSwapOn", "port", "syncFrequency"];
    assert_eq!(said.len(), fields.len(), "{said:?}");
    for (problem, field) in said.iter().zip(fields) {
        assert!(problem.starts_with(&format!("{FILE}: {field}: ")), "{problem}");
    }
    assert!(said[0].contains("\"a\""), "{}", said[0]);
    assert!(said[3].contains("a duration such as 20s"), "{}", said[3]);
}

#[test]
fn a_file_needs_api_version_and_kind() {
    let rows = [
        ("", "is empty; begin it with the lines `apiVersion: kubelet.config.k8s.io/v1beta1`"),
        ("# nothing\n", "is empty"),
        ("- a\n", "is no set of fields"),
        ("a: [\n", "it is not YAML"),
        (
            "kind: KubeletConfiguration\n",
            "apiVersion: is missing; write `apiVersion: kubelet.config.k8s.io/v1beta1`",
        ),
        (
            "apiVersion: kubelet.config.k8s.io/v1\nkind: KubeletConfiguration\n",
            "apiVersion: \"kubelet.config.k8s.io/v1\" is none that can be read; write `apiVersion: kubelet.config.k8s.io/v1beta1`",
        ),
        (
            "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: Pod\n",
            "kind: \"Pod\" is none that can be read; write `kind: KubeletConfiguration`",
        ),
    ];
    for (text, expected) in rows {
        let said = problems(text);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with(&format!("{FILE}: {expected}")), "{said:?}");
    }
    assert_eq!(problems("a: 1\n").len(), 2, "both lines are missing");
    let two = problems(&format!("{HEAD}---\n{HEAD}"));
    assert!(two[0].contains("2 documents"), "{two:?}");
}

#[test]
fn relative_paths_are_meant_from_the_files_directory() {
    let text = yaml(
        "staticPodPath: manifests\ntlsCertFile: ../pki/a.crt\ntlsPrivateKeyFile: /abs/a.key\nresolvConf: ./resolv.conf\n\
         volumePluginDir: plugins\npodLogsDir: logs\nauthentication: {x509: {clientCAFile: pki/ca.crt}}\n",
    );
    let loaded = load_file(&text).unwrap().configuration;
    assert_eq!(loaded.static_pod_path, "/etc/kubernetes/manifests");
    assert_eq!(loaded.tls_cert_file, "/etc/pki/a.crt");
    assert_eq!(loaded.tls_private_key_file, "/abs/a.key");
    assert_eq!(loaded.resolv_conf, "/etc/kubernetes/resolv.conf");
    assert_eq!(loaded.volume_plugin_dir, "/etc/kubernetes/plugins");
    assert_eq!(loaded.pod_logs_dir, "/etc/kubernetes/logs");
    assert_eq!(loaded.authentication.x509.client_ca_file, "/etc/kubernetes/pki/ca.crt");
}

#[test]
fn a_configuration_of_kubeadm_gives_no_warning() {
    let text = yaml(
        "authentication:\n  anonymous:\n    enabled: false\n  webhook:\n    cacheTTL: 0s\n    enabled: true\n  x509:\n    \
         clientCAFile: /etc/kubernetes/pki/ca.crt\nauthorization:\n  mode: Webhook\n  webhook:\n    cacheAuthorizedTTL: 0s\n    \
         cacheUnauthorizedTTL: 0s\ncgroupDriver: systemd\nclusterDNS:\n- 10.96.0.10\nclusterDomain: cluster.local\n\
         containerRuntimeEndpoint: \"\"\ncpuManagerReconcilePeriod: 0s\ncrashLoopBackOff: {}\nevictionPressureTransitionPeriod: 0s\n\
         fileCheckFrequency: 0s\nhealthzBindAddress: 127.0.0.1\nhealthzPort: 10248\nhttpCheckFrequency: 0s\nimageMaximumGCAge: 0s\n\
         imageMinimumGCAge: 0s\nlogging:\n  flushFrequency: 0\n  options:\n    json:\n      infoBufferSize: \"0\"\n    text:\n      \
         infoBufferSize: \"0\"\n  verbosity: 0\nmemorySwap: {}\nnodeStatusReportFrequency: 0s\nnodeStatusUpdateFrequency: 0s\n\
         rotateCertificates: true\nruntimeRequestTimeout: 0s\nshutdownGracePeriod: 0s\nshutdownGracePeriodCriticalPods: 0s\n\
         staticPodPath: /etc/kubernetes/manifests\nstreamingConnectionIdleTimeout: 0s\nsyncFrequency: 0s\nvolumeStatsAggPeriod: 0s\n",
    );
    let loaded = load_file(&text).unwrap();
    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.configuration.sync_frequency.to_string(), "1m0s");
    assert_eq!(loaded.configuration.eviction_hard.len(), 5);
}
