//! The node's connection to its cluster, if it belongs to one.

use std::sync::Arc;

use anyhow::{Context, Result};
use oarsman_agent::sources::manifest_set::ManifestSet;
use oarsman_clock::Clock;
use oarsman_cluster::credentials::{self, Connection, CredentialsConfig};
use oarsman_cluster::{ApiServer, Cluster, ObjectSettings, Standalone};
use oarsman_state::{CheckpointStore, EncryptedCheckpoints};
use oarsman_sync::TaskPanics;

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
    panics: &TaskPanics,
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
        panics: panics.clone(),
    };
    let server = server.with_settings(objects, joining.request_limits.events);
    Ok(ClusterSeams {
        cluster: Arc::new(server),
        connection: Some(connection),
        checkpoints: checkpoints(joining, settings)?,
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

/// Without `--remember-pods` existing checkpoints are removed, too. A disk that is full or read-only must not
/// keep the node's pods from being looked after, so an agent that cannot remember them runs without.
fn checkpoints(
    joining: &ClusterSettings,
    settings: &AgentSettings,
) -> Result<Option<Arc<dyn CheckpointStore>>> {
    let keys = &joining.checkpoint_keys;
    if !joining.remembers_pods {
        EncryptedCheckpoints::destroy(&settings.root, keys).context("--remember-pods=false")?;
        return Ok(None);
    }
    let told = |error: &oarsman_state::FileError| {
        tracing::error!(path = %settings.root.display(), %error, "pod checkpoints not opened, running without them");
    };
    let files = EncryptedCheckpoints::open(&settings.root, keys).inspect_err(told);
    Ok(files.ok().map(|files| Arc::new(files) as Arc<dyn CheckpointStore>))
}
