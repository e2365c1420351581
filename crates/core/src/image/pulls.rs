//! Which pulls failed recently, and with what.

use std::collections::BTreeMap;
use std::time::Duration;

use super::outcome::ImageFailure;
use crate::backoff::{BackoffDecision, EXPIRY, RetryBackoff};
use crate::ids::PodUid;
use crate::start_error::StartError;
use crate::time::Mono;

/// The pulls that failed recently, by pod and image: a failure for one pod does not delay another.
#[derive(Clone, Debug, Default)]
pub struct FailedPulls {
    backoff: RetryBackoff,
    errors: BTreeMap<String, (StartError, Mono)>,
}

impl FailedPulls {
    /// Whether the image may be pulled now; if not, what the container waits for and how long still.
    pub fn check(
        &self,
        pod: &PodUid,
        image: &str,
        now: Mono,
    ) -> Result<(), (ImageFailure, Duration)> {
        let key = key(pod, image);
        match self.backoff.check(&key, now) {
            BackoffDecision::Ready => Ok(()),
            BackoffDecision::Wait { remaining, .. } => {
                let last = self.errors.get(&key).map(|(error, _)| error.clone());
                Err((ImageFailure::BackOff { last }, remaining))
            }
        }
    }

    /// Notes a failed pull: the next one is later, and meanwhile this is why.
    pub fn failed(&mut self, pod: &PodUid, image: &str, error: StartError, now: Mono) {
        let key = key(pod, image);
        self.backoff.failed(&key, now);
        self.errors.insert(key, (error, now));
    }

    /// Forgets what has not failed for long.
    pub fn collect(&mut self, now: Mono) {
        self.backoff.collect(now);
        self.errors.retain(|_, (_, at)| now.since(*at) <= EXPIRY);
    }
}

fn key(pod: &PodUid, image: &str) -> String {
    format!("{pod}_{image}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::start_error::StartReason;

    fn at(seconds: u64) -> Mono {
        Mono(Duration::from_secs(seconds))
    }

    #[test]
    fn a_failed_pull_backs_off_the_same_image_of_the_same_pod_with_its_error() {
        let mut pulls = FailedPulls::default();
        let error = ImageFailure::Pull("not found".to_owned()).start_error("x");
        pulls.failed(&"u1".into(), "x", error.clone(), at(0));

        let (failure, remaining) = pulls.check(&"u1".into(), "x", at(4)).unwrap_err();
        assert_eq!(failure, ImageFailure::BackOff { last: Some(error) });
        assert_eq!(remaining, Duration::from_secs(6));
        assert_eq!(failure.start_error("x").reason, StartReason::ImagePullBackOff);

        for (pod, image, now) in [("u1", "x", 10), ("u2", "x", 4), ("u1", "y", 4)] {
            assert_eq!(pulls.check(&pod.into(), image, at(now)), Ok(()), "{pod} {image} {now}");
        }
    }

    #[test]
    fn old_failures_are_forgotten() {
        let mut pulls = FailedPulls::default();
        let error = ImageFailure::NeverPull.start_error("x");
        pulls.failed(&"u".into(), "x", error, at(0));
        pulls.collect(at(600));
        assert_eq!(pulls.errors.len(), 1);
        pulls.collect(at(601));
        assert!(pulls.errors.is_empty() && pulls.backoff.is_empty());
    }
}
