//! A cluster on the stage, and the node agents that have joined it.

use std::fmt::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result};
use oarsman_rig::leaks::HostResource;
use oarsman_rig::{ControlPlane, Implementation, Kubelet, KubeletOptions, Rig};

use super::context::lock;
use crate::inspect::eventually;
use crate::program;

/// Where the Go kubelet leaves things whatever it is told; nothing of ours is there.
const STRAYS_OF_GO: [&str; 3] = ["/run/mount", "/var/lib/kubelet", "/var/log/containers"];

/// What a scenario has started; nothing as long as it does not ask for it.
#[derive(Default)]
pub(super) struct ClusterResources {
    plane: Mutex<Option<Arc<ControlPlane>>>,
    kubelets: Mutex<Vec<Arc<Kubelet>>>,
}

impl ClusterResources {
    /// Starts a control plane.
    pub(super) async fn plane(&self, rig: &Rig) -> Result<Arc<ControlPlane>> {
        let plane = Arc::new(ControlPlane::start(rig).await?);
        *lock(&self.plane) = Some(Arc::clone(&plane));
        Ok(plane)
    }

    /// Prepares an agent that is to join it.
    pub(super) fn kubelet(
        &self,
        rig: &Rig,
        which: &Implementation,
        options: &KubeletOptions,
    ) -> Result<Arc<Kubelet>> {
        let plane = lock(&self.plane).clone().context("there is no cluster to join yet")?;
        let kubelet = Arc::new(Kubelet::new(rig, &plane, which, options)?);
        lock(&self.kubelets).push(Arc::clone(&kubelet));
        Ok(kubelet)
    }

    pub(super) fn kubelets(&self) -> Vec<Arc<Kubelet>> {
        lock(&self.kubelets).clone()
    }

    /// Has everything deleted that makes pods, and pods.
    pub(super) async fn delete_all(&self, patience: Duration) -> Result<()> {
        let Some(plane) = lock(&self.plane).clone() else { return Ok(()) };
        for kubelet in self.kubelets() {
            kubelet.manifests().clear()?;
        }
        let all = ["--all", "--all-namespaces", "--wait=false"];
        let delete = ["delete", "deployments.apps,replicasets.apps,jobs.batch,pods"];
        plane.admin().run(&[&delete[..], &all[..]].concat()).await?;
        let list = ["get", "pods", "--all-namespaces", "--output=name"];
        let left = async || plane.admin().run(&list).await;
        eventually(patience, "the API server has no pods", left, String::is_empty).await?;
        Ok(())
    }

    /// Ends the control plane, after the agents have ended.
    pub(super) fn end(&self) -> Result<()> {
        for kubelet in std::mem::take(&mut *lock(&self.kubelets)) {
            if kubelet.is_alive() {
                kubelet.kill()?;
            }
            kubelet.remove_files();
        }
        match lock(&self.plane).take().and_then(Arc::into_inner) {
            Some(plane) => plane.stop(),
            None => Ok(()),
        }
    }

    /// Processes that live by right.
    pub(super) fn pids(&self) -> Vec<u32> {
        let kubelets = self.kubelets();
        let mut pids: Vec<u32> = kubelets.iter().filter_map(|kubelet| kubelet.pid().ok()).collect();
        pids.extend(lock(&self.plane).iter().flat_map(|plane| plane.pids()));
        pids
    }

    /// What is there as long as a cluster is, or stays though its agents have ended.
    pub(super) fn may_stay(&self, thing: &HostResource) -> bool {
        match thing {
            HostResource::Link { name } => {
                lock(&self.plane).iter().any(|it| it.node_link() == name)
            }
            HostResource::Mount { point, .. } => point.starts_with("/proc/sys"),
            HostResource::File { path } => self.is_an_agents(path),
            _ => false,
        }
    }

    /// Files of agents that are not those of a pod.
    fn is_an_agents(&self, path: &Path) -> bool {
        let kubelets = self.kubelets();
        let mut roots = kubelets.iter().map(|kubelet| kubelet.root());
        let is_own =
            roots.any(|root| path.starts_with(root) && !path.starts_with(root.join("pods")));
        is_own || STRAYS_OF_GO.iter().any(|stray| path.starts_with(stray))
    }

    /// What agents and the control plane said last.
    pub(super) fn report(&self) -> String {
        let mut report = String::new();
        for kubelet in self.kubelets() {
            // Writing to a string does not fail.
            writeln!(report, "the kubelet's log ends:\n{}", kubelet.log_tail()).ok();
        }
        for plane in lock(&self.plane).iter() {
            report.push_str(&plane.log_tails());
        }
        report
    }
}

/// The variable that has scenarios played with the Go kubelet instead of ours: it judges the scenario.
const GO: &str = "OARSMAN_ON_GO_KUBELET";

/// Our own agent.
///
/// # Errors
/// When the program's place is not known.
pub fn ours() -> Result<Implementation> {
    Ok(Implementation::Oarsman(program::path()?))
}

/// Our own agent, or the Go kubelet when the environment asks for it.
///
/// # Errors
/// When the program's place is not known.
pub fn under_test() -> Result<Implementation> {
    if std::env::var_os(GO).is_some() { Ok(Implementation::Go) } else { ours() }
}
