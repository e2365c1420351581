//! Volumes that are not as they should be: nothing of the pod is started before they are.

use super::case::Case;
use super::essence::essence;
use super::{Cause, Explanation, sandbox};

pub(super) fn explain(case: &Case<'_>) -> Option<Explanation> {
    let message = sandbox::held_by(case)?;
    let why = essence(message);
    let rest = why.strip_prefix("volume \"")?;
    let (volume, why) = rest.split_once("\": ")?;
    let (again, place) = (case.again(), case.place());
    let (cause, sentence, next) = if let Some(path) =
        why.strip_prefix("hostPath type check failed: ")
    {
        (
            Cause::HostPath,
            format!("Volume {volume} cannot be mounted: {path}{again}."),
            format!(
                "Make it so on this machine, or correct path and type of volume {volume} in {place}."
            ),
        )
    } else if let Some(kind) = why.strip_prefix("this agent has no ") {
        let kind = kind.split(' ').next().unwrap_or_default();
        (
            Cause::VolumeKind,
            format!("Volume {volume} is of the kind {kind}, which this agent does not have."),
            format!("Use emptyDir or hostPath for volume {volume} in {place}."),
        )
    } else {
        (
            Cause::VolumeFails,
            format!("Volume {volume} cannot be made: {why}{again}."),
            format!("Mend it on this machine, or correct volume {volume} in {place}."),
        )
    };
    Some(Explanation::new(cause, sentence, next))
}
