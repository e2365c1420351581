//! Images that are not there.

use super::case::Case;
use super::essence::essence;
use super::seen::Seen;
use super::{Cause, Explanation};
use crate::report::Activity;

/// A pull that is under way for this long is told of instead of the failure before it.
const LONG: u64 = 10;

pub(super) fn explain(case: &Case<'_>, seen: &Seen<'_>) -> Option<Explanation> {
    let busy = under_way(case, seen);
    let failed = of_reason(case, seen);
    match (busy, failed) {
        (Some((explanation, age)), Some(failed)) => {
            Some(if age < LONG { failed } else { explanation })
        }
        (busy, failed) => failed.or(busy.map(|(explanation, _)| explanation)),
    }
}

fn under_way(case: &Case<'_>, seen: &Seen<'_>) -> Option<(Explanation, u64)> {
    let doing = case.doing(seen.name()).filter(|doing| doing.container.is_some())?;
    let (who, since) = (seen.who(), case.lasting(doing.since));
    let explanation = match &doing.what {
        Activity::Pulling(image) => Explanation::new(
            Cause::Pulling,
            format!("The image {image} of {who} is being pulled, for {since} now."),
            format!(
                "Wait; a big image takes its time. If it takes too long, try how fast this machine reaches {}.",
                registry(image)
            ),
        ),
        Activity::WaitingToPull(image) => Explanation::new(
            Cause::WaitingToPull,
            format!(
                "The image {image} of {who} waits for its turn, for {since} now: as many images as may be are being pulled for other pods."
            ),
            "Wait, or let more be pulled at once: --max-parallel-image-pulls.".to_owned(),
        ),
        _ => return None,
    };
    Some((explanation, case.age(doing.since).as_secs()))
}

fn of_reason(case: &Case<'_>, seen: &Seen<'_>) -> Option<Explanation> {
    let (who, image, message) = (seen.who(), seen.image(), seen.message());
    let why = essence(message);
    let field = seen.field("image");
    let (cause, sentence, next) = match seen.reason() {
        "InvalidImageName" => (
            Cause::ImageNameInvalid,
            format!("The image name {image:?} of {who} cannot be one: {why}."),
            format!("Correct {field} in {}.", case.place()),
        ),
        "ErrImageNeverPull" => (
            Cause::ImageNeverPulled,
            format!(
                "The image {image} of {who} is not on this machine, and its imagePullPolicy Never forbids pulling it."
            ),
            format!(
                "Put the image here (`ctr -n k8s.io images import FILE`), or set {} to IfNotPresent in {}.",
                seen.field("imagePullPolicy"),
                case.place()
            ),
        ),
        "ImageInspectError" => (
            Cause::ImageUnreadable,
            format!(
                "The runtime cannot say whether it has the image {image} of {who}: {why}{}.",
                case.again()
            ),
            format!("See whether the runtime is well: `crictl images`, `{}`.", journal(case)),
        ),
        "SignatureValidationFailed" => (
            Cause::ImageUnsigned,
            format!(
                "The image {image} of {who} is not signed as this node demands: {why}{}.",
                case.again()
            ),
            "Sign the image, or change the runtime's signature policy (policy.json).".to_owned(),
        ),
        "ErrImagePull" | "ImagePullBackOff" | "RegistryUnavailable" => {
            return Some(pull_failed(case, seen, message, &why));
        }
        _ => return None,
    };
    Some(Explanation::new(cause, sentence, next))
}

fn pull_failed(case: &Case<'_>, seen: &Seen<'_>, message: &str, why: &str) -> Explanation {
    let (who, image, place, again) = (seen.who(), seen.image(), case.place(), case.again());
    let (registry, field) = (registry(image), seen.field("image"));
    let reach = format!(
        "Try it from this machine: `curl -v https://{registry}/v2/`; look at network, proxy and firewall."
    );
    let (cause, sentence, next) = match kind(message) {
        Cause::ImageNotFound => (
            Cause::ImageNotFound,
            format!("The registry {registry} has no image {image}, which {who} wants"),
            format!("Correct name and tag in {field} of {place}, or push the image."),
        ),
        Cause::RegistryRefuses => (
            Cause::RegistryRefuses,
            format!(
                "The registry {registry} does not let this node have the image {image} of {who}: {why}"
            ),
            format!(
                "Put credentials for {registry} into {}/config.json (as `docker login` writes it), or correct {field} in {place}: registries hide what is not there, too.",
                case.node.root
            ),
        ),
        Cause::RegistryUnknown => (
            Cause::RegistryUnknown,
            format!(
                "The registry {registry} of the image of {who} is not found under that name: {why}"
            ),
            format!(
                "Correct {field} in {place}, or this machine's resolver: `getent hosts {registry}`."
            ),
        ),
        Cause::RegistryUnreachable => (
            Cause::RegistryUnreachable,
            format!("The registry {registry} of the image of {who} cannot be reached: {why}"),
            reach,
        ),
        Cause::RegistryFails => (
            Cause::RegistryFails,
            format!("The registry {registry} of the image of {who} answers with an error: {why}"),
            format!(
                "Wait until the registry is well again, or ask whoever runs it: `curl -v https://{registry}/v2/`."
            ),
        ),
        Cause::ImagePlatform => (
            Cause::ImagePlatform,
            format!("The image {image} of {who} is not made for this machine's processor"),
            format!("Build or choose an image for this platform: {field} in {place}."),
        ),
        _ => (
            Cause::ImagePullFails,
            format!("The image {image} of {who} cannot be pulled: {why}"),
            format!("Try it by hand: `crictl pull {image}`."),
        ),
    };
    Explanation::new(cause, format!("{sentence}{again}."), next).with(Some(message.to_owned()))
}

/// What a runtime's message about a pull comes down to.
fn kind(message: &str) -> Cause {
    let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if has(&["no match for platform", "no matching manifest"]) {
        Cause::ImagePlatform
    } else if has(&[
        "401 ",
        "403 ",
        "authorization failed",
        "authorization",
        "unauthorized",
        "denied",
    ]) {
        Cause::RegistryRefuses
    } else if has(&["dial tcp: lookup", "no such host"]) {
        Cause::RegistryUnknown
    } else if has(&[
        "dial tcp",
        "the registry is unavailable",
        "i/o timeout",
        "TLS handshake",
        "x509",
        "EOF",
    ]) {
        Cause::RegistryUnreachable
    } else if has(&["unexpected status"]) {
        Cause::RegistryFails
    } else if has(&["not found", "manifest unknown"]) {
        Cause::ImageNotFound
    } else {
        Cause::ImagePullFails
    }
}

/// The host of an image's name; one without is Docker Hub's.
fn registry(image: &str) -> &str {
    match image.split_once('/') {
        Some((host, _)) if host.contains(['.', ':']) || host == "localhost" => host,
        _ => "docker.io",
    }
}

/// The command that shows what the runtime says.
fn journal(case: &Case<'_>) -> String {
    let name = &case.node.runtime.name;
    format!("journalctl -u {}", if name.is_empty() { "containerd" } else { name })
}
