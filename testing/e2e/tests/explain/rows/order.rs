//! Causes of regular containers that wait for init containers.

use oarsman_core::explain::ExplanationCause;
use oarsman_e2e::manifest::{pod, script_container};

use super::{CauseRow, RowContext, bad_probe, forever, row};

pub(super) fn rows(_: &RowContext) -> Vec<CauseRow> {
    let sidecar = script_container("side", &["forever"])
        .with("restartPolicy", "Always".into())
        .with("startupProbe", bad_probe());
    vec![
        row(
            "init-fails",
            pod("init-fails").init(script_container("first", &["exit:3"])).container(forever()),
            ExplanationCause::InitFails,
            "Init container first (image {script}) ended with exit code 3, N times so far, so that no other container is started; the next try is in N seconds.",
            "Read why: `oarsman logs -c first --previous {pod}`.",
        ),
        row(
            "init-runs",
            pod("init-runs").init(script_container("first", &["forever"])).container(forever()),
            ExplanationCause::InitRuns,
            "Init container first still runs, for N seconds now; container main comes after it.",
            "See what it waits for: `oarsman logs -c first {pod}`.",
        ),
        row(
            "side-waits",
            pod("side-waits").init(sidecar).container(forever()),
            ExplanationCause::SidecarNotStarted,
            "Sidecar side runs, for N seconds now, but its startupProbe has not succeeded, and what comes after it waits: the last answer, N seconds ago, was bad, N times in a row (not yet).",
            "See what the container says: `oarsman logs -c side {pod}`; what it is asked is in spec.initContainers[0].startupProbe of {place}.",
        ),
    ]
}
