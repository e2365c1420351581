//! What a run could leave on the machine: links, rules, mounts, control groups and processes. Images and records in the root directory may stay.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use oarsman_host::{cgroups, mounts, processes};
use tokio::process::Command;
use tokio::time::{Instant, sleep};

/// How long the kernel may take to end what was ended.
const MAX_WAIT: Duration = Duration::from_secs(5);
const PERIOD: Duration = Duration::from_millis(50);
/// What the names of our control groups begin with.
const OUR_GROUPS: &str = "/oarsman";

/// All of it, in words.
pub(super) struct HostState(BTreeSet<String>);

impl HostState {
    pub(super) fn read() -> Result<Self> {
        let mounted = mounts::current()?;
        let mut all: BTreeSet<String> =
            mounted.iter().map(|mount| format!("mount {}", mount.point.display())).collect();
        for line in fs::read_to_string("/proc/net/dev")?.lines().skip(2) {
            all.insert(format!("link {}", line.split(':').next().unwrap_or_default().trim()));
        }
        for hierarchy in cgroups::hierarchies(&mounted) {
            let groups = hierarchy.groups()?.into_iter();
            let ours = groups.filter(|group| group.display().to_string().starts_with(OUR_GROUPS));
            all.extend(ours.map(|group| format!("control group {}", group.display())));
        }
        let running = processes::list()?.into_iter().filter(|process| process.state != 'Z');
        all.extend(running.map(|process| format!("process {} {}", process.pid, process.name)));
        Ok(Self(all))
    }

    /// Fails when there is more than there was.
    pub(super) async fn compare_until_clean(&self) -> Result<()> {
        let begun = Instant::now();
        loop {
            let now = Self::read()?;
            let left: Vec<&String> = now.0.difference(&self.0).collect();
            if left.is_empty() {
                return no_tables().await;
            }
            if begun.elapsed() > MAX_WAIT {
                bail!("left behind: {left:#?}");
            }
            sleep(PERIOD).await;
        }
    }
}

/// The network namespace is new, so that all rules in it would be ours.
async fn no_tables() -> Result<()> {
    let listed = Command::new("nft").args(["list", "tables"]).output().await?;
    let tables = String::from_utf8_lossy(&listed.stdout);
    ensure!(
        listed.status.success() && tables.trim().is_empty(),
        "left behind in nftables: {tables}"
    );
    Ok(())
}
