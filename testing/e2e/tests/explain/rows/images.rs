//! Causes of images that cannot be pulled or used.

use oarsman_core::explain::ExplanationCause;
use oarsman_e2e::manifest::image;

use super::{CauseRow, RowContext, of, row};

/// An image whose user is not in its /etc/passwd.
pub(super) const STRANGER: &str = "rig.local/script:stranger";

pub(super) fn rows(world: &RowContext) -> Vec<CauseRow> {
    let registry = &world.registry;
    let correct = "Correct spec.containers[0].image in {place}.";
    let credentials = format!(
        "Put credentials for {registry} into {{root}}/config.json (as `docker login` writes it), or correct spec.containers[0].image in {{place}}: registries hide what is not there, too."
    );
    let pulled = |name, tag: &str, cause, sentence: &str, next: &str| {
        let image = image("main", &format!("{registry}/{tag}"));
        row(name, of(name, image), cause, sentence, next)
    };
    let (again, main) = ("; the next try is in N seconds", "container main");
    vec![
        row(
            "no-name",
            of("no-name", image("main", "Bad:::Name")),
            ExplanationCause::ImageNameInvalid,
            "The image name \"Bad:::Name\" of container main cannot be one: repository name must be lowercase.",
            correct,
        ),
        pulled(
            "not-there",
            "nobody:1",
            ExplanationCause::ImageNotFound,
            &format!(
                "The registry {registry} has no image {registry}/nobody:1, which {main} wants{again}."
            ),
            "Correct name and tag in spec.containers[0].image of {place}, or push the image.",
        ),
        pulled(
            "private",
            "private:1",
            ExplanationCause::RegistryRefuses,
            &format!(
                "The registry {registry} does not give this node the image {registry}/private:1 of {main}: authorization failed: no basic auth credentials{again}."
            ),
            &credentials,
        ),
        pulled(
            "forbidden",
            "forbidden:1",
            ExplanationCause::RegistryRefuses,
            &format!(
                "The registry {registry} does not give this node the image {registry}/forbidden:1 of {main}: 403 Forbidden{again}."
            ),
            &credentials,
        ),
        pulled(
            "broken",
            "broken:1",
            ExplanationCause::RegistryFails,
            &format!(
                "The registry {registry} of the image of {main} answers with an error: 503 Service Unavailable{again}."
            ),
            &format!(
                "Wait until it is well again, or ask whoever runs it: `curl -v https://{registry}/v2/`."
            ),
        ),
        pulled(
            "foreign",
            "foreign:1",
            ExplanationCause::ImagePlatform,
            &format!(
                "The image {registry}/foreign:1 of {main} is not made for this machine's processor{again}."
            ),
            "Build it for this platform, or choose another: spec.containers[0].image in {place}.",
        ),
        pulled(
            "empty",
            "empty:1",
            ExplanationCause::NoCommand,
            &format!(
                "The image {registry}/empty:1 of {main} names no program to run, and neither does the pod{again}."
            ),
            "Set spec.containers[0].command in {place}.",
        ),
        pulled(
            "slow",
            "slow:1",
            ExplanationCause::Pulling,
            &format!("The image {registry}/slow:1 of {main} is being pulled, for N seconds now."),
            &format!(
                "Wait: a big image takes its time. If it takes too long, see how fast this machine reaches {registry}."
            ),
        ),
        row(
            "far-away",
            of("far-away", image("main", "127.0.0.1:1/x:1")),
            ExplanationCause::RegistryUnreachable,
            &format!(
                "The registry 127.0.0.1:1 of the image of {main} cannot be reached: dial tcp 127.0.0.1:1: connect: connection refused{again}."
            ),
            "Try it from this machine: `curl -v https://127.0.0.1:1/v2/`; look at network, proxy and firewall.",
        ),
        row(
            "unheard-of",
            of("unheard-of", image("main", "localhost.invalid/x:1")),
            ExplanationCause::RegistryUnknown,
            &format!(
                "The registry localhost.invalid of the image of {main} is not found under that name: …{again}."
            ),
            "Correct spec.containers[0].image in {place}, or this machine's resolver: `getent hosts localhost.invalid`.",
        ),
        row(
            "never-pulled",
            of(
                "never-pulled",
                image("main", "rig.local/not-here:1").with("imagePullPolicy", "Never".into()),
            ),
            ExplanationCause::ImageNeverPulled,
            "The image rig.local/not-here:1 of container main is not on this machine, and imagePullPolicy Never forbids pulling it.",
            "Put the image here (`ctr -n k8s.io images import FILE`), or set spec.containers[0].imagePullPolicy to IfNotPresent in {place}.",
        ),
        row(
            "stranger",
            of("stranger", image("main", STRANGER)),
            ExplanationCause::UserUnknown,
            &format!(
                "The image {STRANGER} of container main names a user that its /etc/passwd does not know{again}."
            ),
            "Set spec.containers[0].securityContext.runAsUser to a number in {place}, or mend the image.",
        ),
    ]
}
