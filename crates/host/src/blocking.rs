//! Work that blocks, on threads for that. A call that hangs, as on a mount that is gone, costs its thread until the kernel lets go.

use tokio::task::JoinError;

/// Does the work on a thread of its own; `panicked` makes the error of work that panicked.
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
