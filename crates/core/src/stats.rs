//! What the node, its pods and containers use: the kernel's files as numbers, and the numbers as `/stats/summary`, `/metrics/resource`,
//! `/metrics/cadvisor` and CRI show them.
//!
//! Nothing is read here. `crates/host` reads the files of the control groups and of `/proc`; the parsers take their text. What the kernel
//! does not tell is absent, never zero.

mod cadvisor_metrics;
mod cgroup_files;
mod cgroup_stats;
mod cpu_rates;
mod cri_metrics;
mod file_systems;
mod measured_pods;
mod pressure;
mod proc_files;
mod resource_metrics;
mod snapshot;
mod summary;
mod summary_builder;
#[cfg(test)]
mod tests;
mod volume_metrics;

pub use cadvisor_metrics::cadvisor_metrics;
pub use cgroup_files::{
    V1CpuTicks, count_lines, cpu_max, cpu_stat_v1, cpu_stat_v2, cpuacct_stat, io_stat,
    memory_stat_v1, memory_stat_v2, number, number_of, shares_of_weight, throttled_io,
};
pub use cgroup_stats::{
    CgroupPressure, CgroupStats, CpuLimits, CpuThrottling, CpuUsage, DeviceIo, DeviceNumber,
    MemoryUsage,
};
pub use cpu_rates::{CpuRates, FIRST_WINDOW};
pub use cri_metrics::{
    CriMetricLabels, cri_group_metrics, cri_interface_metrics, cri_metric_descriptors,
};
pub use file_systems::FileSystemStats;
pub use measured_pods::{
    ContainerToMeasure, PodReading, PodToMeasure, container_id_of_cgroup, measured_pod,
    pods_to_measure,
};
pub use pressure::{Pressure, PressureWindow, pressure};
pub use proc_files::{
    InterfaceCounters, MemoryInfo, block_devices, boot_time, cgroup_of_process, interfaces,
    memory_info, tasks,
};
pub use resource_metrics::resource_metrics;
pub use snapshot::{
    MachineStats, MeasuredCgroup, MeasuredClaim, MeasuredContainer, MeasuredPod, MeasuredVolume,
    StatsDetail, StatsScope, StatsSnapshot, SystemContainer,
};
pub use summary::{
    ContainerSummary, CpuSummary, FsSummary, InterfaceSummary, IoSummary, MemorySummary,
    NetworkSummary, NodeSummary, PVCReference, PodReference, PodStatsSummary, ProcessSummary,
    PsiData, PsiSummary, RlimitSummary, RuntimeSummary, StatsSummary, SwapSummary, VolumeSummary,
};
pub use summary_builder::{cpu_and_memory_summary, full_summary};
pub use volume_metrics::write_volume_metrics;
