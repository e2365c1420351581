//! Requests to one host of a registry: connections, redirects, deadlines, and errors in words.

use std::error::Error;
use std::sync::Arc;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, HeaderMap, HeaderValue, RANGE, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use oarsman_net::{TlsOptions, tls_config};
use serde::Deserialize;
use tokio::time::timeout;

use crate::dialer::{AddressRule, Dialer, is_own_host};
use crate::error::RegistryError;
use crate::paced_body::PacedBody;
use crate::redirect;
use crate::settings::RegistrySettings;

const AGENT: &str = concat!("oarsman/", env!("CARGO_PKG_VERSION"));
/// More redirects than from a registry to its storage, and on to the nearest copy.
const MAX_REDIRECTS: usize = 5;
/// As much of an error's body is read.
const MAX_ERROR: usize = 16 * 1024;
/// As much of what a registry says is repeated in our error.
const MAX_SAID: usize = 300;

type HttpClient = Client<HttpsConnector<Dialer>, Full<Bytes>>;

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct RegistryRequest {
    pub(crate) method: Method,
    pub(crate) url: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl RegistryRequest {
    pub(crate) fn new(method: Method, url: &str) -> Result<Self, RegistryError> {
        let wrong = |error: hyper::http::uri::InvalidUri| RegistryError::Malformed {
            url: url.split('?').next().unwrap_or_default().to_owned(),
            why: format!("it is no URL: {error}"),
        };
        let url = url.parse().map_err(wrong)?;
        Ok(Self { method, url, headers: HeaderMap::new(), body: String::new() })
    }

    pub(crate) fn shown_url(&self) -> String {
        redirect::shown(&self.url)
    }
}

/// A response whose body is not read yet.
#[derive(Debug)]
pub(crate) struct RegistryResponse {
    url: String,
    parts: hyper::http::response::Parts,
    body: PacedBody,
}

impl RegistryResponse {
    pub(crate) fn status(&self) -> StatusCode {
        self.parts.status
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn into_body(self) -> PacedBody {
        self.body
    }

    pub(crate) async fn read(self, most: usize) -> Result<Vec<u8>, RegistryError> {
        self.body.read_all(most).await
    }

    /// What is wrong, in the registry's own words.
    pub(crate) async fn into_error(self, who: &'static str) -> RegistryError {
        let (url, status) = (self.url.clone(), self.status());
        let why = said(&self.read(MAX_ERROR).await.unwrap_or_default());
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                RegistryError::Unauthorized { url, who, why }
            }
            StatusCode::NOT_FOUND => RegistryError::NotFound { url, why },
            status => RegistryError::Status { url, status: status.as_u16(), why },
        }
    }
}

/// The way to one host.
#[derive(Debug)]
pub(crate) struct Transport {
    direct: HttpClient,
    /// For where the host sends us.
    elsewhere: HttpClient,
    settings: Arc<RegistrySettings>,
    /// The host itself.
    origin: Uri,
}

impl Transport {
    pub(crate) async fn new(
        origin: &str,
        tls: &TlsOptions,
        settings: &Arc<RegistrySettings>,
    ) -> Result<Self, RegistryError> {
        let origin = RegistryRequest::new(Method::GET, origin)?.url;
        let wrong = |why| RegistryError::Unreachable { url: redirect::shown(&origin), why };
        let config = tls_config(tls.clone()).await.map_err(wrong)?;
        // Certificates and private authorities are for the registry, not for where it sends us.
        let plain = match *tls == TlsOptions::default() {
            true => Ok(config.clone()),
            // A machine without authorities of its own has none for others either.
            false => tls_config(TlsOptions::default()).await,
        };
        let plain = plain.unwrap_or_else(|_| config.clone());
        let proxies = Arc::new(settings.proxies.matcher());
        let limit = settings.limits.connect;
        let client = |config, rule| {
            let connector = HttpsConnectorBuilder::new().with_tls_config(config).https_or_http();
            let dialer = Dialer { proxies: Arc::clone(&proxies), rule, limit };
            let connector = connector.enable_all_versions().wrap_connector(dialer);
            let mut builder = Client::builder(TokioExecutor::new());
            builder.pool_timer(TokioTimer::new()).build(connector)
        };
        let is_here = is_own_host(&origin).await;
        let rule = if is_here { AddressRule::Any } else { AddressRule::NotThisMachine };
        let elsewhere = if is_here { config.clone() } else { plain };
        Ok(Self {
            direct: client(config, AddressRule::Any),
            elsewhere: client(elsewhere, rule),
            settings: Arc::clone(settings),
            origin,
        })
    }

    /// Sends a request, and follows redirects as far as they are harmless. Of credentials a host of another origin sees nothing.
    pub(crate) async fn send(
        &self,
        mut request: RegistryRequest,
    ) -> Result<RegistryResponse, RegistryError> {
        for _ in 0..=MAX_REDIRECTS {
            let response = self.exchange(&request).await?;
            if !is_redirect(response.status()) {
                return Ok(response);
            }
            let refused = |to: &str, why: String| RegistryError::Redirect {
                url: response.url.clone(),
                to: to.to_owned(),
                why,
            };
            let to = redirect::target(&request.url, response.headers())
                .map_err(|why| refused("nowhere", why))?;
            if let Some(why) = redirect::refusal(&request.url, &to) {
                return Err(refused(&redirect::shown(&to), why));
            }
            if !redirect::is_same_origin(&request.url, &to) {
                request.headers = without_secrets(request.headers);
            }
            request.url = to;
        }
        let (url, why) = (request.shown_url(), "there are too many redirects".to_owned());
        Err(RegistryError::Redirect { to: url.clone(), url, why })
    }

