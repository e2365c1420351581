//! The machine's own ground in memory: pod directories, cgroups, volumes and remembered statuses.
//!
//! It outlives agents. What it remembers for good and what only until the machine crashes it keeps apart.

/// Makes a call on the disk over the line: `forward!(self, "remove", uid, disk => disk.remove(&uid))`. All of them end with
/// their caller: nobody is left who would carry them out.
macro_rules! forward {
    ($self:ident, $name:expr, $subject:expr, $disk:ident => $effect:expr) => {{
        let call =
            $crate::line::Call::new($name, $subject.to_string(), $crate::line::Conduct::Read)
                .within($crate::disk::client::PATIENCE);
        let $disk = $self.disk.clone();
        $self.line.call(call, async move { $effect }).await
    }};
}

mod change;
mod client;
mod effects;
#[cfg(test)]
mod tests;
mod vault;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use k8s_openapi::api::core::v1::PodStatus;
use oarsman_agent::latest as watch;
use oarsman_agent::seams::Holding;
use oarsman_core::config::Payloads;
use oarsman_core::ids::PodUid;

pub use change::{DiskChange, Violation};
pub use client::connect;
pub use vault::connect_vault;

use crate::dice::Chance;
use crate::files::Files;
use crate::line::Service;
use crate::lock;
use crate::runtime::FakeRuntime;
use crate::trace::Trace;

/// The fake disk; clones are the same disk.
#[derive(Clone)]
pub struct FakeDisk(Arc<Inner>);

struct Inner {
    trace: Trace,
    files: Files,
    runtime: FakeRuntime,
    pod_logs: PathBuf,
    /// Never held over an await.
    pods: Mutex<BTreeMap<PodUid, Ground>>,
    /// Never held over an await.
    vault: Mutex<BTreeMap<String, vault::Page>>,
    /// Counts how often the calls under way were broken.
    resets: watch::Sender<u64>,
}

/// What the machine holds of one pod.
#[derive(Debug, Default, PartialEq)]
struct Ground {
    directory: bool,
    cgroup: bool,
    volumes: bool,
    /// The files of its volumes.
    files: Payloads,
    /// What a reader sees.
    written: Option<PodStatus>,
    /// What a crash of the machine leaves of it.
    synced: Option<PodStatus>,
}

impl FakeDisk {
    /// A disk without pods. The runtime says whose processes run; log directories lie below `pod_logs`.
    pub fn new(trace: Trace, files: Files, runtime: FakeRuntime, pod_logs: PathBuf) -> Self {
        let (pods, vault, resets) = (Mutex::default(), Mutex::default(), watch::Sender::new(0));
        Self(Arc::new(Inner { trace, files, runtime, pod_logs, pods, vault, resets }))
    }

    /// Forgets what was not written for good, as a crash of the machine does.
    pub fn lose_unsynced(&self) {
        self.ground().values_mut().for_each(|pod| pod.written = pod.synced.clone());
        self.lose_unsynced_pages();
    }

    /// Removes a pod's cgroup behind the agent's back.
    pub fn remove_cgroup(&self, uid: &PodUid) {
        self.unmake(uid, |pod| &mut pod.cgroup, DiskChange::CgroupVanished);
    }

    /// Every pod that has a directory or a cgroup.
    pub fn pods(&self) -> BTreeSet<PodUid> {
        let ground = self.ground();
        let held = ground.iter().filter(|(_, pod)| pod.directory || pod.cgroup);
        held.map(|(uid, _)| uid.clone()).collect()
    }

    /// The same, with what they have.
    fn holdings(&self) -> BTreeMap<PodUid, Holding> {
        let holding = |uid| {
            let cgroup = self.has_cgroup(&uid);
            (uid, Holding { cgroup, own: true })
        };
        self.pods().into_iter().map(holding).collect()
    }

    /// Whether a pod has a cgroup.
    pub fn has_cgroup(&self, uid: &PodUid) -> bool {
        self.ground().get(uid).is_some_and(|pod| pod.cgroup)
    }

    /// Whether a pod has volumes.
    pub fn has_volumes(&self, uid: &PodUid) -> bool {
        self.ground().get(uid).is_some_and(|pod| pod.volumes)
    }

    /// What is remembered of a pod.
    pub fn recall(&self, uid: &PodUid) -> Option<PodStatus> {
        self.ground().get(uid).and_then(|pod| pod.written.clone())
    }

    fn ground(&self) -> MutexGuard<'_, BTreeMap<PodUid, Ground>> {
        lock(&self.0.pods)
    }
}

impl Service for FakeDisk {
    /// A disk does not go away; only what is under way fails.
    fn restart(&self, _: Duration, _: Chance) {
        self.0.resets.send_modify(|count| *count += 1);
    }

    fn outages(&self) -> watch::Receiver<u64> {
        self.0.resets.subscribe()
    }
}
