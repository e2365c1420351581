//! Authentication of requests: by client certificate, by bearer token, or as anonymous.

use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use oarsman_cluster::credentials::certificate;
use oarsman_cluster::review::{Reviewer, User};
use oarsman_core::access::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED};
use oarsman_sync::Guarded;
use ring::digest::{SHA256, digest};
use tokio::time::Instant;
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::crypto::ring as provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;

use crate::AuthenticationSettings;
use crate::review_throttle::ReviewThrottle;
use crate::ttl_cache::TtlCache;

/// The certificates that the client presented, its own first.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientCertificates(pub(crate) Arc<[CertificateDer<'static>]>);

/// How long a token is not asked about again when the API server could not be asked.
const AFTER_A_FAILED_REVIEW: Duration = Duration::from_secs(5);

/// Why a client has no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthenticationError {
    /// It shows nothing that says who it is.
    Unauthenticated,
    /// The API server would have to be asked too often.
    Throttled,
}

/// Finds out who asks.
pub(crate) struct Authenticator {
    authorities: Option<ClientCaFile>,
    tokens: Option<Duration>,
    users: TtlCache<Vec<u8>, User>,
    /// Tokens that name no user, apart from those that do: a client that invents tokens does not push others out.
    refused: TtlCache<Vec<u8>, ()>,
    throttle: ReviewThrottle,
    anonymous: bool,
    reviewer: Option<Arc<dyn Reviewer>>,
}

impl Authenticator {
    pub(crate) fn new(
        settings: &AuthenticationSettings,
        reviewer: Option<Arc<dyn Reviewer>>,
    ) -> Self {
        Self {
            authorities: settings.client_ca.as_deref().map(ClientCaFile::new),
            tokens: settings.tokens,
            users: TtlCache::new(),
            refused: TtlCache::new(),
            throttle: ReviewThrottle::default(),
            anonymous: settings.anonymous,
            reviewer,
        }
    }

    /// The user of a request by its certificate or token; none when it has neither and anonymous requests are not allowed.
    pub(crate) async fn authenticate(
        &self,
        certificates: &ClientCertificates,
        token: Option<&str>,
        client: IpAddr,
    ) -> Result<User, AuthenticationError> {
        if let Some(user) = self.authorities.as_ref().and_then(|it| it.user(&certificates.0)) {
            return Ok(user);
        }
        if let Some(token) = token {
            // A client that shows a token wants to be authenticated by it.
            return self.authenticate_token(token, client).await;
        }
        let anonymous = || User {
            name: ANONYMOUS.to_owned(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            ..User::default()
        };
        self.anonymous.then(anonymous).ok_or(AuthenticationError::Unauthenticated)
    }

    async fn authenticate_token(
        &self,
        token: &str,
        client: IpAddr,
    ) -> Result<User, AuthenticationError> {
        let unauthenticated = AuthenticationError::Unauthenticated;
        let time = self.tokens.ok_or(unauthenticated)?;
        let reviewer = self.reviewer.as_ref().ok_or(unauthenticated)?;
        let key = digest(&SHA256, token.as_bytes()).as_ref().to_vec();
        let now = Instant::now();
        if let Some(user) = self.users.get(&key, now) {
            return Ok(user);
        }
        if self.refused.get(&key, now).is_some() {
            return Err(unauthenticated);
        }
        if !self.throttle.admit(client, now) {
            return Err(AuthenticationError::Throttled);
        }
        match reviewer.review_token(token).await {
            Ok(Some(user)) => {
                self.users.insert(key, user.clone(), Instant::now(), time);
                return Ok(user);
            }
            Ok(None) => self.refused.insert(key, (), Instant::now(), time),
            Err(error) => {
                tracing::warn!(call = "TokenReview", %error, "token check failed, request refused");
                self.refused.insert(key, (), Instant::now(), AFTER_A_FAILED_REVIEW);
            }
        }
        Err(unauthenticated)
    }
}

/// The file of authorities that sign clients' certificates; read again when it changes.
struct ClientCaFile {
    file: PathBuf,
    read: Guarded<Option<(FileStamp, Arc<dyn ClientCertVerifier>)>>,
}

type FileStamp = (u64, u64, i64, i64);

impl ClientCaFile {
    fn new(file: &Path) -> Self {
        Self { file: file.to_owned(), read: Guarded::default() }
    }

    fn user(&self, chain: &[CertificateDer<'static>]) -> Option<User> {
        let (own, rest) = chain.split_first()?;
        let verifier = self.verifier()?;
        if let Err(error) = verifier.verify_client_cert(own, rest, UnixTime::now()) {
            tracing::debug!(%error, "client certificate not accepted");
            return None;
        }
        let judged = certificate::client_subject(own);
        let subject = judged
            .inspect_err(|error| tracing::debug!(error, "client certificate refused"))
            .ok()?;
        let groups = subject.organizations.into_iter().chain([AUTHENTICATED.to_owned()]).collect();
        Some(User { name: subject.common_name, groups, ..User::default() })
    }

    /// The verifier of the file's current content; the previous one if that cannot be used.
    fn verifier(&self) -> Option<Arc<dyn ClientCertVerifier>> {
        let mut read = self.read.lock();
        let found = fs::metadata(&self.file).ok();
        let look = found.map(|it| (it.ino(), it.size(), it.mtime(), it.mtime_nsec()));
        let is_read = look.is_none_or(|look| read.as_ref().is_some_and(|(seen, _)| *seen == look));
        if let (false, Some(look)) = (is_read, look) {
            match load(&self.file) {
                Ok(verifier) => *read = Some((look, verifier)),
                Err(error) => {
                    tracing::error!(
                        path = %self.file.display(),
                        setting = "authentication.x509.clientCAFile",
                        error,
                        "client CA file not loaded, previous content stays in use"
                    );
                }
            }
        }
        read.as_ref().map(|(_, verifier)| Arc::clone(verifier))
    }
}

fn load(file: &Path) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let text = fs::read(file).map_err(|error| error.to_string())?;
    let mut roots = RootCertStore::empty();
    for found in CertificateDer::pem_slice_iter(&text) {
        let found = found.map_err(|error| error.to_string())?;
        roots.add(found).map_err(|error| error.to_string())?;
    }
    let provider = Arc::new(provider::default_provider());
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    builder.build().map_err(|error| error.to_string())
}
