//! Images that are not there.

use super::Explanation;
use super::case::Case;
use super::cause::Cause;
use super::pulls;
use super::refusal::Refusal;
use super::seen::Seen;
use crate::report::{Activity, Doing};

/// A pull that is under way for this long is told of instead of the failure before it.
const LONG: u64 = 10;

pub(super) fn explain(case: &Case<'_>, seen: &Seen<'_>) -> Option<Explanation> {
    let doing = case.doing(seen.name());
    let is_long = doing.is_some_and(|doing| case.age(doing.since).as_secs() >= LONG);
    let busy = doing.and_then(|doing| under_way(case, seen, doing));
    let failed = of_reason(case, seen);
    if is_long { busy.or(failed) } else { failed.or(busy) }
}

fn under_way(case: &Case<'_>, seen: &Seen<'_>, doing: &Doing) -> Option<Explanation> {
    let (who, since) = (seen.who(), case.lasting(doing.since));
    match &doing.what {
        Activity::Pulling(image) => {
            let sentence = format!("The image {image} of {who} is being pulled, for {since} now.");
            let registry = pulls::registry(image);
            let next = format!(
                "Wait: a big image takes its time. If it takes too long, see how fast this machine reaches {registry}."
            );
            Some(Explanation::new(Cause::Pulling, sentence, next))
        }
        Activity::WaitingToPull(image) => {
            let sentence = format!(
                "The image {image} of {who} waits for its turn, for {since} now: as many images as may be are being pulled for others."
            );
            let next = "Wait, or let more be pulled at once: --max-parallel-image-pulls.";
            Some(Explanation::new(Cause::WaitingToPull, sentence, next))
        }
        _ => None,
    }
}

fn of_reason(case: &Case<'_>, seen: &Seen<'_>) -> Option<Explanation> {
    let refusal = |tail| Refusal::new(case, seen, seen.message(), tail);
    Some(match seen.reason() {
        "InvalidImageName" => invalid(&refusal(String::new())),
        "ErrImageNeverPull" => never(&refusal(String::new())),
        "ImageInspectError" => unreadable(&refusal(case.again())),
        "SignatureValidationFailed" => unsigned(&refusal(case.again())),
        "ErrImagePull" | "ImagePullBackOff" | "RegistryUnavailable" => pulls::explain(case, seen),
        _ => return None,
    })
}

fn invalid(it: &Refusal<'_>) -> Explanation {
    let (image, who, why) = (it.seen.image(), it.who(), &it.why);
    let sentence = format!("The image name {image:?} of {who} cannot be one: {why}");
    it.correct(Cause::ImageNameInvalid, &sentence, "image")
}

fn never(it: &Refusal<'_>) -> Explanation {
    let (image, who) = (it.seen.image(), it.who());
    let sentence = format!(
        "The image {image} of {who} is not on this machine, and imagePullPolicy Never forbids pulling it"
    );
    let (field, place) = (it.seen.field("imagePullPolicy"), it.case.place());
    let next = format!(
        "Put the image here (`ctr -n k8s.io images import FILE`), or set {field} to IfNotPresent in {place}."
    );
    Explanation { details: Vec::new(), ..it.explain(Cause::ImageNeverPulled, &sentence, next) }
}

fn unreadable(it: &Refusal<'_>) -> Explanation {
    let (image, who, why) = (it.seen.image(), it.who(), &it.why);
    let sentence =
        format!("The runtime cannot say whether it has the image {image} of {who}: {why}");
    let next = format!("See whether the runtime is well: {}.", it.case.runtime_log());
    it.explain(Cause::ImageUnreadable, &sentence, next)
}

fn unsigned(it: &Refusal<'_>) -> Explanation {
    let (image, who, why) = (it.seen.image(), it.who(), &it.why);
    let sentence = format!("The image {image} of {who} is not signed as this node demands: {why}");
    let next = "Sign the image, or change the runtime's signature policy.".to_owned();
    it.explain(Cause::ImageUnsigned, &sentence, next)
}
