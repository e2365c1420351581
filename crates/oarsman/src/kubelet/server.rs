//! The kubelet's HTTP servers: from the configuration to their settings, over the agent's active pods.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{NodeAddress, Pod};
use oarsman_agent::ActivePodsReader;
use oarsman_clock::Clock;
use oarsman_cluster::credentials::{
    AddressSource, ServingCertificate, ServingCertificateManager, ServingCertificateSource, serving,
};
use oarsman_cluster::review::{ApiReviewer, Reviewer};
use oarsman_core::active_pods::ActivePod;
use oarsman_core::cri_spec::log_directory;
use oarsman_core::ids::FullName;
use oarsman_core::pod::PodExt;
use oarsman_kubelet_config::KubeletConfiguration;
use oarsman_kubelet_config::enums::{KubeletAuthorizationMode, TlsVersion};
use oarsman_kubelet_config::flags::ProgramFlags;
use oarsman_server::{
    AuthenticationSettings, AuthorizationSettings, HostInterface, LogDirectory, ServerSettings,
    TlsSettings,
};
use serde_json::Value;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

#[cfg(test)]
mod tests;

/// After a failure, such as an address that is still held by a kubelet that is just ending.
const RETRY_DELAY: Duration = Duration::from_secs(2);

/// Stands for what is not shown, as in the Go kubelet's logs.
const MASKED: &str = "<masked>";

/// What is to be served, and as whom.
#[derive(Clone, Debug)]
pub(super) struct ServingPlan {
    settings: ServerSettings,
    files: Option<(PathBuf, PathBuf)>,
    /// Whether the certificate is signed by the cluster.
    signed_by_cluster: bool,
    cert_dir: PathBuf,
    node: String,
    node_ips: Vec<String>,
}

impl ServingPlan {
    pub(super) fn new(
        kubelet: &KubeletConfiguration,
        flags: &ProgramFlags,
        node: &str,
        node_ips: &[String],
    ) -> Self {
        let is_set = |file: &String| !file.is_empty();
        let files = (&kubelet.tls_cert_file, &kubelet.tls_private_key_file);
        let files = (is_set(files.0) && is_set(files.1)).then(|| (files.0.into(), files.1.into()));
        Self {
            settings: settings(kubelet),
            signed_by_cluster: files.is_none() && kubelet.server_tls_bootstrap,
            files,
            cert_dir: flags.cert_dir.clone().into(),
            node: node.to_owned(),
            node_ips: node_ips.to_vec(),
        }
    }

    fn origin(&self, client: Option<&kube::Client>) -> ServingCertificateSource {
        let (cert_dir, node) = (self.cert_dir.clone(), self.node.clone());
        match (&self.files, client) {
            (Some((certificate, key)), _) => ServingCertificateSource::Files {
                certificate: certificate.clone(),
                key: key.clone(),
            },
            (None, Some(client)) if self.signed_by_cluster => {
                let (client, addresses) = (client.clone(), self.addresses());
                ServingCertificateSource::Cluster { cert_dir, node, addresses, client }
            }
            (None, _) => ServingCertificateSource::SelfSigned { cert_dir, host: node },
        }
    }

    fn addresses(&self) -> AddressSource {
        let address = |kind: &str, address: &String| NodeAddress {
            type_: kind.to_owned(),
            address: address.clone(),
        };
        let ips = self.node_ips.iter().map(|ip| address("InternalIP", ip));
        let all: Vec<NodeAddress> = ips.chain([address("Hostname", &self.node)]).collect();
        Box::new(move || all.clone())
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
    }
}

/// The configuration as /configz shows it. Headers for manifests carry passwords and tokens: their names are shown, their values
/// are not.
fn shown_configuration(kubelet: &KubeletConfiguration) -> Value {
    let mut shown = kubelet.clone();
    let values = shown.static_pod_url_header.values_mut().flatten();
    values.for_each(|value| MASKED.clone_into(value));
    serde_json::to_value(shown).unwrap_or_default()
}

/// Port 0 is nowhere.
fn socket_addr(address: IpAddr, port: i32) -> Option<SocketAddr> {
    let port = u16::try_from(port).ok().filter(|port| *port != 0)?;
    Some(SocketAddr::new(address, port))
}

/// Serves until the kubelet ends, and does not return. Failures are logged and tried again: pods run without the servers.
pub(super) async fn serve(
    plan: ServingPlan,
    source: AgentHost,
    client: Option<kube::Client>,
    clock: &Arc<dyn Clock>,
    end: CancellationToken,
) -> Infallible {
    let reviewer = client.as_ref().map(|client| {
        let reviewer: Arc<dyn Reviewer> = Arc::new(ApiReviewer::new(client.clone(), &plan.node));
        reviewer
    });
    let source: Arc<dyn HostInterface> = Arc::new(source);
    let mut told = String::new();
    loop {
        match open(&plan, &source, reviewer.as_ref(), client.as_ref(), clock).await {
            Ok((servers, keeper)) => return tokio::join!(servers.run(end), keeper.run()).1,
            Err(error) => {
                let error = format!("{error:#}");
                if told != error {
                    tracing::error!(
                        task = "kubelet server",
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

async fn open(
    plan: &ServingPlan,
    source: &Arc<dyn HostInterface>,
    reviewer: Option<&Arc<dyn Reviewer>>,
    client: Option<&kube::Client>,
    clock: &Arc<dyn Clock>,
) -> Result<(oarsman_server::Servers, ServingCertificateManager)> {
    let (certificate, keeper): (ServingCertificate, _) =
        serving(plan.origin(client), Arc::clone(clock))?;
    let (settings, source) = (plan.settings.clone(), Arc::clone(source));
    let (certificate, clock) = (Arc::new(certificate), Arc::clone(clock));
    let servers =
        oarsman_server::open(settings, source, reviewer.cloned(), certificate, clock).await?;
    Ok((servers, keeper))
}

/// What the servers need of the agent: its active pods, and where their logs are.
#[derive(Debug)]
pub(super) struct AgentHost {
    pods: ActivePodsReader,
    pod_logs: PathBuf,
}

impl AgentHost {
    pub(super) fn new(pods: ActivePodsReader, pod_logs: PathBuf) -> Self {
        Self { pods, pod_logs }
    }
}

impl HostInterface for AgentHost {
    fn pods(&self) -> Vec<Arc<ActivePod>> {
        by_namespace_and_name(self.pods.all())
    }

    fn pod(&self, name: &FullName) -> Option<Arc<ActivePod>> {
        self.pods.by_name(name)
    }

    fn log_directory(&self, pod: &Pod, container: &str) -> LogDirectory {
        LogDirectory(log_directory(&self.pod_logs, pod).join(container))
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
