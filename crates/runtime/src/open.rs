//! Begins with what is on disk: shims that still run, and what crashes and boots have left.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use oarsman_clock::Clock;
use oarsman_host::blocking::{self, BlockingKind, BlockingPool};
use oarsman_host::cgroups::{CgroupError, CgroupManager, HierarchyKind, hierarchies};
use oarsman_host::mounts;
use oarsman_host::stats::HostStats;
use oarsman_image_store::{ImageStore, UnpackBounds};
use oarsman_pod_network::PodNetwork;
use oarsman_shim::client::ShimSpawner;
use oarsman_sync::Guarded;
use tokio::sync::broadcast;
use tokio::task::JoinError;

use crate::error::{EmbeddedRuntimeError, Outcome, failed};
use crate::inner::{ContainerEntry, RuntimeInner, RuntimePools, RuntimeState, SandboxEntry};
use crate::oci::resources::CgroupAbilities;
use crate::records::{SandboxPhase, StoredContainer, StoredExit, StoredSandbox};
use crate::root_lock::RootLock;
use crate::settings::EmbeddedRuntimeSettings;
use crate::state_directory::{
    StateDirectory, make_directory, names_in, read_json, remove_tree, write_json,
};

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const HOSTNAME: &str = "/proc/sys/kernel/hostname";
const RELEASE: &str = "/proc/sys/kernel/osrelease";
/// Events that a subscriber may be behind.
const EVENTS: usize = 4096;
const KILLED: i32 = 137;

/// Opens the stores, reads the records, and finds the shims that still run.
pub(crate) async fn open(
    settings: EmbeddedRuntimeSettings,
    clock: Arc<dyn Clock>,
) -> Outcome<Arc<RuntimeInner>> {
    let root = settings.root.clone();
    let panicked = |error: JoinError| EmbeddedRuntimeError::Panicked(error.to_string());
    blocking::run(move || make_directory(&root), panicked).await?;
    let lock = RootLock::acquire(&settings.root).await?;
    let begun = blocking::run(
        move || {
            let inner = Arc::new(RuntimeInner::begin(settings, clock, lock)?);
            let unfinished = inner.read_state()?;
            Ok((inner, unfinished))
        },
        panicked,
    );
    let (inner, unfinished) = begun.await?;
    for id in unfinished {
        inner.undo_sandbox(&id).await;
    }
    let sandboxes: Vec<String> = inner.state.lock().sandboxes.keys().cloned().collect();
    for id in sandboxes {
        inner.reconnect(&id).await?;
    }
    inner.end_unknown_containers().await?;
    inner
        .on_network("reconcile", |inner| {
            let all = inner.state.lock();
            let ready =
                all.sandboxes.values().filter(|it| it.record.phase != SandboxPhase::Stopped);
            let existing: BTreeSet<String> = ready.map(|it| it.record.id.clone()).collect();
            drop(all);
            let report = inner.network.reconcile(&existing)?;
            inner.note_host_changes(report.host_changes);
            // Without their link they need a new sandbox.
            for id in &report.broken_sandboxes {
                inner.set_phase(id, SandboxPhase::Lost);
            }
            Ok(())
        })
        .await?;
    Ok(inner)
}

impl RuntimeInner {
    /// Blocks.
    fn begin(
        settings: EmbeddedRuntimeSettings,
        clock: Arc<dyn Clock>,
        lock: RootLock,
    ) -> Outcome<Self> {
        let read = |path: &str| fs::read_to_string(path).map_err(failed("read", Path::new(path)));
        // Mounts and pinned namespaces are known by paths without links.
        let root = settings.root.canonicalize().map_err(failed("find", &settings.root))?;
        let directory = StateDirectory::new(&root);
        for part in [directory.sandboxes(), directory.containers(), directory.shims()] {
            make_directory(&part)?;
        }
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        Ok(Self {
            images: ImageStore::open(&directory.images(), UnpackBounds::default())?,
            network: PodNetwork::open(settings.network.clone())?,
            shims: ShimSpawner::new(&settings.program),
            stats: HostStats::open(u32::try_from(cores).unwrap_or(1))?,
            abilities: abilities()?,
            kernel: kernel_version(&read(RELEASE)?),
            boot_id: read(BOOT_ID)?.trim().to_owned(),
            node_name: read(HOSTNAME)?.trim().to_owned(),
            state: Guarded::new(RuntimeState::default()),
            events: broadcast::channel(EVENTS).0,
            pools: RuntimePools {
                files: BlockingPool::new(BlockingKind::RuntimeFiles),
                images: BlockingPool::new(BlockingKind::ImageStore),
                network: BlockingPool::new(BlockingKind::PodNetworks),
            },
            registries: Arc::new(settings.registries.clone()),
            host_changes: Guarded::default(),
            settings,
            clock,
            directory,
            _lock: lock,
        })
    }

    /// Reads all records, and gives the sandboxes that were being made. Blocks.
    fn read_state(&self) -> Outcome<Vec<String>> {
        let unfinished = self.read_sandboxes()?;
        self.read_containers()?;
        self.remove_unknown_roots()?;
        Ok(unfinished)
    }