    /// Sends a request that may hold a secret to a server that the registry has named.
    pub(crate) async fn send_to_token_server(
        &self,
        request: RegistryRequest,
    ) -> Result<RegistryResponse, RegistryError> {
        let refused = |why: String| RegistryError::Redirect {
            url: redirect::shown(&self.origin),
            to: request.shown_url(),
            why,
        };
        if let Some(why) = redirect::refusal(&self.origin, &request.url) {
            return Err(refused(format!("as a token server: {why}")));
        }
        let response = self.exchange(&request).await?;
        if is_redirect(response.status()) {
            return Err(refused("token servers may not redirect".to_owned()));
        }
        Ok(response)
    }

    async fn exchange(&self, request: &RegistryRequest) -> Result<RegistryResponse, RegistryError> {
        let url = request.shown_url();
        let limits = self.settings.limits;
        let is_ours = redirect::is_same_origin(&self.origin, &request.url);
        let client = if is_ours { &self.direct } else { &self.elsewhere };
        let limit = limits.connect + limits.response;
        let late = |_| RegistryError::TimedOut { what: "the answer", url: url.clone(), limit };
        let answer = client.request(build(request)?);
        let response = timeout(limit, answer).await.map_err(late)?;
        let response: Response<Incoming> = response.map_err(|error| self.failure(&error, &url))?;
        let (parts, body) = response.into_parts();
        let body = PacedBody::new(body, url.clone(), limits);
        Ok(RegistryResponse { url, parts, body })
    }

    fn failure(&self, error: &(dyn Error + 'static), url: &str) -> RegistryError {
        let (why, to) = (causes(error), url.to_owned());
        match is_refused_address(error) {
            true => RegistryError::Redirect { url: redirect::shown(&self.origin), to, why },
            false => RegistryError::Unreachable { url: to, why },
        }
    }
}

/// Whether the connection was refused because of where it leads.
fn is_refused_address(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(cause) = next {
        let found = cause.downcast_ref::<std::io::Error>();
        if found.is_some_and(|it| it.kind() == std::io::ErrorKind::PermissionDenied) {
            return true;
        }
        next = cause.source();
    }
    false
}

fn build(request: &RegistryRequest) -> Result<Request<Full<Bytes>>, RegistryError> {
    let body = Full::new(Bytes::from(request.body.clone()));
    let mut built = Request::new(body);
    *built.method_mut() = request.method.clone();
    *built.uri_mut() = request.url.clone();
    *built.headers_mut() = request.headers.clone();
    built.headers_mut().insert(USER_AGENT, HeaderValue::from_static(AGENT));
    Ok(built)
}

/// What another origin may see: any header of `hosts.toml` may be a secret.
fn without_secrets(mut headers: HeaderMap) -> HeaderMap {
    let kept = [ACCEPT, RANGE].into_iter();
    kept.filter_map(|name| headers.remove(&name).map(|value| (name, value))).collect()
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// The causes of an error, the last of which says most.
pub(crate) fn causes(error: &dyn Error) -> String {
    let mut texts = vec![error.to_string()];
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !texts.iter().any(|known| known.contains(&text)) {
            texts.push(text);
        }
        next = cause.source();
    }
    texts.join(": ")
}

#[derive(Deserialize)]
struct ErrorDocument {
    #[serde(default)]
    errors: Vec<ErrorEntry>,
    #[serde(default)]
    details: String,
}

#[derive(Deserialize)]
struct ErrorEntry {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

/// What a body says of an error, as one line of printable text.
pub(crate) fn said(body: &[u8]) -> String {
    let document = serde_json::from_slice::<ErrorDocument>(body);
    let text = match document {
        Ok(document) if !document.errors.is_empty() => {
            let entry = |it: &ErrorEntry| format!("{} {}", it.code, it.message).trim().to_owned();
            document.errors.iter().take(3).map(entry).collect::<Vec<_>>().join(", ")
        }
        Ok(document) if !document.details.is_empty() => document.details,
        _ => String::from_utf8_lossy(body).into_owned(),
    };
    let plain = |character: char| if character.is_control() { ' ' } else { character };
    let text: String = text.chars().map(plain).take(MAX_SAID).collect();
    let text = text.trim();
    if text.is_empty() { "it gives no reason".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn what_a_registry_says_is_one_short_line() {
        let rows: [(&[u8], &str); 5] = [
            (br#"{"errors":[{"code":"DENIED","message":"no\naccess"}]}"#, "DENIED no access"),
            (br#"{"details":"incorrect username or password"}"#, "incorrect username or password"),
            (b"<html>\r\nBad", "<html>  Bad"),
            (b"", "it gives no reason"),
            (b"\x1b[31m", "[31m"),
        ];
        for (body, wanted) in rows {
            assert_eq!(said(body), wanted);
        }
        assert_eq!(said(&[b'x'; 5000]).len(), MAX_SAID);
    }
}
