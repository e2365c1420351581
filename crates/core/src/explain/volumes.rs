//! Volumes that are not as they should be: nothing of the pod is started before they are.

use super::Explanation;
use super::case::Case;
use super::cause::Cause;
use super::essence::essence;
use super::sandbox;

/// `volume "NAME": WHY`.
pub(super) fn explain(case: &Case<'_>) -> Option<Explanation> {
    let why = essence(sandbox::held_by(case)?);
    let (volume, why) = why.strip_prefix("volume \"")?.split_once("\": ")?;
    let known = host_path(case, volume, why).or_else(|| kind(case, volume, why));
    Some(known.unwrap_or_else(|| fails(case, volume, why)))
}

fn host_path(case: &Case<'_>, volume: &str, why: &str) -> Option<Explanation> {
    let found = why.strip_prefix("hostPath type check failed: ")?;
    let sentence = format!("Volume {volume} cannot be mounted: {found}{}.", case.again());
    let next = format!(
        "Make it so on this machine, or correct path and type of volume {volume} in {}.",
        case.place()
    );
    Some(Explanation::new(Cause::HostPath, sentence, next))
}

fn kind(case: &Case<'_>, volume: &str, why: &str) -> Option<Explanation> {
    let (kind, instead) = why.strip_prefix("this agent has no ")?.split_once(" volumes; use ")?;
    let sentence =
        format!("Volume {volume} is of the kind {kind}, which this agent does not have.");
    let next = format!("Use {instead} for volume {volume} in {}.", case.place());
    Some(Explanation::new(Cause::VolumeKind, sentence, next))
}

fn fails(case: &Case<'_>, volume: &str, why: &str) -> Explanation {
    let sentence = format!("Volume {volume} cannot be made: {why}{}.", case.again());
    let next = format!("Mend it on this machine, or correct volume {volume} in {}.", case.place());
    Explanation::new(Cause::VolumeFails, sentence, next)
}
