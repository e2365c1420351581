//! The client certificate manager: requests the first certificate, rotates it, and reloads it when others renew it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use oarsman_clock::Clock;
use oarsman_core::backoff::{Backoff, Failures};
use oarsman_core::certificates::{
    Certificate, CertificatePurpose, CertificateState, CertificateTemplate,
};
use tokio::time::{Instant, sleep};

use super::certificate_record::CertificateRecord;
use super::certificate_store::CertificateStore;
use super::client_service::{self, ClientService};
use super::file_stamp::{self, CredentialFileStamp};
use super::kubeconfig::ApiAccess;
use super::{CredentialsConfig, CredentialsError, Result, random_fraction, signing};

mod initial_identity;

use initial_identity::{initial_identity, set_first_identity};

/// How long the approval of a request may take, as for the Go kubelet.
const PATIENCE: Duration = Duration::from_secs(60 * 60);
/// After a try that failed.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(32));
/// The wait after a certificate that was just signed and has to be renewed already, such as one that is too short-lived.
const UNFIT_BACKOFF: Backoff = Backoff::new(Duration::from_secs(60), Duration::from_secs(60 * 60));
/// How often an expired or wrong certificate is logged.
const REMINDER_PERIOD: Duration = Duration::from_secs(5 * 60);

/// The client certificate manager.
pub(super) struct ClientCertificateManager {
    config: CredentialsConfig,
    template: CertificateTemplate,
    store: CertificateStore,
    client_service: ClientService,
    client: kube::Client,
    clock: Arc<dyn Clock>,
    /// What is used now; none until the first certificate is there.
    active: Option<ActiveIdentity>,
    record: CertificateRecord,
    next_try: Instant,
    failures: Failures,
    unfit: Failures,
    last_reminder: Option<Instant>,
}

/// The identity in use.
#[derive(Debug)]
struct ActiveIdentity {
    access: ApiAccess,
    files: Vec<PathBuf>,
    seen: Vec<CredentialFileStamp>,
    /// None when we are known by something else, such as a token.
    own: Option<OwnCertificate>,
}

/// Our certificate, and when its time is.
#[derive(Debug)]
struct OwnCertificate {
    certificate: Certificate,
    deadline: Timestamp,
}

impl ActiveIdentity {
    fn new(access: ApiAccess) -> Self {
        let files = access.files();
        let seen = file_stamp::file_stamps(&files);
        let own = access.certificate().map(|certificate| {
            let deadline = certificate.deadline(random_fraction());
            OwnCertificate { certificate, deadline }
        });
        Self { access, files, seen, own }
    }

    fn certificate(&self) -> Option<&Certificate> {
        self.own.as_ref().map(|own| &own.certificate)
    }
}

impl fmt::Debug for ClientCertificateManager {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ClientCertificateManager")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl ClientCertificateManager {
    /// Finds the initial identity, and sets it on the client if there is one.
    pub(super) async fn begin(config: CredentialsConfig, clock: Arc<dyn Clock>) -> Result<Self> {
        let store = CertificateStore::new(&config.cert_dir, CertificatePurpose::Client);
        let template = CertificateTemplate::client(&config.node);
        let client_service = ClientService::default();
        let client = client_service.client();
        let active = initial_identity(&config, &store, clock.wall()).await?;
        match &active {
            Some(active) => set_first_identity(&client_service, &store, &active.access)?,
            None => client_service
                .set_unavailable("we have no client certificate yet: it waits to be approved"),
        }
        let (next_try, failures) = (Instant::now(), Failures::new(BACKOFF));
        let record = CertificateRecord::default();
        record.set(active.as_ref().and_then(ActiveIdentity::certificate));
        Ok(Self {
            config,
            template,
            store,
            client_service,
            client,
            clock,
            active,
            record,
            next_try,
            failures,
            unfit: Failures::new(UNFIT_BACKOFF),
            last_reminder: None,
        })
    }

    pub(super) fn client(&self) -> kube::Client {
        self.client.clone()
    }

    pub(super) fn record(&self) -> CertificateRecord {
        self.record.clone()
    }

    #[cfg(test)]
    pub(super) fn has_identity(&self) -> bool {
        self.active.is_some()
    }

    /// Reloads and rotates the certificate; ends only when the first request is denied.
    pub(super) async fn run(&mut self) -> CredentialsError {
        loop {
            self.reload_changed_files().await;
            if let Err(error) = self.rotate_if_due().await {
                let is_first = self.active.is_none();
                if is_first && matches!(error, CredentialsError::Denied { .. }) {
                    return error;
                }
                let (node, attempt) = (&self.config.node, self.failures.count().saturating_add(1));
                tracing::error!(
                    certificate = "client",
                    node,
                    attempt,
                    %error,
                    "client certificate not renewed, will retry"
                );
                self.record.renew_failed();
                self.next_try = Instant::now() + self.failures.next_wait();
            }
            sleep(file_stamp::CHECK_PERIOD).await;
        }
    }

