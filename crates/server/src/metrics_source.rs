//! The trait by which the metrics endpoints read the agent's numbers.

use async_trait::async_trait;
use oarsman_core::exposition::Exposition;

/// The agent's numbers, which are computed when they are asked for.
#[async_trait]
pub trait MetricsSource: Send + Sync + 'static {
    /// Writes the families of `/metrics`; those of the server itself are added to them. It may wait for disks,
    /// though not for long.
    async fn write_kubelet_metrics(&self, out: &mut Exposition);

    /// Writes the families of `/metrics/probes`.
    fn write_probe_metrics(&self, out: &mut Exposition);
}
