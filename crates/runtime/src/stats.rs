//! What containers and pods use, from the files of their control groups.

mod metrics;
mod usage;

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use oarsman_core::stats::{CgroupStats, InterfaceCounters, StatsDetail, interfaces};
use oarsman_cri_types::v1 as cri;
use oarsman_host::namespaces::NamespaceKind;
use oarsman_host::stats::StatsPlan;
use oarsman_host::thread_namespaces;
use oarsman_image_store::StoreError;

use crate::error::{EmbeddedRuntimeError, Outcome, failed};
use crate::inner::RuntimeInner;
use crate::records::{SandboxPhase, StoredContainer, StoredSandbox};
use crate::status::has_labels;
use usage::{cpu, io, memory, network, number, swap};

/// What of each group is read for statistics.
const DETAIL: StatsDetail = StatsDetail::Summary;
/// The interfaces of the network namespace of the thread that reads it.
const INTERFACES: &str = "/proc/thread-self/net/dev";

impl RuntimeInner {
    /// The numbers of groups that exist, by their paths.
    async fn read_groups(
        &self,
        groups: Vec<String>,
        detail: StatsDetail,
    ) -> Outcome<BTreeMap<String, CgroupStats>> {
        let plan = StatsPlan {
            detail,
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
        let groups = self.read_groups(records.iter().map(group).collect(), DETAIL).await?;
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
                io: stats.and_then(io),
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
        let groups = self.read_groups(vec![group.clone()], DETAIL).await?;
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
                network: self.network_usage(&sandbox).await,
                process: processes,
                containers,
                io: stats.and_then(io),
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

    async fn network_usage(self: &Arc<Self>, sandbox: &StoredSandbox) -> Option<cri::NetworkUsage> {
        let interfaces = self.interfaces(sandbox).await?;
        Some(network(self.now(), interfaces))
    }

    /// The interfaces of a pod with a network of its own; none of one that is being removed.
    async fn interfaces(
        self: &Arc<Self>,
        sandbox: &StoredSandbox,
    ) -> Option<Vec<InterfaceCounters>> {
        if !sandbox.own().network || sandbox.phase != SandboxPhase::Ready {
            return None;
        }
        let id = sandbox.id.clone();
        // Work of its own, which does not wait for changes of the pod's network.
        let key = format!("measure {id}");
        let read = self.on_network(&key, move |inner| inner.read_interfaces(&id)).await;
        let told = |error: &EmbeddedRuntimeError| {
            tracing::debug!(sandbox = sandbox.id, %error, "interfaces of the pod not read");
        };
        read.inspect_err(told).ok()
    }

    fn read_interfaces(&self, sandbox: &str) -> Outcome<Vec<InterfaceCounters>> {
        let kind = NamespaceKind::Network;
        let namespace = self.network.pins().open(sandbox, kind)?;
        let read = || fs::read_to_string(INTERFACES);
        let text = thread_namespaces::in_existing(namespace.as_fd(), kind, read);
        let text = text.and_then(|text| text).map_err(failed("read", Path::new(INTERFACES)))?;
        Ok(interfaces(&text))
    }
}
