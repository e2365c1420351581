//! Makes the settings of an agent from a KubeletConfiguration and the program's flags.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use oarsman_cluster::{Freshness, ProjectionGates, RequestLimits, RequestRate};
use oarsman_core::admission::{Mode, without_namespace};
use oarsman_core::features::FeatureGates;
use oarsman_core::gc::containers::ContainerGcPolicy;
use oarsman_core::image::providers::TOKENS_GATE;
use oarsman_core::log_rotation::LogRotationPolicy;
use oarsman_core::node::addresses::AddressSettings;
use oarsman_core::pod_certificate::POD_CERTIFICATE_GATE;
use oarsman_core::trust_bundle::TRUST_BUNDLE_GATE;
use oarsman_core::user_namespace::UserNamespaceSettings;
use oarsman_kubelet_config::enums::{
    CgroupDriverSetting, LogFormat, ResourceChangeDetectionStrategy, SwapBehaviorSetting,
};
use oarsman_kubelet_config::flags::ProgramFlags;
use oarsman_kubelet_config::{KubeletConfiguration, LoadedConfig, is_enabled};
use oarsman_runtime::{CniSettings, PodNetworkChoice, PodNetworkMode};
use oarsman_spans::TracingSettings;
use oarsman_state::CheckpointKeys;

use super::{credential_providers, image_settings};
use crate::logging::{LogLineFormat, LogSettings, RotationLimits, Verbosity};
use crate::machine;
use crate::runtime_endpoint::RuntimeEndpoint;
use crate::settings::{AgentSettings, ClusterSettings, ContainerSettings, SourceSettings};

use super::node_status::node_status_config;

/// How many images are pulled at once by default: the Go kubelet's default of one lets a big image block the node.
const PULLS: usize = 5;
/// Used where the number of pulls is not limited.
const ANY_NUMBER_OF_PULLS: usize = 1000;

/// The systemd credential with the key of checkpoints.
const KEY_CREDENTIAL: &str = "oarsman-checkpoint-key";
/// Where keys of checkpoints lie unless the variable names another directory.
const KEY_DIRECTORY: &str = "/etc/oarsman/checkpoint-keys";
const KEY_DIRECTORY_VARIABLE: &str = "OARSMAN_CHECKPOINT_KEY_DIR";

/// How the agent is to speak.
pub(super) fn logging(loaded: &LoadedConfig, flags: &ProgramFlags) -> LogSettings {
    let logging = &loaded.configuration.logging;
    let modules = logging.vmodule.iter();
    let file = (!["", "-"].contains(&flags.log_file.as_str()))
        .then(|| (PathBuf::from(&flags.log_file), limits(flags)));
    LogSettings {
        verbosity: Verbosity {
            verbosity: logging.verbosity,
            modules: modules
                .map(|module| (module.file_pattern.clone(), module.verbosity))
                .collect(),
        },
        format: match logging.format {
            LogFormat::Text => LogLineFormat::Text,
            LogFormat::Json => LogLineFormat::Json,
        },
        file,
    }
}

fn limits(flags: &ProgramFlags) -> RotationLimits {
    RotationLimits {
        size: flags.log_file_max_size.units().unsigned_abs(),
        files: flags.log_file_max_files.unsigned_abs(),
    }
}

/// Sets oom_score_adj and the limit of open files. What the kernel does not allow is logged if it was configured.
pub(super) fn prepare_process(loaded: &LoadedConfig) {
    let kubelet = &loaded.configuration;
    let told = |field: &str, error: &anyhow::Error| {
        if loaded.is_written(field) {
            let error = format!("{error:#}");
            tracing::error!(setting = field, error, "process limit not set");
        }
    };
    if let Err(error) = machine::set_oom_score_adj(kubelet.oom_score_adj) {
        told("oomScoreAdj", &error);
    }
    if let Err(error) = machine::set_open_files(kubelet.max_open_files.unsigned_abs()) {
        told("maxOpenFiles", &error);
    }
}

