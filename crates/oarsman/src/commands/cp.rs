//! `oarsman cp`: copies files to a container and from one, as an archive that the container's `tar` packs or unpacks.

mod archive;
mod last_bytes;
mod pipes;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use oarsman_streaming::command_client::{self, CommandStreams};
use tokio::io::AsyncWriteExt;

use super::output::is_broken_pipe;
use super::remote_command::CommandTarget;
use super::{AgentSelector, remote_command};
use crate::local_api::CommandRequest;
use crate::threads;
use last_bytes::LastBytes;
use pipes::pipe;

/// From where to where.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  oarsman cp web:/etc/app.conf .          from a container
  oarsman cp dump.sql db:/tmp/            to a container
  oarsman cp -c proxy web:/logs logs      a directory of one of several containers")]
pub(crate) struct Flags {
    /// A path here, or POD:PATH.
    from: String,
    /// A path here, or POD:PATH.
    to: String,
    /// The container.
    #[arg(long, short)]
    container: Option<String>,
    #[command(flatten)]
    agent: AgentSelector,
}

/// A side of a copy.
#[derive(Debug, PartialEq, Eq)]
enum CopyPlace {
    Here(PathBuf),
    Pod { pod: String, path: String },
}

impl CopyPlace {
    /// What has a colon before any slash but that of a namespace is in a pod.
    fn parse(text: &str) -> Self {
        match text.split_once(':') {
            Some((pod, path))
                if !pod.is_empty() && !pod.starts_with(['.', '/']) && !path.is_empty() =>
            {
                Self::Pod { pod: pod.to_owned(), path: path.to_owned() }
            }
            _ => Self::Here(text.into()),
        }
    }
}

/// Copies.
pub(crate) fn run(flags: &Flags) -> Result<()> {
    let container = flags.container.as_deref();
    threads::block_on(async {
        match (CopyPlace::parse(&flags.from), CopyPlace::parse(&flags.to)) {
            (CopyPlace::Pod { pod, path }, CopyPlace::Here(to)) => {
                let target = remote_command::find_target(&flags.agent, &pod, container).await?;
                from_container(&target, &path, &to).await
            }
            (CopyPlace::Here(from), CopyPlace::Pod { pod, path }) => {
                let target = remote_command::find_target(&flags.agent, &pod, container).await?;
                to_container(&target, &from, &path).await
            }
            _ => bail!("one of the two must be POD:PATH, and the other a path here"),
        }
    })
}

async fn from_container(target: &CommandTarget, path: &str, to: &Path) -> Result<()> {
    let (directory, name) = split_path(path)?;
    let to = if to.is_dir() { to.join(&name) } else { to.to_owned() };
    let words = ["tar", "cf", "-", "-C", &directory, "--", &name].map(str::to_owned);
    let (writer, reader) = pipe()?;
    let unpacking = tokio::task::spawn_blocking(move || archive::unpack(reader, &name, &to));
    let packed = execute(target, words.to_vec(), tokio::io::empty(), writer).await;
    let unpacked = unpacking.await.context("the archive was not read")?;
    let skipped = first_cause(packed, unpacked)?;
    skipped.tell(path)
}

async fn to_container(target: &CommandTarget, from: &Path, path: &str) -> Result<()> {
    let own_name = from.file_name().and_then(|name| name.to_str());
    let own_name = own_name.with_context(|| format!("{} has no name", from.display()))?;
    std::fs::symlink_metadata(from).with_context(|| from.display().to_string())?;
    let (directory, name) = if path.ends_with('/') || is_directory(target, path).await? {
        (path.to_owned(), own_name.to_owned())
    } else {
        split_path(path)?
    };
    let words = ["tar", "xmf", "-", "-C", &directory].map(str::to_owned);
    let (reader, writer) = pipe()?;
    let from = from.to_owned();
    let packing = tokio::task::spawn_blocking(move || archive::pack(writer, &from, &name));
    let unpacked = execute(target, words.to_vec(), reader, tokio::io::sink()).await;
    let packed = packing.await.context("the archive was not written")?;
    first_cause(packed, unpacked)
}

/// The failure that comes first; but where one side has failed because the other has ended, that of the other.
fn first_cause<T>(first: Result<()>, second: Result<T>) -> Result<T> {
    match (first, second) {
        (Err(first), Err(second)) if is_broken_pipe(&first) => Err(second),
        (first, second) => first.and(second),
    }
}

async fn is_directory(target: &CommandTarget, path: &str) -> Result<bool> {
    let words = ["test", "-d", path].map(str::to_owned).to_vec();
    let request = CommandRequest { command: words, stdin: false, tty: false };
    let connection = target.client.command(&target.pod, &target.container, &request).await?;
    let streams = CommandStreams {
        stdin: None::<tokio::io::Empty>,
        stdout: tokio::io::sink(),
        stderr: tokio::io::sink(),
        sizes: None,
    };
    Ok(command_client::run(connection.stream, streams).await? == 0)
}

async fn execute(
    target: &CommandTarget,
    command: Vec<String>,
    stdin: impl tokio::io::AsyncRead + Unpin,
    mut stdout: impl tokio::io::AsyncWrite + Unpin,
) -> Result<()> {
    let request = CommandRequest { command, stdin: true, tty: false };
    let connection = target.client.command(&target.pod, &target.container, &request).await?;
    let mut errors = LastBytes::default();
    let streams = CommandStreams {
        stdin: Some(stdin),
        stdout: &mut stdout,
        stderr: &mut errors,
        sizes: None,
    };
    let code = command_client::run(connection.stream, streams).await?;
    stdout.shutdown().await?;
    ensure!(code == 0, "tar in the container failed with exit code {code}: {}", errors.text());
    Ok(())
}

/// The directory and the last name of a path in a container.
fn split_path(path: &str) -> Result<(String, String)> {
    let trimmed = path.trim_end_matches('/');
    let (directory, name) = trimmed.rsplit_once('/').unwrap_or((".", trimmed));
    ensure!(!matches!(name, "" | "." | ".."), "{path:?} names no file or directory");
    let directory = if directory.is_empty() { "/" } else { directory };
    Ok((directory.to_owned(), name.to_owned()))
}
