//! The serving certificate manager: a self-signed certificate, given files, or one that the cluster signs.

use std::convert::Infallible;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeAddress;
use oarsman_clock::Clock;
use oarsman_core::backoff::{Backoff, Failures};
use oarsman_core::certificates::{
    Certificate, CertificatePurpose, CertificateState, CertificateTemplate,
};
use oarsman_sync::Guarded;
use tokio::time::{Instant, sleep};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;

use super::certificate_record::CertificateRecord;
use super::certificate_store::{self, CertificateStore, file_error, key_error};
use super::file_stamp::{self, CredentialFileStamp};
use super::key::Key;
use super::{CredentialsError, Result, certificate, random_fraction, signing};

/// How long the approval of a request may take, as for the Go kubelet.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
/// After a try that failed.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(32));

/// The wait after a certificate that was just signed and has to be renewed already, such as one that is too short-lived.
const UNFIT_BACKOFF: Backoff = Backoff::new(Duration::from_secs(60), Duration::from_secs(60 * 60));

/// Returns the node's current addresses.
pub type AddressSource = Box<dyn Fn() -> Vec<NodeAddress> + Send + Sync>;

/// Where the certificate comes from.
#[expect(missing_docs, reason = "the fields' names say what they are")]
pub enum ServingCertificateSource {
    /// Files that others provide and may renew.
    Files {
        certificate: PathBuf,
        key: PathBuf,
        /// Whether they are loaded again when they are renewed (`ReloadKubeletServerCertificateFile`).
        reloads: bool,
    },
    /// A self-signed certificate.
    SelfSigned {
        /// The directory of certificate and key.
        cert_dir: PathBuf,
        /// The host name of the certificate.
        host: String,
    },
    /// One that the cluster signs after its approval.
    Cluster {
        /// The directory of certificate and key.
        cert_dir: PathBuf,
        /// The node's name.
        node: String,
        /// The node's addresses.
        addresses: AddressSource,
        /// The client for the request.
        client: kube::Client,
    },
}

/// The certificate in use; none until the cluster has signed one.
#[derive(Clone, Default)]
pub struct ServingCertificate {
    shown: Arc<Guarded<Option<Arc<CertifiedKey>>>>,
}

impl fmt::Debug for ServingCertificate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ServingCertificate").finish_non_exhaustive()
    }
}

impl ResolvesServerCert for ServingCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.shown.lock().clone()
    }
}

impl ServingCertificate {
    /// Loads these files and uses them from now on.
    fn load(&self, [certificate, key]: &[PathBuf; 2]) -> Result<Certificate> {
        let (known, pair) = load(certificate, key)?;
        *self.shown.lock() = Some(Arc::new(pair));
        Ok(known)
    }
}

fn load(file: &Path, key_file: &Path) -> Result<(Certificate, CertifiedKey)> {
    let text = fs::read(file).map_err(|error| file_error("read", file, &error))?;
    let key_text = fs::read(key_file).map_err(|error| file_error("read", key_file, &error))?;
    let wrong = |file: &Path, why: String| CredentialsError::Certificate { file: file.into(), why };
    let known = certificate::read(&text).map_err(|why| wrong(file, why))?;
    let chain: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(|error| wrong(file, error.to_string()))?;
    let key = PrivateKeyDer::from_pem_slice(&key_text)
        .map_err(|error| wrong(key_file, format!("its key cannot be read: {error}")))?;
    let pair = CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|error| {
        wrong(file, format!("it and the key in {} do not fit: {error}", key_file.display()))
    })?;
    Ok((known, pair))
}

/// The serving certificate manager.
pub struct ServingCertificateManager {
    shown: ServingCertificate,
    files: [PathBuf; 2],
    seen: Vec<CredentialFileStamp>,
    request: Option<CertificateRequester>,
    reloads: bool,
    record: CertificateRecord,
    clock: Arc<dyn Clock>,
}

