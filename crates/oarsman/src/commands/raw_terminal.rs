//! The terminal of a command that passes on what is typed: characters come one by one, and the program at the other end echoes them.

use std::io;

use anyhow::{Context, Result};
use oarsman_streaming::command_client::TerminalSize;
use rustix::termios::{self, OptionalActions, Termios};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// Sizes that may wait to be sent.
const SIZES: usize = 4;

/// The terminal on stdin, raw until this is dropped.
pub(super) struct RawTerminal {
    before: Termios,
}

impl RawTerminal {
    /// Makes it raw.
    pub(super) fn enter() -> Result<Self> {
        let before = termios::tcgetattr(io::stdin())
            .context("the command has a terminal, and there is none on the input")?;
        let mut raw = before.clone();
        raw.make_raw();
        termios::tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        Ok(Self { before })
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // A terminal that is gone needs no settings.
        termios::tcsetattr(io::stdin(), OptionalActions::Now, &self.before).ok();
    }
}

/// The size of the terminal now, and whenever it changes.
pub(super) fn sizes() -> Result<mpsc::Receiver<TerminalSize>> {
    let (sender, receiver) = mpsc::channel(SIZES);
    let changes = signal(SignalKind::window_change()).context("cannot listen to signals")?;
    tokio::spawn(send_sizes(sender, changes));
    Ok(receiver)
}

/// Ends with its receiver.
async fn send_sizes(sender: mpsc::Sender<TerminalSize>, mut changes: Signal) {
    loop {
        if let Ok(size) = termios::tcgetwinsize(io::stdin()) {
            let size = TerminalSize { columns: size.ws_col, rows: size.ws_row };
            if sender.send(size).await.is_err() {
                return;
            }
        }
        if changes.recv().await.is_none() {
            return;
        }
    }
}
