//! What is done about CNI networks beside calls: at the start garbage is collected and attachments are checked, and those of sandboxes that were given
//! up are removed, again and again until the plugins do it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use oarsman_cni::{CniClient, CniError};
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use crate::inner::RuntimeInner;
use crate::network_choice::{PodNetworkChoice, PodNetworkMode};

/// How long the first pause between two tries is, and the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

impl RuntimeInner {
    /// Begins the upkeep, which ends with the runtime.
    pub(crate) fn start_upkeep(self: &Arc<Self>) {
        let (inner, cni) = (Arc::downgrade(self), Arc::clone(&self.cni));
        let choice = self.settings.pod_networks.clone();
        let task = tokio::spawn(async move {
            // Plugins may wait for a daemon that runs as a pod: nothing waits for this.
            collect_garbage(&cni, &choice).await;
            check_all(&inner, &cni).await;
            remove_abandoned(&inner, &cni).await;
        });
        *self.upkeep.lock() = Some(AbortOnDropHandle::new(task));
    }
}

async fn collect_garbage(cni: &CniClient, choice: &PodNetworkChoice) {
    if choice.mode == PodNetworkMode::Bridge || !choice.collects_garbage {
        return;
    }
    // A configuration that cannot be used is told by the status.
    let Ok(Some(network)) = cni.network().await else { return };
    let collected = cni.collect_garbage(&network).await;
    for error in collected.err().into_iter().flatten() {
        let object = network.name();
        tracing::warn!(object, %error, "garbage of a pod network not collected");
    }
}

async fn check_all(inner: &Weak<RuntimeInner>, cni: &CniClient) {
    for sandbox in cni.attached() {
        let Some(known) = inner.upgrade().map(|inner| inner.sandbox(&sandbox)) else { return };
        let Ok((_, lock)) = known else { continue };
        // Plugins are called for a sandbox one after the other.
        let _not_ended = lock.read_owned().await;
        if let Err(error) = cni.check(&sandbox).await {
            tracing::warn!(sandbox, %error, "network of a pod is not as its plugins left it");
        }
    }
}

async fn remove_abandoned(inner: &Weak<RuntimeInner>, cni: &CniClient) {
    let mut pause = FIRST_PAUSE;
    loop {
        let (removed, failed) = cni.remove_abandoned().await;
        for sandbox in removed {
            let Some(inner) = inner.upgrade() else { return };
            inner.forget_abandoned(&sandbox).await;
        }
        if failed.is_empty() {
            pause = FIRST_PAUSE;
            cni.abandoned_changed().await;
            continue;
        }
        failed.iter().for_each(|error| tell(error, pause));
        sleep(pause).await;
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

fn tell(error: &CniError, pause: Duration) {
    let (object, seconds) = ("pod network", pause.as_secs());
    tracing::warn!(object, seconds, %error, "pod not disconnected by plugins, will retry");
}

impl RuntimeInner {
    /// Its network namespace was kept for the plugins.
    async fn forget_abandoned(self: &Arc<Self>, sandbox: &str) {
        let id = sandbox.to_owned();
        let removed = self.on_network(sandbox, move |inner| Ok(inner.network.tear_down(&id)?));
        if let Err(error) = removed.await {
            tracing::warn!(sandbox, %error, "network namespace not removed, the next start does it");
        }
    }
}
