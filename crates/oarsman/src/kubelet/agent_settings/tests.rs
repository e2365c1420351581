//! Which settings of an agent a configuration gives.

use std::time::Duration;

use oarsman_kubelet_config::flags;
use oarsman_kubelet_config::sections::Tracing;

use super::*;

fn settings_for(words: &[&str]) -> AgentSettings {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let given = flags::parse(&words).unwrap();
    let loaded = oarsman_kubelet_config::load(None, &[], &given.layers).unwrap();
    settings(&loaded, &given.program).unwrap()
}

#[test]
fn defaults_are_those_of_the_go_kubelet_but_for_parallel_pulls() {
    let settings = settings_for(&["--hostname-override", " Node-1 "]);
    assert_eq!(settings.root, PathBuf::from("/var/lib/kubelet"));
    assert_eq!(settings.node_name, "node-1");
    assert_eq!(settings.sources.rescan, Duration::from_secs(20));
    assert_eq!(settings.relist_period, Duration::from_secs(60));
    assert_eq!(settings.pod_pids_limit, None);
    assert_eq!(settings.parallel_pulls, 5);
    assert_eq!(settings.image_endpoint, None);
    assert_eq!(settings.cgroup_root, "/");
    assert_eq!(settings.longest_crash_backoff, Duration::from_secs(300));
    assert_eq!(settings.containers, ContainerSettings::default());
    assert_eq!(settings.container_logs, Some(PathBuf::from("/var/log/containers")));
    assert_eq!(settings.log_rotation, Some(LogRotationPolicy::default()));
}

#[test]
fn spans_are_sent_only_if_some_are_sampled() {
    let tracing = |endpoint: Option<&str>, rate| {
        let endpoint = endpoint.map(str::to_owned);
        let tracing = Tracing { endpoint, sampling_rate_per_million: rate };
        tracing_settings(&KubeletConfiguration {
            tracing: Some(tracing),
            ..KubeletConfiguration::default()
        })
    };
    assert_eq!(tracing_settings(&KubeletConfiguration::default()), None);
    assert_eq!(tracing(Some("collector:4317"), None), None);
    assert_eq!(tracing(None, Some(0)), None);
    let all = TracingSettings { endpoint: None, sampling_rate_per_million: 1_000_000 };
    assert_eq!(tracing(None, Some(1_000_000)), Some(all));
}

#[test]
fn deprecated_flags_say_how_many_dead_containers_are_kept() {
    assert_eq!(settings_for(&[]).container_gc, ContainerGcPolicy::default());
    let given = settings_for(&[
        "--maximum-dead-containers-per-container=-1",
        "--maximum-dead-containers=7",
        "--minimum-container-ttl-duration=1m",
    ]);
    let min_age = Duration::from_secs(60);
    let want = ContainerGcPolicy { per_container: None, total: Some(7), min_age };
    assert_eq!(given.container_gc, want);
}

#[test]
fn a_negative_log_size_turns_rotation_off() {
    let policy = |words: &[&str]| settings_for(words).log_rotation;
    assert_eq!(policy(&["--container-log-max-size=-1"]), None);
    let flags = ["--container-log-max-size=64Ki", "--container-log-max-files=3"];
    let want = LogRotationPolicy { max_size: 65_536, max_files: 3, ..LogRotationPolicy::default() };
    assert_eq!(policy(&flags), Some(want));
}

#[test]
fn configured_values_are_used() {
    let settings = settings_for(&[
        "--cpu-cfs-quota=false",
        "--cpu-cfs-quota-period=5ms",
        "--seccomp-default",
        "--pod-max-pids=100",
        "--resolv-conf=",
        "--cluster-dns=10.0.0.1",
        "--container-log-links-dir=",
        "--manifest-url-header=a:1,a:2",
        "--pod-manifest-path=/m",
        "--cgroup-driver=systemd",
        "--node-ip=10.1.1.1,fd00::1",
    ]);
    let ContainerSettings { cfs_quota, cfs_period, seccomp_default, .. } = settings.containers;
    assert_eq!((cfs_quota, cfs_period, seccomp_default), (false, Duration::from_millis(5), true));
    assert_eq!(settings.pod_pids_limit, Some(100));
    assert_eq!((settings.resolv_conf, settings.container_logs), (None, None));
    assert_eq!(settings.cluster_dns, ["10.0.0.1"]);
    let header = |value: &str| ("a".to_owned(), value.to_owned());
    assert_eq!(settings.sources.url_headers, [header("1"), header("2")]);
    assert_eq!(settings.sources.files, Some(PathBuf::from("/m")));
    assert!(settings.systemd_cgroups);
    let given: Vec<String> = settings.addresses.given.iter().map(ToString::to_string).collect();
    assert_eq!(given, ["10.1.1.1", "fd00::1"]);
    assert!(!settings.addresses.in_cluster);
}

#[test]
fn images_are_pulled_as_the_user_said_or_five_at_a_time() {
    let rows: [(&[&str], usize); 5] = [
        (&[], 5),
        (&["--serialize-image-pulls"], 1),
        (&["--serialize-image-pulls=false"], ANY_NUMBER_OF_PULLS),
        (&["--max-parallel-image-pulls=1"], 1),
        (&["--max-parallel-image-pulls=3"], 3),
    ];
    for (words, expected) in rows {
        assert_eq!(settings_for(words).parallel_pulls, expected, "{words:?}");
    }
}

#[test]
fn feature_gates_that_have_an_effect_are_read() {
    assert_eq!(settings_for(&[]).features, FeatureGates::default());
    let switched = settings_for(&[
        "--feature-gates=RestartAllContainersOnContainerExits=false,ContainerStopSignals=true",
    ]);
    let FeatureGates { restart_all_containers, container_stop_signals, .. } = switched.features;
    assert!(!restart_all_containers && container_stop_signals);
    assert!(!settings_for(&["--feature-gates=AllBeta=false"]).features.env_files);
}
