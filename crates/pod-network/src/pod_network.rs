//! Sets networks of sandboxes up, tears them down, and finds what was left behind.

mod clean_up;

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use oarsman_host::namespaces::NamespaceKind;

pub use clean_up::ReconciledNetwork;

use crate::bridge;
use crate::conntrack::forget_others;
use crate::error::{PodNetworkError, file_error, refused};
use crate::faults::after_step;
use crate::files::make_directory;
use crate::firewall;
use crate::host_port::HostPort;
use crate::host_settings::{HostChange, allow_forwarding, has_ipv6, set_of_link};
use crate::names::Names;
use crate::nftables::NftablesSocket;
use crate::pins::NamespacePins;
use crate::records::{RecordStore, SandboxRecord};
use crate::route::{LinkState, RouteSocket};
use crate::settings::PodNetworkSettings;
use crate::subnet::Subnet;
use crate::subnet_choice::PodSubnets;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// What a sandbox wants of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SandboxNetworkRequest<'a> {
    /// The id of the sandbox.
    pub sandbox: &'a str,
    /// The pod as people call it, `namespace/name`; for messages.
    pub pod: &'a str,
    /// Ports of the host that lead to the pod.
    pub ports: &'a [HostPort],
}

/// The network of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxNetwork {
    /// The pod's addresses, of IPv4 first.
    pub addresses: Vec<IpAddr>,
    /// The file of the pinned network namespace, to be joined by the pod's containers.
    pub namespace: PathBuf,
    /// What was changed of the host for it since this was told last.
    pub host_changes: Vec<HostChange>,
}

/// What is decided of the network of a sandbox, and what it shares with others.
struct PlannedNetwork {
    record: SandboxRecord,
    subnets: Vec<Subnet>,
    bridge: LinkState,
    /// Before.
    had_ports: bool,
}

/// The network of the pods of one agent. Calls for one sandbox must not overlap; calls for several may.
#[derive(Debug)]
pub struct PodNetwork {
    settings: PodNetworkSettings,
    pub(crate) names: Names,
    pins: NamespacePins,
    state: Mutex<NetworkState>,
}

#[derive(Debug)]
pub(crate) struct NetworkState {
    pub(crate) store: RecordStore,
    /// Not told yet.
    host_changes: Vec<HostChange>,
}

