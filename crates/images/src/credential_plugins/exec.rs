//! Executing credential provider programs.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use oarsman_core::image::providers::CredentialProvider;
use oarsman_host::processes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::{CredentialError, failed};

#[cfg(test)]
mod tests;

/// No program is waited for any longer.
const TIMEOUT: Duration = Duration::from_secs(60);
/// No program has more to say.
const STDOUT_LIMIT: u64 = 1 << 20;
const STDERR_LIMIT: u64 = 4 << 10;

/// The same with the deadline of every program.
pub(super) async fn exec(
    directory: &Path,
    provider: &CredentialProvider,
    request: &str,
) -> Result<Vec<u8>, CredentialError> {
    exec_within(TIMEOUT, directory, provider, request).await
}

/// Starts a program, writes the request to it and reads its answer. One that is not waited for any more is killed.
async fn exec_within(
    deadline: Duration,
    directory: &Path,
    provider: &CredentialProvider,
    request: &str,
) -> Result<Vec<u8>, CredentialError> {
    let path = directory.join(&provider.name);
    let environment = provider.env.iter().map(|(name, value)| (name, value));
    let mut child = Command::new(&path)
        .args(&provider.args)
        .envs(environment)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .process_group(0)
        .spawn()
        .map_err(failed("start", &path))?;
    match timeout(deadline, exchange(&mut child, request)).await {
        Ok(answer) => answer.map_err(failed("ask for credentials", &path)),
        Err(_) => {
            // The programs that it has started go with it.
            child.id().into_iter().for_each(processes::kill_group);
            let why = format!("no answer within {deadline:?}");
            Err(failed("ask for credentials", &path)(why))
        }
    }
}

async fn exchange(child: &mut Child, request: &str) -> io::Result<Vec<u8>> {
    let (mut input, output, errors) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let ask = async {
        if let Some(input) = &mut input {
            // One that needs no request may be gone before it has read it.
            input.write_all(request.as_bytes()).await.ok();
        }
        drop(input);
    };
    let (answer, complaint, ()) =
        tokio::join!(read(output, STDOUT_LIMIT), read_all(errors, STDERR_LIMIT), ask);
    let answer = answer?;
    if answer.len() as u64 == STDOUT_LIMIT {
        // It is killed with the handle.
        return Err(io::Error::other(format!("its answer is longer than {STDOUT_LIMIT} bytes")));
    }
    let status = child.wait().await?;
    if !status.success() {
        let complaint = complaint.unwrap_or_default();
        let complaint = String::from_utf8_lossy(&complaint);
        return Err(io::Error::other(format!("{status}: {}", complaint.trim())));
    }
    Ok(answer)
}

/// So much at most. The rest is read and dropped: a program that logs much must not die of a pipe that is closed.
async fn read_all(from: Option<impl AsyncRead + Unpin>, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        (&mut from).take(limit).read_to_end(&mut bytes).await?;
        tokio::io::copy(&mut from, &mut tokio::io::sink()).await?;
    }
    Ok(bytes)
}

/// So much at most; the rest stays unread.
async fn read(from: Option<impl AsyncRead + Unpin>, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        from.take(limit).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}
