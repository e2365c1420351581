//! Containers that cannot be described to the runtime, or that it does not make as described.

use super::Explanation;
use super::case::Case;
use super::cause::Cause;
use super::refusal::Refusal;
use super::seen::Seen;
use super::start_error;

pub(super) fn explain(case: &Case<'_>, seen: &Seen<'_>) -> Option<Explanation> {
    let refusal = |tail| Refusal::new(case, seen, seen.message(), tail);
    match seen.reason() {
        "CreateContainerConfigError" => Some(described(&refusal(String::new()))),
        "CreateContainerError" => Some(created(&refusal(case.again()))),
        "RunContainerError" => Some(start_error::explain(case, seen, seen.message(), case.again())),
        _ => None,
    }
}

/// What we refuse to ask the runtime for.
fn described(it: &Refusal<'_>) -> Explanation {
    let known = non_root(it).or_else(|| sub_path(it));
    known.or_else(|| object(it)).or_else(|| key(it)).unwrap_or_else(|| refused(it))
}

fn non_root(it: &Refusal<'_>) -> Option<Explanation> {
    if !it.says(&["non-root", "runAsNonRoot"]) {
        return None;
    }
    let (whose, image, place) = (it.seen.whose(), it.seen.image(), it.case.place());
    let sentence = format!("{whose} has runAsNonRoot, and its image {image} {}", root(it));
    let field = it.seen.field("securityContext.runAsUser");
    let next = format!("Set {field} in {place}, or use an image that gives its user by number.");
    Some(it.explain(Cause::WouldBeRoot, &sentence, next))
}

/// What of a user that may not be root is wrong.
fn root(it: &Refusal<'_>) -> &'static str {
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

fn sub_path(it: &Refusal<'_>) -> Option<Explanation> {
    if !it.says(&["parts of volumes cannot be mounted"]) {
        return None;
    }
    let whose = it.seen.whose();
    let sentence =
        format!("{whose} mounts a part of a volume (subPath), which this agent cannot do");
    let (field, place) = (it.seen.field("volumeMounts"), it.case.place());
    let next = format!("Mount the whole volume: take subPath out of {field} in {place}.");
    Some(it.explain(Cause::SubPath, &sentence, next))
}

fn object(it: &Refusal<'_>) -> Option<Explanation> {
    let object = it.why.strip_suffix(" not found")?;
    let kind = ["configmap", "secret"].into_iter().find(|kind| object.starts_with(kind))?;
    let name = object.split('"').nth(1)?;
    let kind = if kind == "secret" { "Secret" } else { "ConfigMap" };
    let sentence = format!("{} wants values of {kind} {name}, which is not there", it.seen.whose());
    let (place, field) = (it.case.place(), it.seen.field("env"));
    let next = format!("Put the {kind} beside the pod in {place}, or correct its name in {field}.");
    Some(it.explain(Cause::ObjectMissing, &sentence, next))
}

fn key(it: &Refusal<'_>) -> Option<Explanation> {
    let key = it.why.strip_prefix("couldn't find key ")?;
    let (key, object) = key.split_once(" in ")?;
    let sentence = format!("{} wants the key {key} of {object}, which has none", it.seen.whose());
    let next = format!("Add the key, or correct {} in {}.", it.seen.field("env"), it.case.place());
    Some(it.explain(Cause::KeyMissing, &sentence, next))
}

fn refused(it: &Refusal<'_>) -> Explanation {
    let (whose, why) = (it.seen.whose(), &it.why);
    let sentence = format!("{whose} cannot be described to the runtime: {why}");
    it.explain(Cause::ConfigRefused, &sentence, format!("Correct it in {}.", it.case.place()))
}

/// What the runtime refuses to make.
fn created(it: &Refusal<'_>) -> Explanation {
    let known = seccomp(it).or_else(|| app_armor(it)).or_else(|| user(it));
    known.or_else(|| no_command(it)).unwrap_or_else(|| it.quote(Cause::CannotCreate, "make"))
}

fn seccomp(it: &Refusal<'_>) -> Option<Explanation> {
    let path = it.why.strip_prefix("cannot load seccomp profile \"")?.split('"').next()?;
    let sentence = format!("The seccomp profile {path} of {} cannot be read", it.who());
    let (field, place) = (it.seen.field("securityContext.seccompProfile"), it.case.place());
    let next = format!("Put the profile there, or correct {field} in {place}.");
    Some(it.explain(Cause::SeccompMissing, &sentence, next))
}

fn app_armor(it: &Refusal<'_>) -> Option<Explanation> {
    if !it.says(&["apparmor"]) {
        return None;
    }
    let sentence = format!("The AppArmor profile of {} cannot be had: {}", it.who(), it.why);
    let (field, place) = (it.seen.field("securityContext.appArmorProfile"), it.case.place());
    let next = format!(
        "Load it on this machine (`aa-status` shows what there is), or take {field} out of {place}."
    );
    Some(it.explain(Cause::AppArmor, &sentence, next))
}

fn user(it: &Refusal<'_>) -> Option<Explanation> {
    if !it.says(&["no users found", "unable to find user", "no matching entries in passwd"]) {
        return None;
    }
    let (image, who) = (it.seen.image(), it.who());
    let sentence =
        format!("The image {image} of {who} names a user that its /etc/passwd does not know");
    let (field, place) = (it.seen.field("securityContext.runAsUser"), it.case.place());
    let next = format!("Set {field} to a number in {place}, or mend the image.");
    Some(it.explain(Cause::UserUnknown, &sentence, next))
}

fn no_command(it: &Refusal<'_>) -> Option<Explanation> {
    if !it.says(&["no command specified"]) {
        return None;
    }
    let (image, who) = (it.seen.image(), it.who());
    let sentence =
        format!("The image {image} of {who} names no program to run, and neither does the pod");
    let next = format!("Set {} in {}.", it.seen.field("command"), it.case.place());
    Some(it.explain(Cause::NoCommand, &sentence, next))
}
