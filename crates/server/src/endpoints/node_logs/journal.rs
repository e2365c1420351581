//! The logs of services: journalctl's output, or the file of a service that does not log to the journal.

use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use axum::body::Bytes;
use oarsman_core::node_log_query::JournalOptions;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::NodeLogState;

/// For a whole query.
const LONGEST_QUERY: Duration = Duration::from_secs(30);
/// Of journalctl's output; it can have many times as much.
const MAX_OUTPUT_BYTES: usize = 64 << 20;
/// Of the list of all units.
const MAX_UNITS_BYTES: usize = 4 << 20;
const PIECE_BYTES: usize = 64 * 1024;
/// Where journalctl is; nothing else of the agent's environment is passed on.
const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The program that reads the journal.
#[derive(Clone, Debug)]
pub(super) struct Journal {
    pub(super) program: PathBuf,
}

type PieceSender = mpsc::Sender<io::Result<Bytes>>;

impl Journal {
    pub(super) fn of_system() -> Self {
        Self { program: "journalctl".into() }
    }

    /// Sends the logs of these services, one after the other; what goes wrong is a line of the answer, since its head was sent.
    pub(super) async fn send(
        &self,
        state: &NodeLogState,
        services: Vec<String>,
        options: JournalOptions,
        sender: &PieceSender,
    ) {
        let deadline = Instant::now() + LONGEST_QUERY;
        let sent = async {
            let units = self.units().await;
            let (native, files): (Vec<String>, Vec<String>) = services
                .into_iter()
                .partition(|service| units.contains(&format!("{service}.service")));
            if !native.is_empty() {
                self.send_journal(&options.journalctl_arguments(&native), sender).await;
            }
            if files.is_empty() {
                return;
            }
            if options != JournalOptions::default() {
                let files = files.join(" ");
                let said = format!(
                    "\noptions present and query resolved to log files for [{files}]\ntry without specifying options\n"
                );
                return tell(sender, said).await;
            }
            for service in files {
                send_file(state, &service, sender).await;
            }
        };
        if timeout_at(deadline, sent).await.is_err() {
            let seconds = LONGEST_QUERY.as_secs();
            // Nothing waits for a client that takes nothing.
            sender.try_send(Ok(format!("\nended after {seconds} s\n").into())).ok();
        }
    }

    /// Every unit that the journal has; none without a journal.
    async fn units(&self) -> Vec<String> {
        let Ok(mut child) = self.start(&["--field=_SYSTEMD_UNIT".to_owned()]) else {
            return Vec::new();
        };
        let mut text = Vec::new();
        let limit = u64::try_from(MAX_UNITS_BYTES).unwrap_or(u64::MAX);
        if let (Some(output), Some(errors)) = (child.stdout.take(), child.stderr.take()) {
            let read = output.take(limit);
            tokio::pin!(read);
            drop(tokio::join!(read.read_to_end(&mut text), first_bytes(errors)));
        }
        String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
    }

    async fn send_journal(&self, arguments: &[String], sender: &PieceSender) {
        let mut child = match self.start(arguments) {
            Ok(child) => child,
            Err(error) => {
                return tell(sender, format!("\njournalctl not started: {error}\n")).await;
            }
        };
        let (Some(output), Some(errors)) = (child.stdout.take(), child.stderr.take()) else {
            return;
        };
        let mut left = MAX_OUTPUT_BYTES;
        // Both at once: it waits for a reader of either.
        let sent = send_output(output, &mut left, sender);
        let ((), said) = tokio::join!(sent, first_bytes(errors));
        if !said.is_empty() {
            tell(sender, String::from_utf8_lossy(&said).into_owned()).await;
        }
    }

    /// Never by a shell. It is killed when it is dropped.
    fn start(&self, arguments: &[String]) -> io::Result<Child> {
        Command::new(&self.program)
            .args(arguments)
            .env_clear()
            .envs([("PATH", SEARCH_PATH), ("LC_ALL", "C")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
    }
}

/// The beginning of what is wrong with a query; the rest is read and dropped.
async fn first_bytes(mut errors: impl AsyncRead + Unpin) -> Vec<u8> {
    let mut said = Vec::new();
    (&mut errors).take(4096).read_to_end(&mut said).await.ok();
    tokio::io::copy(&mut errors, &mut tokio::io::sink()).await.ok();
    said
}

async fn send_output(mut output: impl AsyncRead + Unpin, left: &mut usize, sender: &PieceSender) {
    loop {
        let mut piece = vec![0; PIECE_BYTES.min(*left)];
        let read = match output.read(&mut piece).await {
            Ok(0) | Err(_) => break,
            Ok(read) => read,
        };
        piece.truncate(read);
        *left -= read;
        if sender.send(Ok(piece.into())).await.is_err() {
            return;
        }
    }
    if *left == 0 {
        tell(sender, format!("\nended after {MAX_OUTPUT_BYTES} bytes\n")).await;
    }
}

async fn send_file(state: &NodeLogState, service: &str, sender: &PieceSender) {
    let sent = match state.open_file_of(service).await {
        Ok(Some(reader)) => reader.send(&state.reads, sender).await,
        Ok(None) => return tell(sender, format!("\nlog not found for {service}\n")).await,
        Err(error) => Err(error),
    };
    if let Err(error) = sent {
        tell(sender, format!("\nerror getting log for {service}: {error}\n")).await;
    }
}

async fn tell(sender: &PieceSender, said: String) {
    sender.send(Ok(said.into())).await.ok();
}
