//! Causes of containers that end, or cannot be started.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::Result;
use oarsman_core::explain::ExplanationCause;
use oarsman_e2e::manifest::{ContainerManifest, image, script_container};
use oarsman_rig::images::BUSYBOX;
use serde_json::json;

use super::{CauseRow, RowContext, forever, of, row, shell};

/// Writes a file that is executable and no program.
pub(super) fn prepare(scratch: &Path) -> Result<()> {
    let path = scratch.join("noise");
    fs::write(&path, "neither a program nor a script\n")?;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
}

pub(super) fn rows(world: &RowContext) -> Vec<CauseRow> {
    let (again, far) = ("; the next try is in N seconds", "N times so far");
    let read = "Read why: `oarsman logs -c main --previous {pod}`.";
    let command = "Correct spec.containers[0].command in {place}.";
    let runs = |program: &str| image("main", BUSYBOX).with("command", json!([program]));
    let ends = |name, container: ContainerManifest, cause, how: &str| {
        let sentence = format!("Container main (image {{script}}) ended with {how}, {far}{again}.");
        row(name, of(name, container), cause, &sentence, read)
    };
    let shells = |name, script: &str, cause, how: &str| {
        let sentence =
            format!("Container main (image {{busybox}}) ended with {how}, {far}{again}.");
        row(name, of(name, shell(script)), cause, &sentence, read)
    };
    vec![
        ends(
            "exit-1",
            script_container("main", &["exit:1"]),
            ExplanationCause::Crashes,
            "exit code 1 (an error of the program itself)",
        ),
        ends(
            "exit-2",
            script_container("main", &["nonsense"]),
            ExplanationCause::Crashes,
            "exit code 2 (often wrong arguments or a shell's syntax error)",
        ),
        ends(
            "exit-139",
            script_container("main", &["exit:139"]),
            ExplanationCause::CrashesBySignal,
            "exit code 139 (SIGSEGV: the program touched memory that is not its own)",
        ),
        ends(
            "exit-143",
            script_container("main", &["exit:143"]),
            ExplanationCause::CrashesBySignal,
            "exit code 143 (SIGTERM: it was asked to end)",
        ),
        shells(
            "exit-127",
            "no-such-command",
            ExplanationCause::CommandNotFound,
            "exit code 127 (a command that was not found)",
        ),
        shells(
            "exit-126",
            "/etc/passwd",
            ExplanationCause::CommandNotExecutable,
            "exit code 126 (a command that may not be executed)",
        ),
        row(
            "exit-137",
            of("exit-137", script_container("main", &["exit:137"])),
            ExplanationCause::Killed,
            &format!(
                "Container main was killed (SIGKILL, exit code 137), and not for its own memory limit: by somebody on this machine, or by the kernel because the whole machine ran out of memory, {far}{again}."
            ),
            "Look for its end with `dmesg | grep -i -e oom -e killed`, and at what it said: `oarsman logs -c main --previous {pod}`.",
        ),
        row(
            "hungry",
            of(
                "hungry",
                script_container("main", &["alloc:200Mi", "forever"])
                    .with("resources", json!({ "limits": { "memory": "64Mi" } })),
            ),
            ExplanationCause::OutOfMemory,
            &format!(
                "Container main (image {{script}}) used more memory than its limit of 64Mi and was killed (OOMKilled, exit code 137), {far}{again}."
            ),
            "Raise spec.containers[0].resources.limits.memory in {place}, or have it use less.",
        ),
        row(
            "short-lived",
            of("short-lived", script_container("main", &["exit:0"])),
            ExplanationCause::EndsByItself,
            &format!(
                "Container main ends by itself with exit code 0 (success), and its restart policy Always starts it again, {far}{again}."
            ),
            "If it is to run once, set spec.restartPolicy to Never or OnFailure in {place}; if it is to stay, keep its program in the foreground.",
        ),
        row(
            "no-program",
            of("no-program", runs("serve")),
            ExplanationCause::CommandNotFound,
            &format!("The program serve of container main is not in its image {{busybox}}{again}."),
            command,
        ),
        row(
            "no-file",
            of("no-file", runs("/no/such")),
            ExplanationCause::CommandNotFound,
            &format!(
                "The program /no/such of container main is not in its image {{busybox}}{again}."
            ),
            command,
        ),
        row(
            "no-permission",
            of("no-permission", runs("/etc/passwd")),
            ExplanationCause::CommandNotExecutable,
            &format!(
                "The file /etc/passwd of container main (image {{busybox}}) may not be executed{again}."
            ),
            command,
        ),
        row(
            "noise",
            of(
                "noise",
                runs("/s/noise")
                    .mount("s", "/s")
                    .with("terminationMessagePolicy", "FallbackToLogsOnError".into()),
            )
            .host_path("s", &world.scratch),
            ExplanationCause::CommandForeign,
            &format!(
                "The file /s/noise of container main is no program for this machine: its processor is another, or it is a script without a #! line{again}."
            ),
            command,
        ),
        row(
            "nowhere",
            of("nowhere", forever().with("workingDir", "/etc/passwd".into())),
            ExplanationCause::WorkingDirectory,
            &format!(
                "The working directory /etc/passwd of container main cannot be used: mkdir /etc/passwd: not a directory{again}."
            ),
            "Correct spec.containers[0].workingDir in {place}.",
        ),
        row(
            "misfit",
            of("misfit", forever().mount("v", "/tmp")).host_path("v", "/etc/passwd"),
            ExplanationCause::MountKind,
            &format!(
                "A file is mounted onto a directory of container main, or the other way round: \"/etc/passwd\" at \"/tmp\"{again}."
            ),
            "Correct spec.containers[0].volumeMounts in {place}.",
        ),
        hook(
            "hook-fails",
            &json!({ "exec": { "command": ["sh", "-c", "echo no luck; exit 4"] } }),
            ExplanationCause::PostStartFailed,
            &format!(
                "Container main was started and stopped again because its postStart hook failed{again}."
            ),
            "Mend the hook, spec.containers[0].lifecycle.postStart in {place}; `oarsman logs -c main --previous {pod}` shows what the container said meanwhile.",
        ),
        hook(
            "hook-runs",
            &json!({ "exec": { "command": ["sleep", "1000"] } }),
            ExplanationCause::PostStartRuns,
            "Container main runs, and its postStart hook does too, for N seconds now: nothing after it is started before the hook has ended.",
            "Wait, or see what the hook waits for: spec.containers[0].lifecycle.postStart in {place}.",
        ),
    ]
}

/// A container with a postStart hook.
fn hook(
    name: &'static str,
    hook: &serde_json::Value,
    cause: ExplanationCause,
    sentence: &str,
    next: &str,
) -> CauseRow {
    let main = shell("trap 'exit 0' TERM; sleep 1000 & wait");
    let main = main.with("lifecycle", json!({ "postStart": hook }));
    row(name, of(name, main), cause, sentence, next)
}
