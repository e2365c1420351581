//! Probe results restored from the published status after a restart of the agent, before the first probe has run.

use k8s_openapi::api::core::v1::{ContainerStatus, PodStatus};

use super::container_status_ext::ContainerStatusExt;
use crate::ids::ContainerId;
use crate::probe::{ProbeKind, ProbeResult, ProbeResults};

/// Takes over from the status what probes had said of containers that still run, so that no readiness flips because another agent
/// began. It was said of the very container whose id the status has, however young that is. What has been found since counts more.
pub fn restore_probe_results(status: &PodStatus, results: &mut ProbeResults) {
    let lists = [&status.container_statuses, &status.init_container_statuses];
    for container in lists.into_iter().flatten().flatten().filter(|c| c.is_running()) {
        for kind in recorded_successes(container) {
            let Some(id) = container_id(container) else { continue };
            if results.get(&id, kind).is_none() {
                results.set(id, kind, ProbeResult::Success);
            }
        }
    }
}

fn recorded_successes(container: &ContainerStatus) -> impl Iterator<Item = ProbeKind> {
    let recorded =
        [(ProbeKind::Startup, container.has_started()), (ProbeKind::Readiness, container.ready)];
    recorded.into_iter().filter(|(_, yes)| *yes).map(|(kind, _)| kind)
}

/// The runtime's id, without the name of the runtime.
fn container_id(container: &ContainerStatus) -> Option<ContainerId> {
    let (_, id) = container.container_id.as_deref()?.split_once("://")?;
    Some(ContainerId::from(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn status(ready: bool, started: bool, state: &str) -> PodStatus {
        let container = json!({
            "name": "app", "image": "", "imageID": "", "restartCount": 0,
            "containerID": "containerd://c1", "ready": ready, "started": started, "state": {state: {}},
        });
        serde_json::from_value(json!({"containerStatuses": [container]})).unwrap()
    }

    #[test]
    fn a_running_container_that_was_ready_stays_so_until_it_is_asked() {
        let yes = Some(ProbeResult::Success);
        let rows = [
            (status(true, true, "running"), yes, yes),
            (status(false, true, "running"), yes, None),
            (status(false, false, "running"), None, None),
            (status(true, true, "waiting"), None, None),
        ];
        for (status, started, ready) in rows {
            let mut results = ProbeResults::default();
            restore_probe_results(&status, &mut results);
            assert_eq!(results.get(&"c1".into(), ProbeKind::Startup), started);
            assert_eq!(results.get(&"c1".into(), ProbeKind::Readiness), ready);
        }
    }

    #[test]
    fn what_a_probe_has_found_since_counts_more() {
        let mut results = ProbeResults::default();
        results.set("c1".into(), ProbeKind::Readiness, ProbeResult::Failure);
        restore_probe_results(&status(true, true, "running"), &mut results);
        assert!(results.has_failed(&"c1".into(), ProbeKind::Readiness));
    }

    #[test]
    fn the_result_of_another_container_is_not_taken_over() {
        let mut results = ProbeResults::default();
        restore_probe_results(&status(true, true, "running"), &mut results);
        assert_eq!(results.get(&"c2".into(), ProbeKind::Readiness), None);
    }
}
