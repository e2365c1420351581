//! Fields that know only a few words.

use serde::{Deserialize, Serialize};

/// Who makes cgroups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CgroupDriverSetting {
    /// Whoever needs one, as a directory.
    #[default]
    #[serde(rename = "cgroupfs")]
    Cgroupfs,
    /// systemd, as a slice or scope.
    #[serde(rename = "systemd")]
    Systemd,
}

/// What those who ask the server may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum KubeletAuthorizationMode {
    /// Everything.
    AlwaysAllow,
    /// What the API server says.
    #[default]
    Webhook,
}

/// Whether containers get CPUs of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CpuManagerPolicy {
    /// Nobody does.
    #[default]
    #[serde(rename = "none")]
    None,
    /// Guaranteed ones with whole CPUs do.
    #[serde(rename = "static")]
    Static,
}

/// Whether containers get memory of NUMA nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemoryManagerPolicy {
    /// Nobody does.
    #[default]
    None,
    /// Guaranteed ones do.
    Static,
}

/// How a container's resources are kept close together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TopologyManagerPolicy {
    /// Not at all.
    #[default]
    #[serde(rename = "none")]
    None,
    /// Where that is possible.
    #[serde(rename = "best-effort")]
    BestEffort,
    /// Pods for which it is not possible are refused.
    #[serde(rename = "restricted")]
    Restricted,
    /// Everything is of one NUMA node, or the pod is refused.
    #[serde(rename = "single-numa-node")]
    SingleNumaNode,
}

/// For whom resources are kept close together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TopologyManagerScope {
    /// For each container.
    #[default]
    #[serde(rename = "container")]
    Container,
    /// For all containers of a pod.
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

/// How changes of config maps and secrets are noticed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ResourceChangeDetectionStrategy {
    /// By being told.
    #[default]
    Watch,
    /// By asking after a while.
    Cache,
    /// By asking every time.
    Get,
}

/// What containers may do with swap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SwapBehaviorSetting {
    /// Nobody swaps.
    #[default]
    NoSwap,
    /// Burstable ones swap in proportion to what they request.
    LimitedSwap,
}

/// What a log line looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogFormat {
    /// For people.
    #[default]
    #[serde(rename = "text")]
    Text,
    /// For programs.
    #[serde(rename = "json")]
    Json,
}

/// Which pods may use images that are here already without showing credentials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImagePullCredentialsVerificationPolicy {
    /// All of them, if the image was not pulled by the kubelet.
    #[default]
    NeverVerifyPreloadedImages,
    /// All of them.
    NeverVerify,
    /// All of them, if the image is in a list.
    NeverVerifyAllowlistedImages,
    /// None.
    AlwaysVerify,
}

/// How memory requests are protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemoryReservationPolicy {
    /// They are not.
    #[default]
    None,
    /// The higher the class, the better.
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

/// Whose cgroup is limited to what they were promised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeAllocatableEnforcement {
    /// That of all pods.
    #[default]
    #[serde(rename = "pods")]
    Pods,
    /// That of the system.
    #[serde(rename = "system-reserved")]
    SystemReserved,
    /// That of the system, in what can be taken back.
    #[serde(rename = "system-reserved-compressible")]
    SystemReservedCompressible,
    /// That of Kubernetes itself.
    #[serde(rename = "kube-reserved")]
    KubeReserved,
    /// That of Kubernetes itself, in what can be taken back.
    #[serde(rename = "kube-reserved-compressible")]
    KubeReservedCompressible,
    /// Nobody's.
    #[serde(rename = "none")]
    None,
}

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaintEffect {
    /// No more of them come.
    #[default]
    NoSchedule,
    /// They rather go elsewhere.
    PreferNoSchedule,
    /// They leave.
    NoExecute,
}
