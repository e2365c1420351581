//! HTTP probes: what is asked, which redirects are followed, and what an answer means.

mod location;

use k8s_openapi::api::core::v1::HTTPGetAction;

use super::USER_AGENT;
use super::outcome::ProbeOutcome;
use crate::handler::{ContainerEndpoint, TargetError};
use crate::hook::HttpRequest;
use location::Location;

/// More redirects are not followed.
const MAX_REDIRECTS: u32 = 10;

/// An HTTP probe under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpProbe {
    /// The host that was meant: no other is asked.
    host: String,
    redirects: u32,
}

/// What a server answered.
#[derive(Clone, Copy, Debug)]
pub struct HttpAnswer<'a> {
    /// The status.
    pub status: u16,
    /// The header `Location`.
    pub location: Option<&'a str>,
    /// As much of the body as was read.
    pub body: &'a [u8],
}

/// What follows from an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpStep {
    /// The same host is asked for something else.
    Follow(HttpRequest),
    /// That was the last answer.
    Done(ProbeOutcome),
}

/// What the probe of this container asks for first. The connection is for one request.
///
/// # Errors
/// When port, scheme or host are missing or cannot be.
pub fn request(
    action: &HTTPGetAction,
    container: &ContainerEndpoint,
) -> Result<HttpRequest, TargetError> {
    let mut request = HttpRequest::by(USER_AGENT, action, container)?;
    request.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("Connection"));
    request.headers.push(("Connection".to_owned(), "close".to_owned()));
    Ok(request)
}

impl HttpProbe {
    /// A probe that begins with this request.
    pub fn new(first: &HttpRequest) -> Self {
        Self { host: first.host.clone(), redirects: 0 }
    }

    /// What the answer to that request means.
    pub fn judge(&mut self, asked: &HttpRequest, answer: &HttpAnswer<'_>) -> HttpStep {
        if let Some(next) = self.followed(asked, answer) {
            self.redirects += 1;
            if self.redirects > MAX_REDIRECTS {
                let told = format!("stopped after {MAX_REDIRECTS} redirects");
                return HttpStep::Done(ProbeOutcome::failure(told));
            }
            return HttpStep::Follow(next);
        }
        HttpStep::Done(match answer.status {
            200..=299 => ProbeOutcome::success(answer.body),
            300..=399 => {
                let body = String::from_utf8_lossy(answer.body);
                ProbeOutcome::warning(format!("Probe terminated redirects, Response body: {body}"))
            }
            status => ProbeOutcome::failure(format!("HTTP probe failed with statuscode: {status}")),
        })
    }

    /// The request that a redirect to the same host leads to.
    fn followed(&self, asked: &HttpRequest, answer: &HttpAnswer<'_>) -> Option<HttpRequest> {
        if !matches!(answer.status, 301 | 302 | 303 | 307 | 308) {
            return None;
        }
        let location = Location::parse(answer.location?, asked)?;
        location.host.eq_ignore_ascii_case(&self.host).then(|| location.request(asked))
    }
}

#[cfg(test)]
mod tests;
