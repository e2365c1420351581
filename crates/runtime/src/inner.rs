//! What all calls share: settings, stores, and the sandboxes and containers that exist.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use oarsman_clock::Clock;
use oarsman_cri_types::v1::ContainerEventResponse;
use oarsman_host::blocking::BlockingPool;
use oarsman_host::stats::HostStats;
use oarsman_image_store::ImageStore;
use oarsman_pod_network::{HostChange, PodNetwork};
use oarsman_registry::RegistrySettings;
use oarsman_shim::client::{ShimClient, ShimSpawner};
use oarsman_sync::Guarded;
use tokio::sync::{Mutex, RwLock, broadcast, watch};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::error::{EmbeddedRuntimeError, Outcome};
use crate::oci::resources::CgroupAbilities;
use crate::records::{SandboxPhase, StoredContainer, StoredSandbox};
use crate::root_lock::RootLock;
use crate::settings::EmbeddedRuntimeSettings;
use crate::state_directory::{StateDirectory, write_json};

/// How long blocking work has: a disk that is slow, or a kernel that ends many namespaces.
pub(crate) const BLOCKING_DEADLINE: Duration = Duration::from_secs(60);
/// How long a shim has for an answer. A create waits for its helper, which has up to two minutes.
pub(crate) const SHIM_DEADLINE: Duration = Duration::from_secs(130);

/// The embedded runtime's state and stores.
#[derive(Debug)]
pub(crate) struct RuntimeInner {
    pub(crate) settings: EmbeddedRuntimeSettings,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) directory: StateDirectory,
    pub(crate) images: ImageStore,
    pub(crate) registries: Arc<RegistrySettings>,
    pub(crate) network: PodNetwork,
    pub(crate) shims: ShimSpawner,
    pub(crate) stats: HostStats,
    pub(crate) abilities: CgroupAbilities,
    pub(crate) kernel: (u32, u32),
    pub(crate) boot_id: String,
    pub(crate) node_name: String,
    pub(crate) state: Guarded<RuntimeState>,
    pub(crate) events: broadcast::Sender<ContainerEventResponse>,
    pub(crate) pools: RuntimePools,
    /// What was changed of the host since this was opened.
    pub(crate) host_changes: Guarded<Vec<HostChange>>,
    /// Against a second process on the same directory.
    pub(crate) _lock: RootLock,
}

/// Threads for blocking work, by what may hang.
#[derive(Debug)]
pub(crate) struct RuntimePools {
    pub(crate) files: BlockingPool,
    pub(crate) images: BlockingPool,
    pub(crate) network: BlockingPool,
}

/// All sandboxes and containers, by id.
#[derive(Debug, Default)]
pub(crate) struct RuntimeState {
    pub(crate) sandboxes: BTreeMap<String, SandboxEntry>,
    pub(crate) containers: BTreeMap<String, ContainerEntry>,
    /// Ids by the names of what exists or is being made.
    pub(crate) names: BTreeMap<String, String>,
}

/// A sandbox.
#[derive(Debug)]
pub(crate) struct SandboxEntry {
    pub(crate) record: StoredSandbox,
    /// Held by calls on its containers, and alone by those that end it.
    pub(crate) lock: Arc<RwLock<()>>,
    /// Reads the exits that its shim tells.
    pub(crate) monitor: Option<AbortOnDropHandle<()>>,
}

/// A container.
#[derive(Debug)]
pub(crate) struct ContainerEntry {
    pub(crate) record: StoredContainer,
    /// One start or removal at a time.
    pub(crate) lock: Arc<Mutex<()>>,
    pub(crate) ended: watch::Sender<bool>,
    /// Whether its start was reported, before which its end is not.
    pub(crate) is_start_told: bool,
}

impl SandboxEntry {
    pub(crate) fn new(record: StoredSandbox) -> Self {
        Self { record, lock: Arc::default(), monitor: None }
    }
}

impl ContainerEntry {
    pub(crate) fn new(record: StoredContainer) -> Self {
        let ended = watch::Sender::new(record.exit.is_some());
        let is_start_told = record.started_at.is_some();
        Self { record, lock: Arc::default(), ended, is_start_told }
    }
}

impl RuntimeInner {
    pub(crate) fn now(&self) -> i64 {
        nanoseconds(self.clock.wall())
    }

    pub(crate) fn shim(&self, sandbox: &str) -> ShimClient {
        ShimClient::new(self.directory.shim(sandbox), SHIM_DEADLINE)
    }

