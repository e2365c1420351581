//! The node's addresses. They are looked for again while the agent runs: a lease of DHCP ends, a default route comes late.

use std::future::pending;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use oarsman_core::node::addresses::{AddressCandidates, AddressSettings};
use oarsman_host::host_info::{HostInfo, HostInfoError};
use oarsman_sync::ordered_watch;
use tokio::time::sleep;

/// How often the addresses are looked for: with every status of the node, as the Go kubelet does.
const PERIOD: Duration = Duration::from_secs(10);
/// The same without a cluster, where only the statuses of pods name them.
const PERIOD_WITHOUT_CLUSTER: Duration = Duration::from_secs(60);
/// The same while a node of a cluster has none.
const PERIOD_WITHOUT_ADDRESS: Duration = Duration::from_secs(2);

/// The node's addresses as they were last found, the primary one first; clones read the same ones.
#[derive(Clone, Debug)]
pub struct NodeAddresses(Arc<ordered_watch::Sender<Vec<IpAddr>>>);

impl Default for NodeAddresses {
    fn default() -> Self {
        Self(Arc::new(ordered_watch::Sender::new(Vec::new())))
    }
}

impl NodeAddresses {
    /// The addresses now; none while a node of a cluster has no address that other machines reach.
    pub fn get(&self) -> Vec<IpAddr> {
        self.0.get()
    }

    /// Sets them. The agent finds them by itself; this is for what reads them without an agent, such as tests.
    pub fn set(&self, ips: &[IpAddr]) {
        self.0.send_replace(ips.to_vec());
    }

    /// A receiver of changes.
    pub(crate) fn subscribe(&self) -> ordered_watch::Receiver<Vec<IpAddr>> {
        self.0.subscribe()
    }

    /// Looks for them once. When that fails, those that are known stay.
    pub(crate) async fn find(&self, host_info: &dyn HostInfo, settings: &AddressSettings) {
        let node = &settings.name;
        let found = match candidates(host_info, settings).await {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(node, %error, "node addresses not found, will retry");
                return;
            }
        };
        let mut next = Vec::new();
        let mut has_changed = false;
        self.0.send_if_modified(|known| {
            next = settings.choose(&found, known);
            has_changed = *known != next;
            known.clone_from(&next);
            has_changed
        });
        if has_changed {
            let detail = next.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            tracing::info!(node, detail, "node addresses changed");
        }
    }

    /// Looks for them again and again.
    pub(crate) async fn run(self, host_info: Arc<dyn HostInfo>, settings: AddressSettings) {
        if settings.configured().is_some() {
            return pending().await;
        }
        let mut had_one = true;
        loop {
            // At the start, too: a task that was started again after a panic has found nothing.
            self.find(&*host_info, &settings).await;
            let has_one = !self.get().is_empty();
            if had_one && !has_one {
                let node = &settings.name;
                tracing::warn!(node, "node has no address that other machines reach, will retry");
            }
            had_one = has_one;
            sleep(period(settings.in_cluster, has_one)).await;
        }
    }
}

/// No candidates are read where the configuration sets the addresses.
async fn candidates(
    host_info: &dyn HostInfo,
    settings: &AddressSettings,
) -> Result<AddressCandidates, HostInfoError> {
    match settings.configured() {
        Some(_) => Ok(AddressCandidates::default()),
        None => host_info.address_candidates(&settings.name).await,
    }
}

fn period(in_cluster: bool, has_one: bool) -> Duration {
    match (in_cluster, has_one) {
        (_, false) => PERIOD_WITHOUT_ADDRESS,
        (true, true) => PERIOD,
        (false, true) => PERIOD_WITHOUT_CLUSTER,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use oarsman_core::cri_spec::NameFiles;
    use oarsman_core::gc::images::ImageFsStats;
    use oarsman_sync::Guarded;

    use super::*;

    /// A machine whose addresses change with every look, as told.
    struct ChangingMachine(Guarded<VecDeque<Result<AddressCandidates, ()>>>);

    impl ChangingMachine {
        fn of(answers: &[Result<AddressCandidates, ()>]) -> Arc<dyn HostInfo> {
            Arc::new(Self(Guarded::new(answers.iter().cloned().collect())))
        }
    }

    #[oarsman_seam::async_trait]
    impl HostInfo for ChangingMachine {
        async fn name_files(&self) -> Result<NameFiles, HostInfoError> {
            Ok(NameFiles::default())
        }

        async fn address_candidates(&self, _: &str) -> Result<AddressCandidates, HostInfoError> {
            let failed = HostInfoError { doing: "look", object: String::new(), why: String::new() };
            let answer = self.0.lock().pop_front();
            match answer {
                Some(answer) => answer.map_err(|()| failed),
                None => pending().await,
            }
        }

        async fn file_system(&self, _: &str) -> Result<ImageFsStats, HostInfoError> {
            pending().await
        }
    }

    fn named(ip: &str) -> Result<AddressCandidates, ()> {
        let by_name = Some(vec![ip.parse().unwrap()]);
        Ok(AddressCandidates { by_name, ..AddressCandidates::default() })
    }

    fn nothing() -> Result<AddressCandidates, ()> {
        Ok(AddressCandidates { by_name: Some(Vec::new()), ..AddressCandidates::default() })
    }

    fn in_cluster() -> AddressSettings {
        AddressSettings { name: "n1".to_owned(), in_cluster: true, ..AddressSettings::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn addresses_follow_the_machine_and_a_look_that_fails_changes_nothing() {
        let machine = ChangingMachine::of(&[named("192.0.2.1"), Err(()), named("192.0.2.2")]);
        let addresses = NodeAddresses::default();
        addresses.find(&*machine, &in_cluster()).await;
        let mut seen = addresses.subscribe();
        let spell = |ips: Vec<IpAddr>| ips.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(spell(addresses.get()), ["192.0.2.1"]);
        tokio::spawn(addresses.clone().run(machine, in_cluster()));
        let next = tokio::time::timeout(PERIOD * 3, seen.changed()).await.unwrap().unwrap();
        assert_eq!(spell(next), ["192.0.2.2"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_of_a_cluster_without_an_address_looks_again_soon() {
        let machine = ChangingMachine::of(&[nothing(), nothing(), named("192.0.2.1")]);
        let addresses = NodeAddresses::default();
        addresses.find(&*machine, &in_cluster()).await;
        assert!(addresses.get().is_empty(), "and not loopback");
        let mut seen = addresses.subscribe();
        tokio::spawn(addresses.clone().run(machine, in_cluster()));
        let soon = PERIOD_WITHOUT_ADDRESS * 2 + Duration::from_millis(1);
        assert_eq!(tokio::time::timeout(soon, seen.changed()).await.unwrap().unwrap().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_configured_address_is_looked_for_nowhere() {
        let given = vec!["192.0.2.9".parse().unwrap()];
        let settings = AddressSettings { given: given.clone(), ..in_cluster() };
        let addresses = NodeAddresses::default();
        addresses.find(&*ChangingMachine::of(&[]), &settings).await;
        assert_eq!(addresses.get(), given);
    }
}
