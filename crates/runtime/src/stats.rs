//! What containers and pods use, from the files of their control groups.

use std::collections::BTreeMap;
use std::sync::Arc;

use oarsman_core::stats::{CgroupStats, StatsDetail};
use oarsman_cri_types::v1 as cri;
use oarsman_host::stats::StatsPlan;
use oarsman_image_store::StoreError;

use crate::error::{EmbeddedRuntimeError, Outcome};
use crate::inner::{RuntimeInner, nanoseconds};
use crate::records::StoredContainer;
use crate::status::has_labels;

fn number(value: u64) -> Option<cri::UInt64Value> {
    Some(cri::UInt64Value { value })
}

fn cpu(stats: &CgroupStats) -> Option<cri::CpuUsage> {
    let used = stats.cpu.as_ref()?.total;
    let timestamp = nanoseconds(stats.at.wall);
    let usage_core_nano_seconds = number(used);
    Some(cri::CpuUsage { timestamp, usage_core_nano_seconds, ..cri::CpuUsage::default() })
}

fn memory(stats: &CgroupStats) -> Option<cri::MemoryUsage> {
    let memory = stats.memory.as_ref()?;
    let available = memory.limit.map(|limit| limit.saturating_sub(memory.working_set()));
    Some(cri::MemoryUsage {
        timestamp: nanoseconds(stats.at.wall),
        working_set_bytes: number(memory.working_set()),
        available_bytes: available.and_then(number),
        usage_bytes: number(memory.usage),
        rss_bytes: number(memory.rss),
        page_faults: number(memory.total_page_faults),
        major_page_faults: number(memory.total_major_page_faults),
        psi: None,
    })
}

fn swap(stats: &CgroupStats) -> Option<cri::SwapUsage> {
    let swap = stats.memory.as_ref()?.swap;
    let timestamp = nanoseconds(stats.at.wall);
    let swap_usage_bytes = number(swap);
    Some(cri::SwapUsage { timestamp, swap_usage_bytes, ..cri::SwapUsage::default() })
}

impl RuntimeInner {
    /// The numbers of groups that exist, by their paths.
    async fn read_groups(&self, groups: Vec<String>) -> Outcome<BTreeMap<String, CgroupStats>> {
        let plan = StatsPlan {
            detail: StatsDetail::Summary,
            has_networks: false,
            groups,
            pods: Vec::new(),
            daemons: Vec::new(),
        };
        let clock = Arc::clone(&self.clock);
        let read = self.stats.read(plan, Arc::new(move || clock.now())).await;
        let read = read.map_err(|error| EmbeddedRuntimeError::Panicked(error.to_string()))?;
        Ok(read.groups.into_iter().map(|(group, stats, _)| (group, stats)).collect())
    }

    async fn measured(
        self: &Arc<Self>,
        records: Vec<StoredContainer>,
    ) -> Outcome<Vec<cri::ContainerStats>> {
        let group = |record: &StoredContainer| record.cgroup.to_string_lossy().into_owned();
        let groups = self.read_groups(records.iter().map(group).collect()).await?;
        let mut all = Vec::new();
        for record in records {
            let stats = groups.get(&group(&record));
            all.push(cri::ContainerStats {
                attributes: Some(cri::ContainerAttributes {
                    id: record.id.clone(),
                    metadata: Some(record.metadata()),
                    labels: record.labels.clone(),
                    annotations: record.annotations.clone(),
                }),
                cpu: stats.and_then(cpu),
                memory: stats.and_then(memory),
                writable_layer: self.writable_layer(&record.id).await?,
                swap: stats.and_then(swap),
                io: None,
            });
        }
        Ok(all)
    }

    async fn writable_layer(self: &Arc<Self>, id: &str) -> Outcome<Option<cri::FilesystemUsage>> {
        let key = id.to_owned();
        let used = self.on_images(id, move |inner| match inner.images.root_usage(&key) {
            // It is being removed.
            Err(StoreError::Files { .. }) => Ok(None),
            other => Ok(Some(other?)),
        });
        let mountpoint = self.images.directory().to_string_lossy().into_owned();
        Ok(used.await?.map(|used| cri::FilesystemUsage {
            timestamp: self.now(),
            fs_id: Some(cri::FilesystemIdentifier { mountpoint }),
            used_bytes: number(used.bytes),
            inodes_used: number(used.inodes),
        }))
    }

    pub(crate) async fn container_stats(
        self: &Arc<Self>,
        id: &str,
    ) -> Outcome<cri::ContainerStats> {
        let (record, _) = self.container(id)?;
        let measured = self.measured(vec![record]).await?;
        measured.into_iter().next().ok_or_else(|| EmbeddedRuntimeError::no_container(id))
    }

    pub(crate) async fn list_container_stats(
        self: &Arc<Self>,
        filter: &cri::ContainerStatsFilter,
    ) -> Outcome<Vec<cri::ContainerStats>> {
        let records = self.running_containers(|record| {
            (filter.id.is_empty() || filter.id == record.id)
                && (filter.pod_sandbox_id.is_empty() || filter.pod_sandbox_id == record.sandbox)
                && has_labels(&record.labels, &filter.label_selector)
        });
        self.measured(records).await
    }

    pub(crate) async fn sandbox_stats(self: &Arc<Self>, id: &str) -> Outcome<cri::PodSandboxStats> {
        let (sandbox, _) = self.sandbox(id)?;
        let group = sandbox.cgroup_parent.to_string_lossy().into_owned();
        let groups = self.read_groups(vec![group.clone()]).await?;
        let stats = groups.get(&group);
        let containers = self.measured(self.running_containers(|it| it.sandbox == id)).await?;
        let processes = stats
            .and_then(|stats| stats.threads)
            .map(|count| cri::ProcessUsage { timestamp: self.now(), process_count: number(count) });
        Ok(cri::PodSandboxStats {
            attributes: Some(cri::PodSandboxAttributes {
                id: sandbox.id.clone(),
                metadata: Some(sandbox.metadata()),
                labels: sandbox.labels.clone(),
                annotations: sandbox.annotations.clone(),
            }),
            linux: Some(cri::LinuxPodSandboxStats {
                cpu: stats.and_then(cpu),
                memory: stats.and_then(memory),
                network: None,
                process: processes,
                containers,
                io: None,
            }),
            windows: None,
        })
    }

    pub(crate) async fn list_sandbox_stats(
        self: &Arc<Self>,
        filter: cri::PodSandboxStatsFilter,
    ) -> Outcome<Vec<cri::PodSandboxStats>> {
        let filter = cri::PodSandboxFilter {
            id: filter.id,
            state: None,
            label_selector: filter.label_selector,
        };
        let mut all = Vec::new();
        for sandbox in self.list_sandboxes(&filter) {
            match self.sandbox_stats(&sandbox.id).await {
                // It was removed meanwhile.
                Err(EmbeddedRuntimeError::NotFound { .. }) => {}
                other => all.push(other?),
            }
        }
        Ok(all)
    }
}