    /// Does blocking work on the threads of a pool, one at a time for each object.
    pub(crate) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        pool: impl Fn(&RuntimePools) -> &BlockingPool,
        object: &str,
        work: impl FnOnce(&Self) -> Outcome<T> + Send + 'static,
    ) -> Outcome<T> {
        let inner = Arc::clone(self);
        let done = pool(&self.pools).run(
            object,
            move || work(&inner),
            |error| EmbeddedRuntimeError::Panicked(error.to_string()),
        );
        let late = |_| EmbeddedRuntimeError::Deadline {
            what: format!("work for {object}"),
            deadline: BLOCKING_DEADLINE,
        };
        timeout(BLOCKING_DEADLINE, done).await.map_err(late)?
    }

    pub(crate) async fn on_files<T: Send + 'static>(
        self: &Arc<Self>,
        object: &str,
        work: impl FnOnce(&Self) -> Outcome<T> + Send + 'static,
    ) -> Outcome<T> {
        self.blocking(|pools| &pools.files, object, work).await
    }

    pub(crate) async fn on_images<T: Send + 'static>(
        self: &Arc<Self>,
        object: &str,
        work: impl FnOnce(&Self) -> Outcome<T> + Send + 'static,
    ) -> Outcome<T> {
        self.blocking(|pools| &pools.images, object, work).await
    }

    pub(crate) async fn on_network<T: Send + 'static>(
        self: &Arc<Self>,
        object: &str,
        work: impl FnOnce(&Self) -> Outcome<T> + Send + 'static,
    ) -> Outcome<T> {
        self.blocking(|pools| &pools.network, object, work).await
    }

    pub(crate) fn sandbox(&self, id: &str) -> Outcome<(StoredSandbox, Arc<RwLock<()>>)> {
        let state = self.state.lock();
        let entry = state.sandboxes.get(id).ok_or_else(|| EmbeddedRuntimeError::no_sandbox(id))?;
        Ok((entry.record.clone(), Arc::clone(&entry.lock)))
    }

    pub(crate) fn container(&self, id: &str) -> Outcome<(StoredContainer, Arc<Mutex<()>>)> {
        let state = self.state.lock();
        let entry = state.containers.get(id);
        let entry = entry.ok_or_else(|| EmbeddedRuntimeError::no_container(id))?;
        Ok((entry.record.clone(), Arc::clone(&entry.lock)))
    }

    /// The ids of a sandbox's containers.
    pub(crate) fn containers_of(&self, sandbox: &str) -> Vec<String> {
        let state = self.state.lock();
        let of = state.containers.values().filter(|entry| entry.record.sandbox == sandbox);
        of.map(|entry| entry.record.id.clone()).collect()
    }

    /// Reserves a name for an id.
    pub(crate) fn reserve(&self, name: &str, id: &str) -> Outcome<()> {
        let mut state = self.state.lock();
        if let Some(holder) = state.names.get(name) {
            let (name, id) = (name.to_owned(), holder.clone());
            return Err(EmbeddedRuntimeError::NameReserved { name, id });
        }
        state.names.insert(name.to_owned(), id.to_owned());
        Ok(())
    }

    pub(crate) fn release(&self, name: &str) {
        self.state.lock().names.remove(name);
    }

    /// Changes a container's record, in memory and then on disk.
    pub(crate) async fn change_container(
        self: &Arc<Self>,
        id: &str,
        change: impl FnOnce(&mut ContainerEntry),
    ) -> Outcome<()> {
        {
            let mut state = self.state.lock();
            let entry = state.containers.get_mut(id);
            change(entry.ok_or_else(|| EmbeddedRuntimeError::no_container(id))?);
        }
        let key = id.to_owned();
        self.on_files(id, move |inner| inner.save_container(&key)).await
    }

    /// Writes down what is known now, which may be newer than what the caller has changed.
    pub(crate) fn save_container(&self, id: &str) -> Outcome<()> {
        let record = self.state.lock().containers.get(id).map(|entry| entry.record.clone());
        match record {
            Some(record) => write_json(&self.directory.container_record(id), &record),
            None => Ok(()),
        }
    }

    pub(crate) fn set_phase(&self, id: &str, phase: SandboxPhase) -> Option<StoredSandbox> {
        let mut state = self.state.lock();
        let entry = state.sandboxes.get_mut(id)?;
        entry.record.phase = phase;
        Some(entry.record.clone())
    }
}

/// A moment as CRI tells it.
pub(crate) fn nanoseconds(at: jiff::Timestamp) -> i64 {
    i64::try_from(at.as_nanosecond()).unwrap_or(i64::MAX)
}

/// Does work that goes on when its caller gives up: half of it would be worse than all.
pub(crate) fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Outcome<T>> + Send + 'static,
) -> impl Future<Output = Outcome<T>> + Send {
    let task = tokio::spawn(work);
    async {
        task.await.unwrap_or_else(|error| Err(EmbeddedRuntimeError::Panicked(error.to_string())))
    }
}
