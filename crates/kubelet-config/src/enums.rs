//! Enumerations: fields with a closed set of values.

use serde::{Deserialize, Serialize};

/// The cgroup driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CgroupDriverSetting {
    /// The kubelet and the runtime make cgroups themselves, as directories.
    #[default]
    #[serde(rename = "cgroupfs")]
    Cgroupfs,
    /// systemd makes cgroups, as slices and scopes.
    #[serde(rename = "systemd")]
    Systemd,
}

/// How the server authorizes requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum KubeletAuthorizationMode {
    /// Every request is allowed.
    AlwaysAllow,
    /// The API server decides.
    #[default]
    Webhook,
}

/// Whether containers get exclusive CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CpuManagerPolicy {
    /// No container does.
    #[default]
    #[serde(rename = "none")]
    None,
    /// Containers of Guaranteed pods with whole CPUs do.
    #[serde(rename = "static")]
    Static,
}

/// Whether containers get memory of certain NUMA nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemoryManagerPolicy {
    /// No container does.
    #[default]
    None,
    /// Containers of Guaranteed pods do.
    Static,
}

/// How the resources of a container or pod are aligned on NUMA nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TopologyManagerPolicy {
    /// They are not.
    #[default]
    #[serde(rename = "none")]
    None,
    /// They are where that is possible.
    #[serde(rename = "best-effort")]
    BestEffort,
    /// Pods that cannot be aligned are refused.
    #[serde(rename = "restricted")]
    Restricted,
    /// All resources are on one NUMA node, or the pod is refused.
    #[serde(rename = "single-numa-node")]
    SingleNumaNode,
}

/// What resources are aligned for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TopologyManagerScope {
    /// Each container by itself.
    #[default]
    #[serde(rename = "container")]
    Container,
    /// All containers of a pod together.
    #[serde(rename = "pod")]
    Pod,
}

/// How a pod reaches itself through its service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum HairpinMode {
    /// Through a bridge that takes everything.
    #[default]
    #[serde(rename = "promiscuous-bridge")]
    PromiscuousBridge,
    /// Through a port that sends back.
    #[serde(rename = "hairpin-veth")]
    HairpinVeth,
    /// Not at all.
    #[serde(rename = "none")]
    None,
}

/// How changes of ConfigMaps and Secrets are noticed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ResourceChangeDetectionStrategy {
    /// By a watch.
    #[default]
    Watch,
    /// By a request after the cached object has expired.
    Cache,
    /// By a request every time.
    Get,
}

/// What containers may do with swap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SwapBehaviorSetting {
    /// No container swaps.
    #[default]
    NoSwap,
    /// Containers of Burstable pods swap in proportion to their memory requests.
    LimitedSwap,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogFormat {
    /// Text.
    #[default]
    #[serde(rename = "text")]
    Text,
    /// JSON.
    #[serde(rename = "json")]
    Json,
}

/// Which pods may use images that are on the node already without verified credentials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImagePullCredentialsVerificationPolicy {
    /// All pods, if the kubelet did not pull the image.
    #[default]
    NeverVerifyPreloadedImages,
    /// All pods.
    NeverVerify,
    /// All pods, if the image is in the allowlist.
    NeverVerifyAllowlistedImages,
    /// No pod.
    AlwaysVerify,
}

/// How memory requests are protected from reclaim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemoryReservationPolicy {
    /// They are not.
    #[default]
    None,
    /// By the QoS class of the pod.
    TieredReservation,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TlsVersion {
    /// 1.0.
    #[serde(rename = "VersionTLS10")]
    Tls10,
    /// 1.1.
    #[serde(rename = "VersionTLS11")]
    Tls11,
    /// 1.2.
    #[default]
    #[serde(rename = "VersionTLS12")]
    Tls12,
    /// 1.3.
    #[serde(rename = "VersionTLS13")]
    Tls13,
}

/// A cgroup that is limited to its reserved resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeAllocatableEnforcement {
    /// The cgroup of all pods.
    #[default]
    #[serde(rename = "pods")]
    Pods,
    /// The cgroup of the system.
    #[serde(rename = "system-reserved")]
    SystemReserved,
    /// The cgroup of the system, in its compressible resources.
    #[serde(rename = "system-reserved-compressible")]
    SystemReservedCompressible,
    /// The cgroup of Kubernetes itself.
    #[serde(rename = "kube-reserved")]
    KubeReserved,
    /// The cgroup of Kubernetes itself, in its compressible resources.
    #[serde(rename = "kube-reserved-compressible")]
    KubeReservedCompressible,
    /// No cgroup.
    #[serde(rename = "none")]
    None,
}

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaintEffect {
    /// They are not scheduled to the node.
    #[default]
    NoSchedule,
    /// They are scheduled to other nodes if possible.
    PreferNoSchedule,
    /// They are evicted.
    NoExecute,
}
