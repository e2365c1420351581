//! What probes have found, by container: an input to decisions and to status.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Container;

use crate::ids::ContainerId;

/// What a probe asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProbeKind {
    /// Whether it has come up.
    Startup,
    /// Whether it still works.
    Liveness,
    /// Whether it can take traffic.
    Readiness,
}

/// What a probe has found, by its thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProbeResult {
    /// Yes.
    Success,
    /// No.
    Failure,
    /// Too early to say.
    Unknown,
}

/// The newest result of every probe of every container. A container has a new id after a restart, and so no results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeResults {
    results: BTreeMap<(ContainerId, ProbeKind), ProbeResult>,
}

impl ProbeResults {
    /// The newest result; none while the probe has not been set up.
    pub fn get(&self, container: &ContainerId, kind: ProbeKind) -> Option<ProbeResult> {
        self.results.get(&(container.clone(), kind)).copied()
    }

    /// Whether that probe says no.
    pub fn has_failed(&self, container: &ContainerId, kind: ProbeKind) -> bool {
        self.get(container, kind) == Some(ProbeResult::Failure)
    }

    /// Whether a running container has come up: at once without a startup probe, else when that says so.
    pub fn has_started(&self, spec: &Container, container: &ContainerId) -> bool {
        spec.startup_probe.is_none()
            || self.get(container, ProbeKind::Startup) == Some(ProbeResult::Success)
    }

    /// Takes in a result; says whether it is news.
    pub fn set(&mut self, container: ContainerId, kind: ProbeKind, result: ProbeResult) -> bool {
        self.results.insert((container, kind), result) != Some(result)
    }

    /// Forgets containers that are not among those the runtime still holds.
    pub fn retain(&mut self, mut exists: impl FnMut(&ContainerId) -> bool) {
        self.results.retain(|(container, _), _| exists(container));
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Probe;

    use super::*;

    #[test]
    fn a_container_has_started_when_its_startup_probe_succeeded_or_it_has_none() {
        let rows = [
            (false, None, true),
            (true, None, false),
            (true, Some(ProbeResult::Unknown), false),
            (true, Some(ProbeResult::Failure), false),
            (true, Some(ProbeResult::Success), true),
        ];
        for (probed, result, started) in rows {
            let startup_probe = probed.then(Probe::default);
            let spec = Container { startup_probe, ..Container::default() };
            let mut results = ProbeResults::default();
            if let Some(result) = result {
                results.set("c".into(), ProbeKind::Startup, result);
            }
            assert_eq!(results.has_started(&spec, &"c".into()), started, "{probed} {result:?}");
        }
    }

    #[test]
    fn only_a_changed_result_is_reported() {
        let mut results = ProbeResults::default();
        assert!(results.set("c".into(), ProbeKind::Readiness, ProbeResult::Failure));
        assert!(!results.set("c".into(), ProbeKind::Readiness, ProbeResult::Failure));
        assert!(results.set("c".into(), ProbeKind::Readiness, ProbeResult::Success));
    }

    #[test]
    fn results_of_containers_that_are_gone_are_forgotten() {
        let mut results = ProbeResults::default();
        results.set("gone".into(), ProbeKind::Liveness, ProbeResult::Failure);
        results.set("kept".into(), ProbeKind::Liveness, ProbeResult::Failure);
        results.retain(|id| id.as_str() == "kept");
        assert_eq!(results.get(&"gone".into(), ProbeKind::Liveness), None);
        assert!(results.has_failed(&"kept".into(), ProbeKind::Liveness));
    }
}
