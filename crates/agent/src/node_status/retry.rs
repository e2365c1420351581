//! The delay between tries of a failing call.

use std::time::Duration;

use oarsman_core::backoff::{Backoff, Failures};
use tokio::time::{Instant, sleep_until};

const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(7));

/// Paces the tries of one call.
#[derive(Debug)]
pub(super) struct RetryTimer {
    failures: Failures,
    began: Instant,
}

impl RetryTimer {
    /// The first try starts now.
    pub(super) fn start() -> Self {
        Self { failures: Failures::new(BACKOFF), began: Instant::now() }
    }

    /// The number of the current one, from 1.
    pub(super) fn attempt(&self) -> u32 {
        self.failures.count().saturating_add(1)
    }

    /// Waits until the next try may start. The delay counts from the start of the last one: a call that hung has waited already.
    pub(super) async fn wait(&mut self) {
        sleep_until(self.began + self.failures.next_wait()).await;
        self.began = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_double_up_to_seven_seconds() {
        let (began, mut retry) = (Instant::now(), RetryTimer::start());
        let mut waits = Vec::new();
        for _ in 0..9 {
            let before = began.elapsed();
            retry.wait().await;
            waits.push((began.elapsed() - before).as_millis());
        }
        assert_eq!(waits, [100, 200, 400, 800, 1600, 3200, 6400, 7000, 7000]);
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_try_that_took_longer_than_the_wait_the_next_begins_at_once() {
        let mut retry = RetryTimer::start();
        tokio::time::sleep(Duration::from_secs(10)).await;
        let before = Instant::now();
        retry.wait().await;
        assert_eq!(before.elapsed(), Duration::ZERO);
    }
}