struct CertificateRequester {
    node: String,
    addresses: AddressSource,
    client: kube::Client,
    store: CertificateStore,
    clock: Arc<dyn Clock>,
    own: Option<(Certificate, Timestamp)>,
    next_try: Instant,
    failures: Failures,
    unfit: Failures,
}

impl fmt::Debug for ServingCertificateManager {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ServingCertificateManager")
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

/// Loads or creates the certificate; one that the cluster signs is requested later.
///
/// # Errors
/// When files cannot be read, written or used.
pub fn serving(
    origin: ServingCertificateSource,
    clock: Arc<dyn Clock>,
) -> Result<(ServingCertificate, ServingCertificateManager)> {
    let shown = ServingCertificate::default();
    let mut reloads = true;
    let (files, request) = match origin {
        ServingCertificateSource::Files { certificate, key, reloads: follows } => {
            reloads = follows;
            ([certificate, key], None)
        }
        ServingCertificateSource::SelfSigned { cert_dir, host } => {
            (self_signed(&cert_dir, &host, clock.wall())?, None)
        }
        ServingCertificateSource::Cluster { cert_dir, node, addresses, client } => {
            let store = CertificateStore::new(&cert_dir, CertificatePurpose::Serving);
            let current = store.current();
            let (next_try, failures) = (Instant::now(), Failures::new(BACKOFF));
            let request = CertificateRequester {
                node,
                addresses,
                client,
                store,
                clock: Arc::clone(&clock),
                own: None,
                next_try,
                failures,
                unfit: Failures::new(UNFIT_BACKOFF),
            };
            ([current.clone(), current], Some(request))
        }
    };
    let seen = file_stamp::file_stamps(&files);
    let record = CertificateRecord::default();
    let mut manager = ServingCertificateManager {
        shown: shown.clone(),
        files,
        seen,
        request,
        reloads,
        record,
        clock,
    };
    match (manager.shown.load(&manager.files), &mut manager.request) {
        (Ok(known), request) => {
            manager.record.set(Some(&known));
            request.iter_mut().for_each(|request| request.set_current(known.clone()));
        }
        (Err(error), None) => return Err(error),
        // The one that is asked for will be there in time.
        (Err(_), Some(_)) => {}
    }
    Ok((shown, manager))
}

/// Creates the certificate, unless there is one that has not expired.
fn self_signed(cert_dir: &Path, host: &str, now: Timestamp) -> Result<[PathBuf; 2]> {
    let files = [cert_dir.join("kubelet.crt"), cert_dir.join("kubelet.key")];
    if load(&files[0], &files[1]).is_ok_and(|(known, _)| now < known.not_after) {
        return Ok(files);
    }
    let key = Key::generate().map_err(|error| key_error(&error))?;
    let text = key.self_signed(host, now).map_err(|error| key_error(&error))?;
    certificate_store::write(&files[1], key.text().as_bytes())?;
    certificate_store::write(&files[0], text.as_bytes())?;
    Ok(files)
}

impl ServingCertificateManager {
    /// What is known of the serving certificate.
    pub fn record(&self) -> CertificateRecord {
        self.record.clone()
    }

    /// Follows files that are renewed, and asks for a certificate where the cluster signs it. It never ends.
    pub async fn run(&mut self) -> Infallible {
        loop {
            self.reload_changed_files();
            if let Some(request) = &mut self.request {
                if !request.rotate_if_due().await {
                    self.record.renew_failed();
                }
                self.reload_changed_files();
            }
            sleep(file_stamp::CHECK_PERIOD).await;
        }
    }

