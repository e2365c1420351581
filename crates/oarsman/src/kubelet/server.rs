//! The kubelet's HTTP servers: from the configuration to their settings, over the agent's active pods.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use oarsman_agent::{ActivePodsReader, NodeAddresses, SyncLoopMonitor};
use oarsman_clock::Clock;
use oarsman_cluster::credentials::{
    AddressSource, ServingCertificate, ServingCertificateManager, ServingCertificateSource, serving,
};
use oarsman_cluster::review::{ApiReviewer, Reviewer};
use oarsman_core::active_pods::ActivePod;
use oarsman_core::cri_spec::log_directory;
use oarsman_core::healthz;
use oarsman_core::ids::FullName;
use oarsman_core::node::addresses::shown;
use oarsman_core::pod::PodExt;
use oarsman_kubelet_config::enums::{KubeletAuthorizationMode, TlsVersion};
use oarsman_kubelet_config::flags::ProgramFlags;
use oarsman_kubelet_config::{KubeletConfiguration, is_enabled};
use oarsman_server::{
    AuthenticationSettings, AuthorizationSettings, HostInterface, LogDirectory, MetricsSource,
    NodeEndpointSettings, ServerSettings, ServerSources, StatsProvider, StreamingService,
    TlsSettings,
};
use oarsman_sync::{TaskName, TaskPanics, restarted};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::metrics::KubeletMetrics;
use crate::assembly::Agent;
use crate::logging::LogControl;
use crate::settings::AgentSettings;

#[cfg(test)]
mod tests;

/// After a failure, such as an address that is still held by a kubelet that is just ending.
const RETRY_DELAY: Duration = Duration::from_secs(2);

/// Stands for what is not shown, as in the Go kubelet's logs.
pub(super) const MASKED: &str = "<masked>";

/// What is to be served, and with which certificate.
#[derive(Clone, Debug)]
pub(super) struct ServingPlan {
    settings: ServerSettings,
    files: Option<(PathBuf, PathBuf)>,
    /// Whether the certificate is signed by the cluster.
    signed_by_cluster: bool,
    /// Whether files that are renewed are loaded again.
    reloads_files: bool,
    cert_dir: PathBuf,
    node: String,
    streaming_idle_timeout: Duration,
}

impl ServingPlan {
    pub(super) fn new(kubelet: &KubeletConfiguration, flags: &ProgramFlags, node: &str) -> Self {
        let is_set = |file: &String| !file.is_empty();
        let files = (&kubelet.tls_cert_file, &kubelet.tls_private_key_file);
        let files = (is_set(files.0) && is_set(files.1)).then(|| (files.0.into(), files.1.into()));
        Self {
            settings: settings(kubelet),
            // The configuration refuses this without the gate RotateKubeletServerCertificate.
            signed_by_cluster: files.is_none() && kubelet.server_tls_bootstrap,
            reloads_files: is_enabled(&kubelet.feature_gates, "ReloadKubeletServerCertificateFile"),
            files,
            cert_dir: flags.cert_dir.clone().into(),
            node: node.to_owned(),
            streaming_idle_timeout: kubelet.streaming_connection_idle_timeout.or_zero(),
        }
    }

    /// With these endpoints of the node.
    pub(super) fn with_node_endpoints(mut self, endpoints: NodeEndpointSettings) -> Self {
        self.settings.node_endpoints = endpoints;
        self
    }

    /// exec, attach and port-forward on the agent's pods.
    pub(super) fn streaming(&self, agent: &Agent) -> Arc<StreamingService> {
        agent.streaming(self.streaming_idle_timeout)
    }

    fn origin(
        &self,
        client: Option<&kube::Client>,
        addresses: &NodeAddresses,
    ) -> ServingCertificateSource {
        let (cert_dir, node) = (self.cert_dir.clone(), self.node.clone());
        match (&self.files, client) {
            (Some((certificate, key)), _) => ServingCertificateSource::Files {
                certificate: certificate.clone(),
                key: key.clone(),
                reloads: self.reloads_files,
            },
            (None, Some(client)) if self.signed_by_cluster => {
                let (client, addresses) = (client.clone(), self.addresses(addresses));
                ServingCertificateSource::Cluster { cert_dir, node, addresses, client }
            }
            (None, _) => ServingCertificateSource::SelfSigned { cert_dir, host: node },
        }
    }

