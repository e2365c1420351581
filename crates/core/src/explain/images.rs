//! Images that are not there.

use super::Explanation;
use super::cause::ExplanationCause;
use super::container::ContainerSnapshot;
use super::container_failure::ContainerFailure;
use super::context::ExplainContext;
use super::pulls;
use crate::report::{Activity, PodActivity};

/// A pull that is under way for this long is told of instead of the failure before it.
const LONG: u64 = 10;

pub(super) fn explain(
    context: &ExplainContext<'_>,
    seen: &ContainerSnapshot<'_>,
) -> Option<Explanation> {
    let doing = context.doing(seen.name());
    let is_long = doing.is_some_and(|doing| context.age(doing.since).as_secs() >= LONG);
    let busy = doing.and_then(|doing| under_way(context, seen, doing));
    let failed = of_reason(context, seen);
    if is_long { busy.or(failed) } else { failed.or(busy) }
}

fn under_way(
    context: &ExplainContext<'_>,
    seen: &ContainerSnapshot<'_>,
    doing: &PodActivity,
) -> Option<Explanation> {
    let (label, since) = (seen.label(), context.human_duration(doing.since));
    match &doing.what {
        Activity::Pulling(image) => {
            let sentence =
                format!("The image {image} of {label} is being pulled, for {since} now.");
            let registry = pulls::registry(image);
            let next = format!(
                "Wait: a big image takes its time. If it takes too long, see how fast this machine reaches {registry}."
            );
            Some(Explanation::new(ExplanationCause::Pulling, sentence, next))
        }
        Activity::WaitingToPull(image) => {
            let sentence = format!(
                "The image {image} of {label} waits for its turn, for {since} now: as many images as may be are being pulled for others."
            );
            let next = "Wait, or let more be pulled at once: --max-parallel-image-pulls.";
            Some(Explanation::new(ExplanationCause::WaitingToPull, sentence, next))
        }
        _ => None,
    }
}

fn of_reason(context: &ExplainContext<'_>, seen: &ContainerSnapshot<'_>) -> Option<Explanation> {
    let failure = |tail| ContainerFailure::new(context, seen, seen.message(), tail);
    Some(match seen.reason() {
        "InvalidImageName" => invalid(&failure(String::new())),
        "ErrImageNeverPull" => never(&failure(String::new())),
        "ImageInspectError" => unreadable(&failure(context.next_try())),
        "SignatureValidationFailed" => unsigned(&failure(context.next_try())),
        "ErrImagePull" | "ImagePullBackOff" | "RegistryUnavailable" => {
            pulls::explain(context, seen)
        }
        _ => return None,
    })
}

fn invalid(it: &ContainerFailure<'_>) -> Explanation {
    let (image, label, why) = (it.seen.image(), it.label(), &it.why);
    let sentence = format!("The image name {image:?} of {label} cannot be one: {why}");
    it.correct(ExplanationCause::ImageNameInvalid, &sentence, "image")
}

fn never(it: &ContainerFailure<'_>) -> Explanation {
    let (image, label) = (it.seen.image(), it.label());
    let sentence = format!(
        "The image {image} of {label} is not on this machine, and imagePullPolicy Never forbids pulling it"
    );
    let (field, place) = (it.seen.field("imagePullPolicy"), it.context.manifest_path());
    let next = format!(
        "Put the image here (`ctr -n k8s.io images import FILE`), or set {field} to IfNotPresent in {place}."
    );
    Explanation {
        details: Vec::new(),
        ..it.explain(ExplanationCause::ImageNeverPulled, &sentence, next)
    }
}

fn unreadable(it: &ContainerFailure<'_>) -> Explanation {
    let (image, label, why) = (it.seen.image(), it.label(), &it.why);
    let sentence =
        format!("The runtime cannot say whether it has the image {image} of {label}: {why}");
    let next = format!("See whether the runtime is well: {}.", it.context.runtime_log());
    it.explain(ExplanationCause::ImageUnreadable, &sentence, next)
}

fn unsigned(it: &ContainerFailure<'_>) -> Explanation {
    let (image, label, why) = (it.seen.image(), it.label(), &it.why);
    let sentence =
        format!("The image {image} of {label} is not signed as this node demands: {why}");
    let next = "Sign the image, or change the runtime's signature policy.".to_owned();
    it.explain(ExplanationCause::ImageUnsigned, &sentence, next)
}
