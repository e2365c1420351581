//! Renews the node's lease, by which the control plane sees that the node is alive.

use std::sync::Arc;

use k8s_openapi::api::coordination::v1::Lease;
use oarsman_cluster::Result;
use oarsman_core::node::lease::{renewal, renewed};
use oarsman_core::requeue::stretched;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Office;
use super::tries::Tries;

/// Spreads the renewals of nodes that started together.
const SPREAD: f64 = 0.04;

pub(super) async fn keep(office: Arc<Office>) {
    let office = &*office;
    let mut identity = office.node.identity.clone();
    let every = renewal(office.membership.lease);
    // The lease as the API server last returned it.
    let mut lease = None;
    loop {
        let due = Instant::now() + stretched(every, SPREAD, office.node.seams.clock.dice());
        let mut tries = Tries::begin();
        loop {
            match office.in_time("the lease", renew(office, lease.take())).await {
                Ok(renewed) => {
                    lease = renewed;
                    break;
                }
                Err(error) => {
                    let (node, attempt) = (&office.membership.profile.name, tries.attempt());
                    tracing::warn!(node, attempt, %error, "node lease not renewed, will retry");
                }
            }
            tries.next().await;
        }
        if lease.is_some() {
            sleep_until(due).await;
        } else {
            // A lease without an owner would outlive its node: it waits until the node's object is known.
            timeout_at(due, identity.changed()).await.ok();
        }
    }
}

/// Renews the lease, or creates it; none while there is no node object that a new lease could belong to.
async fn renew(office: &Office, known: Option<Lease>) -> Result<Option<Lease>> {
    let there = match known {
        Some(lease) => Some(lease),
        None => office.object.lease().await?,
    };
    let uid = office.identity.get().map(|identity| identity.uid);
    if there.is_none() && uid.is_none() {
        return Ok(None);
    }
    let name = &office.membership.profile.name;
    let (lasts, now) = (office.membership.lease, office.node.seams.clock.wall());
    let lease = renewed(there.as_ref(), name, uid.as_deref(), lasts, now);
    let done = match there {
        Some(_) => office.object.replace_lease(&lease).await,
        None => office.object.create_lease(&lease).await,
    };
    done.map(Some)
}
