//! Pulls that failed, by what the runtime says about them.

use super::Explanation;
use super::cause::ExplanationCause;
use super::container::ContainerSnapshot;
use super::container_failure::ContainerFailure;
use super::context::ExplainContext;

/// Why the image of a container could not be pulled.
pub(super) fn explain(context: &ExplainContext<'_>, seen: &ContainerSnapshot<'_>) -> Explanation {
    let it = ContainerFailure::new(context, seen, seen.message(), context.next_try());
    if it.says(&["cannot pull from registries"]) {
        not_imported(&it)
    } else if it.says(&["no match for platform", "no matching manifest"]) {
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

/// The embedded runtime has only what was imported.
fn not_imported(it: &ContainerFailure<'_>) -> Explanation {
    let (image, label) = (it.seen.image(), it.label());
    let sentence = format!(
        "The image {image} of {label} is not on this machine, and the embedded runtime cannot pull it from a registry yet"
    );
    let next = format!(
        "Import it: `docker save {image} | oarsman image import -`; or run the pod on another runtime: `oarsman run --runtime containerd`."
    );
    Explanation {
        details: Vec::new(),
        ..it.explain(ExplanationCause::ImageNotImported, &sentence, next)
    }
}

fn not_found(it: &ContainerFailure<'_>) -> Explanation {
    let (image, label) = (it.seen.image(), it.label());
    let sentence = format!("The registry {} has no image {image}, which {label} wants", host(it));
    let (field, place) = (it.seen.field("image"), it.context.manifest_path());
    let next = format!("Correct name and tag in {field} of {place}, or push the image.");
    it.explain(ExplanationCause::ImageNotFound, &sentence, next)
}

fn refuses(it: &ContainerFailure<'_>) -> Explanation {
    let (registry, image, label, why) = (host(it), it.seen.image(), it.label(), &it.why);
    let sentence = format!(
        "The registry {registry} does not give this node the image {image} of {label}: {why}"
    );
    let (root, field, place) =
        (&it.context.node.root, it.seen.field("image"), it.context.manifest_path());
    let next = format!(
        "Put credentials for {registry} into {root}/config.json (as `docker login` writes it), or correct {field} in {place}: registries hide what is not there, too."
    );
    it.explain(ExplanationCause::RegistryRefuses, &sentence, next)
}

fn unknown(it: &ContainerFailure<'_>) -> Explanation {
    let (registry, label) = (host(it), it.label());
    let why = it.why.rsplit(": ").next().unwrap_or_default();
    let sentence = format!(
        "The registry {registry} of the image of {label} is not found under that name: {why}"
    );
    let (field, place) = (it.seen.field("image"), it.context.manifest_path());
    let next = format!(
        "Correct {field} in {place}, or this machine's resolver: `getent hosts {registry}`."
    );
    it.explain(ExplanationCause::RegistryUnknown, &sentence, next)
}

fn unreachable(it: &ContainerFailure<'_>) -> Explanation {
    let (registry, label, why) = (host(it), it.label(), &it.why);
    let sentence =
        format!("The registry {registry} of the image of {label} cannot be reached: {why}");
    let next = format!(
        "Try it from this machine: `curl -v https://{registry}/v2/`; look at network, proxy and firewall."
    );
    it.explain(ExplanationCause::RegistryUnreachable, &sentence, next)
}

fn fails(it: &ContainerFailure<'_>) -> Explanation {
    let (registry, label, why) = (host(it), it.label(), &it.why);
    let sentence =
        format!("The registry {registry} of the image of {label} answers with an error: {why}");
    let next = format!(
        "Wait until it is well again, or ask whoever runs it: `curl -v https://{registry}/v2/`."
    );
    it.explain(ExplanationCause::RegistryFails, &sentence, next)
}

fn platform(it: &ContainerFailure<'_>) -> Explanation {
    let (image, label) = (it.seen.image(), it.label());
    let sentence = format!("The image {image} of {label} is not made for this machine's processor");
    let (field, place) = (it.seen.field("image"), it.context.manifest_path());
    let next = format!("Build it for this platform, or choose another: {field} in {place}.");
    it.explain(ExplanationCause::ImagePlatform, &sentence, next)
}

fn otherwise(it: &ContainerFailure<'_>) -> Explanation {
    let (image, label, why) = (it.seen.image(), it.label(), &it.why);
    let sentence = format!("The image {image} of {label} cannot be pulled: {why}");
    it.explain(
        ExplanationCause::ImagePullFails,
        &sentence,
        format!("Try it by hand: `crictl pull {image}`."),
    )
}

fn host<'a>(it: &'a ContainerFailure<'_>) -> &'a str {
    registry(it.seen.image())
}