    fn reload_changed_files(&mut self) {
        let now = file_stamp::file_stamps(&self.files);
        if now == self.seen || !self.reloads {
            return;
        }
        // Two files are not renewed at once: a pair that does not fit is looked at again when it changes once more.
        self.seen = now;
        match (self.shown.load(&self.files), &mut self.request) {
            (Ok(known), request) => {
                tracing::info!(certificate = "serving", path = %self.files[0].display(), "serving certificate loaded");
                self.record.rotate(&known, self.clock.wall());
                request.iter_mut().for_each(|request| request.set_current(known.clone()));
            }
            (Err(error), _) => {
                let path = self.files[0].display();
                tracing::warn!(certificate = "serving", %path, %error, "serving certificate not loaded, previous one stays in use");
            }
        }
    }
}

impl CertificateRequester {
    fn set_current(&mut self, known: Certificate) {
        let deadline = known.deadline(random_fraction());
        self.own = Some((known, deadline));
    }

    /// Asks for a certificate if one is needed; whether that did not fail.
    async fn rotate_if_due(&mut self) -> bool {
        let Some(template) = CertificateTemplate::serving(&self.node, &(self.addresses)()) else {
            return true;
        };
        if !self.is_due(&template) {
            self.unfit.reset();
            self.next_try = Instant::now();
            return true;
        }
        if Instant::now() < self.next_try {
            return true;
        }
        match signing::request_certificate(
            &self.client,
            &self.store,
            &template,
            PATIENCE,
            &*self.clock,
        )
        .await
        {
            Ok(()) => {
                self.failures.reset();
                self.next_try = Instant::now() + self.unfit.next_wait();
                true
            }
            Err(error) => {
                let attempt = self.failures.count().saturating_add(1);
                tracing::error!(
                    certificate = "serving",
                    attempt,
                    %error,
                    "serving certificate not signed, will retry"
                );
                self.next_try = Instant::now() + self.failures.next_wait();
                false
            }
        }
    }

    fn is_due(&self, template: &CertificateTemplate) -> bool {
        let Some((known, deadline)) = &self.own else { return true };
        known.state_at(template, *deadline, self.clock.wall()) != CertificateState::Good
    }
}

#[cfg(test)]
mod tests {
    use oarsman_clock::SystemClock;

    use super::*;

    /// Replaces certificate and key by new ones, as another program does.
    fn renew(files: &[PathBuf; 2], from: &str) {
        let key = Key::generate().unwrap();
        let certificate = key.self_signed("localhost", from.parse().unwrap()).unwrap();
        let texts = [certificate.into_bytes(), key.text().as_bytes().to_vec()];
        for (file, text) in files.iter().zip(texts) {
            let new = file.with_extension("new");
            fs::write(&new, text).unwrap();
            fs::rename(new, file).unwrap();
        }
    }

    fn of_files(files: &[PathBuf; 2], reloads: bool) -> ServingCertificateManager {
        let [certificate, key] = files.clone();
        let source = ServingCertificateSource::Files { certificate, key, reloads };
        serving(source, Arc::new(SystemClock::start())).unwrap().1
    }

    #[test]
    fn files_that_are_renewed_are_used_and_damaged_ones_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let files = ["tls.crt", "tls.key"].map(|name| directory.path().join(name));
        renew(&files, "2026-01-01T00:00:00Z");
        let (mut follows, mut stays) = (of_files(&files, true), of_files(&files, false));
        let used = |manager: &mut ServingCertificateManager| {
            manager.reload_changed_files();
            let end = manager.record().not_after().map(|end| end.to_string());
            (end, manager.shown.shown.lock().clone().map(|pair| pair.cert.clone()))
        };
        let first = used(&mut follows);
        assert_eq!(first, used(&mut stays));

        renew(&files, "2026-02-01T00:00:00Z");
        let second = used(&mut follows);
        assert!(second.0 != first.0 && second.1 != first.1, "{second:?}");
        assert_eq!(used(&mut stays), first, "it does not follow files");

        fs::write(&files[0], "no certificate").unwrap();
        assert_eq!(used(&mut follows), second, "the last good pair stays in use");
        renew(&files, "2026-03-01T00:00:00Z");
        assert_ne!(used(&mut follows), second);
    }
}
