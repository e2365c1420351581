//! The container runtime of an agent, and what it reports of itself.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use oarsman_agent::ReportStore;
use oarsman_clock::Clock;
use oarsman_core::resources::names::CgroupDriver;
use oarsman_cri::{ConnectionHolder, CriError, Deadlines, RemoteRuntime, Runtime};
use oarsman_cri_types::v1;
use oarsman_demo_image as demo_image;
use oarsman_pod_network::HostChange;
use oarsman_runtime::{BuiltInImage, EmbeddedRuntime, EmbeddedRuntimeSettings};
use oarsman_sync::TaskPanics;

use crate::connection_holder::ConnectionHolderHandle;
use crate::cri_server::{self, CriServer};
use crate::runtime_endpoint::{RuntimeEndpoint, embedded_directory};
use crate::settings::AgentSettings;

/// How often a runtime that does not answer is tried again.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// After how many attempts the wait is logged again.
const LOG_EVERY: usize = 10;

/// The runtime of an agent, with what has to live as long as the agent.
#[derive(Clone)]
pub(crate) enum AgentRuntime {
    /// One that listens at a socket.
    Remote {
        client: Box<RemoteRuntime>,
        /// Holds the connections when the agent is killed.
        connection_holder: Option<Arc<ConnectionHolderHandle>>,
    },
    /// The one in this process.
    Embedded {
        runtime: EmbeddedRuntime,
        /// None if its socket could not be made.
        _server: Option<Arc<CriServer>>,
    },
}

impl AgentRuntime {
    /// Opens the embedded runtime, or prepares the client of a remote one, which need not answer yet.
    pub(super) async fn open(
        settings: &AgentSettings,
        clock: &Arc<dyn Clock>,
        panics: &TaskPanics,
    ) -> Result<Self> {
        match &settings.runtime_endpoint {
            RuntimeEndpoint::Socket(address) => {
                let connection_holder = connection_holder();
                let client = Box::new(client(settings, address, connection_holder.clone())?);
                Ok(Self::Remote { client, connection_holder })
            }
            RuntimeEndpoint::Embedded => open_embedded(settings, clock, panics).await,
        }
    }

    pub(super) fn seam(&self) -> Arc<dyn Runtime> {
        match self {
            Self::Remote { client, .. } => Arc::new(RemoteRuntime::clone(client)),
            Self::Embedded { runtime, .. } => Arc::new(runtime.clone()),
        }
    }

    /// What it has changed of this machine for pods and does not change back, as sentences.
    pub(crate) fn host_changes(&self) -> Vec<String> {
        match self {
            Self::Remote { .. } => Vec::new(),
            Self::Embedded { runtime, .. } => runtime.host_changes().iter().map(sentence).collect(),
        }
    }

    /// Ends what an agent that is killed would leave for the next one. To be called when the agent has ended in order.
    pub(crate) async fn release(&self) {
        match self {
            Self::Remote { connection_holder, .. } => {
                connection_holder.iter().for_each(|holder| holder.release());
            }
            Self::Embedded { runtime, .. } => remove_unused_network(runtime).await,
        }
    }
}

async fn open_embedded(
    settings: &AgentSettings,
    clock: &Arc<dyn Clock>,
    panics: &TaskPanics,
) -> Result<AgentRuntime> {
    let directory = embedded_directory(&settings.root);
    let program = std::env::current_exe().context("cannot tell where this program lies")?;
    let settings = EmbeddedRuntimeSettings {
        pod_networks: settings.pod_networks.clone(),
        built_in_images: vec![BuiltInImage {
            name: demo_image::NAME,
            archive: demo_image::archive,
        }],
        ..EmbeddedRuntimeSettings::new(&directory, program)
    };
    let runtime = EmbeddedRuntime::open(settings, Arc::clone(clock))
        .await
        .with_context(|| format!("cannot open the embedded runtime in {}", directory.display()))?;
    // Only other clients need the socket.
    let told = |error: &anyhow::Error| {
        let (path, error) = (directory.display(), format!("{error:#}"));
        tracing::error!(%path, error, "CRI not served, crictl does not reach the embedded runtime");
    };
    let served = cri_server::serve(&directory, Arc::new(runtime.clone()), panics.clone()).await;
    let server = served.inspect_err(told).ok().map(Arc::new);
    Ok(AgentRuntime::Embedded { runtime, _server: server })
}