    /// The addresses as they are whenever they are asked for.
    fn addresses(&self, addresses: &NodeAddresses) -> AddressSource {
        let (addresses, node) = (addresses.clone(), self.node.clone());
        Box::new(move || shown(&addresses.get(), &node))
    }
}

fn settings(kubelet: &KubeletConfiguration) -> ServerSettings {
    let (authentication, authorization) = (&kubelet.authentication, &kubelet.authorization);
    let client_ca = &authentication.x509.client_ca_file;
    let webhook = &authorization.webhook;
    ServerSettings {
        secure: socket_addr(kubelet.address, kubelet.port).filter(|_| kubelet.enable_server),
        read_only: socket_addr(kubelet.address, kubelet.read_only_port),
        health: socket_addr(kubelet.healthz_bind_address, kubelet.healthz_port),
        authentication: AuthenticationSettings {
            client_ca: (!client_ca.is_empty()).then(|| client_ca.into()),
            tokens: authentication
                .webhook
                .enabled
                .then(|| authentication.webhook.cache_ttl.or_zero()),
            anonymous: authentication.anonymous.enabled,
        },
        authorization: match authorization.mode {
            KubeletAuthorizationMode::AlwaysAllow => AuthorizationSettings::AlwaysAllow,
            KubeletAuthorizationMode::Webhook => AuthorizationSettings::Webhook {
                allowed: webhook.cache_authorized_ttl.or_zero(),
                denied: webhook.cache_unauthorized_ttl.or_zero(),
            },
        },
        encryption: TlsSettings {
            only_tls13: kubelet.tls_min_version == Some(TlsVersion::Tls13),
            ciphers: kubelet.tls_cipher_suites.clone(),
        },
        debugging: kubelet.enable_debugging_handlers,
        configuration: shown_configuration(kubelet),
        node_endpoints: NodeEndpointSettings::default(),
    }
}

/// The configuration as /configz shows it. Headers for manifests carry passwords and tokens: their names are shown, their values
/// are not. The URL of manifests may have a password and a token, too.
pub(super) fn shown_configuration(kubelet: &KubeletConfiguration) -> Value {
    let mut shown = kubelet.clone();
    let values = shown.static_pod_url_header.values_mut().flatten();
    values.for_each(|value| MASKED.clone_into(value));
    shown.static_pod_url = without_secrets(&shown.static_pod_url);
    serde_json::to_value(shown).unwrap_or_default()
}

/// A URL without login and query.
pub(super) fn without_secrets(url: &str) -> String {
    let (url, query) = url.split_once('?').map_or((url, None), |(url, query)| (url, Some(query)));
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map(|(_, host)| format!("{MASKED}@{host}"));
    let host = host.unwrap_or_else(|| authority.to_owned());
    let scheme = if scheme.is_empty() { String::new() } else { format!("{scheme}://") };
    let query = query.map(|_| format!("?{MASKED}")).unwrap_or_default();
    format!("{scheme}{host}{path}{query}")
}

/// Port 0 is nowhere.
fn socket_addr(address: IpAddr, port: i32) -> Option<SocketAddr> {
    let port = u16::try_from(port).ok().filter(|port| *port != 0)?;
    Some(SocketAddr::new(address, port))
}

/// What the servers are made with.
#[derive(Clone)]
pub(super) struct ServerInputs {
    pub(super) plan: ServingPlan,
    pub(super) host: Arc<dyn HostInterface>,
    pub(super) streaming: Arc<StreamingService>,
    pub(super) metrics: Arc<KubeletMetrics>,
    /// The client of the API server; none without a cluster.
    pub(super) client: Option<kube::Client>,
    pub(super) addresses: NodeAddresses,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) panics: TaskPanics,
    /// Cancelled when the kubelet ends.
    pub(super) end: CancellationToken,
}

impl ServerInputs {
    /// What the endpoints answer from.
    fn sources(&self) -> ServerSources {
        let Self { host, streaming, metrics, .. } = self;
        let metrics: Arc<dyn MetricsSource> = Arc::clone(metrics) as _;
        ServerSources { host: Arc::clone(host), streaming: Arc::clone(streaming), metrics }
    }
}

