//! The client certificate manager: requests the first certificate, rotates it, and reloads it when others renew it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use oarsman_clock::Clock;
use oarsman_core::backoff::{Backoff, Failures};
use oarsman_core::certificates::{Certificate, Purpose, Standing, Wanted};
use tokio::time::{Instant, sleep};

use super::kubeconfig::Access;
use super::store::Store;
use super::switch::{self, Switch};
use super::watch::{self, Look};
use super::{CredentialsError, Plan, Result, certificate, chance, signing};

/// How long the approval of a request may take, as for the Go kubelet.
const PATIENCE: Duration = Duration::from_secs(60 * 60);
/// After a try that failed.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(32));
/// How often an expired or wrong certificate is logged.
const REMIND: Duration = Duration::from_secs(5 * 60);

/// The client certificate manager.
pub(super) struct Manager {
    plan: Plan,
    wanted: Wanted,
    store: Store,
    switch: Switch,
    client: kube::Client,
    clock: Arc<dyn Clock>,
    /// What is used now; none until the first certificate is there.
    held: Option<Held>,
    next_try: Instant,
    failures: Failures,
    reminded: Option<Instant>,
}

/// The identity in use.
#[derive(Debug)]
struct Held {
    access: Access,
    files: Vec<PathBuf>,
    seen: Vec<Look>,
    /// None when we are known by something else, such as a token.
    own: Option<Own>,
}

/// Our certificate, and when its time is.
#[derive(Debug)]
struct Own {
    certificate: Certificate,
    deadline: Timestamp,
}

