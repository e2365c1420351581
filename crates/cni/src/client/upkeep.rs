//! What concerns a network as a whole: STATUS and GC, and attachments that were abandoned.

use std::time::Duration;

use tokio::time::Instant;

use super::{CallChain, ChainDeadline, CniClient};
use crate::error::{CniError, CniOperation, FailedCall};
use crate::network::CniNetwork;
use crate::store::AttachmentStore;

/// How long a plugin that is ready is not asked again: asking is to execute all plugins of the network.
const READY_LASTS: Duration = Duration::from_secs(60);
/// The same for one that is not: pods wait for it.
const NOT_READY_LASTS: Duration = Duration::from_secs(5);

/// What the plugins of a network have said of themselves.
#[derive(Debug)]
pub(super) struct KnownStatus {
    network: CniNetwork,
    until: Instant,
    /// Why they are not ready.
    trouble: Option<String>,
}

impl CniClient {
    /// Why a network is not ready for pods, as its plugins say; none if it is ready, or its version has no STATUS. Answers are kept for a while.
    pub async fn trouble(&self, network: &CniNetwork) -> Option<String> {
        if !network.version.has_status() {
            return None;
        }
        if let Some(known) = self.status.lock().as_ref()
            && known.network == *network
            && Instant::now() < known.until
        {
            return known.trouble.clone();
        }
        let chain =
            self.network_chain(CniOperation::Status, network, self.settings.status_deadline);
        let trouble =
            self.ask_all(&chain).await.err().map(|call| of_network(network, call).to_string());
        let lasts = if trouble.is_none() { READY_LASTS } else { NOT_READY_LASTS };
        *self.status.lock() = Some(KnownStatus {
            network: network.clone(),
            until: Instant::now() + lasts,
            trouble: trouble.clone(),
        });
        trouble
    }

    async fn ask_all(&self, chain: &CallChain<'_>) -> Result<(), FailedCall> {
        for number in 0..chain.network.plugins.len() {
            self.call(chain, number, None, None).await?;
        }
        Ok(())
    }

    /// Has the plugins of a network remove all that belongs to none of our sandboxes, unless its version has no GC or the configuration forbids it.
    /// Not to be called where another runtime uses the same network: its pods would lose their addresses. No sandbox is connected meanwhile.
    ///
    /// # Errors
    /// Those of all plugins that failed; the others have done it.
    pub async fn collect_garbage(&self, network: &CniNetwork) -> Result<(), Vec<CniError>> {
        if !network.version.has_status() || network.disable_gc {
            return Ok(());
        }
        let _alone = self.collection.write().await;
        let all = self.on_files("", AttachmentStore::all).await.map_err(|error| vec![error])?;
        let ours = all.into_iter().filter(|it| !self.is_abandoned(&it.sandbox));
        let valid: Vec<(String, String)> = ours.map(|it| (it.sandbox, it.interface)).collect();
        let chain =
            self.network_chain(CniOperation::CollectGarbage, network, self.settings.deadline);
        let mut failed = Vec::new();
        for number in 0..network.plugins.len() {
            let called = self.call(&chain, number, None, Some(&valid)).await;
            failed.extend(called.err().map(|call| of_network(network, call)));
        }
        if failed.is_empty() { Ok(()) } else { Err(failed) }
    }

    /// Disconnects the sandboxes that were abandoned. Gives those that are disconnected now, and why the others are not.
    pub async fn remove_abandoned(&self) -> (Vec<String>, Vec<CniError>) {
        let (mut removed, mut failed) = (Vec::new(), Vec::new());
        for sandbox in self.abandoned() {
            match self.detach(&sandbox).await {
                Ok(()) => removed.push(sandbox),
                Err(error) => failed.push(error),
            }
        }
        (removed, failed)
    }

    fn network_chain<'a>(
        &self,
        operation: CniOperation,
        network: &'a CniNetwork,
        total: Duration,
    ) -> CallChain<'a> {
        let deadline = ChainDeadline::from_now(total);
        CallChain { operation, network, attachment: None, has_namespace: false, deadline }
    }
}

fn of_network(network: &CniNetwork, call: FailedCall) -> CniError {
    CniError::Network { network: network.name.clone(), call: Box::new(call) }
}
