//! How often the API server is asked: so many requests at once, and then so many a second, shared by all namespaces.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hyper::http::Request;
use kube::Client;
use kube::client::Body;
use oarsman_core::rate::TokenBucket;
use oarsman_core::time::Mono;
use oarsman_sync::Guarded;
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

/// The same client, whose requests wait until the rate allows them: namespaces take turns, and the requests of one are sent in the
/// order in which they were made.
pub(super) fn limited(client: Client, rate: RequestRate) -> Client {
    let default = client.default_namespace().to_owned();
    let limiter = Arc::new(RateLimiter::new(rate));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, limiter) = (client.clone(), Arc::clone(&limiter));
        async move {
            limiter.wait(namespace(request.uri().path())).await;
            client.send(request).await
        }
    });
    Client::new(service, default)
}

/// The namespace of a request's path; empty for objects that have none.
fn namespace(path: &str) -> &str {
    path.split('/').skip_while(|part| *part != "namespaces").nth(1).unwrap_or_default()
}

struct RateLimiter {
    began: Instant,
    /// Where the requests of a namespace wait until they are the first of it.
    queues: Guarded<BTreeMap<String, Arc<Mutex<()>>>>,
    /// Held while its holder waits, so that those behind it wait for their turn: one request of each namespace.
    left: Mutex<TokenBucket>,
}

impl RateLimiter {
    fn new(rate: RequestRate) -> Self {
        let (queues, left) = (Guarded::default(), Mutex::new(rate.allowance()));
        Self { began: Instant::now(), queues, left }
    }

    async fn wait(&self, namespace: &str) {
        let queue = self.queue(namespace);
        let _first = queue.lock().await;
        let mut left = self.left.lock().await;
        while let Err(wait) = left.take(Mono(self.began.elapsed())) {
            sleep(wait).await;
        }
    }

    /// Queues in which no request waits any more are removed.
    fn queue(&self, namespace: &str) -> Arc<Mutex<()>> {
        let mut queues = self.queues.lock();
        queues.retain(|name, queue| name == namespace || Arc::strong_count(queue) > 1);
        Arc::clone(queues.entry(namespace.to_owned()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_goes_at_once_and_the_rest_second_by_second() {
        for (rate, per_second, burst) in [
            (RequestRate::default(), 50, 100),
            (RequestRate { per_second: 10, burst: 20 }, 10, 20),
            (RequestRate { per_second: 0, burst: 0 }, 5, 10),
        ] {
            let limiter = RateLimiter::new(rate);
            for _ in 0..burst {
                limiter.wait("a").await;
            }
            assert_eq!(limiter.began.elapsed(), Duration::ZERO, "{rate:?}");
            for _ in 0..per_second * 3 {
                limiter.wait("a").await;
            }
            assert_eq!(limiter.began.elapsed().as_millis().div_ceil(1000), 3, "{rate:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_namespace_with_many_requests_does_not_delay_those_of_others() {
        let limiter = RateLimiter::new(RequestRate { per_second: 10, burst: 1 });
        let sent = |namespace: &'static str| {
            let limiter = &limiter;
            async move {
                limiter.wait(namespace).await;
                limiter.began.elapsed()
            }
        };
        let many = join_all((0..1000).map(|_| sent("many")));
        let others = join_all(["one", "two", ""].map(sent));
        let (many, others) = futures::join!(many, others);
        let tenths = |number: u32| Duration::from_millis(100) * number;
        assert!(others.iter().all(|at| *at <= tenths(5)), "{others:?}");
        assert!(many.is_sorted() && *many.last().unwrap() >= tenths(1002), "{many:?}");
        limiter.wait("many").await;
        assert_eq!(limiter.queues.lock().len(), 1, "of those that wait");
    }

    #[test]
    fn the_namespace_is_a_part_of_the_path() {
        let rows = [
            ("/api/v1/namespaces/a/secrets/x", "a"),
            ("/apis/coordination.k8s.io/v1/namespaces/b/leases", "b"),
            ("/apis/node.k8s.io/v1/runtimeclasses/x", ""),
            ("/api/v1/services", ""),
            ("/api/v1/namespaces", ""),
        ];
        for (path, want) in rows {
            assert_eq!(namespace(path), want, "{path}");
        }
    }
}
