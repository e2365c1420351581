//! The control plane of a scenario, and the agents that have joined it.

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

/// Paths that the Go kubelet writes to whatever its flags say; our agent does not.
const STRAYS_OF_GO: [&str; 3] = ["/run/mount", "/var/lib/kubelet", "/var/log/containers"];

/// The control plane and agents that a scenario has started; none until it asks for them.
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

    /// Prepares an agent that is to join the cluster.
    pub(super) fn kubelet(
        &self,
        rig: &Rig,
        which: &Implementation,
        options: &KubeletOptions,
    ) -> Result<Arc<Kubelet>> {
        let plane = lock(&self.plane).clone().context("there is no cluster to join yet")?;
        let kubelet = Arc::new(Kubelet::new(rig, &plane, which, options)?);
        rig.prepare_agent(kubelet.root())?;
        lock(&self.kubelets).push(Arc::clone(&kubelet));
        Ok(kubelet)
    }

    pub(super) fn kubelets(&self) -> Vec<Arc<Kubelet>> {
        lock(&self.kubelets).clone()
    }

    /// Deletes all objects that create pods, and all pods.
    pub(super) async fn delete_all(&self, max_wait: Duration) -> Result<()> {
        let Some(plane) = lock(&self.plane).clone() else { return Ok(()) };
        for kubelet in self.kubelets() {
            kubelet.manifests().clear()?;
        }
        let all = ["--all", "--all-namespaces", "--wait=false"];
        let delete = ["delete", "deployments.apps,replicasets.apps,jobs.batch,pods"];
        plane.admin().run(&[&delete[..], &all[..]].concat()).await?;
        let list = ["get", "pods", "--all-namespaces", "--output=name"];
        let left = async || plane.admin().run(&list).await;
        eventually(max_wait, "the API server has no pods", left, String::is_empty).await?;
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

    /// Pids of processes that are expected to run.
    pub(super) fn pids(&self) -> Vec<u32> {
        let kubelets = self.kubelets();
        let mut pids: Vec<u32> = kubelets.iter().filter_map(|kubelet| kubelet.pid().ok()).collect();
        pids.extend(lock(&self.plane).iter().flat_map(|plane| plane.pids()));
        pids
    }

    /// Whether a resource exists as long as a cluster does, or stays though its agents have ended.
    pub(super) fn may_stay(&self, thing: &HostResource) -> bool {
        match thing {
            HostResource::Link { name } => {
                lock(&self.plane).iter().any(|it| it.node_link() == name)
            }
            HostResource::Mount { point, .. } => point.starts_with("/proc/sys"),
            HostResource::File { path } => self.is_agent_file(path),
            _ => false,
        }
    }

    /// Whether a file is an agent's own, and not a pod's.
    fn is_agent_file(&self, path: &Path) -> bool {
        let kubelets = self.kubelets();
        let mut roots = kubelets.iter().map(|kubelet| kubelet.root());
        let is_own =
            roots.any(|root| path.starts_with(root) && !path.starts_with(root.join("pods")));
        is_own || STRAYS_OF_GO.iter().any(|stray| path.starts_with(stray))
    }

    /// The ends of the logs of agents and control plane.
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

/// The environment variable that has scenarios run with the Go kubelet instead of our agent, to check the scenarios themselves.
const GO: &str = "OARSMAN_ON_GO_KUBELET";

/// Our own agent.
///
/// # Errors
/// When the path of the program is not known.
pub fn ours() -> Result<Implementation> {
    Ok(Implementation::Oarsman(program::path()?))
}

/// Our own agent, or the Go kubelet when the environment asks for it.
///
/// # Errors
/// When the path of the program is not known.
pub fn under_test() -> Result<Implementation> {
    if std::env::var_os(GO).is_some() { Ok(Implementation::Go) } else { ours() }
}
