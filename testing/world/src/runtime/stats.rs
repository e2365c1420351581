//! Statistics of containers: made up, but consistent with their scripts.

use oarsman_cri::Result;
use oarsman_cri_types::v1::{
    ContainerState, ContainerStats, ContainerStatsFilter, CpuUsage, FilesystemIdentifier,
    FilesystemUsage, LinuxPodSandboxStats, MemoryUsage, PodSandboxAttributes, PodSandboxStats,
    PodSandboxStatsFilter, UInt64Value,
};

use super::containers::{ContainerRunState, FakeContainer};
use super::lists::{has_labels, matches, selected};
use super::sandboxes::FakeSandbox;
use super::state::FakeRuntimeState;

/// The memory of a process before its script allocates more.
const PROGRAM_MEMORY: u64 = 1 << 20;
/// Every process uses one hundredth of a core.
const IDLE_SHARE: u64 = 100;

impl FakeRuntimeState {
    /// Measures a container that runs.
    pub(super) fn measure_container(&self, id: &str) -> Result<ContainerStats> {
        Ok(self.measure(self.running("ContainerStats", id)?))
    }

    /// Measures the containers that run.
    pub(super) fn measure_containers(&self, filter: &ContainerStatsFilter) -> Vec<ContainerStats> {
        let wanted = |container: &&FakeContainer| {
            container.state() == ContainerState::ContainerRunning
                && selected(container, &filter.id, &filter.pod_sandbox_id, &filter.label_selector)
        };
        self.containers.values().filter(wanted).map(|container| self.measure(container)).collect()
    }

    /// Measures a sandbox: the sum of its containers.
    pub(super) fn measure_sandbox(&self, sandbox: &FakeSandbox) -> PodSandboxStats {
        let of_it =
            ContainerStatsFilter { pod_sandbox_id: sandbox.id.clone(), ..Default::default() };
        let containers = self.measure_containers(&of_it);
        let cpu = containers.iter().filter_map(|one| one.cpu?.usage_core_nano_seconds);
        let memory = containers.iter().filter_map(|one| one.memory?.working_set_bytes);
        let linux = LinuxPodSandboxStats {
            cpu: Some(self.cpu(cpu.map(|used| used.value).sum())),
            memory: Some(self.memory(memory.map(|used| used.value).sum())),
            containers,
            ..LinuxPodSandboxStats::default()
        };
        let attributes = PodSandboxAttributes {
            id: sandbox.id.clone(),
            metadata: Some(sandbox.metadata.clone()),
            labels: sandbox.config.labels.clone(),
            annotations: sandbox.config.annotations.clone(),
        };
        PodSandboxStats { attributes: Some(attributes), linux: Some(linux), windows: None }
    }

    pub(super) fn measure_sandboxes(&self, filter: &PodSandboxStatsFilter) -> Vec<PodSandboxStats> {
        let wanted = |sandbox: &&FakeSandbox| {
            matches(&filter.id, &sandbox.id)
                && has_labels(&filter.label_selector, &sandbox.config.labels)
        };
        self.sandboxes
            .values()
            .filter(wanted)
            .map(|sandbox| self.measure_sandbox(sandbox))
            .collect()
    }

    fn measure(&self, container: &FakeContainer) -> ContainerStats {
        let (cpu, memory) = container.usage(self.clock.stamp());
        let mountpoint = container.program.root().display().to_string();
        let writable_layer = FilesystemUsage {
            timestamp: self.clock.stamp(),
            fs_id: Some(FilesystemIdentifier { mountpoint }),
            used_bytes: Some(UInt64Value { value: 0 }),
            inodes_used: None,
        };
        ContainerStats {
            attributes: Some(container.attributes()),
            cpu: Some(self.cpu(cpu)),
            memory: Some(self.memory(memory)),
            writable_layer: Some(writable_layer),
            swap: None,
            io: None,
        }
    }

    fn cpu(&self, value: u64) -> CpuUsage {
        let usage_core_nano_seconds = Some(UInt64Value { value });
        CpuUsage { timestamp: self.clock.stamp(), usage_core_nano_seconds, ..CpuUsage::default() }
    }

    fn memory(&self, value: u64) -> MemoryUsage {
        let used = Some(UInt64Value { value });
        MemoryUsage {
            timestamp: self.clock.stamp(),
            working_set_bytes: used,
            usage_bytes: used,
            rss_bytes: used,
            ..MemoryUsage::default()
        }
    }
}

impl FakeContainer {
    /// CPU time in nanoseconds and memory in bytes, as used up to now.
    fn usage(&self, now: i64) -> (u64, u64) {
        match &self.run_state {
            ContainerRunState::Running(running) => {
                let age = u64::try_from(now.saturating_sub(running.started_at)).unwrap_or(0);
                (age / IDLE_SHARE, PROGRAM_MEMORY.saturating_add(running.memory))
            }
            ContainerRunState::Created | ContainerRunState::Exited(_) => (0, 0),
        }
    }
}
