//! The watch of pods for an agent: all of them after each change, only the newest set when the agent is slow.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use oarsman_cluster::PodSets;
use oarsman_sync::ordered_watch;
use tokio::time::sleep;

use super::client::ClusterLink;
use crate::faults::EventDelivery;
use crate::link::RemoteService;

/// How long a broken watch waits before it tries again.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// The sets, without end.
pub(super) fn pod_sets(connection: ClusterLink) -> PodSets {
    let newest = connection.cluster.0.newest.subscribe();
    let outages = connection.cluster.outages();
    let watch = PodWatch { connection, newest, outages, seen: None };
    stream::unfold(watch, |mut watch| async { Some((watch.next().await, watch)) }).boxed()
}

struct PodWatch {
    connection: ClusterLink,
    newest: ordered_watch::Receiver<u64>,
    outages: ordered_watch::Receiver<u64>,
    /// The version of the last set.
    seen: Option<u64>,
}

impl PodWatch {
    async fn next(&mut self) -> Vec<Arc<Pod>> {
        self.wait_for_change().await;
        if let EventDelivery::Late(stall) = self.connection.faults.next_event() {
            sleep(stall).await;
        }
        loop {
            self.outages.mark_seen();
            if let Ok((version, pods)) = self.connection.list().await {
                self.seen = Some(version);
                return pods.into_iter().map(Arc::new).collect();
            }
            sleep(PAUSE).await;
        }
    }

    /// Waits for a change. A connection that broke may have missed one.
    async fn wait_for_change(&mut self) {
        let Some(seen) = self.seen else { return };
        // Both senders live as long as the connection, so the waits end only on a change.
        tokio::select! {
            biased;
            news = self.newest.wait_for(|newest| *newest > seen) => news.is_ok(),
            broke = self.outages.changed() => broke.is_ok(),
        };
    }
}
