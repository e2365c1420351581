//! How long the start of a pod took, from its creation until the API server shows that all of it runs.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodStatus};

use super::phase::Phase;
use crate::time::wall_between;

/// The durations of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodStartup {
    /// From the pod's creation.
    pub total: Duration,
    /// The same without image pulls and without the runs of init containers, which no node is to blame for.
    pub sli: Duration,
}

/// How far the start of a pod has come, by the status that the API server shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartupProgress {
    /// Something has not been started yet.
    Starting,
    /// All of it runs.
    Started(PodStartup),
    /// It has ended, so that it is not known whether all of it ever ran.
    Ended,
}

/// How far the start has come when the status is seen at that time, with so much time for image pulls.
pub fn startup_progress(
    pod: &Pod,
    status: &PodStatus,
    seen: Timestamp,
    pulls: Duration,
) -> StartupProgress {
    if Phase::of(status).is_some_and(Phase::is_terminal) {
        return StartupProgress::Ended;
    }
    let containers = status.container_statuses.as_deref().unwrap_or_default();
    let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    match created.filter(|_| !containers.is_empty() && containers.iter().all(runs)) {
        Some(created) => {
            let total = wall_between(created, seen);
            let init = status.init_container_statuses.iter().flatten().map(run_time).sum();
            let sli = total.saturating_sub(pulls).saturating_sub(init);
            StartupProgress::Started(PodStartup { total, sli })
        }
        None => StartupProgress::Starting,
    }
}

fn runs(status: &ContainerStatus) -> bool {
    status.state.as_ref().is_some_and(|state| state.running.is_some())
}

/// How long an init container ran; one that still runs is a sidecar, which nothing waits for.
fn run_time(status: &ContainerStatus) -> Duration {
    let ended = status.state.as_ref().and_then(|state| state.terminated.as_ref());
    let times = ended.and_then(|ended| ended.started_at.as_ref().zip(ended.finished_at.as_ref()));
    times.map_or(Duration::ZERO, |(from, until)| wall_between(from.0, until.0))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn status(phase: &str, init: &Value, main: &[Value]) -> PodStatus {
        let container = |state: &Value| {
            json!({
                "name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state,
            })
        };
        let main: Vec<Value> = main.iter().map(container).collect();
        let init = [container(init)];
        let status =
            json!({ "phase": phase, "initContainerStatuses": init, "containerStatuses": main });
        serde_json::from_value(status).unwrap()
    }

    #[test]
    fn a_start_lasts_from_the_creation_until_everything_runs() {
        let pod = json!({ "metadata": { "creationTimestamp": "2026-01-01T00:00:00Z" } });
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let seen = "2026-01-01T00:00:20Z".parse().unwrap();
        let running = json!({ "running": { "startedAt": "2026-01-01T00:00:19Z" } });
        let waiting = json!({ "waiting": {} });
        let ended = json!({ "terminated": {
            "exitCode": 0, "startedAt": "2026-01-01T00:00:02Z", "finishedAt": "2026-01-01T00:00:07Z",
        }});
        let started = |sli| {
            let (total, sli) = (Duration::from_secs(20), Duration::from_secs(sli));
            StartupProgress::Started(PodStartup { total, sli })
        };
        let rows = [
            ("Pending", &waiting, vec![waiting.clone()], 0, StartupProgress::Starting),
            (
                "Pending",
                &ended,
                vec![running.clone(), waiting.clone()],
                0,
                StartupProgress::Starting,
            ),
            ("Pending", &waiting, vec![], 0, StartupProgress::Starting),
            ("Running", &ended, vec![running.clone()], 4, started(11)),
            ("Running", &running, vec![running.clone(), running.clone()], 0, started(20)),
            ("Running", &ended, vec![running.clone()], 99, started(0)),
            ("Failed", &ended, vec![running.clone()], 0, StartupProgress::Ended),
        ];
        for (phase, init, main, pulls, want) in rows {
            let status = status(phase, init, &main);
            let found = startup_progress(&pod, &status, seen, Duration::from_secs(pulls));
            assert_eq!(found, want, "{phase} {main:?}");
        }
    }
}
