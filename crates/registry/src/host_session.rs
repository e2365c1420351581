//! The requests of one pull to one host: with credentials where the host asks for them.

use std::sync::Arc;

use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_RANGE, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RANGE,
};
use hyper::{Method, StatusCode};
use oarsman_image_store::{Descriptor, Digest};
use tokio::sync::Mutex;

use crate::authentication::{PullCredentials, fetch_token};
use crate::challenge::{Challenge, challenge};
use crate::error::RegistryError;
use crate::hosts::RegistryHost;
use crate::paced_body::PacedBody;
use crate::settings::RegistrySettings;
use crate::transport::{RegistryRequest, RegistryResponse, Transport};

/// Manifests and indexes, those of OCI and those of Docker before.
const ACCEPTED: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json";
/// Registries refuse larger ones.
const MAX_MANIFEST: usize = 4 << 20;

/// The requests of one pull to one host.
#[derive(Debug)]
pub(crate) struct HostSession {
    pub(crate) host: RegistryHost,
    transport: Transport,
    repository: String,
    credentials: PullCredentials,
    /// Sent until the host refuses it.
    authorization: Mutex<Option<HeaderValue>>,
}

/// A manifest or an index.
#[derive(Clone, Debug)]
pub(crate) struct FetchedManifest {
    pub(crate) descriptor: Descriptor,
    pub(crate) bytes: Vec<u8>,
}

/// The rest of a blob, from that byte on.
#[derive(Debug)]
pub(crate) struct BlobBody {
    pub(crate) offset: u64,
    pub(crate) body: PacedBody,
}

impl HostSession {
    pub(crate) async fn open(
        host: RegistryHost,
        repository: &str,
        credentials: &PullCredentials,
        settings: &Arc<RegistrySettings>,
    ) -> Result<Self, RegistryError> {
        let origin = format!("{}://{}/", host.scheme, host.authority);
        // Credentials are the registry's. A mirror has its own, in the headers of its configuration.
        let credentials = match host.mirror_of {
            None => credentials.clone(),
            Some(_) => PullCredentials::Anonymous,
        };
        Ok(Self {
            transport: Transport::new(&origin, &host.tls, settings).await?,
            authorization: Mutex::new(credentials.first_header()),
            repository: repository.to_owned(),
            credentials,
            host,
        })
    }

    /// A manifest or an index by tag or digest.
    pub(crate) async fn manifest(&self, reference: &str) -> Result<FetchedManifest, RegistryError> {
        let mut request = self.request(&format!("manifests/{reference}"))?;
        request.headers.insert(ACCEPT, HeaderValue::from_static(ACCEPTED));
        let response = self.send(request).await?;
        let url = response.url().to_owned();
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let media_type = kind.unwrap_or_default().to_owned();
        let bytes = response.read(MAX_MANIFEST).await?;
        let digest = Digest::of(&bytes);
        if reference.contains(':') && reference != digest.to_string() {
            let (wanted, found) = (reference.to_owned(), digest.to_string());
            return Err(RegistryError::WrongManifest { url, wanted, found });
        }
        let size = bytes.len() as u64;
        let descriptor = Descriptor {
            media_type,
            digest,
            size,
            platform: None,
            annotations: std::collections::BTreeMap::new(),
        };
        Ok(FetchedManifest { descriptor, bytes })
    }

    /// A blob from a byte on. A host that cannot begin there begins at the beginning.
    pub(crate) async fn blob(&self, digest: &Digest, from: u64) -> Result<BlobBody, RegistryError> {
        let mut request = self.request(&format!("blobs/{digest}"))?;
        if from > 0 {
            let range = HeaderValue::from_str(&format!("bytes={from}-"));
            request.headers.extend(range.ok().map(|range| (RANGE, range)));
        }
        let response = self.send(request).await?;
        let offset = match response.status() {
            StatusCode::PARTIAL_CONTENT => begin_of_range(&response)?,
            _ => 0,
        };
        if offset > from {
            let url = response.url().to_owned();
            let why = format!("it begins at byte {offset} instead of {from}");
            return Err(RegistryError::Malformed { url, why });
        }
        Ok(BlobBody { offset, body: response.into_body() })
    }

    fn request(&self, part: &str) -> Result<RegistryRequest, RegistryError> {
        let mut request =
            RegistryRequest::new(Method::GET, &self.host.url(&self.repository, part))?;
        for (name, value) in &self.host.headers {
            let wrong = || RegistryError::Malformed {
                url: request.shown_url(),
                why: format!("its header {name:?} in hosts.toml cannot be sent"),
            };
            let key = HeaderName::try_from(name).map_err(|_| wrong())?;
            let value = HeaderValue::try_from(value).map_err(|_| wrong())?;
            request.headers.append(key, value);
        }
        Ok(request)
    }

    /// Sends a request; one that is refused is sent again once, as the host wants it.
    async fn send(&self, request: RegistryRequest) -> Result<RegistryResponse, RegistryError> {
        let sent_with = self.authorization.lock().await.clone();
        let response = self.transport.send(with(request.clone(), sent_with.as_ref())).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return self.check(response).await;
        }
        let Some(wanted) = challenge(response.headers()) else { return self.check(response).await };
        let header = self.answer(&wanted, sent_with.as_ref()).await?;
        let Some(header) = header else { return self.check(response).await };
        self.check(self.transport.send(with(request, Some(&header))).await?).await
    }

    /// What meets the challenge, if anything does. Of several requests that are refused at the same time one asks for a token.
    async fn answer(
        &self,
        wanted: &Challenge,
        sent_with: Option<&HeaderValue>,
    ) -> Result<Option<HeaderValue>, RegistryError> {
        let mut authorization = self.authorization.lock().await;
        if authorization.as_ref() != sent_with {
            return Ok(authorization.clone());
        }
        *authorization = match wanted {
            Challenge::Basic => self.credentials.basic_header(),
            Challenge::Bearer(server) => Some(
                fetch_token(&self.transport, server, &self.credentials, &self.repository).await?,
            ),
        };
        Ok(authorization.clone())
    }

    async fn check(&self, response: RegistryResponse) -> Result<RegistryResponse, RegistryError> {
        match response.status() {
            status if status.is_success() => Ok(response),
            _ => Err(response.into_error(self.credentials.shown()).await),
        }
    }
}

fn with(mut request: RegistryRequest, authorization: Option<&HeaderValue>) -> RegistryRequest {
    if let Some(value) = authorization {
        request.headers.insert(AUTHORIZATION, value.clone());
    }
    request
}

/// The first byte of `bytes 5-9/10`.
fn begin_of_range(response: &RegistryResponse) -> Result<u64, RegistryError> {
    range_begin(response.headers()).ok_or_else(|| RegistryError::Malformed {
        url: response.url().to_owned(),
        why: "it is a part without a range".to_owned(),
    })
}

pub(crate) fn range_begin(headers: &HeaderMap) -> Option<u64> {
    let range = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    range.strip_prefix("bytes ")?.split('-').next()?.parse().ok()
}
