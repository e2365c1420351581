//! Back-off of things we try ourselves, such as pulling an image: the wait is measured from the failed try.

use std::collections::BTreeMap;

use super::{Backoff, BackoffDecision, EXPIRY, Failures, MAX};
use crate::time::Mono;

/// The back-off of every key that has failed recently. For an image the key is pod and image.
#[derive(Clone, Debug)]
pub struct RetryBackoff {
    backoff: Backoff,
    failures: BTreeMap<String, Failure>,
}

/// The last failure of one key.
#[derive(Clone, Copy, Debug)]
struct Failure {
    in_a_row: Failures,
    at: Mono,
}

impl Default for RetryBackoff {
    fn default() -> Self {
        Self { backoff: Backoff::up_to(MAX), failures: BTreeMap::new() }
    }
}

impl RetryBackoff {
    /// Whether it may be tried again.
    pub fn check(&self, key: &str, now: Mono) -> BackoffDecision {
        self.failures.get(key).map_or(BackoffDecision::Ready, |failure| {
            BackoffDecision::after(failure.in_a_row.wait(), now.since(failure.at))
        })
    }

    /// Notes a failed try: the next wait is longer, unless the one before is long ago.
    pub fn failed(&mut self, key: &str, now: Mono) {
        let mut in_a_row = match self.failures.get(key) {
            Some(last) if now.since(last.at) <= EXPIRY => last.in_a_row,
            _ => Failures::new(self.backoff),
        };
        in_a_row.next_wait();
        self.failures.insert(key.to_owned(), Failure { in_a_row, at: now });
    }

    /// Forgets what has not failed for long.
    pub fn collect(&mut self, now: Mono) {
        self.failures.retain(|_, failure| now.since(failure.at) <= EXPIRY);
    }

    /// How many keys are remembered.
    pub fn len(&self) -> usize {
        self.failures.len()
    }

    /// Whether no key is in back-off.
    pub fn is_empty(&self) -> bool {
        self.failures.is_empty()
    }
}
