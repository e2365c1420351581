//! The answer of `/stats/summary`, with the field names of the API `stats/v1alpha1`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};

/// The whole answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatsSummary {
    /// The node.
    pub node: NodeSummary,
    /// Its pods.
    pub pods: Vec<PodStatsSummary>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSummary {
    /// Its name.
    pub node_name: String,
    /// Groups of daemons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub system_containers: Vec<ContainerSummary>,
    /// When the machine was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// CPU time of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuSummary>,
    /// Memory of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemorySummary>,
    /// Pressure on block devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io: Option<IoSummary>,
    /// The machine's interfaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkSummary>,
    /// The file system of the root directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs: Option<FsSummary>,
    /// File systems of the runtime.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeSummary>,
    /// Processes of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rlimit: Option<RlimitSummary>,
    /// Swap of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap: Option<SwapSummary>,
}

/// A pod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodStatsSummary {
    /// Which pod it is.
    pub pod_ref: PodReference,
    /// Since when it is on this node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// Its running containers.
    pub containers: Vec<ContainerSummary>,
    /// CPU time of its group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuSummary>,
    /// Memory of its group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemorySummary>,
    /// Pressure on block devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io: Option<IoSummary>,
    /// Its interfaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkSummary>,
    /// Its volumes.
    #[serde(default, rename = "volume", skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<VolumeSummary>,
    /// Writable layers, logs, emptyDir volumes on disk and other files together.
    #[serde(rename = "ephemeral-storage", skip_serializing_if = "Option::is_none")]
    pub ephemeral_storage: Option<FsSummary>,
    /// Its processes.
    #[serde(rename = "process_stats", skip_serializing_if = "Option::is_none")]
    pub process_stats: Option<ProcessSummary>,
    /// Its swap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap: Option<SwapSummary>,
}

/// A pod by its names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodReference {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its UID.
    pub uid: String,
}

/// A container, or the group of a daemon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerSummary {
    /// Its name.
    pub name: String,
    /// Since when it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// CPU time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuSummary>,
    /// Memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemorySummary>,
    /// Pressure on block devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io: Option<IoSummary>,
    /// Its writable layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rootfs: Option<FsSummary>,
    /// Its logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logs: Option<FsSummary>,
    /// Its swap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap: Option<SwapSummary>,
}

/// CPU time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CpuSummary {
    /// When it was read.
    pub time: Time,
    /// Nanoseconds in each second of the last window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage_nano_cores: Option<u64>,
    /// Nanoseconds since the group was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage_core_nano_seconds: Option<u64>,
    /// How long tasks waited for a CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub psi: Option<PsiSummary>,
}

/// Memory, in bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemorySummary {
    /// When it was read.
    pub time: Time,
    /// What is left of the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_bytes: Option<u64>,
    /// All that is charged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage_bytes: Option<u64>,
    /// Without file pages that have not been used for some time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_set_bytes: Option<u64>,
    /// Anonymous memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rss_bytes: Option<u64>,
    /// Page faults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_faults: Option<u64>,
    /// Those that read from a device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub major_page_faults: Option<u64>,
    /// How long tasks waited for memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub psi: Option<PsiSummary>,
}

/// Pressure on block devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IoSummary {
    /// When it was read.
    pub time: Time,
    /// How long tasks waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub psi: Option<PsiSummary>,
}

/// How long tasks waited for a resource.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PsiSummary {
    /// All of them.
    pub full: PsiData,
    /// At least one of them.
    pub some: PsiData,
}

/// Shares of time, in percent, and the whole time in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PsiData {
    /// All in all.
    pub total: u64,
    /// Of the last ten seconds.
    pub avg10: f64,
    /// Of the last minute.
    pub avg60: f64,
    /// Of the last five minutes.
    pub avg300: f64,
}

/// Interfaces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkSummary {
    /// When they were read.
    pub time: Time,
    /// The default interface, `eth0`, if there is one.
    #[serde(flatten)]
    pub default: InterfaceSummary,
    /// All of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<InterfaceSummary>,
}

/// One interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InterfaceSummary {
    /// Its name; empty for none.
    pub name: String,
    /// Received bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rx_bytes: Option<u64>,
    /// Errors while receiving.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rx_errors: Option<u64>,
    /// Sent bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_bytes: Option<u64>,
    /// Errors while sending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_errors: Option<u64>,
}

/// A part of a file system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsSummary {
    /// When it was read.
    pub time: Time,
    /// What is left on the file system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_bytes: Option<u64>,
    /// The size of the file system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<u64>,
    /// What this part takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<u64>,
    /// Inodes that are left on the file system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inodes_free: Option<u64>,
    /// Inodes of the file system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inodes: Option<u64>,
    /// Inodes that this part takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inodes_used: Option<u64>,
}

/// File systems of the runtime.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeSummary {
    /// That of images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_fs: Option<FsSummary>,
    /// That of writable layers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_fs: Option<FsSummary>,
}

/// Processes of the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RlimitSummary {
    /// When they were counted.
    pub time: Time,
    /// The most there can be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maxpid: Option<u64>,
    /// How many there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curproc: Option<u64>,
}

/// A volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VolumeSummary {
    /// What it holds.
    #[serde(flatten)]
    pub fs: FsSummary,
    /// Its name in the pod.
    pub name: String,
    /// The claim that it is of.
    #[serde(rename = "pvcRef", skip_serializing_if = "Option::is_none", default)]
    pub pvc_ref: Option<PVCReference>,
}

/// A claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PVCReference {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
}

/// Processes of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessSummary {
    /// How many there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_count: Option<u64>,
}

/// Swap.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SwapSummary {
    /// When it was read.
    pub time: Time,
    /// What is left of the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap_available_bytes: Option<u64>,
    /// What is swapped out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap_usage_bytes: Option<u64>,
}
