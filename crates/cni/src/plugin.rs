//! Plugins as processes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use oarsman_host::programs::{self, ProgramError, ProgramLimits, ProgramOutput};
use tokio::process::Command;
use tokio::time::Instant;

use crate::call::PluginCall;
use crate::client::ChainDeadline;
use crate::error::{FailedCall, PluginFailure};
use crate::refusal::{PluginRefusal, shown};
use crate::result;

/// So much of stderr is kept, from its beginning.
const MAX_ERRORS: usize = 4096;

/// What a plugin that has done what it was asked to has written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PluginAnswer {
    pub(crate) output: Vec<u8>,
    /// The beginning of what it wrote to stderr, for people.
    pub(crate) errors: String,
}

/// Executes a plugin, and gives its answer.
pub(crate) async fn execute(
    call: &PluginCall<'_>,
    plugins: &[PathBuf],
    has_namespace: bool,
    deadline: ChainDeadline,
) -> Result<PluginAnswer, FailedCall> {
    let name = &call.plugin.kind;
    let failed = |failure| FailedCall { operation: call.operation, plugin: name.clone(), failure };
    let path = find(plugins, name).await.ok_or_else(|| {
        failed(PluginFailure::Missing { plugin: name.clone(), directories: plugins.to_vec() })
    })?;
    let mut command = Command::new(&path);
    command.current_dir("/").env_clear().envs(call.environment(plugins, has_namespace));
    let left = deadline.until.saturating_duration_since(Instant::now());
    let limits = ProgramLimits { deadline: left, output: result::MAX_BYTES, errors: MAX_ERRORS };
    let done = programs::run(&mut command, &call.input(), &limits).await;
    let not_run = |error| not_run(&path, error, deadline.total);
    done.map_err(not_run).and_then(answer).map_err(failed)
}

/// The first regular file of that name.
async fn find(plugins: &[PathBuf], name: &str) -> Option<PathBuf> {
    for directory in plugins {
        let path = directory.join(name);
        if tokio::fs::metadata(&path).await.is_ok_and(|found| found.is_file()) {
            return Some(path);
        }
    }
    None
}

fn not_run(path: &Path, error: ProgramError, deadline: Duration) -> PluginFailure {
    match error {
        ProgramError::Start(source) => PluginFailure::Execute { path: path.to_owned(), source },
        ProgramError::Deadline { .. } => PluginFailure::Deadline { deadline },
        ProgramError::TooLong { limit } => PluginFailure::TooLong { limit },
        ProgramError::Pipe(source) => PluginFailure::Pipe(source),
    }
}

/// What a plugin that has ended has answered. One that answers with an error has failed, even if it ends as if it had not.
fn answer(done: ProgramOutput) -> Result<PluginAnswer, PluginFailure> {
    let ProgramOutput { status, output, errors } = done;
    let errors = text(&errors);
    match (status.success(), PluginRefusal::parse(&output)) {
        (true, None) => Ok(PluginAnswer { output, errors }),
        (true, Some(refusal)) if refusal.is_none() => Ok(PluginAnswer { output, errors }),
        (_, Some(refusal)) => Err(PluginFailure::Refused { refusal, errors }),
        (false, None) => Err(PluginFailure::Failed { status, output: text(&output), errors }),
    }
}

fn text(bytes: &[u8]) -> String {
    // Nothing that is cut off further down is decoded.
    let beginning = bytes.get(..MAX_ERRORS).unwrap_or(bytes);
    shown(&String::from_utf8_lossy(beginning))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    fn done(code: i32, output: &str, errors: &str) -> ProgramOutput {
        ProgramOutput {
            status: ExitStatus::from_raw(code << 8),
            output: output.as_bytes().to_vec(),
            errors: errors.as_bytes().to_vec(),
        }
    }

    #[test]
    fn what_a_plugin_leaves_is_an_answer_or_a_failure_with_all_it_said() {
        let rows = [
            (done(0, "{\"ips\":[]}", "log"), ""),
            (done(0, "", ""), ""),
            (done(0, "{\"code\":0,\"msg\":\"\"}", ""), ""),
            (
                done(1, "{\"code\":7,\"msg\":\"no subnet\"}", "at ipam\n"),
                "no subnet (code 7: invalid network configuration) (it wrote \"at ipam\")",
            ),
            (done(0, "{\"code\":100,\"msg\":\"no\"}", ""), "no (code 100)"),
            (
                done(2, "panic: nil", "goroutine 1\n\tmain.go"),
                "it ended with exit status: 2 and no error of CNI but \"panic: nil\" (it wrote \"goroutine 1  main.go\")",
            ),
            (done(3, "", ""), "it ended with exit status: 3 and no error of CNI"),
        ];
        for (left, wanted) in rows {
            let output = left.output.clone();
            match answer(left) {
                Ok(answer) => assert_eq!((answer.output, ""), (output, wanted)),
                Err(failure) => assert_eq!(failure.to_string(), wanted),
            }
        }
    }
}
