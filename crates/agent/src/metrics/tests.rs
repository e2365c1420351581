//! The text of `/metrics` for a known state.

use std::time::Duration;

use oarsman_core::active_pods::PodCounts;
use oarsman_core::exposition::Exposition;
use oarsman_core::image::verification::MustPullResult;
use oarsman_sync::TaskName;

use super::*;

/// The text without the comments and the buckets of histograms.
fn samples(out: Exposition) -> Vec<String> {
    let text = out.into_text();
    let is_sample = |line: &&str| !line.starts_with('#') && !line.contains("_bucket{");
    text.lines().filter(is_sample).map(str::to_owned).collect()
}

#[test]
fn an_agent_that_has_done_nothing_says_so() {
    let mut out = Exposition::default();
    AgentMetrics::default().write(&mut out);
    let expected = [
        "kubelet_containers_per_pod_count_sum 0",
        "kubelet_containers_per_pod_count_count 0",
        "kubelet_pod_worker_start_duration_seconds_sum 0",
        "kubelet_pod_worker_start_duration_seconds_count 0",
        "kubelet_pod_start_duration_seconds_sum 0",
        "kubelet_pod_start_duration_seconds_count 0",
        "kubelet_pod_start_sli_duration_seconds_sum 0",
        "kubelet_pod_start_sli_duration_seconds_count 0",
        "kubelet_pod_start_total_duration_seconds_sum 0",
        "kubelet_pod_start_total_duration_seconds_count 0",
        "kubelet_pod_status_sync_duration_seconds_sum 0",
        "kubelet_pod_status_sync_duration_seconds_count 0",
        "kubelet_orphaned_runtime_pods_total 0",
        "kubelet_pleg_relist_duration_seconds_sum 0",
        "kubelet_pleg_relist_duration_seconds_count 0",
        "kubelet_pleg_relist_interval_seconds_sum 0",
        "kubelet_pleg_relist_interval_seconds_count 0",
        "kubelet_evented_pleg_connection_success_count 0",
        "kubelet_evented_pleg_connection_error_count 0",
        "kubelet_started_pods_total 0",
        "kubelet_started_pods_errors_total 0",
        "kubelet_started_user_namespaced_pods_total 0",
        "kubelet_started_user_namespaced_pods_errors_total 0",
        "kubelet_sleep_action_terminated_early_total 0",
        "kubelet_lifecycle_handler_http_fallbacks_total 0",
        "kubelet_image_volume_requested_total 0",
        "kubelet_image_volume_mounted_succeed_total 0",
        "kubelet_image_volume_mounted_errors_total 0",
    ];
    assert_eq!(samples(out), expected);
}

