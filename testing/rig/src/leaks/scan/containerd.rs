//! Scans what containerd itself stores for pods. Images and their content are no leak.

use std::collections::BTreeSet;

use anyhow::Result;

use super::super::HostResource;
use crate::parts::Parts;
use crate::rig::{RigLayout, ctr};

pub(super) async fn scan(layout: &RigLayout, parts: &Parts) -> Result<BTreeSet<HostResource>> {
    let mut things = BTreeSet::new();
    let namespaces = ctr(layout, parts, "k8s.io", &["namespaces", "list", "--quiet"]).await?;
    for namespace in namespaces.lines() {
        let list = async |what| ctr(layout, parts, namespace, &[what, "list"]).await;
        let (containers, leases, snapshots) =
            tokio::try_join!(list("containers"), list("leases"), list("snapshots"))?;
        if layout.flavour().lists_sandboxes() {
            let sandboxes = list("sandboxes").await?;
            things.extend(first_columns(&sandboxes).map(|id| HostResource::Sandbox { id }));
        }
        things.extend(first_columns(&containers).map(|id| HostResource::Container { id }));
        things.extend(first_columns(&leases).map(|id| HostResource::Lease { id }));
        things.extend(in_use(&snapshots));
    }
    Ok(things)
}

fn first_columns(table: &str) -> impl Iterator<Item = String> {
    rows(table).map(|row| row[0].to_owned())
}

/// Snapshots of containers; the committed ones are layers of images.
fn in_use(table: &str) -> BTreeSet<HostResource> {
    rows(table)
        .filter(|row| row.last() != Some(&"Committed"))
        .map(|row| HostResource::Snapshot { key: row[0].to_owned() })
        .collect()
}

/// The lines of a table of ctr, without its heading, as words. No line is empty.
fn rows(table: &str) -> impl Iterator<Item = Vec<&str>> {
    let rows = table.lines().skip(1).map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    rows.filter(|words| !words.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_snapshots_of_containers_are_reported() {
        let table = "KEY PARENT KIND\n1f7b sha256:0e Active \nsha256:0e  Committed \nview sha256:0e View\n\n";
        let keys = ["1f7b", "view"].map(|key| HostResource::Snapshot { key: key.to_owned() });
        assert_eq!(in_use(table), BTreeSet::from(keys));
    }
}
