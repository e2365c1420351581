//! What probes have found, by container: an input to decisions and to status.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::{Container, Probe};
use serde::{Deserialize, Serialize};

use crate::ids::ContainerId;

/// What a probe asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ProbeKind {
    /// Whether it has come up.
    Startup,
    /// Whether it still works.
    Liveness,
    /// Whether it can take traffic.
    Readiness,
}

impl ProbeKind {
    /// All of them, in the order in which a container meets them.
    pub const ALL: [Self; 3] = [Self::Startup, Self::Liveness, Self::Readiness];

    /// Its name in lower case, as annotations and background tasks have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Liveness => "liveness",
            Self::Readiness => "readiness",
        }
    }

    /// The name of its field in a container's spec.
    pub fn field(self) -> &'static str {
        match self {
            Self::Startup => "startupProbe",
            Self::Liveness => "livenessProbe",
            Self::Readiness => "readinessProbe",
        }
    }

    /// The container's probe of this kind.
    pub fn of(self, container: &Container) -> Option<&Probe> {
        match self {
            Self::Startup => container.startup_probe.as_ref(),
            Self::Liveness => container.liveness_probe.as_ref(),
            Self::Readiness => container.readiness_probe.as_ref(),
        }
    }

    /// What counts until the probe has found something: no traffic, no restart.
    pub fn initial_result(self) -> ProbeResult {
        match self {
            Self::Startup => ProbeResult::Unknown,
            Self::Liveness => ProbeResult::Success,
            Self::Readiness => ProbeResult::Failure,
        }
    }
}

/// As events and metrics spell it.
impl fmt::Display for ProbeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Startup => "Startup",
            Self::Liveness => "Liveness",
            Self::Readiness => "Readiness",
        })
    }
}

/// What a probe has found, by its thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
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

    /// Sets the initial result of a probe that begins, unless there is one, such as that of an earlier agent; returns what counts.
    pub fn begin(&mut self, container: &ContainerId, kind: ProbeKind) -> ProbeResult {
        *self.results.entry((container.clone(), kind)).or_insert(kind.initial_result())
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
    fn a_probe_begins_unready_alive_and_not_known_to_have_started() {
        let rows = [
            (ProbeKind::Readiness, ProbeResult::Failure),
            (ProbeKind::Liveness, ProbeResult::Success),
            (ProbeKind::Startup, ProbeResult::Unknown),
        ];
        for (kind, initial) in rows {
            let mut results = ProbeResults::default();
            assert_eq!(results.begin(&"new".into(), kind), initial);
            assert_eq!(results.get(&"new".into(), kind), Some(initial));
            for restored in [ProbeResult::Success, ProbeResult::Failure] {
                results.set("old".into(), kind, restored);
                assert_eq!(results.begin(&"old".into(), kind), restored, "it is kept");
            }
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
