//! Measures the node when an endpoint or a command asks: control groups, file systems, volumes and logs. Nothing runs between requests.

mod claim_sizes;
mod disk_counts;
mod runtime_disks;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use async_trait::async_trait;
use oarsman_agent::seams::Seams;
use oarsman_agent::{ActivePodsReader, AgentMetrics};
use oarsman_clock::Clock;
use oarsman_core::pod::PodExt;
use oarsman_core::qos::QosClass;
use oarsman_core::resources::names::CgroupNames;
use oarsman_core::stats::{
    CgroupStats, CpuRates, FIRST_WINDOW, FileSystemStats, MeasuredCgroup, StatsScope,
    StatsSnapshot, SystemContainer, measured_pod, pods_to_measure,
};
use oarsman_core::time::Mono;
use oarsman_host::stats::{HostStats, NodeReading, ReadClock, StatsPlan};
use oarsman_server::{StatsError, StatsProvider};
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

use crate::settings::AgentSettings;

pub(crate) use claim_sizes::ClaimSizes;

use disk_counts::DiskCounts;
use runtime_disks::RuntimeDisks;

/// Requests within this time get the same snapshot.
const SHARED_FOR: Duration = Duration::from_secs(1);
/// The longest a request waits for its snapshot, that of another request before it included.
const MAX_WAIT: Duration = Duration::from_secs(20);
/// The longest a request waits for a file system that does not answer.
const FILE_SYSTEM_TIMEOUT: Duration = Duration::from_secs(2);

/// Measures the node.
pub(crate) struct NodeStats {
    node_name: String,
    root: PathBuf,
    names: CgroupNames,
    pods: ActivePodsReader,
    /// Where the volumes of claims are mounted.
    metrics: Arc<AgentMetrics>,
    clock: Arc<dyn Clock>,
    host: HostStats,
    runtime_disks: RuntimeDisks,
    disk_counts: DiskCounts,
    /// Held while a request for the whole summary is answered.
    summaries: Mutex<()>,
    state: Mutex<StatsState>,
}

/// What is kept from one request to the next.
#[derive(Default)]
struct StatsState {
    last: Option<(StatsScope, Mono, Arc<StatsSnapshot>)>,
    rates: CpuRates,
}

impl StatsState {
    /// The last snapshot, if it is recent and has enough.
    fn shared(&self, scope: StatsScope, now: Mono) -> Option<Arc<StatsSnapshot>> {
        let (had, at, snapshot) = self.last.as_ref()?;
        let is_recent = now.since(*at) < SHARED_FOR;
        (is_recent && had.covers(scope)).then(|| Arc::clone(snapshot))
    }

    /// Keeps a snapshot that was begun then. A disk may have delayed it until a newer one was made, before which no counter may fall back.
    fn keep(&mut self, scope: StatsScope, began: Mono, snapshot: &Arc<StatsSnapshot>) {
        if self.last.as_ref().is_none_or(|(_, at, _)| *at <= began) {
            self.last = Some((scope, began, Arc::clone(snapshot)));
        }
    }
}

impl NodeStats {
    /// Of an agent with these seams.
    pub(crate) fn open(
        settings: &AgentSettings,
        names: &CgroupNames,
        pods: &ActivePodsReader,
        metrics: &Arc<AgentMetrics>,
        seams: &Seams,
    ) -> Result<Self> {
        let host = HostStats::open(settings.node_status.machine.cpus);
        let clock = Arc::clone(&seams.clock);
        Ok(Self {
            node_name: settings.node_name.clone(),
            root: settings.root.clone(),
            names: names.clone(),
            pods: pods.clone(),
            metrics: Arc::clone(metrics),
            host: host.context("this machine's cgroups cannot be measured")?,
            runtime_disks: RuntimeDisks::new(
                Arc::clone(&seams.runtime),
                &settings.runtime_endpoint,
                Arc::clone(&clock),
            ),
            disk_counts: DiskCounts::new(
                Arc::clone(&seams.volumes),
                Arc::clone(&seams.pod_files),
                Arc::clone(&clock),
            ),
            clock,
            summaries: Mutex::default(),
            state: Mutex::default(),
        })
    }

    async fn shared_or_new(&self, scope: StatsScope) -> Result<Arc<StatsSnapshot>> {
        // Volumes are counted for one request at a time; requests that show none do not wait for that.
        let _turn = match scope {
            StatsScope::Summary => Some(self.summaries.lock().await),
            StatsScope::Resources | StatsScope::CpuAndMemory | StatsScope::Containers => None,
        };
        let (began, mut snapshot) = {
            let mut state = self.state.lock().await;
            let began = self.clock.mono();
            if let Some(snapshot) = state.shared(scope, began) {
                return Ok(snapshot);
            }
            (began, self.measure(scope, &mut state.rates).await?)
        };
        self.add_disks(scope, &mut snapshot).await;
        let snapshot = Arc::new(snapshot);
        self.state.lock().await.keep(scope, began, &snapshot);
        Ok(snapshot)
    }

    async fn measure(&self, scope: StatsScope, rates: &mut CpuRates) -> Result<StatsSnapshot> {
        let began = self.clock.now();
        let plan = self.plan(scope).await;
        let reading = self.host.read(plan, self.read_clock()).await?;
        observe(rates, &reading);
        if scope.has_rates() {
            self.read_again(rates, began.mono).await?;
        }
        rates.forget_old(self.clock.mono());
        Ok(self.snapshot(began.wall, reading, rates))
    }

