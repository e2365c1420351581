//! All operations in their order: attachments of pods (`attachments`), and what concerns a network as a whole (`upkeep`).

mod attachments;
mod upkeep;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use oarsman_host::blocking::{BlockingKind, BlockingPool};
use oarsman_host::processes;
use oarsman_sync::Guarded;
use tokio::sync::RwLock;
use tokio::time::{Instant, sleep, timeout};

use crate::directory::first_network;
use crate::error::{CniError, CniOperation, FailedCall};
use crate::network::CniNetwork;
use crate::plugin::{PluginAnswer, execute};
use crate::settings::CniSettings;
use crate::store::{AttachmentPhase, AttachmentStore, StoredAttachment};

pub use attachments::AttachRequest;
use upkeep::KnownStatus;

/// The variable by which plugins, and all that they start, know their sandbox.
const SANDBOX_VARIABLE: &str = "CNI_CONTAINERID";
/// How long processes that were killed may take to be gone.
const KILL_WAIT: Duration = Duration::from_secs(5);
/// How long files of configurations and attachments may take.
const FILES_DEADLINE: Duration = Duration::from_secs(30);
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// The networks of the pods of one runtime, by CNI plugins. Calls for one sandbox must not overlap; calls for several may.
///
/// An attachment that could not be removed when its sandbox was given up is abandoned: [`CniClient::remove_abandoned`] tries again.
#[derive(Debug)]
pub struct CniClient {
    settings: CniSettings,
    store: AttachmentStore,
    pool: BlockingPool,
    /// Sandboxes that plugins have connected, or are to.
    attached: Guarded<BTreeSet<String>>,
    abandoned: Guarded<BTreeSet<String>>,
    /// Held by all that connect, and alone by a collection: what is connected meanwhile must not be taken for garbage.
    collection: RwLock<()>,
    status: Guarded<Option<KnownStatus>>,
}

/// Which plugins are called, and how long they have together.
#[derive(Clone, Copy, Debug)]
struct CallChain<'a> {
    operation: CniOperation,
    network: &'a CniNetwork,
    attachment: Option<&'a StoredAttachment>,
    has_namespace: bool,
    deadline: ChainDeadline,
}

/// How long the plugins of a chain have together, and until when that is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChainDeadline {
    pub(crate) total: Duration,
    pub(crate) until: Instant,
}

impl ChainDeadline {
    fn from_now(total: Duration) -> Self {
        Self { total, until: Instant::now() + total }
    }
}

impl CniClient {
    /// Keeps what has to be kept in that directory, which is one runtime's alone.
    pub fn new(settings: CniSettings, directory: &Path) -> Self {
        Self {
            settings,
            store: AttachmentStore::new(directory),
            pool: BlockingPool::new(BlockingKind::CniFiles),
            attached: Guarded::default(),
            abandoned: Guarded::default(),
            collection: RwLock::default(),
            status: Guarded::default(),
        }
    }

    /// Where networks are configured.
    pub fn configuration_directory(&self) -> &Path {
        &self.settings.configuration
    }

    /// The network that is configured now; none without a configuration.
    ///
    /// # Errors
    /// When the first file cannot be used.
    pub async fn network(&self) -> Result<Option<CniNetwork>, CniError> {
        let directory = self.settings.configuration.clone();
        self.on_files("", move |_| first_network(&directory)).await
    }

