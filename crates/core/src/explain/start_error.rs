//! Containers that the runtime made and could not start: the program, its directory or its mounts are wrong.

use super::Explanation;
use super::case::Case;
use super::cause::Cause;
use super::refusal::Refusal;
use super::seen::Seen;

/// What to make of the runtime's words about a start that failed.
pub(super) fn explain(
    case: &Case<'_>,
    seen: &Seen<'_>,
    message: &str,
    tail: String,
) -> Explanation {
    let refusal = Refusal::new(case, seen, message, tail);
    let known = program(&refusal).or_else(|| working_directory(&refusal));
    let known = known.or_else(|| mount_kind(&refusal));
    known.unwrap_or_else(|| refusal.quote(Cause::CannotStart, "start"))
}

/// `exec: "PROGRAM": WHY` of the runtime, `exec PROGRAM: WHY` of its last step in the container's own name.
fn program(it: &Refusal<'_>) -> Option<Explanation> {
    let rest = it.why.strip_prefix("exec")?;
    let program = match rest.strip_prefix(": ") {
        Some(quoted) => quoted.split('"').nth(1).unwrap_or_default(),
        None => rest.strip_prefix(' ')?.split(": ").next().unwrap_or_default(),
    };
    let (who, image) = (it.who(), it.seen.image());
    let (cause, sentence) = if it.says(&["permission denied"]) {
        let said = format!("The file {program} of {who} (image {image}) may not be executed");
        (Cause::CommandNotExecutable, said)
    } else if it.says(&["exec format error"]) {
        let why = "its processor is another, or it is a script without a #! line";
        let said = format!("The file {program} of {who} is no program for this machine: {why}");
        (Cause::CommandForeign, said)
    } else {
        let said = format!("The program {program} of {who} is not in its image {image}");
        (Cause::CommandNotFound, said)
    };
    Some(it.correct(cause, &sentence, "command"))
}

fn working_directory(it: &Refusal<'_>) -> Option<Explanation> {
    let directory = it.seen.spec.working_dir.as_deref().filter(|path| !path.is_empty())?;
    let about = it.why.starts_with("mkdir ") || it.why.starts_with("chdir ");
    if !about || !it.why.contains(directory) {
        return None;
    }
    let (who, why) = (it.who(), &it.why);
    let sentence = format!("The working directory {directory} of {who} cannot be used: {why}");
    Some(it.correct(Cause::WorkingDirectory, &sentence, "workingDir"))
}

fn mount_kind(it: &Refusal<'_>) -> Option<Explanation> {
    let mount = it.why.strip_prefix("error mounting ")?;
    if !it.says(&["not a directory"]) {
        return None;
    }
    // Without flags and file descriptors.
    let mount = mount.split(": ").next()?.replace(" to rootfs at ", " at ");
    let sentence = format!(
        "A file is mounted onto a directory of {}, or the other way round: {mount}",
        it.who()
    );
    Some(it.correct(Cause::MountKind, &sentence, "volumeMounts"))
}
