//! The node lease: its renewal shows the control plane that the node is alive.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference};

/// Where leases of nodes lie.
pub const NAMESPACE: &str = "kube-node-lease";

/// The lease as it should be now, over the one that is there. It goes when the node's object goes, once that is known.
pub fn renewed(
    before: Option<&Lease>,
    node: &str,
    node_uid: Option<&str>,
    lasts: Duration,
    now: Timestamp,
) -> Lease {
    let mut lease = before.cloned().unwrap_or_else(|| new(node));
    lease.spec = Some(LeaseSpec {
        holder_identity: Some(node.to_owned()),
        lease_duration_seconds: Some(i32::try_from(lasts.as_secs()).unwrap_or(i32::MAX)),
        renew_time: Some(MicroTime(now)),
        ..lease.spec.unwrap_or_default()
    });
    let owners = lease.metadata.owner_references.get_or_insert_default();
    if owners.is_empty() {
        owners.extend(node_uid.map(|uid| owner(node, uid)));
    }
    lease
}

/// How often a lease that lasts so long is renewed.
pub fn renewal(lasts: Duration) -> Duration {
    lasts / 4
}

fn new(node: &str) -> Lease {
    let metadata = ObjectMeta {
        name: Some(node.to_owned()),
        namespace: Some(NAMESPACE.to_owned()),
        ..ObjectMeta::default()
    };
    Lease { metadata, spec: None }
}

fn owner(node: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        name: node.to_owned(),
        uid: uid.to_owned(),
        ..OwnerReference::default()
    }
}
