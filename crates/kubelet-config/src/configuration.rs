//! Every field of a KubeletConfiguration, by the names and in the order that the Go kubelet has them in.

use std::collections::BTreeMap;
use std::net::IpAddr;

use oarsman_core::quantity::Quantity;
use serde::{Deserialize, Serialize};

use crate::enums::{
    CgroupDriverSetting, CpuManagerPolicy, HairpinMode, ImagePullCredentialsVerificationPolicy,
    MemoryManagerPolicy, MemoryReservationPolicy, NodeAllocatableEnforcement,
    ResourceChangeDetectionStrategy, TlsVersion, TopologyManagerPolicy, TopologyManagerScope,
};
use crate::go_duration::GoDuration;
use crate::sections::{
    Authentication, Authorization, CrashLoopBackOff, Logging, MemorySwap, PriorityPeriod,
    ReservedMemory, Taint, Tracing, UserNamespaces,
};
use crate::threshold::{Percent, ThresholdValue};

/// The configuration of a kubelet. Fields that are not written have their defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeletConfiguration {
    /// Whether the kubelet's server listens at all.
    pub enable_server: bool,
    /// A directory or file of pod manifests; empty for none.
    pub static_pod_path: String,
    /// The directory of pods' logs.
    pub pod_logs_dir: String,
    /// How often all pods of the runtime are listed.
    pub sync_frequency: GoDuration,
    /// How often manifests are read again, besides when inotify reports a change.
    pub file_check_frequency: GoDuration,
    /// How often the URL of manifests is fetched.
    pub http_check_frequency: GoDuration,
    /// A URL of pod manifests; empty for none.
    #[serde(rename = "staticPodURL")]
    pub static_pod_url: String,
    /// Headers of the requests to that URL.
    #[serde(rename = "staticPodURLHeader")]
    pub static_pod_url_header: BTreeMap<String, Vec<String>>,
    /// The address that the server listens at.
    pub address: IpAddr,
    /// The port that the server listens at.
    pub port: i32,
    /// The port of the server without authentication; 0 for none.
    pub read_only_port: i32,
    /// The server's certificate.
    pub tls_cert_file: String,
    /// The key of the server's certificate.
    pub tls_private_key_file: String,
    /// The server's cipher suites; none for the default ones.
    pub tls_cipher_suites: Vec<String>,
    /// The server's preferred curves, by their numbers; none for the default ones.
    pub tls_curve_preferences: Vec<i32>,
    /// The oldest TLS version that the server accepts; none for 1.2.
    pub tls_min_version: Option<TlsVersion>,
    /// Whether the client's certificate is renewed.
    pub rotate_certificates: bool,
    /// Whether the server's certificate is requested from the API server.
    #[serde(rename = "serverTLSBootstrap")]
    pub server_tls_bootstrap: bool,
    /// How the server authenticates clients.
    pub authentication: Authentication,
    /// How the server authorizes requests.
    pub authorization: Authorization,
    /// How many pulls may begin in a second; 0 for any number.
    #[serde(rename = "registryPullQPS")]
    pub registry_pull_qps: i32,
    /// How many pulls may begin at once.
    pub registry_burst: i32,
    /// Which pods may use images that are on the node already without verified credentials.
    pub image_pull_credentials_verification_policy: ImagePullCredentialsVerificationPolicy,
    /// Images that every pod may use, if the policy is NeverVerifyAllowlistedImages.
    pub preloaded_images_verification_allowlist: Vec<String>,
    /// How many events may be sent in a second; 0 for any number.
    #[serde(rename = "eventRecordQPS")]
    pub event_record_qps: i32,
    /// How many events may be sent at once.
    pub event_burst: i32,
    /// Whether the server serves logs, exec and the like.
    pub enable_debugging_handlers: bool,
    /// Whether the server offers lock contention profiles.
    pub enable_contention_profiling: bool,
    /// The port of the health check; 0 for none.
    pub healthz_port: i32,
    /// The address of the health check.
    pub healthz_bind_address: IpAddr,
    /// The oom_score_adj of the kubelet.
    pub oom_score_adj: i32,
    /// The domain of the cluster.
    pub cluster_domain: String,
    /// The cluster's name servers.
    #[serde(rename = "clusterDNS")]
    pub cluster_dns: Vec<IpAddr>,
    /// How long exec, attach and port-forward may be idle.
    pub streaming_connection_idle_timeout: GoDuration,
    /// How often the node's status is computed.
    pub node_status_update_frequency: GoDuration,
    /// How often the node's status is sent even if nothing changed.
    pub node_status_report_frequency: GoDuration,
    /// How long the node's lease lasts.
    pub node_lease_duration_seconds: i32,
    /// How long an unused image is kept at least.
    #[serde(rename = "imageMinimumGCAge")]
    pub image_minimum_gc_age: GoDuration,
    /// How long an unused image is kept at most; 0 for as long as there is room.
    #[serde(rename = "imageMaximumGCAge")]
    pub image_maximum_gc_age: GoDuration,
    /// How full the disk is when images begin to be removed.
    #[serde(rename = "imageGCHighThresholdPercent")]
    pub image_gc_high_threshold_percent: i32,
    /// How full the disk is when that ends.
    #[serde(rename = "imageGCLowThresholdPercent")]
    pub image_gc_low_threshold_percent: i32,
    /// How often volumes are measured; negative for never.
    pub volume_stats_agg_period: GoDuration,
    /// The cgroup that the kubelet moves itself to; empty for none.
    pub kubelet_cgroups: String,
    /// The cgroup that all processes without one are moved to; empty for none.
    pub system_cgroups: String,
    /// The cgroup below which those of pods are.
    pub cgroup_root: String,
    /// Whether pods and their classes have cgroups of their own.
    #[serde(rename = "cgroupsPerQOS")]
    pub cgroups_per_qos: bool,
    /// The cgroup driver, if the runtime does not report its own.
    pub cgroup_driver: CgroupDriverSetting,
    /// Whether containers get exclusive CPUs.
    pub cpu_manager_policy: CpuManagerPolicy,
    /// Options of the CPU manager policy.
    pub cpu_manager_policy_options: BTreeMap<String, String>,
    /// How often the CPUs of containers are reconciled.
    pub cpu_manager_reconcile_period: GoDuration,
    /// Whether running out of memory kills one process and not the container; none for what the cgroup version does.
    #[serde(rename = "singleProcessOOMKill")]
    pub single_process_oom_kill: Option<bool>,
    /// Whether containers get memory of certain NUMA nodes.
    pub memory_manager_policy: MemoryManagerPolicy,
    /// How the resources of a container or pod are aligned on NUMA nodes.
    pub topology_manager_policy: TopologyManagerPolicy,
    /// Whether resources are aligned per container or per pod.
    pub topology_manager_scope: TopologyManagerScope,
    /// Options of the topology manager policy.
    pub topology_manager_policy_options: BTreeMap<String, String>,
    /// How much of the requests of a QoS class is kept from lower classes.
    pub qos_reserved: BTreeMap<String, Percent>,
    /// How long an ordinary call to the runtime may take.
    pub runtime_request_timeout: GoDuration,
    /// How a pod reaches itself through its service; has no effect any more.
    pub hairpin_mode: HairpinMode,
    /// How many pods the node runs at most.
    pub max_pods: i32,
    /// How many pods the node runs for each CPU at most; 0 for any number.
    pub pods_per_core: i32,
    /// The address range of pods on a node without API server.
    #[serde(rename = "podCIDR")]
    pub pod_cidr: String,
    /// How many processes a pod may have; -1 for as many as the node.
    pub pod_pids_limit: i64,
    /// The resolv.conf that pods get; empty for none.
    pub resolv_conf: String,
    /// No longer possible; only false is accepted.
    pub run_once: bool,
    /// Whether CPU limits are enforced.
    #[serde(rename = "cpuCFSQuota")]
    pub cpu_cfs_quota: bool,
    /// The period over which CPU limits are enforced.
    #[serde(rename = "cpuCFSQuotaPeriod")]
    pub cpu_cfs_quota_period: GoDuration,
    /// How many images the node's status names; -1 for all.
    pub node_status_max_images: i32,
    /// How many files the kubelet may have open.
    pub max_open_files: i64,
    /// The content type of requests to the API server.
    pub content_type: String,
    /// How many requests are sent to the API server in a second.
    #[serde(rename = "kubeAPIQPS")]
    pub kube_api_qps: i32,
    /// How many requests may be sent to the API server at once.
    #[serde(rename = "kubeAPIBurst")]
    pub kube_api_burst: i32,
    /// Whether images are pulled one at a time.
    pub serialize_image_pulls: bool,
    /// How many images are pulled at once, if not one at a time; none for any number.
    pub max_parallel_image_pulls: Option<i32>,
    /// The thresholds at which pods are evicted at once, by signal.
    pub eviction_hard: BTreeMap<String, ThresholdValue>,
    /// The thresholds at which pods are evicted after a grace period, by signal.
    pub eviction_soft: BTreeMap<String, ThresholdValue>,
    /// The grace periods of evictionSoft, by signal.
    pub eviction_soft_grace_period: BTreeMap<String, GoDuration>,
    /// How long the node still reports pressure after the last time it had any.
    pub eviction_pressure_transition_period: GoDuration,
    /// How many seconds an evicted pod has to end at most.
    pub eviction_max_pod_grace_period: i32,
    /// How much is freed beyond the threshold, by signal.
    pub eviction_minimum_reclaim: BTreeMap<String, ThresholdValue>,
    /// Whether evictionHard adds to the default thresholds rather than replacing them.
    pub merge_default_eviction_settings: bool,
    /// Whether the controller manager attaches volumes, and not the kubelet.
    pub enable_controller_attach_detach: bool,
    /// Whether kernel settings that differ from those the kubelet wants stop it instead of being changed.
    pub protect_kernel_defaults: bool,
    /// Whether the iptables chains that other components rely on are made.
    #[serde(rename = "makeIPTablesUtilChains")]
    pub make_iptables_util_chains: bool,
    /// A bit of packet marks; has no effect any more.
    pub iptables_masquerade_bit: i32,
    /// A bit of packet marks; has no effect any more.
    pub iptables_drop_bit: i32,
    /// Features that are switched on or off, by name.
    pub feature_gates: BTreeMap<String, bool>,
    /// Whether a machine that swaps is refused.
    pub fail_swap_on: bool,
    /// What containers may do with swap.
    pub memory_swap: MemorySwap,
    /// How large the log of a container grows before it is rotated.
    pub container_log_max_size: Quantity,
    /// How many files a log has at most.
    pub container_log_max_files: i32,
    /// How many logs are rotated at once.
    pub container_log_max_workers: i32,
    /// How often the sizes of logs are checked.
    pub container_log_monitor_interval: GoDuration,
    /// How changes of ConfigMaps and Secrets are noticed.
    pub config_map_and_secret_change_detection_strategy: ResourceChangeDetectionStrategy,
    /// Resources that are reserved for the system.
    pub system_reserved: BTreeMap<String, Quantity>,
    /// Resources that are reserved for Kubernetes itself.
    pub kube_reserved: BTreeMap<String, Quantity>,
    /// CPUs that are reserved for both.
    #[serde(rename = "reservedSystemCPUs")]
    pub reserved_system_cpus: String,
    /// The version whose hidden metrics are shown.
    pub show_hidden_metrics_for_version: String,
    /// The cgroup of the system.
    pub system_reserved_cgroup: String,
    /// The cgroup of Kubernetes itself.
    pub kube_reserved_cgroup: String,
    /// Which cgroups are limited to their reserved resources.
    pub enforce_node_allocatable: Vec<NodeAllocatableEnforcement>,
    /// Sysctls that pods may set besides the safe ones.
    pub allowed_unsafe_sysctls: Vec<String>,
    /// The directory of flexvolume plugins.
    pub volume_plugin_dir: String,
    /// The id of the node at its cloud provider.
    #[serde(rename = "providerID")]
    pub provider_id: String,
    /// Whether the kernel notifies the kubelet of memory thresholds.
    pub kernel_memcg_notification: bool,
    /// How the kubelet logs.
    pub logging: Logging,
    /// Whether the server serves the machine's log files.
    pub enable_system_log_handler: bool,
    /// Whether the server answers queries of those logs.
    pub enable_system_log_query: bool,
    /// How long the machine waits for its pods when it shuts down; 0 for not at all.
    pub shutdown_grace_period: GoDuration,
    /// How much of that is reserved for critical pods.
    pub shutdown_grace_period_critical_pods: GoDuration,
    /// The shutdown grace periods by the priority of pods.
    pub shutdown_grace_period_by_pod_priority: Vec<PriorityPeriod>,
    /// The back-off of containers that crash.
    pub crash_loop_back_off: CrashLoopBackOff,
    /// Memory that is reserved on each NUMA node.
    pub reserved_memory: Vec<ReservedMemory>,
    /// Whether the server offers profiles.
    pub enable_profiling_handler: bool,
    /// Whether the server lets the log verbosity be changed.
    pub enable_debug_flags_handler: bool,
    /// Whether the runtime's default seccomp profile is used for containers that name none.
    pub seccomp_default: bool,
    /// The fraction of its memory limit at which a container is throttled (`memory.high`).
    pub memory_throttling_factor: f64,
    /// How memory requests are protected from reclaim.
    pub memory_reservation_policy: MemoryReservationPolicy,
    /// Taints that the node registers with.
    pub register_with_taints: Vec<Taint>,
    /// Whether the node registers itself.
    pub register_node: bool,
    /// Where traces are sent, if anywhere.
    pub tracing: Option<Tracing>,
    /// Whether the use of local disks is measured and limited.
    pub local_storage_capacity_isolation: bool,
    /// The socket of the container runtime.
    pub container_runtime_endpoint: String,
    /// The socket of the image service; empty for the runtime's.
    pub image_service_endpoint: String,
    /// Whether a machine with cgroup v1 is refused.
    pub fail_cgroup_v1: bool,
    /// User namespaces of pods.
    pub user_namespaces: UserNamespaces,
}
