//! The leak check: finds resources of pods that a test has left behind, by comparing the host before and after.
//!
//! A snapshot sees the whole of the namespaces it is taken in, so only one test may run at a time
//! between taking it and comparing.

mod scan;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::clock;
use crate::parts::Parts;
use crate::rig::{Rig, RigLayout, embedded};
use crate::run;

pub(crate) use scan::{scan_cgroups, scan_mounts};

/// Something that can be left behind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names and their Display say it")]
pub enum HostResource {
    Container { id: String },
    Sandbox { id: String },
    Snapshot { key: String },
    Lease { id: String },
    Mount { point: PathBuf, fs_type: String, id: u32 },
    Cgroup { hierarchy: String, group: PathBuf },
    NetworkNamespace { name: String, place: String },
    Link { name: String },
    Nftables { object: String },
    Process { pid: u32, command: String },
    File { path: PathBuf },
}

impl HostResource {
    /// Whether it is of an embedded runtime's network as a whole, which stays until its agent ends without pods.
    pub fn is_of_embedded_network(&self) -> bool {
        match self {
            Self::Link { name } => embedded::is_bridge(name),
            Self::Nftables { object } => embedded::is_of_table(object),
            _ => false,
        }
    }
}

impl fmt::Display for HostResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Container { id } => write!(f, "container {id}"),
            Self::Sandbox { id } => write!(f, "sandbox {id}"),
            Self::Lease { id } => write!(f, "lease {id}"),
            Self::Snapshot { key } => write!(f, "snapshot {key}"),
            Self::Mount { point, fs_type, .. } => {
                write!(f, "mount {} ({fs_type})", point.display())
            }
            Self::Cgroup { hierarchy, group } => {
                write!(f, "cgroup {} ({hierarchy})", group.display())
            }
            Self::NetworkNamespace { name, place } => {
                write!(f, "network namespace {name} ({place})")
            }
            Self::Link { name } => write!(f, "link {name}"),
            Self::Nftables { object } => write!(f, "nftables {object}"),
            Self::Process { pid, command } => write!(f, "process {pid} ({command})"),
            Self::File { path } => write!(f, "file {}", path.display()),
        }
    }
}

/// All resources of the host at one moment.
pub struct Snapshot {
    layout: RigLayout,
    parts: Parts,
    before: BTreeSet<HostResource>,
}

impl Snapshot {
    /// Scans the host. Best done on a rig without pods.
    ///
    /// # Errors
    /// When a resource cannot be scanned, as when containerd does not answer.
    pub async fn take(rig: &Rig) -> Result<Self> {
        let (layout, parts) = (rig.layout().clone(), rig.parts().clone());
        let before = scan::scan_everything(&layout, &parts).await?;
        Ok(Self { layout, parts, before })
    }

    /// The resources that exist now and did not exist in the snapshot.
    ///
    /// # Errors
    /// When a resource cannot be scanned.
    pub async fn leaks(&self) -> Result<Vec<HostResource>> {
        let after = scan::scan_everything(&self.layout, &self.parts).await?;
        Ok(leaked(&self.before, &after, self.layout.group_prefix()))
    }

    /// Waits until there are no such resources: removing a pod takes a moment.
    ///
    /// # Errors
    /// With the list of what is still there when the time is over.
    pub async fn compare_until_clean(&self, max_wait: Duration) -> Result<()> {
        self.compare_until_clean_but(max_wait, |_| false).await
    }

    /// The same, except for resources that may stay.
    ///
    /// # Errors
    /// With the list of what else is still there when the time is over.
    pub async fn compare_until_clean_but(
        &self,
        max_wait: Duration,
        may_stay: impl Fn(&HostResource) -> bool,
    ) -> Result<()> {
        let leaks = async || -> Result<Vec<HostResource>> {
            Ok(self.leaks().await?.into_iter().filter(|thing| !may_stay(thing)).collect())
        };
        if clock::wait_until_async(max_wait, || async { Ok(leaks().await?.is_empty()) }).await? {
            return Ok(());
        }
        let leaks: Vec<String> = leaks().await?.iter().map(ToString::to_string).collect();
        ensure!(leaks.is_empty(), "left behind:\n  {}", leaks.join("\n  "));
        Ok(())
    }
}

/// The resources that are new between two scans and belong to this run. Of a tree of files only the top is named. `own` is the prefix of the
/// names of this run's cgroups.
pub(crate) fn leaked(
    before: &BTreeSet<HostResource>,
    after: &BTreeSet<HostResource>,
    own: &str,
) -> Vec<HostResource> {
    let new: BTreeSet<&HostResource> = after.difference(before).collect();
    new.iter()
        .filter(|thing| match thing {
            HostResource::Cgroup { hierarchy, group } => is_ours(hierarchy, group, before, own),
            HostResource::File { path } => !path
                .parent()
                .is_some_and(|parent| new.contains(&HostResource::File { path: parent.into() })),
            _ => true,
        })
        .map(|thing| (*thing).clone())
        .collect()
}

/// The cgroup of an agent with the default root directory. The test `readme` starts one outside of all namespaces, beside the rigs, on which
/// every agent has a root directory of its own.
const README_GROUP: &str = "/oarsman-var-lib-oarsman";

/// How the cgroups begin of tests of single crates, which run beside the rigs and check for leaks themselves.
const CRATE_TEST_GROUPS: &str = "/oarsman-test-";

/// Cgroups are the one resource that is not in a namespace of this run. A group below a top-level group that existed before, or that belongs to
/// another run of a rig or to one of these tests, is not this run's.
fn is_ours(hierarchy: &str, group: &Path, before: &BTreeSet<HostResource>, own: &str) -> bool {
    let top: PathBuf = group.components().take(2).collect();
    if top.to_string_lossy().starts_with(&format!("/{own}")) {
        return true;
    }
    let of_top = HostResource::Cgroup { hierarchy: hierarchy.to_owned(), group: top.clone() };
    let is_of_others = run::is_group_of_a_rig(&top)
        || top == Path::new(README_GROUP)
        || top.to_string_lossy().starts_with(CRATE_TEST_GROUPS);
    !is_of_others && !before.contains(&of_top)
}
