//! The client of the container runtime, and what the runtime reports of itself.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use oarsman_agent::ReportStore;
use oarsman_core::resources::names::CgroupDriver;
use oarsman_cri::{ConnectionHolder, CriError, Deadlines, RemoteRuntime, Runtime};
use oarsman_cri_types::v1;

use crate::connection_holder::ConnectionHolderHandle;
use crate::settings::AgentSettings;

/// How often a runtime that does not answer is tried again.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// After how many attempts the wait is logged again.
const LOG_EVERY: usize = 10;

/// What the agent has to know of a runtime before it starts.
#[derive(Debug, Clone)]
pub(super) struct RuntimeFacts {
    /// The name that the runtime reports.
    pub(super) runtime_name: String,
    pub(super) runtime_version: String,
    pub(super) cgroup_driver: CgroupDriver,
    pub(super) recursive_read_only: bool,
    /// Whether it heeds `supplementalGroupsPolicy`.
    pub(super) supplemental_groups_policy: bool,
}

pub(super) fn client(
    settings: &AgentSettings,
    connection_holder: Option<Arc<ConnectionHolderHandle>>,
) -> Result<RemoteRuntime> {
    let deadlines = Deadlines { request: settings.request_timeout };
    let endpoint = &settings.runtime_endpoint;
    let connection_holder =
        connection_holder.map(|connection_holder| connection_holder as Arc<dyn ConnectionHolder>);
    RemoteRuntime::with_holder(
        connection_holder,
        endpoint,
        settings.image_endpoint.as_deref(),
        deadlines,
    )
    .with_context(|| format!("--container-runtime-endpoint {endpoint}"))
}

/// Asks the runtime until it answers: without one no pod can be run.
pub(super) async fn wait_for_runtime(
    client: &RemoteRuntime,
    settings: &AgentSettings,
    report_store: &ReportStore,
) -> RuntimeFacts {
    for look in 0_usize.. {
        let answer = query_runtime(client, settings).await;
        report_store.record_runtime_response(&answer);
        match answer {
            Ok(facts) => {
                report_store.set_runtime_version(&facts.runtime_name, &facts.runtime_version);
                return facts;
            }
            Err(error) if look.is_multiple_of(LOG_EVERY) => {
                tracing::warn!(
                    endpoint = settings.runtime_endpoint,
                    attempt = look + 1,
                    %error,
                    "waiting for the runtime, will retry"
                );
            }
            Err(_) => {}
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    unreachable!("there are more numbers than seconds")
}

async fn query_runtime(
    client: &RemoteRuntime,
    settings: &AgentSettings,
) -> Result<RuntimeFacts, CriError> {
    let version = client.version().await?;
    let status = client.status().await?;
    tracing::info!(
        runtime = version.runtime_name,
        detail = version.runtime_version,
        "runtime connected"
    );
    Ok(RuntimeFacts {
        runtime_name: version.runtime_name,
        runtime_version: version.runtime_version,
        cgroup_driver: cgroup_driver(client, settings).await?,
        supplemental_groups_policy: status.features.is_some_and(|f| f.supplemental_groups_policy),
        recursive_read_only: status.runtime_handlers.iter().any(|handler| {
            let features = handler.features.as_ref();
            handler.name.is_empty() && features.is_some_and(|f| f.recursive_read_only_mounts)
        }),
    })
}

/// The cgroup driver that the runtime reports; of one that does not report it, the configured driver, which the administrator has to make the
/// same.
async fn cgroup_driver(
    client: &RemoteRuntime,
    settings: &AgentSettings,
) -> Result<CgroupDriver, CriError> {
    let told = reported_cgroup_driver(client).await?;
    let ours = || match settings.systemd_cgroups {
        true => CgroupDriver::Systemd,
        false => CgroupDriver::Cgroupfs,
    };
    Ok(told.unwrap_or_else(ours))
}

/// The cgroup driver that the runtime reports, if it does.
pub(crate) async fn reported_cgroup_driver(
    client: &RemoteRuntime,
) -> Result<Option<CgroupDriver>, CriError> {
    match client.runtime_config().await {
        Ok(config) => Ok(config.linux.map(|linux| match linux.cgroup_driver() {
            v1::CgroupDriver::Systemd => CgroupDriver::Systemd,
            v1::CgroupDriver::Cgroupfs => CgroupDriver::Cgroupfs,
        })),
        Err(error) if error.is_unimplemented() => Ok(None),
        Err(error) => Err(error),
    }
}
