//! Whether all pods have ended, and the exit code of `oarsman run` then.

use k8s_openapi::api::core::v1::{ContainerStatus, PodStatus};
use oarsman_core::report::{NodeReport, PodReport, StageReport};
use oarsman_core::status::phase::Phase;

/// The exit code when a pod failed and no container has an exit code.
const FAILED: u8 = 1;

/// The exit code once every pod has run to its end: 0, or that of the first container that failed.
pub(super) fn exit_code(report: &NodeReport) -> Option<u8> {
    // A pod that is being removed has not ended by itself.
    let over = |pod: &PodReport| pod.stage == StageReport::Finished && !pod.leaving;
    if report.pods.is_empty() || !report.pods.iter().all(over) {
        return None;
    }
    let statuses = report.pods.iter().filter_map(|pod| pod.pod.status.as_ref());
    let mut failed = statuses.filter(|status| Phase::of(status) != Some(Phase::Succeeded));
    Some(failed.next().map_or(0, code_of))
}

/// The exit code of the first failed container, as a shell shows it.
fn code_of(status: &PodStatus) -> u8 {
    let first = status.init_container_statuses.iter().flatten();
    let then = status.container_statuses.iter().flatten();
    let failed = first.chain(then).filter_map(exit_code_of).find(|code| *code != 0);
    failed.and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED)
}

fn exit_code_of(container: &ContainerStatus) -> Option<i32> {
    Some(container.state.as_ref()?.terminated.as_ref()?.exit_code)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::{Value, json};

    use super::*;

    fn pod(stage: StageReport, status: &Value) -> PodReport {
        let pod: Pod = serde_json::from_value(json!({ "status": status })).unwrap();
        PodReport {
            pod,
            place: None,
            stage,
            leaving: false,
            doing: None,
            next_try: None,
            waits_for: None,
            last_error: None,
            probes: Vec::new(),
        }
    }

    fn ended(phase: &str, codes: &[i32]) -> PodReport {
        let ended = |code| {
            json!({ "name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
                "state": { "terminated": { "exitCode": code } } })
        };
        let containers: Vec<Value> = codes.iter().map(ended).collect();
        pod(StageReport::Finished, &json!({ "phase": phase, "containerStatuses": containers }))
    }

    #[test]
    fn the_code_is_that_of_the_first_container_that_failed_once_all_have_ended() {
        let runs = || pod(StageReport::Syncing, &json!({ "phase": "Running" }));
        let rows = [
            (vec![], None),
            (vec![runs()], None),
            (vec![ended("Succeeded", &[0]), runs()], None),
            (vec![ended("Succeeded", &[0])], Some(0)),
            (vec![ended("Succeeded", &[0]), ended("Failed", &[0, 3, 4])], Some(3)),
            (vec![ended("Failed", &[137])], Some(137)),
            (vec![PodReport { leaving: true, ..ended("Failed", &[137]) }], None),
            (vec![ended("Failed", &[])], Some(1)),
            (vec![ended("Failed", &[300])], Some(1)),
        ];
        for (pods, want) in rows {
            let report = NodeReport { pods, ..NodeReport::default() };
            assert_eq!(exit_code(&report), want, "{report:?}");
        }
    }
}
