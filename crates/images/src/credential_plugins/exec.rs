//! Executing credential provider programs.

use std::path::Path;
use std::time::Duration;

use oarsman_core::image::providers::CredentialProvider;
use oarsman_host::programs::{self, ProgramError, ProgramLimits};
use tokio::process::Command;

use super::{CredentialError, failed};

#[cfg(test)]
mod tests;

/// No program is waited for any longer.
const TIMEOUT: Duration = Duration::from_secs(60);
/// No program has more to say.
const STDOUT_LIMIT: usize = 1 << 20;
const STDERR_LIMIT: usize = 4 << 10;

/// The same with the deadline of every program.
pub(super) async fn exec(
    directory: &Path,
    provider: &CredentialProvider,
    request: &str,
) -> Result<Vec<u8>, CredentialError> {
    exec_within(TIMEOUT, directory, provider, request).await
}

/// Starts a program, writes the request to it and reads its answer. One that is not waited for any more is killed, with the programs that it has
/// started.
async fn exec_within(
    deadline: Duration,
    directory: &Path,
    provider: &CredentialProvider,
    request: &str,
) -> Result<Vec<u8>, CredentialError> {
    let path = directory.join(&provider.name);
    let environment = provider.env.iter().map(|(name, value)| (name, value));
    let mut command = Command::new(&path);
    command.args(&provider.args).envs(environment);
    let limits = ProgramLimits { deadline, output: STDOUT_LIMIT, errors: STDERR_LIMIT };
    let done = match programs::run(&mut command, request.as_bytes(), &limits).await {
        Err(ProgramError::Start(error)) => return Err(failed("start", &path)(error)),
        done => done.map_err(failed("ask for credentials", &path))?,
    };
    if !done.status.success() {
        let why = format!("{}: {}", done.status, String::from_utf8_lossy(&done.errors).trim());
        return Err(failed("ask for credentials", &path)(why));
    }
    Ok(done.output)
}
