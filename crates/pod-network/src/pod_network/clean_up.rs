//! Tears networks down: of one sandbox, of all that no longer exist, and all that is shared.

use std::collections::BTreeSet;

use oarsman_host::namespaces::NamespaceKind;

use super::{NetworkState, PodNetwork, delete_link, open_nftables};
use crate::bridge;
use crate::error::{PodNetworkError, refused};
use crate::files::{remove_directory, remove_file};
use crate::host_settings::{HostChange, allow_forwarding};
use crate::records::SandboxRecord;
use crate::route::RouteSocket;
use crate::subnet_choice::PodSubnets;

/// What a reconciliation did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReconciledNetwork {
    /// Sandboxes that exist no longer and whose network was removed.
    pub removed_sandboxes: Vec<String>,
    /// Links that belonged to no sandbox.
    pub removed_links: Vec<String>,
    /// Sandboxes that exist and should have a network by our records, but whose link is gone. They need a new sandbox.
    pub broken_sandboxes: Vec<String>,
    /// What was changed of the host since this was told last.
    pub host_changes: Vec<HostChange>,
}

impl PodNetwork {
    /// Removes the network of a sandbox: link, namespace, rules and lease. Fine when there is none or a part of one. What fails does
    /// not keep the rest from being removed.
    ///
    /// # Errors
    /// When something is left; the lease is then held until another call succeeds.
    pub fn tear_down(&self, sandbox: &str) -> Result<(), PodNetworkError> {
        let record = self.lock().store.get(sandbox).cloned();
        // Outside of the lock: the kernel waits for all processors before a link is gone, and for several links at the same time.
        let failed = self.remove_link_and_namespace(sandbox, record.as_ref());
        self.forget(&mut self.lock(), sandbox, record.as_ref(), failed)
    }

    fn remove_link_and_namespace(
        &self,
        sandbox: &str,
        record: Option<&SandboxRecord>,
    ) -> Vec<PodNetworkError> {
        let link = record.and_then(|record| self.remove_link(record).err());
        let namespace = self.pins.remove(sandbox, &[NamespaceKind::Network]).err();
        link.into_iter().chain(namespace).collect()
    }

    /// The lease is kept as long as something of the sandbox is left.
    fn forget(
        &self,
        state: &mut NetworkState,
        sandbox: &str,
        record: Option<&SandboxRecord>,
        mut failed: Vec<PodNetworkError>,
    ) -> Result<(), PodNetworkError> {
        failed.extend(record.and_then(|record| self.remove_ports(state, sandbox, record).err()));
        if failed.is_empty() {
            failed.extend(state.store.remove(sandbox).err());
        }
        PodNetworkError::all_of(failed)
    }

    fn tear_down_locked(
        &self,
        state: &mut NetworkState,
        sandbox: &str,
    ) -> Result<(), PodNetworkError> {
        let record = state.store.get(sandbox).cloned();
        let failed = self.remove_link_and_namespace(sandbox, record.as_ref());
        self.forget(state, sandbox, record.as_ref(), failed)
    }

    fn remove_link(&self, record: &SandboxRecord) -> Result<(), PodNetworkError> {
        delete_link(&mut open_route()?, &self.names.link(record.lease))
    }

    /// Makes the table without the host ports of a sandbox.
    fn remove_ports(
        &self,
        state: &NetworkState,
        sandbox: &str,
        record: &SandboxRecord,
    ) -> Result<(), PodNetworkError> {
        if record.ports.is_empty() {
            return Ok(());
        }
        // A configuration that has changed is no reason to keep the rules of a pod that is gone.
        let subnets = match PodSubnets::remembered(&self.subnets_file())? {
            Some(remembered) => remembered.0,
            None => self.decide_subnets(&state.store, &mut open_route()?)?,
        };
        let mut others = state.store.all().clone();
        others.remove(sandbox);
        self.replace_rules(&mut open_nftables()?, &subnets, &others)
    }