    /// A sandbox of another boot has nothing any more. Those that were being made are to be removed.
    fn read_sandboxes(&self) -> Outcome<Vec<String>> {
        let mut unfinished = Vec::new();
        for id in names_in(&self.directory.sandboxes())? {
            // What a power failure has damaged is of a boot that is over.
            let record = read_json::<StoredSandbox>(&self.directory.sandbox_record(&id));
            let record = record.unwrap_or_default();
            match record.filter(|record| record.phase != SandboxPhase::Making) {
                None => unfinished.push(id),
                Some(mut record) => {
                    if record.boot_id != self.boot_id && record.phase != SandboxPhase::Stopped {
                        remove_tree(self.directory.shim(&id).path())?;
                        self.tear_down_sandbox(&id)?;
                        record.phase = SandboxPhase::Stopped;
                        write_json(&self.directory.sandbox_record(&id), &record)?;
                    }
                    let mut state = self.state.lock();
                    state.names.insert(record.full_name(), id.clone());
                    state.sandboxes.insert(id, SandboxEntry::new(record));
                }
            }
        }
        Ok(unfinished)
    }

    /// A container without a record, or without its sandbox, is what a crash left of a create or a removal.
    fn read_containers(&self) -> Outcome<()> {
        for id in names_in(&self.directory.containers())? {
            let record = read_json::<StoredContainer>(&self.directory.container_record(&id));
            let record = record.unwrap_or_default();
            let is_known = |record: &StoredContainer| {
                self.state.lock().sandboxes.contains_key(&record.sandbox)
            };
            match record.filter(is_known) {
                None => {
                    self.remove_container_files(&id)?;
                    tracing::info!(object = id, "unfinished container removed");
                }
                Some(record) => {
                    let mut state = self.state.lock();
                    state.names.insert(record.full_name(), id.clone());
                    state.containers.insert(id, ContainerEntry::new(record));
                }
            }
        }
        Ok(())
    }

    fn remove_unknown_roots(&self) -> Outcome<()> {
        for root in self.images.roots()? {
            let container = root.key.split("-volume").next().unwrap_or_default();
            if !self.state.lock().containers.contains_key(container) {
                self.images.remove_root(&root.key)?;
            }
        }
        Ok(())
    }

    /// Finds the shim of a sandbox again, or cleans up after it.
    async fn reconnect(self: &Arc<Self>, id: &str) -> Outcome<()> {
        if self.sandbox(id)?.0.phase != SandboxPhase::Ready {
            return Ok(());
        }
        match self.find_containers(id).await {
            Ok(reports) => {
                self.apply_reports(&reports).await;
                let known = |report: &&str| self.state.lock().containers.contains_key(*report);
                let unknown = reports.iter().map(|it| it.container.as_str());
                let unknown: Vec<&str> = unknown.filter(|id| !known(id)).collect();
                for container in unknown {
                    self.delete_from_shim(id, container).await?;
                }
                Ok(())
            }
            Err(error) => {
                tracing::warn!(sandbox = id, %error, "shim lost");
                self.shim_lost(id).await;
                Ok(())
            }
        }
    }

    async fn find_containers(
        self: &Arc<Self>,
        id: &str,
    ) -> Outcome<Vec<oarsman_shim::protocol::ContainerReport>> {
        // Before their exits are subscribed to: what is ended here was never started.
        self.forget_unstarted(id, &self.shim(id).list().await?).await?;
        // Subscribed before the list is read: an exit in between comes twice, and counts once.
        self.monitor(id).await?;
        Ok(self.shim(id).list().await?)
    }

    /// A start that was interrupted between its two halves has left a process that waits; the next start makes another.
    async fn forget_unstarted(
        &self,
        sandbox: &str,
        reports: &[oarsman_shim::protocol::ContainerReport],
    ) -> Outcome<()> {
        for report in reports.iter().filter(|it| it.started_at.is_none() && it.exit.is_none()) {
            self.delete_from_shim(sandbox, &report.container).await?;
        }
        Ok(())
    }

    /// Containers that were running, and of which nothing is left that could tell how they ended.
    async fn end_unknown_containers(self: &Arc<Self>) -> Outcome<()> {
        let is_lost = |record: &StoredContainer| {
            let sandbox = self.sandbox(&record.sandbox);
            sandbox.is_ok_and(|(sandbox, _)| sandbox.phase != SandboxPhase::Ready)
        };
        let running = self.running_containers(|_| true);
        for record in running.into_iter().filter(is_lost) {
            let exit = StoredExit {
                code: KILLED,
                reason: "ContainerStatusUnknown".to_owned(),
                message: "the container was not found when the runtime started".to_owned(),
                finished_at: self.now(),
            };
            self.change_container(&record.id, |entry| {
                entry.record.exit = Some(exit);
                entry.ended.send_replace(true);
            })
            .await?;
        }
        Ok(())
    }
}

fn abilities() -> Outcome<CgroupAbilities> {
    let found = hierarchies(&mounts::current().map_err(CgroupError::Mounts)?);
    let has = |wanted: &str| {
        found.iter().any(|one| match &one.kind {
            HierarchyKind::V1(controllers) => controllers.iter().any(|name| name == wanted),
            HierarchyKind::V2 => false,
        })
    };
    let is_unified = !has("memory");
    let swap = CgroupManager::discover(Path::new("/"))?.limits_swap();
    Ok(CgroupAbilities { swap, hugepages: is_unified || has("hugetlb"), is_unified })
}

/// Major and minor number of `6.18.5-something`.
fn kernel_version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    let mut next = || numbers.next().and_then(Result::ok).unwrap_or(0);
    (next(), next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_has_two_numbers() {
        for (release, wanted) in
            [("6.18.5\n", (6, 18)), ("5.10-rc1", (5, 10)), ("7", (7, 0)), ("", (0, 0))]
        {
            assert_eq!(kernel_version(release), wanted, "{release}");
        }
    }
}
