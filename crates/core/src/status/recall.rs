//! What an agent that starts again knows of probes before it has asked them itself.

use k8s_openapi::api::core::v1::PodStatus;

use super::questions::StatusExt;
use crate::ids::ContainerId;
use crate::probe::{ProbeKind, ProbeResult, ProbeResults};

/// Takes over from the status what probes had said of containers that still run, so that no readiness flips
/// because the agent was restarted. What has been found since counts more.
pub fn recall(status: &PodStatus, results: &mut ProbeResults) {
    let lists = [&status.container_statuses, &status.init_container_statuses];
    for container in lists.into_iter().flatten().flatten().filter(|status| status.is_running()) {
        let Some((_, id)) = container.container_id.as_deref().and_then(|id| id.split_once("://"))
        else {
            continue;
        };
        let id = ContainerId::from(id);
        let said = [
            (ProbeKind::Startup, container.has_started()),
            (ProbeKind::Readiness, container.ready),
        ];
        for (kind, _) in said.into_iter().filter(|(_, yes)| *yes) {
            if results.get(&id, kind).is_none() {
                results.set(id.clone(), kind, ProbeResult::Success);
            }
        }
    }
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
            recall(&status, &mut results);
            assert_eq!(results.get(&"c1".into(), ProbeKind::Startup), started);
            assert_eq!(results.get(&"c1".into(), ProbeKind::Readiness), ready);
        }
    }

    #[test]
    fn what_a_probe_has_found_since_counts_more() {
        let mut results = ProbeResults::default();
        results.set("c1".into(), ProbeKind::Readiness, ProbeResult::Failure);
        recall(&status(true, true, "running"), &mut results);
        assert!(results.has_failed(&"c1".into(), ProbeKind::Readiness));
    }
}
