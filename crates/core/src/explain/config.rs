//! Containers that cannot be described to the runtime, or that it does not make as described.

use super::Explanation;
use super::cause::ExplanationCause;
use super::container::ContainerSnapshot;
use super::container_failure::ContainerFailure;
use super::context::ExplainContext;
use super::start_error;

pub(super) fn explain(
    context: &ExplainContext<'_>,
    seen: &ContainerSnapshot<'_>,
) -> Option<Explanation> {
    let failure = |tail| ContainerFailure::new(context, seen, seen.message(), tail);
    match seen.reason() {
        "CreateContainerConfigError" => Some(described(&failure(String::new()))),
        "CreateContainerError" => Some(created(&failure(context.next_try()))),
        "RunContainerError" => {
            Some(start_error::explain(context, seen, seen.message(), context.next_try()))
        }
        _ => None,
    }
}

/// What we refuse to ask the runtime for.
fn described(it: &ContainerFailure<'_>) -> Explanation {
    let known = non_root(it).or_else(|| sub_path(it));
    known.or_else(|| object(it)).or_else(|| key(it)).unwrap_or_else(|| refused(it))
}

fn non_root(it: &ContainerFailure<'_>) -> Option<Explanation> {
    if !it.says(&["non-root", "runAsNonRoot"]) {
        return None;
    }
    let (capitalized_label, image, place) =
        (it.seen.capitalized_label(), it.seen.image(), it.context.manifest_path());
    let sentence =
        format!("{capitalized_label} has runAsNonRoot, and its image {image} {}", root(it));
    let field = it.seen.field("securityContext.runAsUser");
    let next = format!("Set {field} in {place}, or use an image that gives its user by number.");
    Some(it.explain(ExplanationCause::WouldBeRoot, &sentence, next))
}

/// What of a user that may not be root is wrong.
fn root(it: &ContainerFailure<'_>) -> &'static str {
    if it.says(&["breaks non-root policy"]) {
        "is to be run as user 0 all the same"
    } else if it.says(&["non-numeric user"]) {
        "names its user instead of numbering it, so that it may be root"
    } else if it.says(&["invalid user id"]) {
        "asks for a user that cannot be"
    } else {
        "runs as root"
    }
}

fn sub_path(it: &ContainerFailure<'_>) -> Option<Explanation> {
    let failed = it.message.split_once("failed to prepare subPath for volumeMount \"")?.1;
    let (volume, why) = failed.split_once("\" of container ")?;
    let why = why.split_once("\": ")?.1;
    let sentence = format!(
        "{} mounts a part of volume {volume} that cannot be had: {why}",
        it.seen.capitalized_label()
    );
    let (field, place) = (it.seen.field("volumeMounts"), it.context.manifest_path());
    let next =
        format!("Correct subPath or subPathExpr in {field} in {place}, or what the volume holds.");
    Some(it.explain(ExplanationCause::SubPath, &sentence, next))
}

fn object(it: &ContainerFailure<'_>) -> Option<Explanation> {
    let object = it.why.strip_suffix(" not found")?;
    let kind = ["configmap", "secret"].into_iter().find(|kind| object.starts_with(kind))?;
    let name = object.split('"').nth(1)?;
    let kind = if kind == "secret" { "Secret" } else { "ConfigMap" };
    let sentence = format!(
        "{} wants values of {kind} {name}, which is not there",
        it.seen.capitalized_label()
    );
    let (place, field) = (it.context.manifest_path(), it.seen.field("env"));
    let next = format!("Put the {kind} beside the pod in {place}, or correct its name in {field}.");
    Some(it.explain(ExplanationCause::ObjectMissing, &sentence, next))
}

fn key(it: &ContainerFailure<'_>) -> Option<Explanation> {
    let key = it.why.strip_prefix("couldn't find key ")?;
    let (key, object) = key.split_once(" in ")?;
    let sentence =
        format!("{} wants the key {key} of {object}, which has none", it.seen.capitalized_label());
    let next = format!(
        "Add the key, or correct {} in {}.",
        it.seen.field("env"),
        it.context.manifest_path()
    );
    Some(it.explain(ExplanationCause::KeyMissing, &sentence, next))
}

fn refused(it: &ContainerFailure<'_>) -> Explanation {
    let (capitalized_label, why) = (it.seen.capitalized_label(), &it.why);
    let sentence = format!("{capitalized_label} cannot be described to the runtime: {why}");
    it.explain(
        ExplanationCause::ConfigRefused,
        &sentence,
        format!("Correct it in {}.", it.context.manifest_path()),
    )
}

/// What the runtime refuses to make.
fn created(it: &ContainerFailure<'_>) -> Explanation {
    let known = seccomp(it).or_else(|| app_armor(it)).or_else(|| user(it));
    known
        .or_else(|| no_command(it))
        .unwrap_or_else(|| it.quote(ExplanationCause::CannotCreate, "make"))
}

fn seccomp(it: &ContainerFailure<'_>) -> Option<Explanation> {
    let path = it.why.strip_prefix("cannot load seccomp profile \"")?.split('"').next()?;
    let sentence = format!("The seccomp profile {path} of {} cannot be read", it.label());
    let (field, place) =
        (it.seen.field("securityContext.seccompProfile"), it.context.manifest_path());
    let next = format!("Put the profile there, or correct {field} in {place}.");
    Some(it.explain(ExplanationCause::SeccompMissing, &sentence, next))
}

fn app_armor(it: &ContainerFailure<'_>) -> Option<Explanation> {
    if !it.says(&["apparmor"]) {
        return None;
    }
    let sentence = format!("The AppArmor profile of {} cannot be had: {}", it.label(), it.why);
    let (field, place) =
        (it.seen.field("securityContext.appArmorProfile"), it.context.manifest_path());
    let next = format!(
        "Load it on this machine (`aa-status` shows what there is), or take {field} out of {place}."
    );
    Some(it.explain(ExplanationCause::AppArmor, &sentence, next))
}

fn user(it: &ContainerFailure<'_>) -> Option<Explanation> {
    if !it.says(&["no users found", "unable to find user", "no matching entries in passwd"]) {
        return None;
    }
    let (image, label) = (it.seen.image(), it.label());
    let sentence =
        format!("The image {image} of {label} names a user that its /etc/passwd does not know");
    let (field, place) = (it.seen.field("securityContext.runAsUser"), it.context.manifest_path());
    let next = format!("Set {field} to a number in {place}, or mend the image.");
    Some(it.explain(ExplanationCause::UserUnknown, &sentence, next))
}

fn no_command(it: &ContainerFailure<'_>) -> Option<Explanation> {
    if !it.says(&["no command specified"]) {
        return None;
    }
    let (image, label) = (it.seen.image(), it.label());
    let sentence =
        format!("The image {image} of {label} names no program to run, and neither does the pod");
    let next = format!("Set {} in {}.", it.seen.field("command"), it.context.manifest_path());
    Some(it.explain(ExplanationCause::NoCommand, &sentence, next))
}
