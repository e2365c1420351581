//! The node's connection to its cluster, if it belongs to one.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use oarsman_agent::AgentMetrics;
use oarsman_agent::sources::manifest_set::ManifestSet;
use oarsman_clock::Clock;
use oarsman_cluster::credentials::{self, Connection, CredentialsConfig};
use oarsman_cluster::{ApiServer, Cluster, ObjectSettings, Standalone};
use oarsman_state::{CheckpointKeys, CheckpointStore, EncryptedCheckpoints};

use crate::settings::{AgentSettings, ClusterSettings};

/// The client of the cluster, the tasks that keep its credentials valid, and the store of pod checkpoints.
pub(super) struct ClusterSeams {
    pub(super) cluster: Arc<dyn Cluster>,
    pub(super) connection: Option<Connection>,
    pub(super) checkpoints: Option<Arc<dyn CheckpointStore>>,
}

/// Prepares the connection that the settings describe. Sends nothing to the API server, which need not be reachable.
pub(super) async fn join(
    settings: &AgentSettings,
    manifest_set: Option<&ManifestSet>,
    clock: &Arc<dyn Clock>,
    metrics: &AgentMetrics,
) -> Result<ClusterSeams> {
    let Some(joining) = &settings.cluster else {
        let alone =
            manifest_set.map(ManifestSet::objects).map(Standalone::with).unwrap_or_default();
        return Ok(ClusterSeams { cluster: Arc::new(alone), connection: None, checkpoints: None });
    };
    let connection = credentials::connect(plan(joining, settings), Arc::clone(clock)).await?;
    let server = ApiServer::new(connection.client(), &settings.node_name, Arc::clone(clock));
    let objects = ObjectSettings {
        freshness: joining.freshness,
        rate: joining.request_limits.requests,
        projections: joining.projections,
        panics: metrics.panics.clone(),
        certificate_states: metrics.pod_certificates.clone(),
    };
    let server = server.with_settings(objects, joining.request_limits.events);
    Ok(ClusterSeams {
        cluster: Arc::new(server),
        connection: Some(connection),
        checkpoints: checkpoints(joining.remembers_pods, &settings.root, &joining.checkpoint_keys),
    })
}

fn plan(joining: &ClusterSettings, settings: &AgentSettings) -> CredentialsConfig {
    CredentialsConfig {
        kubeconfig: joining.kubeconfig.clone(),
        bootstrap: joining.bootstrap.clone(),
        cert_dir: joining.cert_dir.clone(),
        node: settings.node_name.clone(),
        rotate: joining.rotates,
    }
}

/// Without `--remember-pods` existing checkpoints are removed, too. A disk that is full or read-only must not keep the node's pods from
/// being looked after, so an agent that cannot make or remove checkpoints runs without them.
fn checkpoints(
    remembers_pods: bool,
    root: &Path,
    keys: &CheckpointKeys,
) -> Option<Arc<dyn CheckpointStore>> {
    let path = root.display();
    if !remembers_pods {
        if let Err(error) = EncryptedCheckpoints::destroy(root, keys) {
            tracing::error!(%path, %error, "pod checkpoints not removed, running without them");
        }
        return None;
    }
    match EncryptedCheckpoints::open(root, keys) {
        Ok(files) => Some(Arc::new(files)),
        Err(error) => {
            tracing::error!(%path, %error, "pod checkpoints not opened, running without them");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Row H20 of docs/security.md. A file in place of their directory stands for a disk on which nothing can be removed.
    #[test]
    fn checkpoints_that_can_be_neither_opened_nor_removed_do_not_stop_the_start() {
        let root = tempfile::tempdir().unwrap();
        let keys = CheckpointKeys { directory: root.path().join("keys"), credential: None };
        for remembers_pods in [false, true] {
            fs::write(root.path().join("oarsman-vault"), "").unwrap();
            assert!(checkpoints(remembers_pods, root.path(), &keys).is_none());
            fs::remove_file(root.path().join("oarsman-vault")).unwrap();
            assert_eq!(checkpoints(remembers_pods, root.path(), &keys).is_some(), remembers_pods);
            fs::remove_dir_all(root.path().join("oarsman-vault")).ok();
        }
    }
}
