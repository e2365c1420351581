//! Waits with a deadline that report, when they fail, what was seen last.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::{Instant, sleep};

const POLL_INTERVAL: Duration = Duration::from_millis(30);

/// Looks until what is seen `is_met`, and returns it. A look that fails is tried again: containerd may be away for a moment.
///
/// # Errors
/// When the time is over: with what was waited for, and what was seen, or failed, last.
pub async fn eventually<T: Debug>(
    max_wait: Duration,
    what: &str,
    mut look: impl AsyncFnMut() -> Result<T>,
    mut is_met: impl FnMut(&T) -> bool,
) -> Result<T> {
    let deadline = Instant::now() + max_wait;
    loop {
        let last = match look().await {
            Ok(seen) if is_met(&seen) => return Ok(seen),
            Ok(seen) => format!("{seen:#?}"),
            Err(error) => format!("{error:#}"),
        };
        if Instant::now() > deadline {
            bail!("not after {max_wait:?}: {what}; last seen: {last}");
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Looks until the time is over, and fails as soon as what is seen is not as expected.
///
/// # Errors
/// With what was seen then, or when a look fails.
pub async fn always<T: Debug>(
    time: Duration,
    what: &str,
    mut look: impl AsyncFnMut() -> Result<T>,
    mut is_met: impl FnMut(&T) -> bool,
) -> Result<()> {
    let start = Instant::now();
    while start.elapsed() < time {
        let seen = look().await?;
        if !is_met(&seen) {
            bail!("not any more after {:?}: {what}; seen: {seen:#?}", start.elapsed());
        }
        sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use anyhow::anyhow;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_seen_in_time_is_returned_and_a_failed_look_is_retried() {
        let looks = Cell::new(0);
        let look = async || {
            looks.set(looks.get() + 1);
            if looks.get() == 1 { Err(anyhow!("away")) } else { Ok(looks.get()) }
        };
        let seen = eventually(Duration::from_secs(1), "three", look, |seen| *seen == 3).await;
        assert_eq!(seen.unwrap(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_ends_says_what_it_was_for_and_what_was_seen() {
        let max_wait = Duration::from_secs(1);
        let error = eventually(max_wait, "rain", async || Ok("sun"), |_| false).await.unwrap_err();
        assert_eq!(error.to_string(), "not after 1s: rain; last seen: \"sun\"");
        let look = async || Err::<(), _>(anyhow!("fog"));
        let error = eventually(max_wait, "rain", look, |()| true).await.unwrap_err();
        assert_eq!(error.to_string(), "not after 1s: rain; last seen: fog");
    }

    #[tokio::test(start_paused = true)]
    async fn what_changes_fails_a_wait_for_it_to_stay() {
        let looks = Cell::new(0);
        let look = async || {
            looks.set(looks.get() + 1);
            Ok(looks.get())
        };
        let time = Duration::from_secs(1);
        assert!(always(time, "few", look, |seen| *seen < 5).await.is_err());
        assert_eq!(looks.get(), 5);
        assert!(always(time, "some", async || Ok(1), |seen| *seen == 1).await.is_ok());
    }
}
