//! Authentication of requests: by client certificate, by bearer token, or as anonymous.

use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
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

/// After how long a file of authorities is read again that could not be read.
const AFTER_A_FAILED_LOAD: Duration = Duration::from_secs(10);
const SECOND: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;

/// Why a client has no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthenticationError {
    /// The request has neither a client certificate nor a token that is valid.
    Unauthenticated,
    /// The API server would have to be asked too often.
    Throttled,
}

/// Finds the user of a request.
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
        if let Some(user) =
            self.authorities.as_ref().and_then(|it| it.user(&certificates.0, UnixTime::now()))
        {
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
                self.throttle.confirm(client, Instant::now());
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
    state: Guarded<ClientCaState>,
}

#[derive(Default)]
struct ClientCaState {
    seen: SeenFile,
    authorities: ClientAuthorities,
    /// When it is read again, though it has not changed: one that could not be read, or when an authority begins or ends to be valid.
    read_again: Option<Timestamp>,
}

/// The authorities that are valid now.
#[derive(Default)]
struct ClientAuthorities {
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    /// When they will be other ones.
    until: Option<Timestamp>,
}

/// What the file was when it was last looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SeenFile {
    #[default]
    NotYet,
    Missing,
    /// Inode, size and time of change.
    There(u64, u64, i64, i64),
}

impl SeenFile {
    fn at(file: &Path) -> Self {
        fs::metadata(file).map_or(Self::Missing, |it| {
            Self::There(it.ino(), it.size(), it.mtime(), it.mtime_nsec())
        })
    }
}

impl ClientCaFile {
    fn new(file: &Path) -> Self {
        Self { file: file.to_owned(), state: Guarded::default() }
    }

    fn user(&self, chain: &[CertificateDer<'static>], now: UnixTime) -> Option<User> {
        let (own, rest) = chain.split_first()?;
        let verifier = self.verifier(now)?;
        if let Err(error) = verifier.verify_client_cert(own, rest, now) {
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
    fn verifier(&self, now: UnixTime) -> Option<Arc<dyn ClientCertVerifier>> {
        let now = timestamp(now);
        let seen = SeenFile::at(&self.file);
        let mut state = self.state.lock();
        let is_due = state.read_again.is_some_and(|at| at <= now);
        if is_due || state.seen != seen {
            state.seen = seen;
            match load(&self.file, now) {
                Ok(authorities) => {
                    (state.read_again, state.authorities) = (authorities.until, authorities);
                }
                Err(error) => {
                    self.log_failure(&error);
                    state.read_again = now.checked_add(AFTER_A_FAILED_LOAD).ok();
                }
            }
        }
        state.authorities.verifier.clone()
    }

    fn log_failure(&self, error: &str) {
        tracing::error!(
            path = %self.file.display(),
            setting = "authentication.x509.clientCAFile",
            error,
            "client CA file not loaded, previous content stays in use"
        );
    }
}

fn timestamp(now: UnixTime) -> Timestamp {
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
}

/// The authorities of a file that are valid now: a trust anchor itself is not asked for its validity.
fn load(file: &Path, now: Timestamp) -> Result<ClientAuthorities, String> {
    let text = fs::read(file).map_err(|error| error.to_string())?;
    let (mut roots, mut until, mut count) = (RootCertStore::empty(), None, 0);
    for found in CertificateDer::pem_slice_iter(&text) {
        let found = found.map_err(|error| error.to_string())?;
        let read = certificate::read_der(&found)?;
        count += 1;
        let changes = [Some(read.not_before), read.not_after.checked_add(SECOND).ok()];
        let next = changes.into_iter().flatten().filter(|at| now < *at).min();
        until = until.into_iter().chain(next).min();
        if read.not_before <= now && now <= read.not_after {
            roots.add(found).map_err(|error| error.to_string())?;
        }
    }
    if roots.is_empty() && count > 0 {
        tracing::error!(
            path = %file.display(),
            setting = "authentication.x509.clientCAFile",
            "no certificate authority of clients is valid, client certificates are refused"
        );
        return Ok(ClientAuthorities { verifier: None, until });
    }
    let provider = Arc::new(provider::default_provider());
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let verifier = builder.build().map_err(|error| error.to_string())?;
    Ok(ClientAuthorities { verifier: Some(verifier), until })
}
