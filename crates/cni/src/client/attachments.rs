//! ADD, DEL and CHECK of one sandbox.

use std::net::IpAddr;
use std::path::PathBuf;

use oarsman_host::mounts::is_mount_point;

use super::{CallChain, ChainDeadline, CniClient};
use crate::arguments::CniPodArguments;
use crate::error::{CniError, CniOperation, FailedCall, PluginFailure};
use crate::network::CniNetwork;
use crate::result::CniResult;
use crate::store::{AttachmentPhase, StoredAttachment};

/// The pod's link, as containers expect it.
const INTERFACE: &str = "eth0";

/// A sandbox that is to be connected.
#[derive(Clone, Debug)]
pub struct AttachRequest {
    /// The id of the sandbox.
    pub sandbox: String,
    /// The file of its network namespace, which exists.
    pub namespace: PathBuf,
    /// What plugins are told of its pod.
    pub pod: CniPodArguments,
}

impl CniClient {
    /// Connects a sandbox to a network, and gives its addresses. When that fails, what was done is undone; if that fails, too, the sandbox is
    /// abandoned.
    ///
    /// # Errors
    /// When a plugin fails or gives no address.
    pub async fn attach(
        &self,
        network: &CniNetwork,
        request: AttachRequest,
    ) -> Result<Vec<IpAddr>, CniError> {
        let attachment = StoredAttachment {
            pod: request.pod.pod(),
            interface: INTERFACE.to_owned(),
            namespace: request.namespace,
            labels: request.pod.labels(&request.sandbox)?,
            capabilities: request.pod.capabilities(),
            network: network.to_json(),
            result: None,
            phase: AttachmentPhase::Adding,
            sandbox: request.sandbox,
        };
        let _no_collection = self.collection.read().await;
        self.put(&attachment).await?;
        self.attached.lock().insert(attachment.sandbox.clone());
        let added = self.add(network, &attachment).await;
        if added.is_err() {
            // The next status is to tell.
            *self.status.lock() = None;
            self.end_processes(&attachment.sandbox).await;
            if self.detach(&attachment.sandbox).await.is_err() {
                self.abandon(&attachment.sandbox);
            }
        }
        added
    }

    async fn add(
        &self,
        network: &CniNetwork,
        attachment: &StoredAttachment,
    ) -> Result<Vec<IpAddr>, CniError> {
        let chain = self.chain(CniOperation::Add, network, attachment, true);
        let result = self.add_by_all(&chain).await;
        let result = result.map_err(|call| attachment.failed(network, call))?;
        let addresses = result.as_ref().map(|result| result.pod_addresses(&attachment.interface));
        let Some(addresses) = addresses.filter(|addresses| !addresses.is_empty()) else {
            return Err(CniError::NoAddress {
                sandbox: attachment.sandbox.clone(),
                pod: attachment.pod.clone(),
                network: network.name.clone(),
                interface: attachment.interface.clone(),
            });
        };
        let attached = StoredAttachment {
            result: result.map(|result| result.fields().clone()),
            phase: AttachmentPhase::Attached,
            ..attachment.clone()
        };
        self.put(&attached).await?;
        Ok(addresses)
    }

    /// Each plugin gets the result of the one before.
    async fn add_by_all(&self, chain: &CallChain<'_>) -> Result<Option<CniResult>, FailedCall> {
        let mut result: Option<CniResult> = None;
        for (number, plugin) in chain.network.plugins.iter().enumerate() {
            let previous = result.as_ref().map(CniResult::fields);
            let answer = self.call(chain, number, previous, None).await?;
            let parsed = CniResult::parse(&answer.output, chain.network.version);
            result = Some(parsed.map_err(|source| FailedCall {
                operation: chain.operation,
                plugin: plugin.kind.clone(),
                failure: PluginFailure::Result { source, errors: answer.errors },
            })?);
        }
        Ok(result)
    }

    /// Disconnects a sandbox from the network that it was connected to, by the configuration of then; fine when it is not connected. The plugin
    /// that was called last is called first. It stops at one that fails: an address must not be free before nothing leads to it any more.
    ///
    /// # Errors
    /// When a plugin fails. Another call tries again.
    pub async fn detach(&self, sandbox: &str) -> Result<(), CniError> {
        let id = sandbox.to_owned();
        if let Some(mut attachment) = self.on_files(sandbox, move |store| store.get(&id)).await? {
            attachment.phase = AttachmentPhase::Deleting;
            // A full disk is no reason to keep the pod connected.
            self.put(&attachment).await.ok();
            self.delete(&attachment).await?;
        }
        let id = sandbox.to_owned();
        self.on_files(sandbox, move |store| store.remove(&id)).await?;
        self.attached.lock().remove(sandbox);
        self.abandoned.lock().remove(sandbox);
        Ok(())
    }

    async fn delete(&self, attachment: &StoredAttachment) -> Result<(), CniError> {
        let Some(network) = attachment.network() else { return Ok(()) };
        // After a boot of the machine, or when another program has removed it.
        let has_namespace = is_mount_point(&attachment.namespace).unwrap_or_default();
        let chain = self.chain(CniOperation::Delete, &network, attachment, has_namespace);
        let previous = attachment.result.as_ref().filter(|_| network.version.has_check());
        for number in (0..network.plugins.len()).rev() {
            let called = self.call(&chain, number, previous, None).await;
            if let Err(call) = called {
                // A plugin that was killed may have left another one running.
                self.end_processes(&attachment.sandbox).await;
                return Err(attachment.failed(&network, call));
            }
        }
        Ok(())
    }

    /// Whether a sandbox is connected as it should be, in the words of the plugins; fine when it is not connected by plugins, or they are not to be
    /// asked.
    ///
    /// # Errors
    /// When a plugin says that it is not, or fails.
    pub async fn check(&self, sandbox: &str) -> Result<(), CniError> {
        let id = sandbox.to_owned();
        let found = self.on_files(sandbox, move |store| store.get(&id)).await?;
        let attached = found.filter(|it| it.phase == AttachmentPhase::Attached);
        let Some(attachment) = attached else { return Ok(()) };
        let network = attachment.network().filter(|it| it.version.has_check() && !it.disable_check);
        let Some(network) = network else { return Ok(()) };
        let mut chain = self.chain(CniOperation::Check, &network, &attachment, true);
        // There is nothing to set up, and its end waits for it.
        chain.deadline = ChainDeadline::from_now(self.settings.status_deadline);
        for number in 0..network.plugins.len() {
            let called = self.call(&chain, number, attachment.result.as_ref(), None).await;
            called.map_err(|call| attachment.failed(&network, call))?;
        }
        Ok(())
    }

    fn chain<'a>(
        &self,
        operation: CniOperation,
        network: &'a CniNetwork,
        attachment: &'a StoredAttachment,
        has_namespace: bool,
    ) -> CallChain<'a> {
        let deadline = ChainDeadline::from_now(self.settings.deadline);
        CallChain { operation, network, attachment: Some(attachment), has_namespace, deadline }
    }
}

impl StoredAttachment {
    fn failed(&self, network: &CniNetwork, call: FailedCall) -> CniError {
        CniError::Attachment {
            sandbox: self.sandbox.clone(),
            pod: self.pod.clone(),
            network: network.name.clone(),
            call: Box::new(call),
        }
    }
}
