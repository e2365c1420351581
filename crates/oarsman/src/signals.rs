//! Being told to end.

use tokio::signal::unix::{SignalKind, signal};

/// Waits until somebody asks the program to end.
pub(crate) async fn told_to_end() -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
