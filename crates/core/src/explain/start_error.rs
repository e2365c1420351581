//! Containers that the runtime made and could not start: the program, its directory or its mounts are wrong.

use super::Explanation;
use super::cause::ExplanationCause;
use super::container::ContainerSnapshot;
use super::container_failure::ContainerFailure;
use super::context::ExplainContext;

/// What to make of the runtime's words about a start that failed.
pub(super) fn explain(
    context: &ExplainContext<'_>,
    seen: &ContainerSnapshot<'_>,
    message: &str,
    tail: String,
) -> Explanation {
    let failure = ContainerFailure::new(context, seen, message, tail);
    let known = program(&failure).or_else(|| working_directory(&failure));
    let known = known.or_else(|| mount_kind(&failure));
    known.unwrap_or_else(|| failure.quote(ExplanationCause::CannotStart, "start"))
}

/// `exec: "PROGRAM": WHY` of the runtime, `exec PROGRAM: WHY` of its last step in the container's own name.
fn program(it: &ContainerFailure<'_>) -> Option<Explanation> {
    let rest = it.why.strip_prefix("exec")?;
    let program = match rest.strip_prefix(": ") {
        Some(quoted) => quoted.split('"').nth(1).unwrap_or_default(),
        None => rest.strip_prefix(' ')?.split(": ").next().unwrap_or_default(),
    };
    let (label, image) = (it.label(), it.seen.image());
    let (cause, sentence) = if it.says(&["permission denied"]) {
        let sentence_text =
            format!("The file {program} of {label} (image {image}) may not be executed");
        (ExplanationCause::CommandNotExecutable, sentence_text)
    } else if it.says(&["exec format error"]) {
        let why = "its processor is another, or it is a script without a #! line";
        let sentence_text =
            format!("The file {program} of {label} is no program for this machine: {why}");
        (ExplanationCause::CommandForeign, sentence_text)
    } else {
        let sentence_text = format!("The program {program} of {label} is not in its image {image}");
        (ExplanationCause::CommandNotFound, sentence_text)
    };
    Some(it.correct(cause, &sentence, "command"))
}

fn working_directory(it: &ContainerFailure<'_>) -> Option<Explanation> {
    let directory = it.seen.spec.working_dir.as_deref().filter(|path| !path.is_empty())?;
    let about = it.why.starts_with("mkdir ") || it.why.starts_with("chdir ");
    if !about || !it.why.contains(directory) {
        return None;
    }
    let (label, why) = (it.label(), &it.why);
    let sentence = format!("The working directory {directory} of {label} cannot be used: {why}");
    Some(it.correct(ExplanationCause::WorkingDirectory, &sentence, "workingDir"))
}

fn mount_kind(it: &ContainerFailure<'_>) -> Option<Explanation> {
    let mount = it.why.strip_prefix("error mounting ")?;
    if !it.says(&["not a directory"]) {
        return None;
    }
    // Without flags and file descriptors.
    let mount = mount.split(": ").next()?.replace(" to rootfs at ", " at ");
    let sentence = format!(
        "A file is mounted onto a directory of {}, or the other way round: {mount}",
        it.label()
    );
    Some(it.correct(ExplanationCause::MountKind, &sentence, "volumeMounts"))
}
