//! Containers that cannot be described to the runtime, or that it does not make as described.

use super::case::Case;
use super::crashes;
use super::essence::essence;
use super::seen::Seen;
use super::{Cause, Explanation};

pub(super) fn explain(case: &Case<'_>, seen: &Seen<'_>) -> Option<Explanation> {
    let message = seen.message();
    match seen.reason() {
        "CreateContainerConfigError" => Some(described(case, seen, message)),
        "CreateContainerError" => Some(created(case, seen, message)),
        "RunContainerError" => Some(crashes::refused(case, seen, message)),
        _ => None,
    }
}

/// What we refuse to ask the runtime for.
fn described(case: &Case<'_>, seen: &Seen<'_>, message: &str) -> Explanation {
    let (who, place, why) = (seen.who(), case.place(), essence(message));
    let (cause, sentence, next) =
        if message.contains("non-root") || message.contains("runAsNonRoot") {
            (
                Cause::WouldBeRoot,
                format!(
                    "{} has runAsNonRoot, and its image {} {}.",
                    seen.whose(),
                    seen.image(),
                    root(message)
                ),
                format!(
                    "Set {} in {place}, or use an image that says another user by number.",
                    seen.field("securityContext.runAsUser")
                ),
            )
        } else if message.contains("subPath") {
            (
                Cause::SubPath,
                format!(
                    "{} mounts a part of a volume (subPath), which this agent cannot do yet.",
                    seen.whose()
                ),
                format!(
                    "Mount the whole volume: take subPath out of {} in {place}.",
                    seen.field("volumeMounts")
                ),
            )
        } else if let Some(object) = message.strip_suffix(" not found").filter(|it| is_object(it)) {
            (
                Cause::ObjectMissing,
                format!("{} wants values of the {object}, which is not there.", seen.whose()),
                format!(
                    "Put the {object} beside the pod in {place}, or correct its name in {}.",
                    seen.field("env")
                ),
            )
        } else if message.starts_with("couldn't find key ") {
            (
                Cause::KeyMissing,
                format!("{} wants a value that is not there: {why}.", seen.whose()),
                format!("Add the key, or correct it in {} of {place}.", seen.field("env")),
            )
        } else {
            (
                Cause::ConfigRefused,
                format!("The {who} cannot be described to the runtime: {why}."),
                format!("Correct it in {place}."),
            )
        };
    Explanation::new(cause, sentence, next)
}

fn is_object(text: &str) -> bool {
    text.starts_with("configmap ") || text.starts_with("secret ")
}

/// What of a user that may not be root is wrong.
fn root(message: &str) -> &'static str {
    if message.contains("breaks non-root policy") {
        "is to be run as user 0 all the same"
    } else if message.contains("non-numeric user") {
        "names its user instead of numbering it, so that it may be root"
    } else if message.contains("invalid user id") {
        "asks for a user that cannot be"
    } else {
        "runs as root"
    }
}

/// What the runtime refuses to make.
fn created(case: &Case<'_>, seen: &Seen<'_>, message: &str) -> Explanation {
    let (who, place, why) = (seen.who(), case.place(), essence(message));
    let again = case.again();
    let (cause, sentence, next) = if message.contains("cannot load seccomp profile") {
        let path =
            message.split("seccomp profile \"").nth(1).and_then(|rest| rest.split('"').next());
        let path = path.unwrap_or_default();
        (
            Cause::SeccompMissing,
            format!("The seccomp profile {path} of {who} cannot be read"),
            format!(
                "Put the profile there, or correct {} in {place}.",
                seen.field("securityContext.seccompProfile")
            ),
        )
    } else if message.contains("apparmor") {
        (
            Cause::AppArmor,
            format!("The AppArmor profile of {who} cannot be had: {why}"),
            format!(
                "Load it on this machine (`aa-status` shows what there is), or take {} out of {place}.",
                seen.field("securityContext.appArmorProfile")
            ),
        )
    } else if ["no users found", "unable to find user", "no matching entries in passwd"]
        .iter()
        .any(|it| message.contains(it))
    {
        (
            Cause::UserUnknown,
            format!(
                "The image {} of {who} names a user that its /etc/passwd does not know",
                seen.image()
            ),
            format!(
                "Set {} to a number in {place}, or mend the image.",
                seen.field("securityContext.runAsUser")
            ),
        )
    } else {
        (
            Cause::CannotCreate,
            format!("The runtime cannot make {who}: {why}"),
            format!("Follow what the runtime says; all of it is in {}.", case.describe()),
        )
    };
    Explanation::new(cause, format!("{sentence}{again}."), next).with(Some(message.to_owned()))
}
