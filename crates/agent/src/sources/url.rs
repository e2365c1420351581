//! Pods from a URL that is asked again and again.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use futures::stream::unfold;
use hyper::Uri;
use k8s_openapi::api::core::v1::Pod;
use oarsman_cluster::PodSets;
use tokio::time::sleep;

use super::page::Page;
use super::shelf::News;
use crate::book::Book;
use crate::manifest::MANIFEST_LIMIT;
use crate::seams::{HttpGet, Network, Scheme, Trust};

#[cfg(test)]
mod tests;

const TIMEOUT: Duration = Duration::from_secs(10);

/// A URL that nobody can be asked at. It is not repeated: there may be a password in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// It is none.
    #[error("the URL of static pods is none: {0}; write http://host/path or https://host/path")]
    Malformed(String),
    /// It is not one that can be asked over HTTP.
    #[error("static pods come over http and https, not over {0:?}")]
    Scheme(String),
}

/// The pods at a URL, for this node: a Pod or a PodList, asked for at once and then every `period`. The headers are sent along.
///
/// # Errors
/// When the URL is none that can be asked.
pub fn url(
    url: &str,
    headers: Vec<(String, String)>,
    period: Duration,
    node_name: &str,
    network: Arc<dyn Network>,
    book: &Arc<Book>,
) -> Result<PodSets, UrlError> {
    let request = request(url, headers)?;
    let page = Page::new(request.url(), node_name.to_owned());
    let book = Arc::clone(book);
    let asking = Asking { request, page, period, network, book, asked: false };
    Ok(unfold(asking, |mut asking| async { Some((asking.next().await, asking)) }).boxed())
}

struct Asking {
    request: HttpGet,
    page: Page,
    period: Duration,
    network: Arc<dyn Network>,
    book: Arc<Book>,
    asked: bool,
}

impl Asking {
    async fn next(&mut self) -> Vec<Pod> {
        loop {
            if std::mem::replace(&mut self.asked, true) {
                sleep(self.period).await;
            }
            let answer = self.network.get(&self.request).await;
            let News { pods, lines } = self.page.turn(&self.request, answer);
            lines.iter().for_each(|line| line.log());
            self.book.found(&self.request.url(), self.page.found());
            if let Some(pods) = pods {
                return pods;
            }
        }
    }
}

fn request(url: &str, mut headers: Vec<(String, String)>) -> Result<HttpGet, UrlError> {
    let malformed = |why: &str| UrlError::Malformed(why.to_owned());
    // A fragment is for the one who reads, and is never sent.
    let uri: Uri =
        url.split('#').next().unwrap_or_default().parse().map_err(
            |error: hyper::http::uri::InvalidUri| UrlError::Malformed(error.to_string()),
        )?;
    let (scheme, expected) = match uri.scheme_str() {
        Some("http") => (Scheme::Http, 80),
        Some("https") => (Scheme::Https, 443),
        Some(other) => return Err(UrlError::Scheme(other.to_owned())),
        None => return Err(malformed("it has no scheme")),
    };
    let host =
        uri.host().filter(|host| !host.is_empty()).ok_or_else(|| malformed("it has no host"))?;
    let named = |name: &str| headers.iter().any(|(key, _)| key.eq_ignore_ascii_case(name));
    if let Some(login) = login(&uri).filter(|_| !named("authorization")) {
        headers.push(("Authorization".to_owned(), login));
    }
    Ok(HttpGet {
        scheme,
        host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
        port: uri.port_u16().unwrap_or(expected),
        path_and_query: uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
        headers,
        timeout: TIMEOUT,
        body_limit: MANIFEST_LIMIT,
        trust: Trust::System,
    })
}

/// Name and password that stand in the URL.
fn login(uri: &Uri) -> Option<String> {
    let (login, _) = uri.authority()?.as_str().rsplit_once('@')?;
    let (name, password) = login.split_once(':').unwrap_or((login, ""));
    let both = [&unescaped(name)[..], b":", &unescaped(password)].concat();
    Some(format!("Basic {}", STANDARD.encode(both)))
}

/// `%40` is an at sign: in a URL it would end the password.
fn unescaped(text: &str) -> Vec<u8> {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let escaped = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (escaped, part.get(2..)) {
            (Some(byte), Some(rest)) => bytes.extend([&[byte], rest.as_bytes()].concat()),
            _ => bytes.extend(format!("%{part}").as_bytes()),
        }
    }
    bytes
}
