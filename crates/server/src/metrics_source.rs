//! The trait by which the metrics endpoints read the agent's numbers.

use oarsman_core::exposition::Exposition;

/// The agent's numbers. They are computed when they are asked for, and nothing here waits.
pub trait MetricsSource: Send + Sync + 'static {
    /// Writes the families of `/metrics`; those of the server itself are added to them.
    fn write_kubelet_metrics(&self, out: &mut Exposition);

    /// Writes the families of `/metrics/probes`.
    fn write_probe_metrics(&self, out: &mut Exposition);
}
