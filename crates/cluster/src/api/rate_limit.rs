//! How often the API server is asked: so many requests at once, and then so many a second.

use std::sync::Arc;
use std::time::Duration;

use hyper::http::Request;
use kube::Client;
use kube::client::Body;
use oarsman_core::rate::TokenBucket;
use oarsman_core::time::Mono;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

/// What a client asks when nothing is configured for it, as that of the Go kubelet does.
const UNCONFIGURED: RequestRate = RequestRate { per_second: 5, burst: 10 };

/// `kubeAPIQPS` and `kubeAPIBurst`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRate {
    /// So many requests a second.
    pub per_second: u32,
    /// So many at once after a rest.
    pub burst: u32,
}

/// How often the API server is asked. Statuses and what pods refer to have the same rate each, so that neither delays the other;
/// heartbeats have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestLimits {
    /// `kubeAPIQPS` and `kubeAPIBurst`.
    pub requests: RequestRate,
    /// `eventRecordQPS` and `eventBurst`; none for any number.
    pub events: Option<RequestRate>,
}

/// Those of the kubelet.
impl Default for RequestRate {
    fn default() -> Self {
        Self { per_second: 50, burst: 100 }
    }
}

impl RequestRate {
    fn allowance(self) -> TokenBucket {
        let or = |number: u32, other: u32| if number == 0 { other } else { number };
        let per_second = or(self.per_second, UNCONFIGURED.per_second);
        let burst = or(self.burst, UNCONFIGURED.burst);
        TokenBucket::new(burst, Duration::from_secs(1) / per_second)
    }
}

/// The same client, whose requests wait until the rate allows them, in the order in which they were made.
pub(super) fn limited(client: Client, rate: RequestRate) -> Client {
    let namespace = client.default_namespace().to_owned();
    let limiter =
        Arc::new(RateLimiter { began: Instant::now(), left: Mutex::new(rate.allowance()) });
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, limiter) = (client.clone(), Arc::clone(&limiter));
        async move {
            limiter.wait().await;
            client.send(request).await
        }
    });
    Client::new(service, namespace)
}

struct RateLimiter {
    began: Instant,
    /// Held while its holder waits, so that those behind it wait for their turn.
    left: Mutex<TokenBucket>,
}

impl RateLimiter {
    async fn wait(&self) {
        let mut left = self.left.lock().await;
        while let Err(wait) = left.take(Mono(self.began.elapsed())) {
            sleep(wait).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_goes_at_once_and_the_rest_second_by_second() {
        for (rate, per_second, burst) in [
            (RequestRate::default(), 50, 100),
            (RequestRate { per_second: 10, burst: 20 }, 10, 20),
            (RequestRate { per_second: 0, burst: 0 }, 5, 10),
        ] {
            let limiter = RateLimiter { began: Instant::now(), left: Mutex::new(rate.allowance()) };
            for _ in 0..burst {
                limiter.wait().await;
            }
            assert_eq!(limiter.began.elapsed(), Duration::ZERO, "{rate:?}");
            for _ in 0..per_second * 3 {
                limiter.wait().await;
            }
            assert_eq!(limiter.began.elapsed().as_millis().div_ceil(1000), 3, "{rate:?}");
        }
    }
}