pub(super) fn settings(loaded: &LoadedConfig, flags: &ProgramFlags) -> Result<AgentSettings> {
    let kubelet = &loaded.configuration;
    let name = Some(flags.hostname_override.as_str()).filter(|name| !name.trim().is_empty());
    let name = machine::node_name(name)?;
    Ok(AgentSettings {
        mode: Mode::Kubelet,
        root: machine::canonical_root(flags.root_dir.as_ref())?,
        addresses: AddressSettings {
            given: flags.node_ips(),
            name: name.clone(),
            in_cluster: !flags.kubeconfig.is_empty(),
        },
        features: FeatureGates::of(|name| is_enabled(&kubelet.feature_gates, name)),
        node_status: node_status_config(kubelet, flags, &name),
        node_name: name,
        runtime_endpoint: RuntimeEndpoint::of_configuration(&kubelet.container_runtime_endpoint),
        image_endpoint: unless_empty(&kubelet.image_service_endpoint),
        pod_networks: pod_networks(flags),
        tracing: tracing_settings(kubelet),
        request_timeout: kubelet.runtime_request_timeout.or_zero(),
        sources: sources(kubelet),
        cluster: cluster(kubelet, flags)?,
        pod_logs: PathBuf::from(&kubelet.pod_logs_dir),
        container_logs: unless_empty(&flags.container_log_links_dir),
        log_rotation: log_rotation(kubelet),
        container_gc: container_gc(flags),
        cgroup_root: unless_empty(&kubelet.cgroup_root).unwrap_or_else(|| "/".to_owned()),
        systemd_cgroups: kubelet.cgroup_driver == CgroupDriverSetting::Systemd,
        relist_period: kubelet.sync_frequency.or_zero(),
        parallel_pulls: pulls(loaded),
        images: image_settings::images(kubelet),
        providers: credential_providers::read(
            flags,
            is_enabled(&kubelet.feature_gates, TOKENS_GATE),
        )?,
        longest_crash_backoff: kubelet.crash_loop_back_off.max_container_restart_period.or_zero(),
        cluster_dns: kubelet.cluster_dns.iter().map(ToString::to_string).collect(),
        cluster_domain: kubelet.cluster_domain.clone(),
        resolv_conf: unless_empty(&kubelet.resolv_conf),
        pod_pids_limit: u64::try_from(kubelet.pod_pids_limit).ok().filter(|limit| *limit > 0),
        containers: containers(kubelet),
        allowed_unsafe_sysctls: allowed_unsafe_sysctls(kubelet)?,
        user_namespaces: user_namespaces(kubelet),
    })
}

/// The node's network is this kubelet's alone, and what its plugins keep for pods of others is garbage.
fn pod_networks(flags: &ProgramFlags) -> PodNetworkChoice {
    let cni = CniSettings {
        configuration: PathBuf::from(&flags.cni_conf_dir),
        plugins: flags.cni_bin_dirs().into_iter().map(PathBuf::from).collect(),
        ..CniSettings::default()
    };
    let mode = match flags.pod_network.as_str() {
        "cni" => PodNetworkMode::Cni,
        "bridge" => PodNetworkMode::Bridge,
        _ => PodNetworkMode::CniIfConfigured,
    };
    PodNetworkChoice { mode, cni, collects_garbage: true }
}

/// None if no trace is sampled: the default rate is zero, as with the Go kubelet.
fn tracing_settings(kubelet: &KubeletConfiguration) -> Option<TracingSettings> {
    let tracing = kubelet.tracing.as_ref()?;
    let rate = tracing.sampling_rate_per_million.and_then(|rate| u32::try_from(rate).ok());
    let sampling_rate_per_million = rate.filter(|rate| *rate > 0)?;
    Some(TracingSettings { endpoint: tracing.endpoint.clone(), sampling_rate_per_million })
}

/// None for a negative size, as with the Go kubelet.
fn log_rotation(kubelet: &KubeletConfiguration) -> Option<LogRotationPolicy> {
    let number = |number: i32| usize::try_from(number).unwrap_or_default();
    Some(LogRotationPolicy {
        max_size: u64::try_from(kubelet.container_log_max_size.units()).ok()?,
        max_files: number(kubelet.container_log_max_files),
        workers: number(kubelet.container_log_max_workers),
        interval: kubelet.container_log_monitor_interval.or_zero(),
    })
}

/// Negative numbers are no limits.
fn container_gc(flags: &ProgramFlags) -> ContainerGcPolicy {
    ContainerGcPolicy {
        per_container: usize::try_from(flags.maximum_dead_containers_per_container).ok(),
        total: usize::try_from(flags.maximum_dead_containers).ok(),
        min_age: flags.minimum_container_ttl_duration.or_zero(),
    }
}

fn user_namespaces(kubelet: &KubeletConfiguration) -> UserNamespaceSettings {
    // Both were validated: what is no number cannot be here.
    let ids_per_pod = u32::try_from(kubelet.user_namespaces.ids_per_pod).unwrap_or_default();
    UserNamespaceSettings::new(ids_per_pod, u32::try_from(kubelet.max_pods).unwrap_or_default())
}

fn sources(kubelet: &KubeletConfiguration) -> SourceSettings {
    let headers = kubelet.static_pod_url_header.iter();
    let each = |(name, values): (&String, &Vec<String>)| {
        values.iter().map(|value| (name.clone(), value.clone())).collect::<Vec<_>>()
    };
    SourceSettings {
        files: unless_empty(&kubelet.static_pod_path),
        rescan: kubelet.file_check_frequency.or_zero(),
        url: unless_empty(&kubelet.static_pod_url),
        url_headers: headers.flat_map(each).collect(),
        fetch: kubelet.http_check_frequency.or_zero(),
    }
}

