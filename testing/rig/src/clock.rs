//! Real time for the rig, whose parts are real programs.

use std::time::{Duration, Instant};

use anyhow::Result;

/// How often a condition without an event is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The current time.
#[expect(clippy::disallowed_methods, reason = "real programs live in real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Polls until it is `done` or the time is over, and returns which.
#[expect(clippy::disallowed_methods, reason = "used where no runtime turns, as in a drop")]
pub fn wait_until(max_wait: Duration, mut done: impl FnMut() -> bool) -> bool {
    let start = now();
    while !done() {
        if start.elapsed() > max_wait {
            return false;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    true
}

/// Polls until it is done, fails, or the time is over, and returns which.
pub(crate) async fn wait_until_async<F>(
    max_wait: Duration,
    mut done: impl FnMut() -> F,
) -> Result<bool>
where
    F: Future<Output = Result<bool>>,
{
    let start = now();
    while !done().await? {
        if start.elapsed() > max_wait {
            return Ok(false);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(true)
}
