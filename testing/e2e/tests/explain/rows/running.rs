//! Causes of pods that run, and are not ready or otherwise wrong.

use oarsman_core::explain::ExplanationCause;
use oarsman_e2e::manifest::{pod, script_container};
use serde_json::json;

use super::{CauseRow, RowContext, bad_probe, forever, of, row, shell};

pub(super) fn rows(world: &RowContext) -> Vec<CauseRow> {
    vec![
        row(
            "healthy",
            of("healthy", forever()),
            ExplanationCause::Running,
            "The pod runs and is ready, for N seconds now.",
            "Nothing to do. `oarsman logs -c main {pod}` shows what it says.",
        ),
        row(
            "second-life",
            of(
                "second-life",
                shell("[ -e /s/lived ] && exec sleep 1000; touch /s/lived; exit 5")
                    .mount("s", "/s"),
            )
            .host_path("s", &world.scratch),
            ExplanationCause::Restarted,
            "The pod runs and is ready, but container main had to be started again (N times so far): the one before ended with exit code 5; it runs again, for N seconds now.",
            "Read why it ended: `oarsman logs -c main --previous {pod}`.",
        ),
        row(
            "gated",
            of("gated", forever())
                .with("readinessGates", json!([{ "conditionType": "example.com/balanced" }])),
            ExplanationCause::ReadinessGate,
            "All containers run, but the pod is not ready: nobody has set the condition example.com/balanced to True, which its readiness gates wait for.",
            "Have whoever keeps that condition set it, or take it out of spec.readinessGates in {place}: without an API server nobody can set it.",
        ),
        row(
            "unready",
            of("unready", forever().with("readinessProbe", bad_probe())),
            ExplanationCause::NotReady,
            "Container main runs, for N seconds now, but its readinessProbe has not succeeded, so that the pod is not ready: the last answer, N seconds ago, was bad, N times in a row (not yet).",
            "See what the container says: `oarsman logs -c main {pod}`; what it is asked is in spec.containers[0].readinessProbe of {place}.",
        ),
        row(
            "unstarted",
            of("unstarted", forever().with("startupProbe", bad_probe())),
            ExplanationCause::NotStarted,
            "Container main runs, for N seconds now, but its startupProbe has not succeeded, so that the pod is not ready: the last answer, N seconds ago, was bad, N times in a row (not yet).",
            "See what the container says: `oarsman logs -c main {pod}`; what it is asked is in spec.containers[0].startupProbe of {place}.",
        ),
        row(
            "done",
            of("done", script_container("main", &["exit:0"])).with("restartPolicy", "Never"),
            ExplanationCause::Succeeded,
            "The pod did what it was for and ended N seconds ago, as it should.",
            "Nothing to do. To run it again, change {place}: any change makes it a new pod.",
        ),
        row(
            "failed",
            of(
                "failed",
                script_container(
                    "main",
                    &["write:/dev/termination-log=the disk is full", "exit:7"],
                ),
            )
            .with("restartPolicy", "Never"),
            ExplanationCause::Failed,
            "The pod failed N seconds ago: container main ended with exit code 7 and said: the disk is full.",
            "Read why: `oarsman logs -c main {pod}`. To run it again, change {place}: any change makes it a new pod.",
        ),
        row(
            "init-failed",
            pod("init-failed")
                .with("restartPolicy", "Never")
                .init(script_container("first", &["exit:3"]))
                .container(forever()),
            ExplanationCause::InitFailed,
            "The pod failed N seconds ago: init container first ended with exit code 3, so that no other container was started.",
            "Read why: `oarsman logs -c first {pod}`. To run it again, change {place}: any change makes it a new pod.",
        ),
        row(
            "overdue",
            of("overdue", forever()).with("activeDeadlineSeconds", 2),
            ExplanationCause::DeadlineExceeded,
            "The pod was stopped because it was active for longer than its spec.activeDeadlineSeconds (2) allows.",
            "Raise spec.activeDeadlineSeconds in {place}. To run it again, change {place}: any change makes it a new pod.",
        ),
    ]
}