impl Held {
    fn new(access: Access) -> Self {
        let files = access.files();
        let seen = watch::look(&files);
        let own = access.certificate().map(|certificate| {
            let deadline = certificate.deadline(chance());
            Own { certificate, deadline }
        });
        Self { access, files, seen, own }
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Manager").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl Manager {
    /// Finds the initial identity, and sets it on the client if there is one.
    pub(super) async fn begin(plan: Plan, clock: Arc<dyn Clock>) -> Result<Self> {
        let store = Store::new(&plan.cert_dir, Purpose::Client);
        let wanted = Wanted::client(&plan.node);
        let switch = Switch::default();
        let client = switch.client();
        let held = first(&plan, &store, clock.wall()).await?;
        match &held {
            // Nothing is connected yet that would have to be closed.
            Some(held) => drop(switch.turn_to(&held.access)?),
            None => switch.close("we have no client certificate yet: it waits to be approved"),
        }
        let (next_try, failures) = (Instant::now(), Failures::new(BACKOFF));
        Ok(Self {
            plan,
            wanted,
            store,
            switch,
            client,
            clock,
            held,
            next_try,
            failures,
            reminded: None,
        })
    }

    pub(super) fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// Reloads and rotates the certificate; ends only when the first request is denied.
    pub(super) async fn run(mut self) -> CredentialsError {
        loop {
            self.follow_files().await;
            if let Err(error) = self.renew_if_due().await {
                let is_first = self.held.is_none();
                if is_first && matches!(error, CredentialsError::Denied { .. }) {
                    return error;
                }
                let (node, attempt) = (&self.plan.node, self.failures.count().saturating_add(1));
                tracing::error!(
                    certificate = "client",
                    node,
                    attempt,
                    %error,
                    "client certificate not renewed, will retry"
                );
                self.next_try = Instant::now() + self.failures.next_wait();
            }
            sleep(watch::EVERY).await;
        }
    }

    /// Reloads our files if they were changed by others.
    async fn follow_files(&mut self) {
        let Some(held) = &mut self.held else { return };
        let now = watch::look(&held.files);
        if now == held.seen {
            return;
        }
        // Two files are not renewed at once: a pair that does not fit is looked at again when it changes once more.
        held.seen = now;
        let access = held.access.clone();
        match self.switch.turn_to(&access) {
            Ok(old) => {
                let path = access.file.display();
                tracing::info!(certificate = "client", %path, "client certificate files changed, new certificate in use");
                self.held = Some(Held::new(access));
                switch::close_in_time(old).await;
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

    async fn renew_if_due(&mut self) -> Result<()> {
        if Instant::now() < self.next_try || !self.is_due() {
            return Ok(());
        }
        let client = self.client_for_requests().await?;
        signing::obtain(&client, &self.store, &self.wanted, PATIENCE, &*self.clock).await?;
        let access = self.adopt().await?;
        let old = self.switch.turn_to(&access)?;
        tracing::info!(certificate = "client", node = self.plan.node, "client certificate issued");
        let is_first = self.held.replace(Held::new(access)).is_none();
        self.failures.reset();
        if !is_first {
            switch::close_in_time(old).await;
        }
        Ok(())
    }

    /// Whether a certificate is to be requested. Where that is not possible, a reminder is logged.
    fn is_due(&mut self) -> bool {
        let Some(held) = &self.held else { return true };
        let Some(own) = &held.own else { return false };
        let standing = own.certificate.standing(&self.wanted, own.deadline, self.clock.wall());
        match standing {
            Standing::Good => false,
            Standing::Due => self.plan.rotate,
            Standing::Expired if self.plan.bootstrap.is_some() => true,
            Standing::Expired => {
                let path = held.access.file.display().to_string();
                if self.is_reminder_due() {
                    let node = &self.plan.node;
                    tracing::error!(
                        certificate = "client",
                        node,
                        path,
                        "client certificate expired, API server refuses this node"
                    );
                }
                false
            }
            Standing::Other => {
                let client = own.certificate.subject.common_name.clone();
                if self.is_reminder_due() {
                    tracing::error!(
                        certificate = "client",
                        client,
                        node = self.plan.node,
                        "client certificate is not of this node, it is not renewed"
                    );
                }
                false
            }
        }
    }

    /// Whether a certificate that a person has to replace is to be logged again.
    fn is_reminder_due(&mut self) -> bool {
        let is_due = self.reminded.is_none_or(|last| last.elapsed() >= REMIND);
        if is_due {
            self.reminded = Some(Instant::now());
        }
        is_due
    }

    /// Our own client while its certificate is valid, else one with the bootstrap credentials.
    async fn client_for_requests(&self) -> Result<kube::Client> {
        let own = self.held.as_ref().and_then(|held| held.own.as_ref());
        let is_valid = own.is_some_and(|own| self.clock.wall() < own.certificate.not_after);
        match &self.plan.bootstrap {
            Some(bootstrap) if !is_valid => {
                let switch = Switch::default();
                switch.turn_to(&Access::read(bootstrap).await?)?;
                Ok(switch.client())
            }
            _ => Ok(self.client.clone()),
        }
    }

    /// The identity with the certificate in our store. The kubeconfig is written if there is a bootstrap kubeconfig.
    async fn adopt(&self) -> Result<Access> {
        let current = self.store.current();
        let found = Access::read(&self.plan.kubeconfig).await;
        if let Ok(access) = &found
            && access.files().iter().all(|file| *file == current)
            && !access.files().is_empty()
        {
            return found;
        }
        match &self.plan.bootstrap {
            Some(bootstrap) => {
                Access::write_kubeconfig(bootstrap, &self.plan.kubeconfig, &current)?;
                Access::read(&self.plan.kubeconfig).await
            }
            None => Ok(found?.with_identity(&current)),
        }
    }
}

/// The identity at the start: from the kubeconfig, or a newer certificate of our own; none if it has to be requested first.
async fn first(plan: &Plan, store: &Store, now: Timestamp) -> Result<Option<Held>> {
    let found = Access::read(&plan.kubeconfig).await.map(|access| newer(plan, store, access));
    let Some(bootstrap) = &plan.bootstrap else { return Ok(Some(Held::new(found?))) };
    let why = match &found {
        Err(_) if !plan.kubeconfig.exists() => None,
        Err(error) => Some(error.to_string()),
        Ok(access) => access.is_useless(now),
    };
    match (found, why) {
        (Ok(access), None) => return Ok(Some(Held::new(access))),
        (_, Some(error)) => {
            let path = plan.kubeconfig.display();
            tracing::warn!(
                certificate = "client",
                %path,
                error,
                "kubeconfig not usable, a new client certificate is requested"
            );
        }
        (Err(_), None) => {}
    }
    // Errors in the bootstrap kubeconfig are reported at the start.
    Access::read(bootstrap).await.map(|_| None)
}

/// Uses a certificate that we rotated ourselves if it is newer than the one in the kubeconfig.
fn newer(plan: &Plan, store: &Store, access: Access) -> Access {
    let current = store.current();
    let (Some(named), Some(ours)) = (access.certificate(), read(&current)) else { return access };
    let is_ours = plan.rotate && ours.subject == named.subject && ours.not_after > named.not_after;
    if is_ours { access.with_identity(&current) } else { access }
}

fn read(file: &Path) -> Option<Certificate> {
    certificate::read(&std::fs::read(file).ok()?).ok()
}
