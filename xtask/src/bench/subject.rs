//! The subjects of the bench, and the measurement of each.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, anyhow};
use clap::ValueEnum;
use oarsman_rig::{ControlPlane, KubeletOptions, Rig};
use serde::{Deserialize, Serialize};
use tokio::time::{Duration, Instant};

use super::api::BenchApi;
use super::figures::Figures;
use super::floor::Floor;
use super::watch::PodTimesWatch;
use super::workload::{WorkloadPart, WorkloadSize};
use crate::command::first_line;
use crate::kubelet_kind::KubeletKind;

/// The name of the only node.
pub(super) const NODE: &str = "node";
/// How long the node may take to become ready.
pub(super) const READY: Duration = Duration::from_secs(120);
/// How long an agent may take to end.
pub(super) const ENDING: Duration = Duration::from_secs(30);

/// Who is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum BenchSubject {
    /// The runtime without a kubelet
    Floor,
    /// The Go kubelet
    Go,
    /// Ours
    Oarsman,
}

impl BenchSubject {
    /// In the order of the table.
    pub(super) const ALL: [Self; 3] = [Self::Floor, Self::Go, Self::Oarsman];

    pub(super) fn shown(self) -> &'static str {
        self.kubelet().map_or("runtime alone", KubeletKind::shown)
    }

    pub(super) fn kubelet(self) -> Option<KubeletKind> {
        match self {
            Self::Floor => None,
            Self::Go => Some(KubeletKind::Go),
            Self::Oarsman => Some(KubeletKind::Oarsman),
        }
    }
}

/// A rig and a cluster to measure on.
pub(super) struct Bench<'a> {
    pub(super) rig: &'a Rig,
    pub(super) cluster: &'a ControlPlane,
    pub(super) size: WorkloadSize,
    part: Option<WorkloadPart>,
    pub(super) api: BenchApi,
    pub(super) floor: Floor,
    names: AtomicUsize,
}

impl<'a> Bench<'a> {
    pub(super) async fn open(
        rig: &'a Rig,
        cluster: &'a ControlPlane,
        size: WorkloadSize,
        part: Option<WorkloadPart>,
    ) -> Result<Self> {
        let api = BenchApi::open(cluster.client().await?).await?;
        let (floor, names) = (Floor::on(rig)?, AtomicUsize::new(1));
        Ok(Self { rig, cluster, size, part, api, floor, names })
    }

    /// Whether this part is to be measured.
    pub(super) fn wants(&self, part: WorkloadPart) -> bool {
        self.part.is_none_or(|only| only == part)
    }

    /// New names for pods.
    pub(super) fn names(&self, count: usize) -> Vec<String> {
        let first = self.names.fetch_add(count, Ordering::Relaxed);
        (first..first + count).map(|number| format!("pod-{number}")).collect()
    }

    pub(super) async fn measure(&self, bench_subject: BenchSubject) -> Result<Figures> {
        match bench_subject.kubelet() {
            None => self.measure_floor().await,
            Some(kubelet) => self.measure_agent(kubelet).await,
        }
    }

    async fn measure_floor(&self) -> Result<Figures> {
        let containerd = self.rig.parts().containerd.join("containerd");
        let version = first_line(Command::new(containerd).arg("--version"))?;
        // Pods whose node does not exist are deleted after a while.
        self.api.create_node(NODE).await?;
        let pod_times = PodTimesWatch::begin(&self.api).await?;
        let figures = self.floor_figures(&pod_times, version).await?;
        self.api.delete_node(NODE).await?;
        Ok(figures)
    }

    async fn measure_agent(&self, kubelet: KubeletKind) -> Result<Figures> {
        let which = kubelet.implementation()?;
        let version = first_line(Command::new(kubelet.program()?).arg("--version"))?;
        let options = KubeletOptions { name: NODE.to_owned(), ..KubeletOptions::default() };
        let agent = oarsman_rig::Kubelet::new(self.rig, self.cluster, &which, &options)?;
        let pod_times = PodTimesWatch::begin(&self.api).await?;
        let began = Instant::now();
        agent.start()?;
        let measured = async {
            let ready = self.api.until_ready(NODE, READY).await? - began;
            let mut figures = self.agent_figures(&pod_times, &agent).await?;
            figures.version = version;
            figures.ready = Some(ready.as_secs_f64());
            Ok(figures)
        };
        let measured: Result<Figures> = measured.await;
        let figures =
            measured.map_err(|error| anyhow!("{error:#}; its log ends:\n{}", agent.log_tail()))?;
        agent.terminate(ENDING).await?;
        // The next subject begins without objects, as this one did.
        self.api.delete_node(NODE).await?;
        agent.remove_files();
        Ok(figures)
    }
}
