//! Polls the runtime and records containers that ran, to find any that ran twice at once.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use oarsman_e2e::inspect::{ObservedPod, RuntimeInspector};

/// The containers seen so far.
#[derive(Debug, Default)]
pub(super) struct ContainerObserver {
    /// The ids of containers that ever ran, by pod and name.
    ran: BTreeMap<(String, String), BTreeSet<String>>,
}

impl ContainerObserver {
    /// Lists the containers once.
    ///
    /// # Errors
    /// When two containers of one name run in a pod.
    pub(super) async fn observe(&mut self, look: &RuntimeInspector) -> Result<()> {
        // A runtime that is away gives no answer, which is no failure here.
        let Ok(pods) = look.pods().await else { return Ok(()) };
        pods.iter().try_for_each(|pod| self.record(pod))
    }

    fn record(&mut self, pod: &ObservedPod) -> Result<()> {
        let mut running = BTreeSet::new();
        for container in &pod.containers {
            if container.is_running() {
                ensure!(running.insert(&container.name), "two at once: {pod:#?}");
            }
            if container.started > 0 {
                let of = (pod.uid().to_owned(), container.name.clone());
                self.ran.entry(of).or_default().insert(container.id.clone());
            }
        }
        Ok(())
    }

    /// The ids of the containers of that name that ran in any pod.
    pub(super) fn ran(&self, container: &str) -> Vec<&BTreeSet<String>> {
        self.ran.iter().filter(|((_, name), _)| name == container).map(|(_, ids)| ids).collect()
    }
}
