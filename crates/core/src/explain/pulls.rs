//! Pulls that failed, by what the runtime says about them.

use super::Explanation;
use super::case::Case;
use super::cause::Cause;
use super::refusal::Refusal;
use super::seen::Seen;

/// Why the image of a container could not be pulled.
pub(super) fn explain(case: &Case<'_>, seen: &Seen<'_>) -> Explanation {
    let it = Refusal::new(case, seen, seen.message(), case.again());
    if it.says(&["no match for platform", "no matching manifest"]) {
        platform(&it)
    } else if it.says(&["401 ", "403 ", "authorization", "unauthorized", "denied"]) {
        refuses(&it)
    } else if it.says(&["dial tcp: lookup", "no such host"]) {
        unknown(&it)
    } else if it.says(&["dial tcp", "registry is unavailable", "timeout", "TLS", "x509", "EOF"]) {
        unreachable(&it)
    } else if it.says(&["unexpected status"]) {
        fails(&it)
    } else if it.says(&["not found", "manifest unknown"]) {
        not_found(&it)
    } else {
        otherwise(&it)
    }
}

/// The host of an image's name; one without is Docker Hub's.
pub(super) fn registry(image: &str) -> &str {
    match image.split_once('/') {
        Some((host, _)) if host.contains(['.', ':']) || host == "localhost" => host,
        _ => "docker.io",
    }
}

fn not_found(it: &Refusal<'_>) -> Explanation {
    let (image, who) = (it.seen.image(), it.who());
    let sentence = format!("The registry {} has no image {image}, which {who} wants", host(it));
    let (field, place) = (it.seen.field("image"), it.case.place());
    let next = format!("Correct name and tag in {field} of {place}, or push the image.");
    it.explain(Cause::ImageNotFound, &sentence, next)
}

fn refuses(it: &Refusal<'_>) -> Explanation {
    let (registry, image, who, why) = (host(it), it.seen.image(), it.who(), &it.why);
    let sentence = format!(
        "The registry {registry} does not give this node the image {image} of {who}: {why}"
    );
    let (root, field, place) = (&it.case.node.root, it.seen.field("image"), it.case.place());
    let next = format!(
        "Put credentials for {registry} into {root}/config.json (as `docker login` writes it), or correct {field} in {place}: registries hide what is not there, too."
    );
    it.explain(Cause::RegistryRefuses, &sentence, next)
}

fn unknown(it: &Refusal<'_>) -> Explanation {
    let (registry, who) = (host(it), it.who());
    let why = it.why.rsplit(": ").next().unwrap_or_default();
    let sentence = format!(
        "The registry {registry} of the image of {who} is not found under that name: {why}"
    );
    let (field, place) = (it.seen.field("image"), it.case.place());
    let next = format!(
        "Correct {field} in {place}, or this machine's resolver: `getent hosts {registry}`."
    );
    it.explain(Cause::RegistryUnknown, &sentence, next)
}

fn unreachable(it: &Refusal<'_>) -> Explanation {
    let (registry, who, why) = (host(it), it.who(), &it.why);
    let sentence =
        format!("The registry {registry} of the image of {who} cannot be reached: {why}");
    let next = format!(
        "Try it from this machine: `curl -v https://{registry}/v2/`; look at network, proxy and firewall."
    );
    it.explain(Cause::RegistryUnreachable, &sentence, next)
}

fn fails(it: &Refusal<'_>) -> Explanation {
    let (registry, who, why) = (host(it), it.who(), &it.why);
    let sentence =
        format!("The registry {registry} of the image of {who} answers with an error: {why}");
    let next = format!(
        "Wait until it is well again, or ask whoever runs it: `curl -v https://{registry}/v2/`."
    );
    it.explain(Cause::RegistryFails, &sentence, next)
}

fn platform(it: &Refusal<'_>) -> Explanation {
    let (image, who) = (it.seen.image(), it.who());
    let sentence = format!("The image {image} of {who} is not made for this machine's processor");
    let (field, place) = (it.seen.field("image"), it.case.place());
    let next = format!("Build it for this platform, or choose another: {field} in {place}.");
    it.explain(Cause::ImagePlatform, &sentence, next)
}

fn otherwise(it: &Refusal<'_>) -> Explanation {
    let (image, who, why) = (it.seen.image(), it.who(), &it.why);
    let sentence = format!("The image {image} of {who} cannot be pulled: {why}");
    it.explain(Cause::ImagePullFails, &sentence, format!("Try it by hand: `crictl pull {image}`."))
}

fn host<'a>(it: &'a Refusal<'_>) -> &'a str {
    registry(it.seen.image())
}
