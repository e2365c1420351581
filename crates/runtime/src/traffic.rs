//! What stands in the way of pods' packets, as conditions of the runtime.

use std::sync::Arc;

use oarsman_core::node::runtime::POD_TRAFFIC_CONDITION;
use oarsman_cri_types::v1::RuntimeCondition;
use oarsman_pod_network::{NetworkFinding, find_obstacles};

use crate::inner::RuntimeInner;

impl RuntimeInner {
    /// Conditions that do not hold. None when the kernel does not tell: that is no reason to run no pods.
    pub(crate) async fn traffic_obstacles(self: &Arc<Self>) -> Vec<RuntimeCondition> {
        let found =
            self.on_network("obstacles", |inner| Ok(find_obstacles(&inner.settings.network.root)?));
        match found.await {
            Ok(found) => found.iter().map(condition).collect(),
            Err(error) => {
                tracing::debug!(%error, "packet filters not listed");
                Vec::new()
            }
        }
    }
}

fn condition(found: &NetworkFinding) -> RuntimeCondition {
    RuntimeCondition {
        r#type: POD_TRAFFIC_CONDITION.to_owned(),
        status: false,
        reason: "FirewallDrops".to_owned(),
        message: format!("{}\n{}", found.problem, found.fix),
    }
}
