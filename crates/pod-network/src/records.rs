//! What each sandbox holds: its lease and its host ports, one file each, so that one rename makes a change whole.
//!
//! A crash of the machine ends all network namespaces, and with another boot the records are removed. So they need not be synced, and
//! only a kill of this process must leave them whole.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use oarsman_core::bandwidth::PodBandwidth;
use oarsman_host::files::is_plain_name;
use serde::{Deserialize, Serialize};

use crate::error::{PodNetworkError, file_error};
use crate::files::{
    UNFINISHED, make_directory, names_in, read, remove_directory, remove_file, replace,
};
use crate::host_port::HostPort;
use crate::subnet::Subnet;

const SUFFIX: &str = ".json";
/// Lease 0 is the network itself, lease 1 the bridge.
pub(crate) const FIRST_LEASE: u16 = 2;

/// What one sandbox holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SandboxRecord {
    /// The boot in which it was written: with that boot its namespace has ended.
    boot: String,
    /// The pod, for people.
    pub(crate) pod: String,
    /// The number behind the first address of every subnet; the name of the link follows from it.
    pub(crate) lease: u16,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) ports: Vec<HostPort>,
    #[serde(default)]
    pub(crate) bandwidth: PodBandwidth,
}

/// The records of all sandboxes, in memory and on disk.
#[derive(Debug)]
pub(crate) struct RecordStore {
    directory: PathBuf,
    boot: String,
    records: BTreeMap<String, SandboxRecord>,
    /// The lease that was given last: an address that was just freed is not given out again soon, because its peers may not know yet.
    last: u16,
}

impl RecordStore {
    /// Reads the records below a directory. One of an earlier boot is removed, and one that cannot be decoded: what it named is found by
    /// its name at the next reconciliation.
    pub(crate) fn open(directory: &Path, boot: &str) -> Result<Self, PodNetworkError> {
        let mut records = BTreeMap::new();
        for name in names_in(directory)? {
            let path = directory.join(&name);
            let record: Option<SandboxRecord> =
                read(&path)?.and_then(|text| serde_json::from_slice(&text).ok());
            let record = record.filter(|record| record.boot == boot);
            match name.strip_suffix(SUFFIX).zip(record) {
                Some((sandbox, record)) => drop(records.insert(sandbox.to_owned(), record)),
                None => remove_file(&path)?,
            }
        }
        let last = records.values().map(|record| record.lease).max().unwrap_or(FIRST_LEASE - 1);
        Ok(Self { directory: directory.to_owned(), boot: boot.to_owned(), records, last })
    }

    pub(crate) fn get(&self, sandbox: &str) -> Option<&SandboxRecord> {
        self.records.get(sandbox)
    }

    pub(crate) fn all(&self) -> &BTreeMap<String, SandboxRecord> {
        &self.records
    }

    /// The record for a sandbox with these ports: the lease that it has, or a free one.
    pub(crate) fn plan(
        &self,
        sandbox: &str,
        pod: &str,
        ports: &[HostPort],
        subnets: &[Subnet],
    ) -> Result<SandboxRecord, PodNetworkError> {
        self.check_ports(sandbox, ports)?;
        let addresses_of = |lease: u16| -> Option<Vec<IpAddr>> {
            subnets.iter().map(|subnet| subnet.nth(u32::from(lease))).collect()
        };
        let held = self.records.get(sandbox).map(|record| record.lease);
        let taken = |lease: &u16| self.records.values().any(|record| record.lease == *lease);
        let after = self.last.saturating_add(1)..u16::MAX;
        let free = after.chain(FIRST_LEASE..u16::MAX).filter(|lease| !taken(lease));
        let mut possible = held.into_iter().chain(free);
        let found = possible.find_map(|lease| addresses_of(lease).map(|found| (lease, found)));
        let Some((lease, addresses)) = found else {
            return Err(self.no_free_address(subnets));
        };
        let (boot, pod) = (self.boot.clone(), pod.to_owned());
        let bandwidth = PodBandwidth::default();
        Ok(SandboxRecord { boot, pod, lease, addresses, ports: ports.to_vec(), bandwidth })
    }

    fn check_ports(&self, sandbox: &str, ports: &[HostPort]) -> Result<(), PodNetworkError> {
        let others = self.records.iter().filter(|(other, _)| *other != sandbox);
        for (other, record) in others {
            let held = |port: &&HostPort| record.ports.iter().any(|has| has.conflicts_with(port));
            if let Some(port) = ports.iter().find(held) {
                return Err(PodNetworkError::HostPortTaken {
                    port: *port,
                    pod: record.pod.clone(),
                    sandbox: other.clone(),
                });
            }
        }
        Ok(())
    }

    fn no_free_address(&self, subnets: &[Subnet]) -> PodNetworkError {
        let held = self.records.len();
        let smallest = subnets.iter().copied().find(|subnet| subnet.is_ipv4());
        match smallest.or_else(|| subnets.first().copied()) {
            Some(subnet) => PodNetworkError::NoFreeAddress { subnet, held },
            None => {
                file_error("give an address of", &self.directory)(io::ErrorKind::NotFound.into())
            }
        }
    }

