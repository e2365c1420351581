//! Runs blocking work on tokio's blocking threads. A call that hangs, such as on a mount of a server that is gone, holds its thread until the
//! kernel lets go.

use tokio::task::JoinError;

/// Runs the work on a blocking thread; `panicked` makes the error of work that panicked.
///
/// # Errors
/// Those of the work.
pub async fn run<T, E>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
    panicked: impl FnOnce(JoinError) -> E,
) -> Result<T, E>
where
    T: Send + 'static,
    E: Send + 'static,
{
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(panicked(error)))
}
