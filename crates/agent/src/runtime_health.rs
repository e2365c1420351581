//! What the runtime last said of itself. A node of a cluster asks it periodically; every agent asks before it creates a sandbox, unless the
//! last answer is recent.

use std::time::Duration;

use oarsman_core::node::runtime::{NetworkState, RuntimeHealth, traffic_obstacle};
use oarsman_cri::CriError;
use oarsman_sync::ordered_watch;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::node::AgentContext;

/// The deadline of one query.
const DEADLINE: Duration = Duration::from_secs(10);

/// The last answer of the runtime, for node status, admission and pod workers.
#[derive(Debug)]
pub(crate) struct RuntimeHealthCache {
    health: ordered_watch::Sender<RuntimeHealth>,
    /// At most one query for all pods that wait for an answer.
    querying: Mutex<()>,
}

impl Default for RuntimeHealthCache {
    fn default() -> Self {
        let health = ordered_watch::Sender::new(RuntimeHealth::default());
        Self { health, querying: Mutex::default() }
    }
}

/// The runtime gave no answer about itself.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RuntimeUnknown {
    #[error(transparent)]
    Call(#[from] CriError),
    #[error("no answer to Status within {0:?}")]
    Late(Duration),
}

impl RuntimeHealthCache {
    pub(crate) fn get(&self) -> RuntimeHealth {
        self.health.get()
    }

    pub(crate) fn subscribe(&self) -> ordered_watch::Receiver<RuntimeHealth> {
        self.health.subscribe()
    }

    /// Asks the runtime. After a failure its version is queried, too: another runtime may have taken its place.
    pub(crate) async fn query(
        &self,
        node: &AgentContext,
        with_version: bool,
    ) -> Result<RuntimeHealth, RuntimeUnknown> {
        let runtime = &node.seams.runtime;
        let answers = async {
            let version = if with_version { Some(runtime.version().await?) } else { None };
            Ok((version, runtime.status().await?))
        };
        let Ok(answers) = timeout(DEADLINE, answers).await else {
            let late = RuntimeUnknown::Late(DEADLINE);
            node.report_store.set_runtime_unreachable(&late.to_string());
            return Err(late);
        };
        node.report_store.record_runtime_response(&answers);
        let (version, status) = answers?;
        node.report_store.set_traffic_obstacle(traffic_obstacle(&status));
        let now = node.seams.clock.mono();
        let mut health = self.get();
        version.iter().for_each(|version| health.set_version(version));
        health.set_status(&status, now);
        self.health.send_if_modified(|known| {
            let is_news = !health.equals_except_time(known);
            known.clone_from(&health);
            is_news
        });
        Ok(health)
    }

    /// Why no sandbox with a network of its own can be created now; none when it can.
    pub(crate) async fn network_trouble(
        &self,
        node: &AgentContext,
    ) -> Result<Option<String>, RuntimeUnknown> {
        let state_of =
            |health: &RuntimeHealth| node.decisions.network_state(health, node.seams.clock.mono());
        let state = || state_of(&self.get());
        let mut known = state();
        if known == NetworkState::Unknown {
            let _turn = self.querying.lock().await;
            // Another pod may have asked meanwhile.
            known = match state() {
                NetworkState::Unknown => state_of(&self.query(node, false).await?),
                answered => answered,
            };
        }
        Ok(match known {
            NetworkState::NotReady(why) => Some(why),
            NetworkState::Ready | NetworkState::Unknown => None,
        })
    }
}
