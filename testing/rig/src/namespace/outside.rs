//! Compares the host outside of the namespaces before and after.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use oarsman_host::namespaces::{self, NamespaceKind};
use oarsman_host::processes;

use crate::clock::wait_until;
use crate::leaks::{HostResource, leaked, scan_cgroups, scan_mounts};

/// How long a new resource may exist.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// The mounts and cgroups at one moment.
pub(super) struct OutsideSnapshot(BTreeSet<HostResource>);

impl OutsideSnapshot {
    pub(super) fn take() -> Result<Self> {
        let mut things = scan_mounts()?;
        things.extend(scan_cgroups()?);
        Ok(Self(things))
    }

    /// The resources that exist now and did not exist then, and every process that is still in the pid namespace, which should have died with
    /// it. Polls for a while: other programs on this machine may have short-lived resources, too.
    pub(super) fn left_behind(&self, own: &str, pid_namespace: &str) -> Result<Vec<HostResource>> {
        let mut left = Ok(Vec::new());
        wait_until(MAX_WAIT, || {
            left = self.compare(own, pid_namespace);
            left.as_ref().is_ok_and(Vec::is_empty)
        });
        left
    }

    fn compare(&self, own: &str, pid_namespace: &str) -> Result<Vec<HostResource>> {
        let mut left = leaked(&self.0, &Self::take()?.0, own);
        for process in processes::list()? {
            let namespace = namespaces::of_process(process.pid, NamespaceKind::Pid);
            if namespace.is_ok_and(|namespace| namespace == pid_namespace) {
                left.push(HostResource::Process { pid: process.pid, command: process.name });
            }
        }
        Ok(left)
    }
}
