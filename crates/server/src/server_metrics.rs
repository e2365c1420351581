//! What the servers count of themselves, and the agent's numbers: all that the metrics endpoints answer from.

mod health_checks;
mod requests;

use std::sync::Arc;

use oarsman_core::exposition::Exposition;
use oarsman_core::healthz::HealthCheck;

use crate::metrics_source::MetricsSource;

pub(crate) use requests::{RequestMeasurement, ServerType, with_metrics};

use health_checks::HealthCheckMetrics;
use requests::RequestMetrics;

/// The numbers of all servers.
pub(crate) struct ServerMetrics {
    source: Arc<dyn MetricsSource>,
    requests: Arc<RequestMetrics>,
    health_checks: HealthCheckMetrics,
}

impl ServerMetrics {
    pub(crate) fn new(source: Arc<dyn MetricsSource>) -> Arc<Self> {
        let (requests, health_checks) = (Arc::default(), HealthCheckMetrics::default());
        Arc::new(Self { source, requests, health_checks })
    }

    /// Counts the results of checks.
    pub(crate) fn record_health(&self, checks: &[HealthCheck]) {
        self.health_checks.record(checks);
    }

    /// The text of `/metrics`.
    pub(crate) async fn kubelet_text(&self) -> String {
        let mut out = Exposition::default();
        self.source.write_kubelet_metrics(&mut out).await;
        self.requests.write(&mut out);
        out.into_text()
    }

    /// The text of `/metrics/probes`.
    pub(crate) fn probe_text(&self) -> String {
        let mut out = Exposition::default();
        self.source.write_probe_metrics(&mut out);
        out.into_text()
    }

    /// The text of `/metrics/slis`, after the checks were made.
    pub(crate) fn sli_text(&self, checks: &[HealthCheck]) -> String {
        self.record_health(checks);
        let mut out = Exposition::default();
        self.health_checks.write(checks, &mut out);
        out.into_text()
    }
}
