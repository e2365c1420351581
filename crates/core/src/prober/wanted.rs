//! Which probes a pod has at a moment.

use k8s_openapi::api::core::v1::Pod;

use crate::ids::ContainerId;
use crate::pod::{ContainerKind, PodContainer, PodExt};
use crate::probe::{ProbeKind, ProbeResult, ProbeResults};
use crate::view::{ContainerState, ContainerView, PodView};

/// A probe of a container that runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WantedProbe {
    /// What it asks.
    pub kind: ProbeKind,
    /// The container that is asked: a new one has a new probe, which begins anew.
    pub container: ContainerId,
}

/// The probes of the pod's containers and sidecars that run. Liveness and readiness are asked once a container has started; whether it has
/// is asked until then. A pod that is terminating is asked for its readiness only, started or not.
pub fn wanted_probes(
    pod: &Pod,
    view: &PodView,
    results: &ProbeResults,
    is_terminating: bool,
) -> Vec<WantedProbe> {
    let mut wanted = Vec::new();
    for spec in pod.all_containers().iter().filter(|spec| is_probed(spec.kind)) {
        let Some(running) = running(view, &spec.spec.name) else { continue };
        let kinds = ProbeKind::ALL.into_iter().filter(|kind| kind.of(&spec.spec).is_some());
        let due = kinds.filter(|kind| is_due(*kind, spec, running, results, is_terminating));
        wanted.extend(due.map(|kind| WantedProbe { kind, container: running.id.clone() }));
    }
    wanted
}

fn is_probed(kind: ContainerKind) -> bool {
    matches!(kind, ContainerKind::Regular | ContainerKind::Sidecar)
}

/// The newest container of that name, if it runs in the pod's sandbox.
fn running<'a>(view: &'a PodView, name: &str) -> Option<&'a ContainerView> {
    let sandbox = view.newest_sandbox()?;
    let runs = |state: &ContainerState| matches!(state, ContainerState::Running { .. });
    view.newest(name).filter(|newest| newest.sandbox == sandbox.id && runs(&newest.state))
}

fn is_due(
    kind: ProbeKind,
    spec: &PodContainer<'_>,
    container: &ContainerView,
    results: &ProbeResults,
    is_terminating: bool,
) -> bool {
    let has_started = results.has_started(&spec.spec, &container.id);
    match kind {
        ProbeKind::Startup => {
            let result = results.get(&container.id, kind);
            !is_terminating && result != Some(ProbeResult::Success)
        }
        ProbeKind::Liveness => !is_terminating && has_started,
        ProbeKind::Readiness => is_terminating || has_started,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Container, Probe};

    use super::*;
    use crate::fixture::{pod, view};

    fn probed(container: &mut Container) {
        container.startup_probe = Some(Probe::default());
        container.liveness_probe = Some(Probe::default());
        container.readiness_probe = Some(Probe::default());
    }

    fn no_startup(container: &mut Container) {
        probed(container);
        container.startup_probe = None;
    }

    /// The probes in words, such as `app-0 liveness`.
    fn names(wanted: &[WantedProbe]) -> Vec<String> {
        wanted.iter().map(|probe| format!("{} {}", probe.container, probe.kind.name())).collect()
    }

    #[test]
    fn liveness_and_readiness_wait_for_startup_and_startup_ends_with_its_success() {
        let pod = pod().regular_with("app", probed).build();
        let view = view(&pod).sandbox().running("app").build();
        let both = &["app-0 liveness", "app-0 readiness"][..];
        let rows = [
            (None, false, &["app-0 startup"][..]),
            (Some(ProbeResult::Unknown), false, &["app-0 startup"]),
            (Some(ProbeResult::Failure), false, &["app-0 startup"]),
            (Some(ProbeResult::Success), false, both),
            (Some(ProbeResult::Success), true, &["app-0 readiness"]),
            (Some(ProbeResult::Unknown), true, &["app-0 readiness"]),
        ];
        for (startup, is_terminating, expected) in rows {
            let mut results = ProbeResults::default();
            if let Some(result) = startup {
                results.set("app-0".into(), ProbeKind::Startup, result);
            }
            let wanted = wanted_probes(&pod, &view, &results, is_terminating);
            assert_eq!(names(&wanted), expected, "{startup:?} {is_terminating}");
        }
    }

    #[test]
    fn containers_and_sidecars_that_run_are_probed_and_no_others() {
        let pod = pod()
            .init_with("init", no_startup)
            .sidecar_with("side", no_startup)
            .regular_with("app", no_startup)
            .regular_with("ended", no_startup)
            .regular("plain")
            .ephemeral("debug")
            .build();
        let view = view(&pod)
            .sandbox()
            .running("init")
            .running("side")
            .running("app")
            .exited("ended", 1)
            .running("plain")
            .running("debug");
        let wanted = wanted_probes(&pod, &view.clone().build(), &ProbeResults::default(), false);
        let expected = ["side-0 liveness", "side-0 readiness", "app-0 liveness", "app-0 readiness"];
        assert_eq!(names(&wanted), expected);
        let restarted = view.exited("app", 1).running("app").build();
        let wanted = wanted_probes(&pod, &restarted, &ProbeResults::default(), false);
        assert!(names(&wanted).contains(&"app-2 liveness".to_owned()), "the new one is asked");
        assert!(!names(&wanted).contains(&"app-0 liveness".to_owned()), "the old one is not");
    }

    #[test]
    fn a_container_of_an_earlier_sandbox_is_not_probed() {
        let pod = pod().regular_with("app", no_startup).build();
        let view = view(&pod).sandbox().running("app").sandbox().build();
        assert_eq!(wanted_probes(&pod, &view, &ProbeResults::default(), false), []);
    }
}