    /// Begins with what is on disk: ends plugins that an agent before has left running, and abandons what belongs to no sandbox that exists.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub async fn resume(&self, existing: &BTreeSet<String>) -> Result<(), CniError> {
        let all = self.on_files("", AttachmentStore::all).await?;
        for interrupted in all.iter().filter(|it| it.phase != AttachmentPhase::Attached) {
            self.end_processes(&interrupted.sandbox).await;
        }
        let ids = all.into_iter().map(|attachment| attachment.sandbox);
        let (attached, abandoned) = ids.partition(|id| existing.contains(id));
        *self.attached.lock() = attached;
        self.abandoned.update(|known| *known = abandoned);
        Ok(())
    }

    /// Whether plugins have connected a sandbox that exists, or do so just now.
    pub fn has_attachments(&self) -> bool {
        !self.attached.lock().is_empty()
    }

    /// The sandboxes that plugins have connected, or connect just now.
    pub fn attached(&self) -> BTreeSet<String> {
        self.attached.lock().clone()
    }

    /// Whether plugins have connected a sandbox, or do so just now.
    pub fn is_attached(&self, sandbox: &str) -> bool {
        self.attached.lock().contains(sandbox)
    }

    /// Gives up a sandbox that was not or cannot be disconnected; fine when it is not connected.
    pub fn abandon(&self, sandbox: &str) {
        if self.attached.lock().remove(sandbox) {
            self.abandoned.update(|all| all.insert(sandbox.to_owned()));
        }
    }

    /// The sandboxes that are given up and still connected.
    pub fn abandoned(&self) -> BTreeSet<String> {
        self.abandoned.lock().clone()
    }

    /// Whether a sandbox is given up and still connected.
    pub fn is_abandoned(&self, sandbox: &str) -> bool {
        self.abandoned.lock().contains(sandbox)
    }

    /// Waits until another sandbox is abandoned than those that were there at the last call.
    pub async fn abandoned_changed(&self) {
        self.abandoned.changed().await;
    }

    /// Removes the directory, when no attachment is in it.
    ///
    /// # Errors
    /// When there is one.
    pub async fn remove_directory(&self) -> Result<(), CniError> {
        self.on_files("", AttachmentStore::remove_directory).await
    }

    async fn on_files<T: Send + 'static>(
        &self,
        object: &str,
        work: impl FnOnce(&AttachmentStore) -> Result<T, CniError> + Send + 'static,
    ) -> Result<T, CniError> {
        let store = self.store.clone();
        let panicked = |error: tokio::task::JoinError| CniError::Panicked(error.to_string());
        let done = self.pool.run(object, move || work(&store), panicked);
        let late = |_| CniError::FilesLate { deadline: FILES_DEADLINE };
        timeout(FILES_DEADLINE, done).await.map_err(late)?
    }

    /// Kills whatever plugins for a sandbox have left running, and waits until it is gone.
    async fn end_processes(&self, sandbox: &str) {
        let until = Instant::now() + KILL_WAIT;
        loop {
            let id = sandbox.to_owned();
            let kill = move |_: &AttachmentStore| {
                // What cannot be listed cannot be waited for.
                Ok(processes::kill_by_variable(SANDBOX_VARIABLE, &id).unwrap_or_default())
            };
            let found = self.on_files(sandbox, kill).await.unwrap_or_default();
            if found == 0 || Instant::now() >= until {
                return;
            }
            sleep(BETWEEN_LOOKS).await;
        }
    }

    async fn put(&self, attachment: &StoredAttachment) -> Result<(), CniError> {
        let attachment = attachment.clone();
        let object = attachment.sandbox.clone();
        self.on_files(&object, move |store| store.put(&attachment)).await
    }

    /// Calls one plugin of a chain, with what is left of the chain's time.
    async fn call(
        &self,
        chain: &CallChain<'_>,
        number: usize,
        previous: Option<&serde_json::Map<String, serde_json::Value>>,
        valid: Option<&[(String, String)]>,
    ) -> Result<PluginAnswer, FailedCall> {
        let CallChain { operation, network, attachment, has_namespace, deadline } = *chain;
        let Some(plugin) = network.plugins.get(number) else { return Ok(PluginAnswer::default()) };
        let call =
            crate::call::PluginCall { operation, network, plugin, attachment, previous, valid };
        execute(&call, &self.settings.plugins, has_namespace, deadline).await
    }
}
