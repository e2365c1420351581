//! The context of a scenario: its rig, and the agents, proxies and clusters it has started.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Result, ensure};
use oarsman_host::processes;
use oarsman_rig::leaks::{HostResource, Snapshot};
use oarsman_rig::{ContainerdFlavour, ControlPlane, Implementation, Kubelet, KubeletOptions, Rig};

use super::cluster_resources::ClusterResources;
use crate::agent_process::{AgentProcess, AgentSetup};
use crate::inspect::{RuntimeInspector, eventually};
use crate::proxy::CriProxy;

/// How long agents may take to remove all pods at the end, unless a scenario says otherwise.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// How long an agent may take to end.
const ENDING: Duration = Duration::from_secs(15);
/// How many of the last calls a failure report has.
const CALLS: usize = 30;
/// Groups that an agent makes for all its pods and keeps.
const KEPT_GROUPS: [&str; 3] = ["kubepods", "kubepods/burstable", "kubepods/besteffort"];

/// A rig, and what a scenario has started on it.
pub struct ScenarioContext {
    rig: Arc<Rig>,
    inspector: RuntimeInspector,
    nodes: Mutex<Vec<Arc<AgentProcess>>>,
    proxies: Mutex<Vec<Arc<CriProxy>>>,
    cluster_resources: ClusterResources,
    max_wait: Mutex<Duration>,
}

impl ScenarioContext {
    pub(super) fn new(rig: &Arc<Rig>) -> Result<Self> {
        let (nodes, proxies) = (Mutex::default(), Mutex::default());
        let (inspector, max_wait) = (RuntimeInspector::new(rig)?, Mutex::new(MAX_WAIT));
        let rig = Arc::clone(rig);
        let cx = Self {
            rig,
            inspector,
            nodes,
            proxies,
            cluster_resources: ClusterResources::default(),
            max_wait,
        };
        fs::create_dir(cx.scratch())?;
        Ok(cx)
    }

    /// The rig.
    pub fn rig(&self) -> &Rig {
        &self.rig
    }

    /// The inspector of the rig.
    pub fn inspector(&self) -> &RuntimeInspector {
        &self.inspector
    }

    /// A directory for files that pods share with the scenario.
    pub fn scratch(&self) -> PathBuf {
        self.rig.directory().join("scratch")
    }

    /// The setup of the scenario's agent, which may be changed before its start.
    ///
    /// # Errors
    /// When the path of the program is not known.
    pub fn setup(&self) -> Result<AgentSetup> {
        AgentSetup::on(&self.rig, "agent")
    }