#[test]
fn every_family_with_labels_has_a_series_for_each_that_was_counted() {
    let metrics = AgentMetrics::default();
    let second = Duration::from_secs(1);
    metrics.pod_worker.observe_duration("create", second);
    metrics.restarted_pods.increment(true);
    metrics.restarted_pods.increment(false);
    let now = Now { wall: Timestamp::from_second(100).unwrap(), mono: Mono(second) };
    metrics.relists.begin(now);
    metrics.relists.end(Mono(second), Mono(second * 3));
    metrics.relists.begin(Now { mono: Mono(second * 61), ..now });
    metrics.runtime_calls.observe_duration("version", second * 2);
    metrics.runtime_errors.increment("version");
    metrics.runtime_calls.observe_duration("get_container_events", second);
    metrics.runtime_calls.observe_duration("get_container_events", second);
    metrics.runtime_errors.increment("get_container_events");
    metrics.terminated_containers.increment(("container", 139, "Error"));
    metrics.image_requests.increment(ImageRequestLabels {
        present_locally: Some(false),
        pull_policy: pull_policy(PullPolicy::IfNotPresent),
        pull_required: None,
    });
    metrics.cgroup_calls.observe_duration("create", second);
    metrics.sandboxes.observe_duration(String::new(), second);
    metrics.sandbox_errors.increment("kata".to_owned());
    metrics.started_containers.increment(container_type(ContainerKind::Sidecar));
    metrics.start_errors.increment(("container", StartReason::ErrImagePull));
    metrics.pulls.observe_duration(image_size_range(1), second);
    metrics.removed_images.increment("age");
    metrics.rejections.increment("OutOfcpu");
    metrics.preemptions.increment(preemption_signal("example.com/gpu"));
    metrics.volumes.set_desired(&"a".into(), ["p", "p", "q"].into_iter());
    metrics.volumes.set_actual(&"a".into(), ["p"].into_iter());
    metrics.volumes.set_actual(&"gone".into(), ["p"].into_iter());
    metrics.volumes.forget(&"gone".into());
    metrics.images.must_pull_checks.increment(MustPullResult::CredentialRecordFound);
    metrics.images.volumes.requested.increment();
    metrics.images.volumes.mounted(2, true);
    metrics.images.volumes.mounted(3, false);
    metrics.images.plugin_calls.observe_duration("ecr".to_owned(), second);
    metrics.images.plugin_errors.increment("ecr".to_owned());
    metrics.sleeps_terminated_early.increment();
    metrics.http_fallbacks.increment();
    metrics.panics.record(TaskName::Relist);
    let mut out = Exposition::default();
    metrics.write(&mut out);
    let text = samples(out);
    let expected = [
        "kubelet_pod_worker_duration_seconds_count{operation_type=\"create\"} 1",
        "kubelet_restarted_pods_total{static=\"\"} 1",
        "kubelet_restarted_pods_total{static=\"true\"} 1",
        "kubelet_pleg_relist_duration_seconds_sum 2",
        "kubelet_pleg_relist_interval_seconds_sum 60",
        "kubelet_pleg_last_seen_seconds 100",
        "kubelet_runtime_operations_total{operation_type=\"version\"} 1",
        "kubelet_runtime_operations_duration_seconds_sum{operation_type=\"version\"} 2",
        "kubelet_runtime_operations_errors_total{operation_type=\"version\"} 1",
        "kubelet_evented_pleg_connection_success_count 1",
        "kubelet_evented_pleg_connection_error_count 1",
        "kubelet_terminated_containers_total{container_type=\"container\",exit_code=\"139\",reason=\"Error\"} 1",
        "kubelet_image_manager_ensure_image_requests_total{present_locally=\"false\",pull_policy=\"ifnotpresent\",pull_required=\"unknown\"} 1",
        "kubelet_cgroup_manager_duration_seconds_count{operation_type=\"create\"} 1",
        "kubelet_run_podsandbox_duration_seconds_count{runtime_handler=\"\"} 1",
        "kubelet_run_podsandbox_errors_total{runtime_handler=\"kata\"} 1",
        "kubelet_started_pods_total 2",
        "kubelet_started_pods_errors_total 1",
        "kubelet_started_containers_total{container_type=\"init_container\"} 1",
        "kubelet_started_containers_errors_total{container_type=\"container\",code=\"ErrImagePull\"} 1",
        "kubelet_image_pull_duration_seconds_count{image_size_in_bytes=\"0-10MB\"} 1",
        "kubelet_image_garbage_collected_total{reason=\"age\"} 1",
        "kubelet_admission_rejections_total{reason=\"OutOfcpu\"} 1",
        "kubelet_preemptions{preemption_signal=\"other\"} 1",
        "volume_manager_total_volumes{plugin_name=\"p\",state=\"actual_state_of_world\"} 1",
        "volume_manager_total_volumes{plugin_name=\"p\",state=\"desired_state_of_world\"} 2",
        "volume_manager_total_volumes{plugin_name=\"q\",state=\"desired_state_of_world\"} 1",
        "kubelet_imagemanager_image_mustpull_checks_total{result=\"credentialRecordFound\"} 1",
        "kubelet_image_volume_requested_total 1",
        "kubelet_image_volume_mounted_succeed_total 2",
        "kubelet_image_volume_mounted_errors_total 3",
        "kubelet_credential_provider_plugin_duration_sum{plugin_name=\"ecr\"} 1",
        "kubelet_credential_provider_plugin_errors_total{plugin_name=\"ecr\"} 1",
        "kubelet_sleep_action_terminated_early_total 1",
        "kubelet_lifecycle_handler_http_fallbacks_total 1",
        "oarsman_task_panics_total{task=\"relist\"} 1",
    ];
    for line in expected {
        assert!(text.iter().any(|sample| sample == line), "{line} is missing in {text:#?}");
    }
    let volumes = text.iter().filter(|sample| sample.starts_with("volume_manager"));
    assert_eq!(volumes.count(), 3, "a pod that is gone has no volumes");
}

#[test]
fn gauges_of_pods_tell_sources_and_mirror_pods_only_those_of_a_cluster() {
    let counts = PodCounts { desired: [4, 2], active: [3, 1], running: 5, ..PodCounts::of(&[]) };
    for has_cluster in [true, false] {
        let mut out = Exposition::default();
        write_pod_counts(&counts, has_cluster, &mut out);
        let text = samples(out);
        let has = |line: &str| text.iter().any(|sample| sample == line);
        for line in [
            "kubelet_running_pods 5",
            "kubelet_running_containers{container_state=\"running\"} 0",
            "kubelet_desired_pods{static=\"\"} 4",
            "kubelet_desired_pods{static=\"true\"} 2",
            "kubelet_active_pods{static=\"true\"} 1",
            "kubelet_working_pods{config=\"desired\",lifecycle=\"sync\",static=\"\"} 0",
            "kubelet_working_pods{config=\"runtime_only\",lifecycle=\"sync\",static=\"unknown\"} 0",
            "kubelet_managed_ephemeral_containers 0",
        ] {
            assert!(has(line), "{line} is missing in {text:#?}");
        }
        assert_eq!(has("kubelet_mirror_pods 1"), has_cluster);
    }
}

#[test]
fn sizes_and_resources_have_bounded_labels() {
    let mib = 1024 * 1024;
    let rows = [
        (0, "N/A"),
        (1, "0-10MB"),
        (10 * mib - 1, "0-10MB"),
        (10 * mib, "10MB-100MB"),
        (1024 * mib, "1GB-5GB"),
        (100 * 1024 * mib, "GT100GB"),
        (u64::MAX, "GT100GB"),
    ];
    for (bytes, want) in rows {
        assert_eq!(image_size_range(bytes), want, "{bytes}");
    }
    let exits = [(0, "Completed"), (137, "OOMKilled"), (-1, "made up"), (70_000, "Error")];
    let labels = exits.map(|(code, reason)| {
        let (finished_at, reason) = (Timestamp::UNIX_EPOCH, reason.to_owned());
        exit_labels(&Exit { started_at: None, finished_at, code, reason, message: String::new() })
    });
    let expected = [(0, "Completed"), (137, "OOMKilled"), (255, "Other"), (255, "Error")];
    assert_eq!(labels, expected);
    assert_eq!(["cpu", "memory", "x.io/y"].map(preemption_signal), ["cpu", "memory", "other"]);
}