/// The settings of the cluster if a kubeconfig is named, even one that bootstrapping has yet to write.
fn cluster(
    kubelet: &KubeletConfiguration,
    flags: &ProgramFlags,
) -> Result<Option<ClusterSettings>> {
    if flags.kubeconfig.is_empty() {
        ensure!(
            flags.bootstrap_kubeconfig.is_empty(),
            "--bootstrap-kubeconfig is given without --kubeconfig: name the file that the kubelet's own is to be written to"
        );
        return Ok(None);
    }
    let bootstrap: Option<PathBuf> = unless_empty(&flags.bootstrap_kubeconfig);
    Ok(Some(ClusterSettings {
        kubeconfig: machine::absolute(flags.kubeconfig.as_ref())?,
        bootstrap: bootstrap.map(|path| machine::absolute(&path)).transpose()?,
        cert_dir: machine::absolute(flags.cert_dir.as_ref())?,
        rotates: kubelet.rotate_certificates,
        remembers_pods: flags.remember_pods,
        checkpoint_keys: checkpoint_keys(),
        projections: ProjectionGates {
            trust_bundles: is_enabled(&kubelet.feature_gates, TRUST_BUNDLE_GATE),
            pod_certificates: is_enabled(&kubelet.feature_gates, POD_CERTIFICATE_GATE),
        },
        freshness: freshness(kubelet.config_map_and_secret_change_detection_strategy),
        request_limits: request_limits(kubelet),
    }))
}

/// A systemd credential where the unit has one; else a file apart from the root directory.
fn checkpoint_keys() -> CheckpointKeys {
    let credentials = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
    let directory = std::env::var_os(KEY_DIRECTORY_VARIABLE).map(PathBuf::from);
    CheckpointKeys {
        credential: credentials.map(|directory| directory.join(KEY_CREDENTIAL)),
        directory: directory.unwrap_or_else(|| KEY_DIRECTORY.into()),
    }
}

/// What would let a pod change the node is refused, as the Go kubelet does.
fn allowed_unsafe_sysctls(kubelet: &KubeletConfiguration) -> Result<Vec<String>> {
    let refused = without_namespace(&kubelet.allowed_unsafe_sysctls);
    ensure!(
        refused.is_empty(),
        "allowedUnsafeSysctls: {} belong to no namespace of a pod: allow only kernel.shm*, kernel.msg*, kernel.sem, fs.mqueue.* and net.*",
        refused.join(", ")
    );
    Ok(kubelet.allowed_unsafe_sysctls.clone())
}

fn request_limits(kubelet: &KubeletConfiguration) -> RequestLimits {
    let number = |number: i32| u32::try_from(number).unwrap_or_default();
    let rate =
        |per_second, burst| RequestRate { per_second: number(per_second), burst: number(burst) };
    let events = rate(kubelet.event_record_qps, kubelet.event_burst);
    RequestLimits {
        requests: rate(kubelet.kube_api_qps, kubelet.kube_api_burst),
        events: Some(events).filter(|events| events.per_second > 0),
    }
}

fn freshness(strategy: ResourceChangeDetectionStrategy) -> Freshness {
    match strategy {
        ResourceChangeDetectionStrategy::Watch => Freshness::Watch,
        ResourceChangeDetectionStrategy::Cache => Freshness::Cache,
        ResourceChangeDetectionStrategy::Get => Freshness::Get,
    }
}

fn containers(kubelet: &KubeletConfiguration) -> ContainerSettings {
    ContainerSettings {
        cfs_quota: kubelet.cpu_cfs_quota,
        cfs_period: kubelet.cpu_cfs_quota_period.or_zero(),
        single_process_oom_kill: kubelet.single_process_oom_kill.unwrap_or_default(),
        may_swap: kubelet.memory_swap.swap_behavior == Some(SwapBehaviorSetting::LimitedSwap),
        seccomp_default: kubelet.seccomp_default,
    }
}

/// The configured number, or our own default if none is configured.
fn pulls(loaded: &LoadedConfig) -> usize {
    let kubelet = &loaded.configuration;
    let said = kubelet.max_parallel_image_pulls.and_then(|pulls| usize::try_from(pulls).ok());
    match (said, loaded.is_written("serializeImagePulls"), kubelet.serialize_image_pulls) {
        (Some(pulls), ..) => pulls,
        (None, true, true) => 1,
        (None, true, false) => ANY_NUMBER_OF_PULLS,
        (None, false, _) => PULLS,
    }
}

fn unless_empty<T: for<'t> From<&'t str>>(text: &str) -> Option<T> {
    (!text.is_empty()).then(|| T::from(text))
}

#[cfg(test)]
mod tests;