    /// Starts an agent. When the scenario is over, all its manifests are removed, and then it is ended.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&self, setup: AgentSetup) -> Result<Arc<AgentProcess>> {
        let node = self.prepare(setup)?;
        node.start()?;
        Ok(node)
    }

    /// The same without starting it: some agents need their manifests first.
    ///
    /// # Errors
    /// When its directories cannot be made.
    pub fn prepare(&self, setup: AgentSetup) -> Result<Arc<AgentProcess>> {
        let node = Arc::new(AgentProcess::new(setup)?);
        self.rig.prepare_agent(node.root())?;
        lock(&self.nodes).push(Arc::clone(&node));
        Ok(node)
    }

    /// Starts an agent straight on containerd.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn agent(&self) -> Result<Arc<AgentProcess>> {
        self.start(self.setup()?)
    }

    /// Starts an agent with a proxy before containerd.
    ///
    /// # Errors
    /// When one of them cannot be started.
    pub async fn agent_behind_proxy(&self) -> Result<(Arc<AgentProcess>, Arc<CriProxy>)> {
        let proxy = self.proxy().await?;
        Ok((self.start(self.setup()?.through(&proxy))?, proxy))
    }

    /// Starts a proxy before containerd.
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn proxy(&self) -> Result<Arc<CriProxy>> {
        let number = lock(&self.proxies).len();
        let socket = self.rig.directory().join(format!("proxy-{number}.sock"));
        let proxy = Arc::new(CriProxy::start(Arc::new(self.rig.client()?), &socket).await?);
        lock(&self.proxies).push(Arc::clone(&proxy));
        Ok(proxy)
    }

    /// Starts a control plane. It ends when the scenario is over, and everything in it is deleted before.
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn cluster(&self) -> Result<Arc<ControlPlane>> {
        self.cluster_resources.plane(&self.rig).await
    }

    /// Prepares an agent that is to join the cluster; it is still to be started. Agents of one name share all their directories.
    ///
    /// # Errors
    /// When there is no cluster yet, or something cannot be written.
    pub fn join(&self, which: &Implementation, options: &KubeletOptions) -> Result<Arc<Kubelet>> {
        self.cluster_resources.kubelet(&self.rig, which, options)
    }

    /// Sets how long removing all pods may take when the scenario is over.
    pub fn set_cleanup_timeout(&self, max_wait: Duration) {
        *lock(&self.max_wait) = max_wait;
    }

    /// Has the agents remove all pods, ends them, and checks that nothing is left.
    pub(super) async fn clean_up(&self, before: &Snapshot) -> Result<()> {
        let nodes = lock(&self.nodes).clone();
        let max_wait = *lock(&self.max_wait);
        for node in &nodes {
            node.manifests().clear()?;
        }
        self.cluster_resources.delete_all(max_wait).await?;
        let pods = async || self.inspector.pods().await;
        eventually(max_wait, "all pods are taken down", pods, Vec::is_empty).await?;
        before.compare_until_clean_but(max_wait, |thing| self.may_stay(thing)).await?;
        for node in nodes.iter().filter(|node| node.is_alive()) {
            let status = node.terminate(ENDING).await?;
            ensure!(status.success(), "the agent ended with {status}");
        }
        for kubelet in self.cluster_resources.kubelets().iter().filter(|kubelet| kubelet.is_alive())
        {
            let status = kubelet.terminate(ENDING).await?;
            ensure!(status.success(), "the kubelet ended with {status}");
        }
        self.cluster_resources.end()?;
        before.compare_until_clean_but(ENDING, |thing| self.may_stay(thing)).await
    }

    /// Whether a resource is an agent that runs, or its cgroup.
    fn may_stay(&self, thing: &HostResource) -> bool {
        if self.cluster_resources.may_stay(thing) {
            return true;
        }
        match thing {
            HostResource::Process { pid, .. } => self.is_agent_process(*pid),
            HostResource::Cgroup { group, .. } => {
                let below = group.strip_prefix(self.rig.cgroup_parent());
                below.is_ok_and(|below| KEPT_GROUPS.iter().any(|kept| below == Path::new(kept)))
            }
            HostResource::Link { .. } | HostResource::Nftables { .. } => {
                thing.is_of_embedded_network() && self.has_embedded_runtime()
            }
            // The directory of kubelets' runtime locks.
            HostResource::File { path } => path.starts_with("/run/oarsman"),
            _ => false,
        }
    }

    /// Whether a process may have an embedded runtime: an agent, or that of the rig.
    fn has_embedded_runtime(&self) -> bool {
        self.rig.flavour() == ContainerdFlavour::OarsmanCri
            || lock(&self.nodes).iter().any(|node| node.is_alive())
            || self.cluster_resources.kubelets().iter().any(|kubelet| kubelet.is_alive())
    }

    /// Whether a process is an agent that runs, or was started by one.
    fn is_agent_process(&self, pid: u32) -> bool {
        let mut agents: Vec<u32> =
            lock(&self.nodes).iter().filter_map(|node| node.pid().ok()).collect();
        agents.extend(self.cluster_resources.pids());
        let family = processes::list().map(|all| processes::family(&all, &agents));
        family.is_ok_and(|family| family.contains(&pid))
    }

    /// The ends of agents' logs, and their last calls.
    pub(super) fn report(&self) -> String {
        let mut report = String::new();
        for node in lock(&self.nodes).iter() {
            // Writing to a string does not fail.
            writeln!(report, "the agent's log ends:\n{}", node.log_tail()).ok();
        }
        for proxy in lock(&self.proxies).iter() {
            let calls = proxy.calls_since(proxy.count().saturating_sub(CALLS));
            writeln!(report, "the last calls:").ok();
            for call in calls {
                writeln!(report, "  {call}").ok();
            }
        }
        report.push_str(&self.cluster_resources.report());
        report
    }

    /// Kills what still runs, and removes what belongs to no pod.
    pub(super) fn end(&self) {
        let nodes = std::mem::take(&mut *lock(&self.nodes));
        for node in &nodes {
            node.kill().ok();
            for path in [node.log(), node.root().to_owned(), node.manifests().path().to_owned()] {
                fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path)).ok();
            }
        }
        lock(&self.proxies).clear();
        // After a failure the rig is discarded, too, with whatever this could not end.
        self.cluster_resources.end().ok();
        fs::remove_dir_all(self.scratch()).ok();
    }
}

pub(super) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
