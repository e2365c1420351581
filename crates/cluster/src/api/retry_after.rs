//! A client that keeps the Retry-After header of a busy API server, which kube drops.

use std::time::Duration;

use hyper::http::{Request, Response, StatusCode, header};
use kube::Client;
use kube::client::Body;
use tower::BoxError;

/// Longer waits are cut to this.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// The API server is busy and asks to be called again later.
#[derive(Debug, thiserror::Error)]
#[error("it asked to be left alone for {wait:?}")]
pub(super) struct RetryAfter {
    pub(super) wait: Duration,
}

/// The same client, in whose errors a [`RetryAfter`] can be found.
pub(super) fn with_retry_after(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move {
            let response = client.send(request).await?;
            match retry_after_of(&response) {
                Some(wait) => Err(BoxError::from(RetryAfter { wait })),
                None => Ok(response),
            }
        }
    });
    Client::new(service, namespace)
}

fn retry_after_of<B>(response: &Response<B>) -> Option<Duration> {
    let busy = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE];
    let asked = response.headers().get(header::RETRY_AFTER)?;
    let seconds = asked.to_str().ok()?.parse().ok()?;
    busy.contains(&response.status()).then(|| Duration::from_secs(seconds).min(MAX_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_honoured_within_bounds() {
        let rows = [
            (429, Some("3"), Some(3)),
            (503, Some("1"), Some(1)),
            (429, Some("86400"), Some(60)),
            (429, Some("Fri, 31 Dec 1999 23:59:59 GMT"), None),
            (429, None, None),
            (200, Some("3"), None),
        ];
        for (status, asked, want) in rows {
            let mut response = Response::builder().status(status);
            if let Some(asked) = asked {
                response = response.header(header::RETRY_AFTER, asked);
            }
            let found = retry_after_of(&response.body(()).unwrap());
            assert_eq!(found, want.map(Duration::from_secs), "{status} {asked:?}");
        }
    }
}
