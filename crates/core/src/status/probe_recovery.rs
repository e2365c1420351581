//! Probe results restored from the published status after a restart of the agent, before the first probe has run.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ContainerStatus, PodStatus};

use super::container_status_ext::ContainerStatusExt;
use crate::ids::ContainerId;
use crate::probe::{ProbeKind, ProbeResult, ProbeResults};

/// What was said of a container that had just been started was said in its first moments: it is asked anew.
const SETTLED: SignedDuration = SignedDuration::from_secs(10);

/// Takes over from the status what probes had said of containers that still run, so that no readiness flips
/// because another agent `began` then. What has been found since counts more.
pub fn restore_probe_results(status: &PodStatus, began: Timestamp, results: &mut ProbeResults) {
    let lists = [&status.container_statuses, &status.init_container_statuses];
    for container in lists.into_iter().flatten().flatten().filter(|c| had_settled(c, began)) {
        let Some((_, id)) = container.container_id.as_deref().and_then(|id| id.split_once("://"))
        else {
            continue;
        };
        let id = ContainerId::from(id);
        let recorded = [
            (ProbeKind::Startup, container.has_started()),
            (ProbeKind::Readiness, container.ready),
        ];
        for (kind, _) in recorded.into_iter().filter(|(_, yes)| *yes) {
            if results.get(&id, kind).is_none() {
                results.set(id.clone(), kind, ProbeResult::Success);
            }
        }
    }
}

/// Whether it runs, and did so well before the agent began. Without a start time it is taken for old.
fn had_settled(container: &ContainerStatus, began: Timestamp) -> bool {
    let running = container.state.as_ref().and_then(|state| state.running.as_ref());
    running.is_some_and(|running| {
        let started_at = running.started_at.as_ref().map(|time| time.0);
        started_at.is_none_or(|started_at| began.duration_since(started_at) > SETTLED)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::at;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
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
            restore_probe_results(&status, at(0), &mut results);
            assert_eq!(results.get(&"c1".into(), ProbeKind::Startup), started);
            assert_eq!(results.get(&"c1".into(), ProbeKind::Readiness), ready);
        }
    }

    #[test]
    fn what_a_probe_has_found_since_counts_more() {
        let mut results = ProbeResults::default();
        results.set("c1".into(), ProbeKind::Readiness, ProbeResult::Failure);
        restore_probe_results(&status(true, true, "running"), at(0), &mut results);
        assert!(results.has_failed(&"c1".into(), ProbeKind::Readiness));
    }

    #[test]
    fn a_container_started_less_than_ten_seconds_before_the_agent_is_asked_anew() {
        let started = |second: i64| {
            let mut status = status(true, true, "running");
            let container = &mut status.container_statuses.as_mut().unwrap()[0];
            let running = container.state.as_mut().unwrap().running.as_mut().unwrap();
            running.started_at = Some(Time(at(second)));
            status
        };
        let yes = Some(ProbeResult::Success);
        let rows = [(-3600, yes), (-11, yes), (-10, None), (-1, None), (0, None), (3600, None)];
        for (second, expected) in rows {
            let mut results = ProbeResults::default();
            restore_probe_results(&started(second), at(0), &mut results);
            for kind in [ProbeKind::Startup, ProbeKind::Readiness] {
                assert_eq!(results.get(&"c1".into(), kind), expected, "{second} {kind:?}");
            }
        }
    }
}