/// Serves until the kubelet ends, and does not return. Failures are logged and tried again: pods run without the servers.
pub(super) async fn serve(inputs: ServerInputs) -> Infallible {
    let mut told = String::new();
    loop {
        match open(&inputs).await {
            Ok((servers, certificate_manager)) => {
                let certificate = keep_certificate(certificate_manager, inputs.panics);
                return tokio::join!(servers.run(inputs.end), certificate).1;
            }
            Err(error) => {
                let error = format!("{error:#}");
                if told != error {
                    tracing::error!(
                        task = %TaskName::KubeletServer,
                        error,
                        "kubelet server not started, will retry"
                    );
                }
                told = error;
            }
        }
        sleep(RETRY_DELAY).await;
    }
}

/// Keeps the serving certificate valid in a task of its own, so that a panic there ends no server.
async fn keep_certificate(manager: ServingCertificateManager, panics: TaskPanics) -> Infallible {
    let manager = Arc::new(Mutex::new(manager));
    let task = restarted(TaskName::ServingCertificate, panics, move || {
        let manager = Arc::clone(&manager);
        async move { manager.lock().await.run().await }
    });
    match AbortOnDropHandle::new(tokio::spawn(task)).await {
        Ok(never) => never,
        // Only a program that ends cancels it.
        Err(_) => std::future::pending().await,
    }
}

async fn open(
    inputs: &ServerInputs,
) -> Result<(oarsman_server::Servers, ServingCertificateManager)> {
    let ServerInputs { plan, client, addresses, clock, panics, metrics, .. } = inputs;
    let reviewer = client.as_ref().map(|client| {
        let reviewer: Arc<dyn Reviewer> = Arc::new(ApiReviewer::new(client.clone(), &plan.node));
        reviewer
    });
    let (certificate, certificate_manager): (ServingCertificate, _) =
        serving(plan.origin(client.as_ref(), addresses), Arc::clone(clock))?;
    metrics.set_serving_certificate(certificate_manager.record());
    let servers = oarsman_server::open(
        plan.settings.clone(),
        inputs.sources(),
        reviewer,
        Arc::new(certificate),
        Arc::clone(clock),
        panics.clone(),
    );
    Ok((servers.await?, certificate_manager))
}

/// What the servers need of the agent: its active pods, where their logs are, what they use, whether its sync loop runs, and its own log.
pub(super) struct AgentHost {
    pods: ActivePodsReader,
    pod_logs: PathBuf,
    sync_loop_monitor: SyncLoopMonitor,
    sync_frequency: Duration,
    log: LogControl,
    clock: Arc<dyn Clock>,
    stats: Arc<dyn StatsProvider>,
}

impl AgentHost {
    pub(super) fn new(
        agent: &Agent,
        settings: &AgentSettings,
        log: LogControl,
        clock: &Arc<dyn Clock>,
    ) -> Self {
        Self {
            pods: agent.pods(),
            pod_logs: settings.pod_logs.clone(),
            sync_loop_monitor: agent.sync_loop_monitor(),
            sync_frequency: settings.relist_period,
            log,
            clock: Arc::clone(clock),
            stats: agent.stats(),
        }
    }
}

impl HostInterface for AgentHost {
    fn pods(&self) -> Vec<Arc<ActivePod>> {
        by_namespace_and_name(self.pods.all())
    }

    fn pod(&self, name: &FullName) -> Option<Arc<ActivePod>> {
        self.pods.by_name(name)
    }

    fn sync_loop_health(&self) -> Result<(), String> {
        let (last, now) = (self.sync_loop_monitor.last_entry(), self.clock.mono());
        healthz::sync_loop(last, now, self.sync_frequency)
    }

    fn log_health(&self) -> Result<(), String> {
        healthz::log(self.log.progress(), self.clock.mono())
    }

    fn set_log_verbosity(&self, verbosity: u32) {
        self.log.set_verbosity(verbosity);
    }

    fn log_directory(&self, pod: &Pod, container: &str) -> LogDirectory {
        LogDirectory(log_directory(&self.pod_logs, pod).join(container))
    }

    fn stats_provider(&self) -> Arc<dyn StatsProvider> {
        Arc::clone(&self.stats)
    }
}

/// In the order of namespaces and names; of two pods of one name, the one that waits comes last.
fn by_namespace_and_name(mut pods: Vec<Arc<ActivePod>>) -> Vec<Arc<ActivePod>> {
    pods.sort_by_cached_key(|pod| {
        let FullName { name, namespace } = pod.pod.full_name();
        (namespace, name, pod.stage)
    });
    pods
}
