//! Causes of pods whose sandbox cannot be made.

use oarsman_core::explain::ExplanationCause;
use serde_json::json;

use super::{CauseRow, RowContext, forever, of, row};

pub(super) fn rows(_: &RowContext) -> Vec<CauseRow> {
    let again = "; the next try is in N seconds";
    let long = "h".repeat(60);
    let sysctls = json!({ "sysctls": [{ "name": "kernel.shm_rmid_forced", "value": "banana" }] });
    let tiny = json!({ "limits": { "memory": "100Ki" } });
    vec![
        row(
            "class",
            of("class", forever()).with("runtimeClassName", "gvisor"),
            ExplanationCause::RuntimeClass,
            &format!(
                "The pod asks for the runtime class gvisor, which this node does not know{again}."
            ),
            "Take spec.runtimeClassName out of {place}: without an API server there are no runtime classes.",
        ),
        row(
            "long-name",
            of("long-name", forever())
                .with("setHostnameAsFQDN", true)
                .with("hostname", long.as_str())
                .with("subdomain", "s"),
            ExplanationCause::HostName,
            &format!(
                "The host name {long}.s.default.svc. is 75 characters long and the kernel takes 64{again}."
            ),
            "Shorten spec.hostname or spec.subdomain in {place}, or take spec.setHostnameAsFQDN out of it.",
        ),
        row(
            "setting",
            of("setting", forever()).with("securityContext", sysctls),
            ExplanationCause::Sysctl,
            &format!(
                "A kernel setting that the pod asks for cannot be made: kernel.shm_rmid_forced = \"banana\": invalid argument{again}."
            ),
            "Correct spec.securityContext.sysctls in {place}.",
        ),
        row(
            "tiny",
            of("tiny", forever().with("resources", tiny)),
            ExplanationCause::MemoryLimitTooLow,
            &format!(
                "The memory limits of the pod are too low for anything to start in it: container main may use 100Ki{again}."
            ),
            "Raise resources.limits.memory of its containers in {place}.",
        ),
        row(
            "odd-uid",
            of("odd-uid", forever()).with_metadata("uid", "a/b"),
            ExplanationCause::Unreadable,
            "The agent cannot look at the pod: cannot use the uid of a/b: its uid is not a plain name: set metadata.uid to letters, digits and dashes.",
            "Correct {place}, or see whether the runtime is well.",
        ),
    ]
}
