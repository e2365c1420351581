//! Executing credential provider programs.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use oarsman_core::image::providers::CredentialProvider;
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

/// Starts a program, writes the request to it and reads its answer. One that is not waited for any more is killed.
pub(super) async fn exec(
    directory: &Path,
    provider: &CredentialProvider,
    request: &str,
) -> Result<Vec<u8>, CredentialError> {
    let path = directory.join(&provider.name);
    let environment = provider.env.iter().map(|(name, value)| (name, value));
    let child = Command::new(&path)
        .args(&provider.args)
        .envs(environment)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(failed("start", &path))?;
    match timeout(TIMEOUT, exchange(child, request)).await {
        Ok(answer) => answer.map_err(failed("ask for credentials", &path)),
        Err(_) => {
            let why = format!("no answer within {TIMEOUT:?}");
            Err(failed("ask for credentials", &path)(why))
        }
    }
}

async fn exchange(mut child: Child, request: &str) -> io::Result<Vec<u8>> {
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
        tokio::join!(read(output, STDOUT_LIMIT), read(errors, STDERR_LIMIT), ask);
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

/// So much at most; the rest stays unread.
async fn read(from: Option<impl AsyncRead + Unpin>, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        from.take(limit).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}
