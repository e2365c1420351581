//! Renews the node's lease, by which the control plane sees that the node is alive.

use std::sync::Arc;

use k8s_openapi::api::coordination::v1::Lease;
use oarsman_cluster::Result;
use oarsman_core::node::lease::{renewal, renewed};
use oarsman_core::requeue::jittered_by;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::NodeStatusContext;
use super::retry::RetryTimer;

/// Spreads the renewals of nodes that started together.
const SPREAD: f64 = 0.04;

pub(super) async fn run(context: Arc<NodeStatusContext>) {
    let context = &*context;
    let mut identity = context.node.identity.clone();
    let every = renewal(context.node_status_config.lease);
    // The lease as the API server last returned it.
    let mut lease = None;
    loop {
        let due = Instant::now() + jittered_by(every, SPREAD, context.node.seams.clock.jitter());
        let mut retry = RetryTimer::start();
        loop {
            match context.with_deadline("the lease", ensure_lease(context, lease.take())).await {
                Ok(renewed) => {
                    lease = renewed;
                    break;
                }
                Err(error) => {
                    let (node, attempt) =
                        (&context.node_status_config.profile.name, retry.attempt());
                    tracing::warn!(node, attempt, %error, "node lease not renewed, will retry");
                }
            }
            retry.wait().await;
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
async fn ensure_lease(context: &NodeStatusContext, known: Option<Lease>) -> Result<Option<Lease>> {
    let there = match known {
        Some(lease) => Some(lease),
        None => context.object.lease().await?,
    };
    let uid = context.identity.get().map(|identity| identity.uid);
    if there.is_none() && uid.is_none() {
        return Ok(None);
    }
    let name = &context.node_status_config.profile.name;
    let (lasts, now) = (context.node_status_config.lease, context.node.seams.clock.wall());
    let lease = renewed(there.as_ref(), name, uid.as_deref(), lasts, now);
    let done = match there {
        Some(_) => context.object.replace_lease(&lease).await,
        None => context.object.create_lease(&lease).await,
    };
    done.map(Some)
}