    /// Removes all that is ours and belongs to none of the sandboxes that exist or are being made, and makes whole what the others share:
    /// bridge, rules and forwarding.
    ///
    /// # Errors
    /// When something could not be removed or made; the rest was.
    pub fn reconcile(
        &self,
        existing: &BTreeSet<String>,
    ) -> Result<ReconciledNetwork, PodNetworkError> {
        let state = &mut *self.lock();
        let mut report = ReconciledNetwork::default();
        let mut failed = Vec::new();
        let known: BTreeSet<String> =
            state.store.all().keys().cloned().chain(self.pins.sandboxes()?).collect();
        for sandbox in known.difference(existing) {
            let removed = self.tear_down_locked(state, sandbox);
            match removed.and_then(|()| self.pins.remove_all(sandbox)) {
                Ok(()) => report.removed_sandboxes.push(sandbox.clone()),
                Err(error) => failed.push(error),
            }
        }
        failed.extend(self.remove_unknown_links(state, &mut report).err());
        failed.extend(self.restore_shared(state, &mut report).err());
        report.host_changes = std::mem::take(&mut state.host_changes);
        PodNetworkError::all_of(failed).map(|()| report)
    }

    fn remove_unknown_links(
        &self,
        state: &NetworkState,
        report: &mut ReconciledNetwork,
    ) -> Result<(), PodNetworkError> {
        let mut socket = open_route()?;
        let links = socket.links().map_err(refused("list the links of this host"))?;
        let prefix = self.names.link_prefix();
        let known: BTreeSet<String> =
            state.store.all().values().map(|record| self.names.link(record.lease)).collect();
        let names = links.into_iter().map(|link| link.name);
        for name in names.filter(|name| name.starts_with(&prefix) && !known.contains(name)) {
            delete_link(&mut socket, &name)?;
            report.removed_links.push(name);
        }
        Ok(())
    }

    /// Another program may have removed the bridge or flushed all rules.
    fn restore_shared(
        &self,
        state: &mut NetworkState,
        report: &mut ReconciledNetwork,
    ) -> Result<(), PodNetworkError> {
        let table = self.names.table();
        let mut rules = open_nftables()?;
        if state.store.all().is_empty() {
            let removed = rules.remove_table(&table);
            return removed.map_err(refused(format!("remove the nftables table {table}")));
        }
        let mut socket = open_route()?;
        let subnets = self.decide_subnets(&state.store, &mut socket)?;
        let bridge = bridge::ensure(&mut socket, &self.names, &subnets)?;
        state.host_changes.extend(allow_forwarding(&mut socket, bridge.index)?);
        for (sandbox, record) in state.store.all() {
            if !bridge::reconnect(&mut socket, &self.names, &bridge, record)? {
                report.broken_sandboxes.push(sandbox.clone());
            }
        }
        self.replace_rules(&mut rules, &subnets, state.store.all())?;
        let ports = state.store.all().values().flat_map(|record| &record.ports);
        if ports.into_iter().any(|port| port.is_for(true)) {
            self.open_loopback_ports()?;
        }
        Ok(())
    }

    /// Removes what sandboxes share, when there are none: bridge, table and files. Nothing of ours is left then; forwarding stays as it is,
    /// because others may have come to need it.
    ///
    /// # Errors
    /// When there are sandboxes (a reconciliation removes what belongs to none), or the kernel refuses.
    pub fn remove_all(&self) -> Result<(), PodNetworkError> {
        let state = self.lock();
        let records = state.store.all().keys().cloned();
        let sandboxes: BTreeSet<String> = records.chain(self.pins.sandboxes()?).collect();
        if !sandboxes.is_empty() {
            return Err(PodNetworkError::InUse { sandboxes: sandboxes.into_iter().collect() });
        }
        let mut socket = open_route()?;
        if bridge::find(&mut socket, &self.names)?.is_some() {
            delete_link(&mut socket, &self.names.bridge())?;
        }
        let table = self.names.table();
        let removed = open_nftables()?.remove_table(&table);
        removed.map_err(refused(format!("remove the nftables table {table}")))?;
        remove_file(&self.subnets_file())?;
        state.store.remove_directory()?;
        self.pins.remove_directory()?;
        remove_directory(&self.settings.directory)
    }
}

fn open_route() -> Result<RouteSocket, PodNetworkError> {
    RouteSocket::open().map_err(refused("open a netlink socket"))
}