    /// Writes the record of a sandbox.
    pub(crate) fn put(
        &mut self,
        sandbox: &str,
        record: SandboxRecord,
    ) -> Result<(), PodNetworkError> {
        let path = self.path(sandbox)?;
        make_directory(&self.directory)?;
        let text = serde_json::to_vec(&record).map_err(io::Error::from);
        replace(&path, &text.map_err(file_error("encode", &path))?, false)?;
        let lease = record.lease;
        if self.records.insert(sandbox.to_owned(), record).is_none() {
            self.last = lease;
        }
        Ok(())
    }

    /// Removes the record of a sandbox; fine when there is none.
    pub(crate) fn remove(&mut self, sandbox: &str) -> Result<(), PodNetworkError> {
        remove_file(&self.path(sandbox)?)?;
        self.records.remove(sandbox);
        Ok(())
    }

    /// Removes the directory when no sandbox has a record.
    pub(crate) fn remove_directory(&self) -> Result<(), PodNetworkError> {
        remove_directory(&self.directory)
    }

    fn path(&self, sandbox: &str) -> Result<PathBuf, PodNetworkError> {
        match is_plain_name(sandbox) && !sandbox.ends_with(UNFINISHED) {
            true => Ok(self.directory.join(format!("{sandbox}{SUFFIX}"))),
            false => Err(PodNetworkError::SandboxId { sandbox: sandbox.to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::host_port::PortProtocol;

    fn subnets() -> Vec<Subnet> {
        ["10.200.7.0/29", "fd00:7::/64"].map(|text| text.parse().unwrap()).to_vec()
    }

    fn add(store: &mut RecordStore, sandbox: &str, ports: &[HostPort]) -> SandboxRecord {
        let record = store.plan(sandbox, &format!("default/{sandbox}"), ports, &subnets()).unwrap();
        store.put(sandbox, record.clone()).unwrap();
        record
    }

    #[test]
    fn leases_survive_a_reopened_store_and_are_given_in_turn() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = RecordStore::open(directory.path(), "boot-1").unwrap();
        let leases = ["a", "b", "c"].map(|sandbox| add(&mut store, sandbox, &[]).lease);
        assert_eq!(leases, [2, 3, 4]);
        // The same sandbox keeps its own.
        assert_eq!(add(&mut store, "b", &[]).lease, 3);
        store.remove("a").unwrap();
        store.remove("a").unwrap();
        let mut store = RecordStore::open(directory.path(), "boot-1").unwrap();
        assert_eq!(store.all().keys().collect::<Vec<_>>(), ["b", "c"]);
        // The freed one comes last; 7 is the broadcast address of so small a subnet.
        let leases = ["d", "e", "f"].map(|sandbox| add(&mut store, sandbox, &[]).lease);
        assert_eq!(leases, [5, 6, 2]);
        let error = store.plan("g", "default/g", &[], &subnets()).unwrap_err().to_string();
        assert!(error.contains("10.200.7.0/29") && error.contains("5 sandboxes"), "{error}");
    }

    #[test]
    fn an_address_that_was_just_freed_is_not_given_out_because_another_sandbox_is_set_up_again() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = RecordStore::open(directory.path(), "boot-1").unwrap();
        let leases = ["a", "b", "c"].map(|sandbox| add(&mut store, sandbox, &[]).lease);
        assert_eq!(leases, [2, 3, 4]);
        store.remove("b").unwrap();
        add(&mut store, "a", &[]);
        assert_eq!(add(&mut store, "d", &[]).lease, 5);
    }

    #[test]
    fn a_conflict_of_host_ports_names_the_pod_that_has_it() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = RecordStore::open(directory.path(), "boot-1").unwrap();
        let port =
            HostPort { protocol: PortProtocol::Tcp, host_ip: None, host_port: 8080, pod_port: 80 };
        add(&mut store, "a", &[port]);
        add(&mut store, "a", &[port]);
        let error = store.plan("b", "default/b", &[port], &subnets()).unwrap_err().to_string();
        assert!(error.contains("8080/TCP is taken by pod default/a (sandbox a)"), "{error}");
        store.remove("a").unwrap();
        add(&mut store, "b", &[port]);
    }

    #[test]
    fn what_was_cut_off_or_damaged_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        add(&mut RecordStore::open(directory.path(), "boot-1").unwrap(), "a", &[]);
        fs::write(directory.path().join("b.json"), "{").unwrap();
        fs::write(directory.path().join("c.json.new"), "{}").unwrap();
        let store = RecordStore::open(directory.path(), "boot-1").unwrap();
        assert_eq!(store.all().keys().collect::<Vec<_>>(), ["a"]);
        assert_eq!(names_in(directory.path()).unwrap(), ["a.json"]);
    }

    #[test]
    fn leases_end_with_the_boot_of_the_machine() {
        let directory = tempfile::tempdir().unwrap();
        add(&mut RecordStore::open(directory.path(), "boot-1").unwrap(), "a", &[]);
        let store = RecordStore::open(directory.path(), "boot-2").unwrap();
        assert!(store.all().is_empty());
        assert!(names_in(directory.path()).unwrap().is_empty());
    }

    #[test]
    fn an_id_cannot_lead_out_of_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = RecordStore::open(directory.path(), "boot-1").unwrap();
        assert!(store.remove("../a").is_err());
        assert!(store.remove("").is_err());
    }
}
