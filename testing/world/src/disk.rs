//! The machine's disk in memory: directories, cgroups, volumes, records and credentials, each behind its seam.
//!
//! It outlives agents. Synced data are kept apart from those that a crash of the machine loses.

mod cgroups;
mod change;
mod checkpoints;
mod credentials;
mod host_info;
mod log_rotation;
mod pod_files;
mod pull_records;
mod records;
#[cfg(test)]
mod tests;
mod volumes;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use k8s_openapi::api::core::v1::PodStatus;
use oarsman_core::ids::PodUid;
use oarsman_sync::ordered_watch as watch;

pub use change::{DiskChange, DiskViolation};
pub use host_info::{HOSTS, RESOLV_CONF};

use crate::files::FakeFiles;
use crate::link::RemoteService;
use crate::lock;
use crate::rng::Probability;
use crate::runtime::FakeRuntime;
use crate::trace::{Trace, TraceEntry};

/// The fake disk; clones are the same disk.
#[derive(Clone)]
pub struct FakeDisk(Arc<DiskInner>);

struct DiskInner {
    trace: Trace,
    files: FakeFiles,
    runtime: FakeRuntime,
    pod_logs: PathBuf,
    /// Never held across an await.
    pods: Mutex<BTreeMap<PodUid, PodOnDisk>>,
    /// Never held across an await.
    checkpoints: Mutex<BTreeMap<String, checkpoints::StoredCheckpoint>>,
    /// Never held across an await.
    pull_records: Mutex<pull_records::StoredPullRecords>,
    /// Credential provider programs; never held across an await.
    plugins: Mutex<credentials::FakePlugins>,
    /// The machine's addresses; never held across an await.
    addresses: Mutex<Vec<IpAddr>>,
    /// The size of the disk in bytes; never held across an await.
    capacity: Mutex<u64>,
    /// Counts how often the calls under way were broken.
    resets: watch::Sender<u64>,
}

/// The resources of one pod.
#[derive(Debug, Default, PartialEq)]
struct PodOnDisk {
    directory: bool,
    cgroup: bool,
    /// Its volumes, by name.
    volumes: BTreeMap<String, volumes::StoredVolume>,
    /// The parts of volumes that are mounted, by volume, container and place.
    sub_paths: BTreeSet<(String, String, usize)>,
    /// The status that a reader sees.
    written: Option<PodStatus>,
    /// The status that survives a crash of the machine.
    synced: Option<PodStatus>,
}

impl FakeDisk {
    /// A disk without pods. The runtime knows which processes run; log directories are below `pod_logs`.
    pub fn new(trace: Trace, files: FakeFiles, runtime: FakeRuntime, pod_logs: PathBuf) -> Self {
        let (pods, checkpoints, pull_records) =
            (Mutex::default(), Mutex::default(), Mutex::default());
        let addresses = Mutex::new(vec![IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1))]);
        let resets = watch::Sender::new(0);
        Self(Arc::new(DiskInner {
            trace,
            files,
            runtime,
            pod_logs,
            pods,
            checkpoints,
            pull_records,
            plugins: Mutex::default(),
            addresses,
            capacity: Mutex::new(1 << 40),
            resets,
        }))
    }

    /// Drops what was not synced, as a crash of the machine does.
    pub fn lose_unsynced(&self) {
        self.lock_pods().values_mut().for_each(|pod| pod.written = pod.synced.clone());
        self.lose_unsynced_checkpoints();
    }

    /// Removes a pod's cgroup without the agent.
    pub fn remove_cgroup(&self, uid: &PodUid) {
        self.clear_part(uid, |pod| &mut pod.cgroup, DiskChange::CgroupVanished);
    }

    /// Every pod that has a directory, a cgroup, a record, or a part of a volume that is mounted.
    pub fn pods(&self) -> BTreeSet<PodUid> {
        let on_disk = self.lock_pods();
        let held = on_disk.iter().filter(|(_, pod)| {
            pod.directory || pod.cgroup || pod.written.is_some() || !pod.sub_paths.is_empty()
        });
        held.map(|(uid, _)| uid.clone()).collect()
    }

    /// Whether a pod has a cgroup.
    pub fn has_cgroup(&self, uid: &PodUid) -> bool {
        self.lock_pods().get(uid).is_some_and(|pod| pod.cgroup)
    }

    /// Whether a pod has volumes.
    pub fn has_volumes(&self, uid: &PodUid) -> bool {
        self.lock_pods().get(uid).is_some_and(|pod| !pod.volumes.is_empty())
    }

    /// The recorded status of a pod.
    pub fn recorded(&self, uid: &PodUid) -> Option<PodStatus> {
        self.lock_pods().get(uid).and_then(|pod| pod.written.clone())
    }

    fn set_part(&self, uid: &PodUid, part: fn(&mut PodOnDisk) -> &mut bool, change: DiskChange) {
        let had = std::mem::replace(part(self.lock_pods().entry(uid.clone()).or_default()), true);
        if !had {
            self.trace_change(uid, change);
        }
    }

    fn clear_part(&self, uid: &PodUid, part: fn(&mut PodOnDisk) -> &mut bool, change: DiskChange) {
        let had = self.lock_pods().get_mut(uid).map(part).map(std::mem::take);
        if had == Some(true) {
            self.trace_change(uid, change);
        }
    }

    fn runs(&self, uid: &PodUid) -> bool {
        self.0.runtime.runs_pod(uid.as_str())
    }

    fn trace_change(&self, uid: &PodUid, change: DiskChange) {
        self.0.trace.append(TraceEntry::Disk { uid: uid.to_string(), change });
    }

    fn lock_pods(&self) -> MutexGuard<'_, BTreeMap<PodUid, PodOnDisk>> {
        lock(&self.0.pods)
    }
}

/// The error when a resource is removed under a running process.
const IN_USE: &str = "it is in use";

/// How long one step takes. An agent may be killed, or the disk fail, between two of them.
const STEP: Duration = Duration::from_millis(1);

impl RemoteService for FakeDisk {
    /// A disk does not go away; only calls under way fail.
    fn restart(&self, _: Duration, _: Probability) {
        self.0.resets.send_modify(|count| *count += 1);
    }

    fn outages(&self) -> watch::Receiver<u64> {
        self.0.resets.subscribe()
    }
}
