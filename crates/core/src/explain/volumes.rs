//! Volumes that are not as they should be: nothing of the pod is started before they are.

use super::Explanation;
use super::cause::ExplanationCause;
use super::context::ExplainContext;
use super::root_message::root_message;
use super::sandbox;

/// `volume "NAME": WHY`.
pub(super) fn explain(context: &ExplainContext<'_>) -> Option<Explanation> {
    let why = root_message(sandbox::held_by(context)?);
    let (volume, why) = why.strip_prefix("volume \"")?.split_once("\": ")?;
    let known = host_path(context, volume, why).or_else(|| kind(context, volume, why));
    Some(known.unwrap_or_else(|| fails(context, volume, why)))
}

fn host_path(context: &ExplainContext<'_>, volume: &str, why: &str) -> Option<Explanation> {
    let found = why.strip_prefix("hostPath type check failed: ")?;
    let sentence = format!("Volume {volume} cannot be mounted: {found}{}.", context.next_try());
    let next = format!(
        "Make it so on this machine, or correct path and type of volume {volume} in {}.",
        context.manifest_path()
    );
    Some(Explanation::new(ExplanationCause::HostPath, sentence, next))
}

fn kind(context: &ExplainContext<'_>, volume: &str, why: &str) -> Option<Explanation> {
    let (kind, instead) = why.strip_prefix("this agent has no ")?.split_once(" volumes; use ")?;
    let sentence =
        format!("Volume {volume} is of the kind {kind}, which this agent does not have.");
    let next = format!("Use {instead} for volume {volume} in {}.", context.manifest_path());
    Some(Explanation::new(ExplanationCause::VolumeKind, sentence, next))
}

fn fails(context: &ExplainContext<'_>, volume: &str, why: &str) -> Explanation {
    let sentence = format!("Volume {volume} cannot be made: {why}{}.", context.next_try());
    let next = format!(
        "Mend it on this machine, or correct volume {volume} in {}.",
        context.manifest_path()
    );
    Explanation::new(ExplanationCause::VolumeFails, sentence, next)
}