    async fn add_disks(&self, scope: StatsScope, snapshot: &mut StatsSnapshot) {
        if scope.has_networks() {
            self.add_file_systems(snapshot).await;
        }
        if scope == StatsScope::Summary {
            self.runtime_disks.add_writable_layers(&mut snapshot.pods).await;
            self.disk_counts.add_to(&mut snapshot.pods, &self.pods.all()).await;
            self.add_claims(&mut snapshot.pods).await;
        }
    }

    async fn plan(&self, scope: StatsScope) -> StatsPlan {
        let mut pods = self.pods.all();
        pods.sort_by_cached_key(|pod| {
            let name = pod.pod.full_name();
            (name.namespace, name.name, pod.stage)
        });
        let mut daemons = Vec::new();
        if scope.has_rates() {
            daemons.push(std::process::id());
            daemons.extend(self.runtime_disks.runtime_process().await);
        }
        let classes = [QosClass::Burstable, QosClass::BestEffort].map(|it| self.names.class(it));
        StatsPlan {
            detail: scope.detail(),
            has_networks: scope.has_networks(),
            groups: [self.names.all_pods()].into_iter().chain(classes).collect(),
            pods: pods_to_measure(&pods, &self.names),
            daemons,
        }
    }

    /// Groups that were never read before have no rate yet: all of them are read once more after a short while.
    async fn read_again(&self, rates: &mut CpuRates, began: Mono) -> Result<()> {
        let missing = rates.without_rate(began);
        if missing.is_empty() {
            return Ok(());
        }
        sleep(FIRST_WINDOW).await;
        for (group, at, total) in self.host.cpu_times(missing, self.read_clock()).await? {
            rates.observe(&group, at, total);
        }
        Ok(())
    }

    fn snapshot(
        &self,
        at: jiff::Timestamp,
        reading: NodeReading,
        rates: &CpuRates,
    ) -> StatsSnapshot {
        let measured = |path: String, stats: CgroupStats, started| MeasuredCgroup {
            nano_cores: rates.nano_cores(&path),
            path,
            stats,
            started,
        };
        let groups = reading.groups.into_iter().map(|(path, stats, at)| measured(path, stats, at));
        let groups: Vec<MeasuredCgroup> = groups.collect();
        let daemons = ["kubelet", "runtime"].into_iter().zip(reading.daemons);
        let daemons = daemons.filter_map(|(name, found)| {
            let (path, stats, started) = found?;
            Some(SystemContainer { name, cgroup: measured(path, stats, started) })
        });
        let all_pods = self.names.all_pods();
        let of_pods = groups.iter().filter(|group| group.path == all_pods).cloned();
        let of_pods = of_pods.map(|cgroup| SystemContainer { name: "pods", cgroup });
        let pods = reading.pods.into_iter();
        StatsSnapshot {
            at,
            node_name: self.node_name.clone(),
            root: reading.root.map(|it| measured("/".to_owned(), it, reading.machine.started)),
            machine: reading.machine,
            system: daemons.chain(of_pods).collect(),
            pods: pods
                .map(|(pod, reading)| measured_pod(pod, reading, |path| rates.nano_cores(path)))
                .collect(),
            groups,
            node_fs: None,
            image_fs: None,
            container_fs: None,
        }
    }

    async fn add_file_systems(&self, snapshot: &mut StatsSnapshot) {
        snapshot.node_fs = self.file_system(self.root.clone()).await;
        let disks = self.runtime_disks.file_systems().await;
        if let Some((place, used)) = disks.images {
            snapshot.image_fs = self.file_system(place).await.map(|fs| (fs, Some(used)));
        }
        if let Some((place, used)) = disks.containers {
            snapshot.container_fs = self.file_system(place).await.map(|fs| (fs, Some(used)));
        }
    }

    async fn file_system(&self, directory: PathBuf) -> Option<FileSystemStats> {
        let shown = directory.display().to_string();
        match timeout(FILE_SYSTEM_TIMEOUT, self.host.file_system(directory)).await {
            Ok(Ok(found)) => Some(found),
            Ok(Err(error)) => {
                tracing::debug!(path = shown, %error, "file system not measured");
                None
            }
            Err(_) => {
                tracing::debug!(path = shown, "file system not measured, it does not answer");
                None
            }
        }
    }

    fn read_clock(&self) -> ReadClock {
        let clock = Arc::clone(&self.clock);
        Arc::new(move || clock.now())
    }
}

#[async_trait]
impl StatsProvider for NodeStats {
    async fn stats(&self, scope: StatsScope) -> Result<Arc<StatsSnapshot>, StatsError> {
        match timeout(MAX_WAIT, self.shared_or_new(scope)).await {
            Ok(measured) => measured.map_err(|error| StatsError(format!("{error:#}"))),
            Err(_) => Err(StatsError(format!("no answer within {MAX_WAIT:?}"))),
        }
    }
}

/// Hands the CPU time of every group to the rates.
fn observe(rates: &mut CpuRates, reading: &NodeReading) {
    let mut one = |path: &str, stats: &CgroupStats| {
        if let Some(cpu) = stats.cpu {
            rates.observe(path, stats.at.mono, cpu.total);
        }
    };
    if let Some(root) = &reading.root {
        one("/", root);
    }
    for (path, stats, _) in reading.groups.iter().chain(reading.daemons.iter().flatten()) {
        one(path, stats);
    }
    for (pod, reading) in &reading.pods {
        one(&pod.cgroup, &reading.own);
        for (directory, stats) in &reading.below {
            one(&format!("{}/{directory}", pod.cgroup), stats);
        }
    }
}