    /// Reloads our files if they were changed by others.
    async fn reload_changed_files(&mut self) {
        let Some(active) = &mut self.active else { return };
        let now = file_stamp::file_stamps(&active.files);
        if now == active.seen {
            return;
        }
        // Two files are not renewed at once: a pair that does not fit is looked at again when it changes once more.
        active.seen = now;
        let access = active.access.clone();
        match self.client_service.set_identity(&access) {
            Ok(old) => {
                let path = access.file.display();
                tracing::info!(certificate = "client", %path, "client certificate files changed, new certificate in use");
                let identity = ActiveIdentity::new(access);
                self.record.set(identity.certificate());
                self.active = Some(identity);
                client_service::close_after_drain(old).await;
            }
            Err(error) => {
                let path = access.file.display();
                tracing::warn!(
                    certificate = "client",
                    %path,
                    %error,
                    "client certificate not loaded, previous one stays in use"
                );
            }
        }
    }

    async fn rotate_if_due(&mut self) -> Result<()> {
        if !self.is_due() {
            self.unfit.reset();
            return Ok(());
        }
        if Instant::now() < self.next_try {
            return Ok(());
        }
        let client = self.client_for_requests().await?;
        signing::request_certificate(&client, &self.store, &self.template, PATIENCE, &*self.clock)
            .await?;
        let access = self.load_new_identity().await?;
        let old = self.client_service.set_identity(&access)?;
        tracing::info!(
            certificate = "client",
            node = self.config.node,
            "client certificate issued"
        );
        let identity = ActiveIdentity::new(access);
        self.record.set(identity.certificate());
        let is_first = self.active.replace(identity).is_none();
        self.failures.reset();
        self.next_try = Instant::now() + self.unfit.next_wait();
        if !is_first {
            client_service::close_after_drain(old).await;
        }
        Ok(())
    }

    /// Whether a certificate is to be requested. Where that is not possible, a reminder is logged.
    fn is_due(&mut self) -> bool {
        let Some(active) = &self.active else { return true };
        let Some(own) = &active.own else { return false };
        let standing = own.certificate.state_at(&self.template, own.deadline, self.clock.wall());
        match standing {
            CertificateState::Good => false,
            CertificateState::Due => self.config.rotate,
            CertificateState::Expired if self.config.bootstrap.is_some() => true,
            CertificateState::Expired => {
                let path = active.access.file.display().to_string();
                if self.is_reminder_due() {
                    let node = &self.config.node;
                    tracing::error!(
                        certificate = "client",
                        node,
                        path,
                        "client certificate expired, API server refuses this node"
                    );
                }
                false
            }
            CertificateState::Other => {
                let client = own.certificate.subject.common_name.clone();
                if self.is_reminder_due() {
                    tracing::error!(
                        certificate = "client",
                        client,
                        node = self.config.node,
                        "client certificate is not of this node, it is not renewed"
                    );
                }
                false
            }
        }
    }

    /// Whether a certificate that a person has to replace is to be logged again.
    fn is_reminder_due(&mut self) -> bool {
        let is_due = self.last_reminder.is_none_or(|last| last.elapsed() >= REMINDER_PERIOD);
        if is_due {
            self.last_reminder = Some(Instant::now());
        }
        is_due
    }

    /// Our own client while its certificate is valid, else one with the bootstrap credentials.
    async fn client_for_requests(&self) -> Result<kube::Client> {
        let own = self.active.as_ref().and_then(|active| active.own.as_ref());
        let is_valid = own.is_some_and(|own| self.clock.wall() < own.certificate.not_after);
        match &self.config.bootstrap {
            Some(bootstrap) if !is_valid => {
                let client_service = ClientService::default();
                client_service.set_identity(&ApiAccess::read(bootstrap).await?)?;
                Ok(client_service.client())
            }
            _ => Ok(self.client.clone()),
        }
    }

    /// The identity with the certificate in our store. The kubeconfig is written if there is a bootstrap kubeconfig.
    async fn load_new_identity(&self) -> Result<ApiAccess> {
        let current = self.store.current();
        let found = ApiAccess::read(&self.config.kubeconfig).await;
        if let Ok(access) = &found
            && access.files().iter().all(|file| *file == current)
            && !access.files().is_empty()
        {
            return found;
        }
        match &self.config.bootstrap {
            Some(bootstrap) => {
                ApiAccess::write_kubeconfig(bootstrap, &self.config.kubeconfig, &current)?;
                ApiAccess::read(&self.config.kubeconfig).await
            }
            None => Ok(found?.with_identity(&current)),
        }
    }
}
