//! Numbers that are read from disks: records of pulls and volumes of claims.

use std::sync::Arc;
use std::time::Duration;

use oarsman_core::exposition::{Exposition, MetricKind};
use oarsman_core::stats::write_volume_metrics;
use oarsman_state::PullRecords;
use tokio::time::timeout;

use crate::node_stats::ClaimSizes;

/// The longest a request waits for the records: a disk that does not answer keeps no other number from being shown.
const RECORDS_TIMEOUT: Duration = Duration::from_secs(2);

/// What they are read from.
#[derive(Clone)]
pub(super) struct DiskMetrics {
    pub(super) pull_records: Arc<dyn PullRecords>,
    pub(super) claims: Arc<dyn ClaimSizes>,
}

impl DiskMetrics {
    pub(super) async fn write(&self, out: &mut Exposition) {
        let (records, claims) = tokio::join!(
            timeout(RECORDS_TIMEOUT, self.pull_records.counts()),
            self.claims.claim_sizes()
        );
        if let Ok(Ok(counts)) = records {
            let mut gauge = |name: &str, help: &str, count: u64| {
                out.single(name, MetricKind::Gauge, help, count as f64);
            };
            let help = "Records of image pulls that have not ended.";
            gauge("kubelet_imagemanager_ondisk_pullintents", help, counts.intents);
            let help = "Records of images that were pulled.";
            gauge("kubelet_imagemanager_ondisk_pulledrecords", help, counts.pulled);
        }
        write_volume_metrics(&claims, out);
    }
}
