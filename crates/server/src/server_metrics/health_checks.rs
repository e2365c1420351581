//! The families of `/metrics/slis`: what health checks came to.

use std::collections::BTreeMap;

use oarsman_core::exposition::{Exposition, MetricKind};
use oarsman_core::healthz::HealthCheck;
use oarsman_sync::Guarded;

/// The kind of checks, as the label `type` has it.
const HEALTHZ: (&str, &str) = ("type", "healthz");

/// How often each check passed and failed, whether `/healthz` was asked or the metrics.
#[derive(Debug, Default)]
pub(super) struct HealthCheckMetrics(Guarded<BTreeMap<(&'static str, &'static str), u64>>);

impl HealthCheckMetrics {
    pub(super) fn record(&self, checks: &[HealthCheck]) {
        let mut counts = self.0.lock();
        for HealthCheck { name, result } in checks {
            let status = if result.is_ok() { "success" } else { "error" };
            *counts.entry((*name, status)).or_default() += 1;
        }
    }

    pub(super) fn write(&self, checks: &[HealthCheck], out: &mut Exposition) {
        let help = "Whether a health check passes: 1 if it does, 0 if it fails.";
        let mut family = out.family("kubernetes_healthcheck", MetricKind::Gauge, help);
        for HealthCheck { name, result } in checks {
            let passes = if result.is_ok() { 1.0 } else { 0.0 };
            family.sample(&[("name", *name), HEALTHZ], passes);
        }
        let help = "How often each health check passed and failed.";
        let mut family = out.family("kubernetes_healthchecks_total", MetricKind::Counter, help);
        for ((name, status), count) in &*self.0.lock() {
            family.sample(&[("name", *name), ("status", *status), HEALTHZ], *count as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_shown_as_it_is_and_counted_by_its_results() {
        let metrics = HealthCheckMetrics::default();
        let checks = |sync_loop| {
            [
                HealthCheck { name: "ping", result: Ok(()) },
                HealthCheck { name: "syncloop", result: sync_loop },
            ]
        };
        metrics.record(&checks(Ok(())));
        let failed = checks(Err("stuck".to_owned()));
        metrics.record(&failed);
        metrics.record(&failed);
        let mut out = Exposition::default();
        metrics.write(&failed, &mut out);
        let expected = r#"# HELP kubernetes_healthcheck Whether a health check passes: 1 if it does, 0 if it fails.
# TYPE kubernetes_healthcheck gauge
kubernetes_healthcheck{name="ping",type="healthz"} 1
kubernetes_healthcheck{name="syncloop",type="healthz"} 0
# HELP kubernetes_healthchecks_total How often each health check passed and failed.
# TYPE kubernetes_healthchecks_total counter
kubernetes_healthchecks_total{name="ping",status="success",type="healthz"} 3
kubernetes_healthchecks_total{name="syncloop",status="error",type="healthz"} 2
kubernetes_healthchecks_total{name="syncloop",status="success",type="healthz"} 1
"#;
        assert_eq!(out.into_text(), expected);
    }
}
