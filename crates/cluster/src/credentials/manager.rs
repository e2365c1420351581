//! Our own client certificate: asked for the first time, renewed, and followed when somebody else renews it.

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

/// So long somebody may take to approve a request, as with the Go kubelet.
const PATIENCE: Duration = Duration::from_secs(60 * 60);
/// After a try that failed.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(32));
/// How often a person is told that nothing can be done without them.
const REMIND: Duration = Duration::from_secs(5 * 60);

/// Who looks after our certificate.
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

/// What is used now.
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
    /// Finds out who we are, and turns the switch to it if we are somebody already.
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

    /// Looks after it, until nothing can be done any more.
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

    /// Goes on with what our files hold, if somebody renewed them.
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

    /// Whether a certificate is to be asked for. Without a way to ask, a person is told instead.
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

    /// By ourselves as long as we are somebody, and else as whoever may ask for the first certificate.
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

    /// What we are to the server with the certificate in our store. A kubeconfig that is ours to make is made.
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

/// Who we are at the start: by the kubeconfig, or by a newer certificate of our own; nobody if there is a way to become somebody.
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
    // What is wrong with it is better said now than when nobody looks.
    Access::read(bootstrap).await.map(|_| None)
}

/// With a certificate that we renewed ourselves, where the kubeconfig still holds the one before.
fn newer(plan: &Plan, store: &Store, access: Access) -> Access {
    let current = store.current();
    let (Some(named), Some(ours)) = (access.certificate(), read(&current)) else { return access };
    let is_ours = plan.rotate && ours.subject == named.subject && ours.not_after > named.not_after;
    if is_ours { access.with_identity(&current) } else { access }
}

fn read(file: &Path) -> Option<Certificate> {
    certificate::read(&std::fs::read(file).ok()?).ok()
}
