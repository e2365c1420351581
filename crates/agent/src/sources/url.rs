//! The URL source: manifests at a URL that is fetched periodically.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use futures::stream::{BoxStream, unfold};
use hyper::Uri;
use oarsman_cluster::PodSets;
use tokio::time::sleep;

use super::file_manifests::ManifestUpdate;
use super::manifest_reader::{ManifestReader, PodOrListReader};
use super::url_manifests::UrlManifests;
use super::{into_shared, on_blocking_thread};
use crate::manifest::MANIFEST_LIMIT;
use crate::report_store::ReportStore;
use oarsman_net::{HttpGet, Network, Scheme, Trust};

#[cfg(test)]
mod tests;

const TIMEOUT: Duration = Duration::from_secs(10);

/// A URL that cannot be fetched. The error does not show it: there may be a password in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// The text is no URL.
    #[error("the URL of manifests is none: {0}; write http://host/path or https://host/path")]
    Malformed(String),
    /// It is not one that can be asked over HTTP.
    #[error("manifests come over http and https, not over {0:?}")]
    Scheme(String),
}

/// The URL of a Pod or a PodList for this node.
pub struct ManifestUrl {
    request: HttpGet,
    node: String,
    network: Arc<dyn Network>,
}

impl ManifestUrl {
    /// The headers are sent along.
    ///
    /// # Errors
    /// When the URL is none that can be asked.
    pub fn new(
        url: &str,
        headers: Vec<(String, String)>,
        node: String,
        network: Arc<dyn Network>,
    ) -> Result<Self, UrlError> {
        Ok(Self { request: request(url, headers)?, node, network })
    }

    /// The pods there, asked for at once and then every `period`.
    pub fn follow(&self, period: Duration, report_store: &Arc<ReportStore>) -> PodSets {
        let reader = PodOrListReader { node: self.node.clone() };
        let source = UrlSource::with(self.request.clone(), reader, Arc::clone(&self.network));
        source.sets(period, report_store).map(into_shared).boxed()
    }
}

/// The manifests at one URL.
pub(super) struct UrlSource<R: ManifestReader> {
    request: HttpGet,
    /// None while a response is parsed.
    manifests: Option<UrlManifests<R>>,
    network: Arc<dyn Network>,
    was_fetched: bool,
}

impl<R: ManifestReader> UrlSource<R> {
    /// A URL that is not fetched yet.
    pub(super) fn at(
        url: &str,
        headers: Vec<(String, String)>,
        reader: R,
        network: Arc<dyn Network>,
    ) -> Result<Self, UrlError> {
        Ok(Self::with(request(url, headers)?, reader, network))
    }

    fn with(request: HttpGet, reader: R, network: Arc<dyn Network>) -> Self {
        let manifests = Some(UrlManifests::new(request.url(), reader));
        Self { request, manifests, network, was_fetched: false }
    }

    /// The full set of objects, whenever it has changed.
    pub(super) fn sets(
        self,
        period: Duration,
        report_store: &Arc<ReportStore>,
    ) -> BoxStream<'static, Vec<R::Item>> {
        unfold((self, Arc::clone(report_store)), move |(mut source, report_store)| async move {
            source.next(period, &report_store).await.map(|items| (items, (source, report_store)))
        })
        .boxed()
    }

    /// Reports the problems of the URL and the pods that come from it.
    pub(super) fn report(&self, report_store: &ReportStore) {
        let found = self.manifests.iter().map(UrlManifests::source_report);
        found.for_each(|found| report_store.set_source_report(&self.request.url(), found));
    }

    async fn next(&mut self, period: Duration, report_store: &ReportStore) -> Option<Vec<R::Item>> {
        loop {
            if self.was_fetched {
                sleep(period).await;
            }
            let ManifestUpdate { items, messages } = self.fetch().await?;
            messages.iter().for_each(|message| message.log());
            self.report(report_store);
            if items.is_some() {
                return items;
            }
        }
    }

    /// Fetches the URL once. The response is parsed on a thread that may be kept busy: it may have 10 MiB.
    pub(super) async fn fetch(&mut self) -> Option<ManifestUpdate<R::Item>> {
        self.was_fetched = true;
        let answer = self.network.get(&self.request).await;
        let (mut manifests, request) = (self.manifests.take()?, self.request.clone());
        let (manifests, update) = on_blocking_thread(move || {
            let update = manifests.update(&request, answer);
            (manifests, update)
        })
        .await?;
        self.manifests = Some(manifests);
        Some(update)
    }
}

fn request(url: &str, mut headers: Vec<(String, String)>) -> Result<HttpGet, UrlError> {
    let malformed = |why: &str| UrlError::Malformed(why.to_owned());
    // A fragment is never sent to a server.
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

/// The Authorization header for name and password in the URL.
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