impl PodNetwork {
    /// Reads what is known of sandboxes of this boot. Nothing is changed of the host yet.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn open(settings: PodNetworkSettings) -> Result<Self, PodNetworkError> {
        let boot = fs::read_to_string(BOOT_ID).map_err(file_error("read", Path::new(BOOT_ID)))?;
        let store = RecordStore::open(&settings.directory.join("sandboxes"), boot.trim())?;
        Ok(Self {
            names: Names::of_root(&settings.root),
            pins: NamespacePins::new(&settings.directory.join("namespaces")),
            state: Mutex::new(NetworkState { store, host_changes: Vec::new() }),
            settings,
        })
    }

    /// The pinned namespaces of sandboxes, of all kinds.
    pub fn pins(&self) -> &NamespacePins {
        &self.pins
    }

    /// The addresses of a sandbox that is set up.
    pub fn addresses(&self, sandbox: &str) -> Option<Vec<IpAddr>> {
        self.lock().store.get(sandbox).map(|record| record.addresses.clone())
    }

    /// Gives a sandbox its network. A network namespace that is pinned for it is used, else one is made. Once more for the same
    /// sandbox makes it whole again, with the same addresses. When it fails, nothing is left, or all that was there before.
    ///
    /// # Errors
    /// When a host port is taken, no address is free, or the kernel refuses.
    pub fn set_up(
        &self,
        request: SandboxNetworkRequest<'_>,
    ) -> Result<SandboxNetwork, PodNetworkError> {
        let is_new = self.addresses(request.sandbox).is_none();
        self.set_up_by_steps(request).map_err(|error| {
            let undone = if is_new { self.tear_down(request.sandbox) } else { Ok(()) };
            match undone {
                Ok(()) => error,
                Err(left) => {
                    PodNetworkError::Several { first: Box::new(error), others: vec![left] }
                }
            }
        })
    }

    /// What is made is recorded before it is made or is found by its name, so that it can be removed after a crash at any step.
    pub(crate) fn set_up_by_steps(
        &self,
        request: SandboxNetworkRequest<'_>,
    ) -> Result<SandboxNetwork, PodNetworkError> {
        let sandbox = request.sandbox;
        // Outside of the lock: the kernel takes long to make a namespace while it ends others.
        self.pins.create(sandbox, &[NamespaceKind::Network], None)?;
        after_step("namespace")?;
        let namespace = self.pins.open(sandbox, NamespaceKind::Network)?;
        let mut socket = RouteSocket::open().map_err(refused("open a netlink socket"))?;
        let PlannedNetwork { record, subnets, bridge, had_ports } =
            self.plan(request, &mut socket)?;
        // What only this sandbox has is made while others have their turn.
        bridge::connect(&mut socket, &self.names, &bridge, &record, namespace.as_fd())?;
        bridge::configure_pod(namespace.as_fd(), &record.addresses, &subnets)?;
        after_step("addresses")?;
        let host_changes = {
            let mut state = self.lock();
            self.ensure_rules(&state.store, &subnets, &record, had_ports)?;
            std::mem::take(&mut state.host_changes)
        };
        bridge::await_carrier(&mut socket, &self.names, record.lease, bridge::CARRIER_PATIENCE)?;
        let namespace = self.pins.path(sandbox, NamespaceKind::Network)?;
        Ok(SandboxNetwork { addresses: record.addresses, namespace, host_changes })
    }

    /// Gives a sandbox its lease, and makes what it shares with others.
    fn plan(
        &self,
        SandboxNetworkRequest { sandbox, pod, ports }: SandboxNetworkRequest<'_>,
        socket: &mut RouteSocket,
    ) -> Result<PlannedNetwork, PodNetworkError> {
        let mut state = self.lock();
        let subnets = self.decide_subnets(&state.store, socket)?;
        let record = state.store.plan(sandbox, pod, ports, &subnets)?;
        let had_ports = state.store.get(sandbox).is_some_and(|before| !before.ports.is_empty());
        state.store.put(sandbox, record.clone())?;
        after_step("record")?;
        let bridge = bridge::ensure(socket, &self.names, &subnets)?;
        state.host_changes.extend(allow_forwarding(socket, bridge.index)?);
        Ok(PlannedNetwork { record, subnets, bridge, had_ports })
    }

    /// The table needs no change for a sandbox that has and had no host ports, unless another program has removed it.
    fn ensure_rules(
        &self,
        store: &RecordStore,
        subnets: &[Subnet],
        SandboxRecord { ports, addresses, .. }: &SandboxRecord,
        had_ports: bool,
    ) -> Result<(), PodNetworkError> {
        let mut socket = open_nftables()?;
        let table = self.names.table();
        let asked = socket.has_table(&table);
        let is_there = asked.map_err(refused(format!("look for the table {table}")))?;
        if had_ports || !ports.is_empty() || !is_there {
            self.replace_rules(&mut socket, subnets, store.all())?;
        }
        after_step("rules")?;
        if ports.iter().any(|port| port.is_for(true)) {
            self.open_loopback_ports()?;
        }
        after_step("loopback")?;
        let forgotten = forget_others(ports, addresses);
        forgotten.map_err(refused("forget connections of earlier pods to the same host ports"))
    }

    /// Lets host ports answer at 127.0.0.1. The table's guard stands already: without it, pods would reach the host's loopback address.
    fn open_loopback_ports(&self) -> Result<(), PodNetworkError> {
        set_of_link("ipv4", &self.names.bridge(), "route_localnet", "1")
    }

    /// Makes the whole table from these records, in one transaction.
    fn replace_rules(
        &self,
        socket: &mut NftablesSocket,
        subnets: &[Subnet],
        records: &BTreeMap<String, SandboxRecord>,
    ) -> Result<(), PodNetworkError> {
        let table = firewall::table(&self.names, subnets, records);
        let replaced = socket.replace_table(&table);
        replaced.map_err(refused(format!("replace the nftables table {}", table.name)))
    }

    /// The subnets of pods. While a sandbox has an address of them, they stay, and so does the bridge.
    fn decide_subnets(
        &self,
        store: &RecordStore,
        socket: &mut RouteSocket,
    ) -> Result<Vec<Subnet>, PodNetworkError> {
        let remembered = PodSubnets::remembered(&self.subnets_file())?;
        if let Some(remembered) = remembered.as_ref().filter(|_| !store.all().is_empty()) {
            return self.subnets_in_use(store, remembered);
        }
        let routes = bridge::foreign_routes(socket, &self.names)?;
        let (settings, names) = (&self.settings, &self.names);
        let chosen = PodSubnets::choose(settings, names, remembered.as_ref(), &routes, has_ipv6())?;
        if remembered.as_ref() != Some(&chosen) {
            // Without the file and with sandboxes, the file was lost or damaged, and what follows from the root is the same again.
            refuse_addresses_outside(store, &chosen.0)?;
            if store.all().is_empty() {
                // It would keep the addresses of the subnets before.
                delete_link(socket, &names.bridge())?;
            }
            make_directory(&self.settings.directory)?;
            chosen.remember(&self.subnets_file())?;
        }
        after_step("subnets")?;
        Ok(chosen.0)
    }

    fn subnets_in_use(
        &self,
        store: &RecordStore,
        remembered: &PodSubnets,
    ) -> Result<Vec<Subnet>, PodNetworkError> {
        let with_ipv6 = remembered.0.iter().any(|subnet| !subnet.is_ipv4());
        let (settings, names) = (&self.settings, &self.names);
        let chosen = PodSubnets::choose(settings, names, Some(remembered), &[], with_ipv6)?;
        refuse_addresses_outside(store, &chosen.0)?;
        Ok(chosen.0)
    }

    fn subnets_file(&self) -> PathBuf {
        self.settings.directory.join("subnets.json")
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, NetworkState> {
        // Every change of the state is one assignment after all that can fail.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refuse_addresses_outside(
    store: &RecordStore,
    subnets: &[Subnet],
) -> Result<(), PodNetworkError> {
    let is_outside = |record: &SandboxRecord| {
        record.addresses.iter().any(|held| !subnets.iter().any(|all| all.contains(*held)))
    };
    match store.all().iter().find(|(_, record)| is_outside(record)) {
        Some((sandbox, _)) => Err(PodNetworkError::SubnetChanged { sandbox: sandbox.clone() }),
        None => Ok(()),
    }
}

fn open_nftables() -> Result<NftablesSocket, PodNetworkError> {
    NftablesSocket::open().map_err(refused("open a netlink socket for nftables"))
}

fn delete_link(socket: &mut RouteSocket, name: &str) -> Result<(), PodNetworkError> {
    socket.delete_link(name).map_err(refused(format!("remove the link {name}")))
}