fn sentence(change: &HostChange) -> String {
    let HostChange { setting, before, now, reason } = change;
    format!(
        "{setting} of this machine was {before} and is {now} now, because {reason}; it stays so"
    )
}

/// The bridge and the rules stay while there are pods. An agent that ends with pods leaves them running.
async fn remove_unused_network(runtime: &EmbeddedRuntime) {
    let listed = runtime.list_pod_sandboxes(None).await;
    if listed.is_ok_and(|sandboxes| sandboxes.is_empty())
        && let Err(error) = runtime.remove_network().await
    {
        tracing::warn!(object = "pod network", %error, "network of pods not removed, the next start uses it");
    }
}

fn client(
    settings: &AgentSettings,
    address: &str,
    connection_holder: Option<Arc<ConnectionHolderHandle>>,
) -> Result<RemoteRuntime> {
    let deadlines = Deadlines { request: settings.request_timeout };
    let connection_holder =
        connection_holder.map(|connection_holder| connection_holder as Arc<dyn ConnectionHolder>);
    RemoteRuntime::with_holder(
        connection_holder,
        address,
        settings.image_endpoint.as_deref(),
        deadlines,
    )
    .with_context(|| format!("--container-runtime-endpoint {address}"))
}

/// Starts the connection holder. Its failure is logged and no reason not to run: without it a killed agent may leave a half-made sandbox.
fn connection_holder() -> Option<Arc<ConnectionHolderHandle>> {
    let held = ConnectionHolderHandle::start();
    let told = |error: &anyhow::Error| {
        let error = format!("{error:#}");
        tracing::warn!(task = "connection holder", error, "connection holder not started");
    };
    held.inspect_err(told).ok().map(Arc::new)
}

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

/// Asks the runtime until it answers: without one no pod can be run.
pub(super) async fn wait_for_runtime(
    runtime: &dyn Runtime,
    settings: &AgentSettings,
    report_store: &ReportStore,
) -> RuntimeFacts {
    for look in 0_usize.. {
        let answer = query_runtime(runtime, settings).await;
        report_store.record_runtime_response(&answer);
        match answer {
            Ok(facts) => {
                report_store.set_runtime_version(&facts.runtime_name, &facts.runtime_version);
                return facts;
            }
            Err(error) if look.is_multiple_of(LOG_EVERY) => {
                tracing::warn!(
                    endpoint = %settings.runtime_endpoint,
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
    runtime: &dyn Runtime,
    settings: &AgentSettings,
) -> Result<RuntimeFacts, CriError> {
    let version = runtime.version().await?;
    let status = runtime.status().await?;
    tracing::info!(
        runtime = version.runtime_name,
        detail = version.runtime_version,
        "runtime connected"
    );
    Ok(RuntimeFacts {
        runtime_name: version.runtime_name,
        runtime_version: version.runtime_version,
        cgroup_driver: cgroup_driver(runtime, settings).await?,
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
    runtime: &dyn Runtime,
    settings: &AgentSettings,
) -> Result<CgroupDriver, CriError> {
    let told = reported_cgroup_driver(runtime).await?;
    let ours = || match settings.systemd_cgroups {
        true => CgroupDriver::Systemd,
        false => CgroupDriver::Cgroupfs,
    };
    Ok(told.unwrap_or_else(ours))
}

/// The cgroup driver that the runtime reports, if it does.
pub(crate) async fn reported_cgroup_driver(
    runtime: &dyn Runtime,
) -> Result<Option<CgroupDriver>, CriError> {
    match runtime.runtime_config().await {
        Ok(config) => Ok(config.linux.map(|linux| match linux.cgroup_driver() {
            v1::CgroupDriver::Systemd => CgroupDriver::Systemd,
            v1::CgroupDriver::Cgroupfs => CgroupDriver::Cgroupfs,
        })),
        Err(error) if error.is_unimplemented() => Ok(None),
        Err(error) => Err(error),
    }
}
