//! Sandboxes and their networks, by CNI plugins or the built-in bridge, and whether there is one for pods.

use std::sync::Arc;

use oarsman_cni::{AttachRequest, CniDns, CniNetwork, CniPodArguments, CniPortMapping};
use oarsman_core::bandwidth::PodBandwidth;
use oarsman_cri_types::v1::{PodSandboxConfig, RuntimeCondition};
use oarsman_pod_network::{HostPort, PortProtocol, SandboxNetworkRequest};

use crate::error::{EmbeddedRuntimeError, Outcome};
use crate::inner::RuntimeInner;
use crate::network_choice::{NetworkPlan, NoNetwork, PodNetworkMode, choose};
use crate::oci::resolv_conf;
use crate::oci::sysctls::PodSysctl;
use crate::records::StoredSandbox;

/// The condition by which kubelets know whether pods can have a network of their own, and the reason that they know.
const NETWORK_READY: &str = "NetworkReady";
const NOT_READY: &str = "NetworkPluginNotReady";
/// What plugins that pass host ports on, or limit what pods send, ask to be told.
const PORT_MAPPINGS: &str = "portMappings";
const BANDWIDTH: &str = "bandwidth";

impl RuntimeInner {
    /// Gives a sandbox its network, and sets its settings of the kernel.
    pub(crate) async fn set_up_network(
        self: &Arc<Self>,
        record: StoredSandbox,
        config: PodSandboxConfig,
        sysctls: Vec<PodSysctl>,
    ) -> Outcome<StoredSandbox> {
        let id = record.id.clone();
        if !record.own().network {
            return self.on_network(&id, move |inner| inner.finish(record, &sysctls)).await;
        }
        match self.network_plan().await? {
            NetworkPlan::Bridge => {
                let connect = move |inner: &Self| {
                    let record = inner.connect_to_bridge(record, &config)?;
                    inner.finish(record, &sysctls)
                };
                self.on_network(&id, connect).await
            }
            NetworkPlan::Plugins(network) => {
                let record = self.connect_by_plugins(&network, record, &config).await?;
                self.on_network(&id, move |inner| inner.finish(record, &sysctls)).await
            }
        }
    }

    fn finish(&self, record: StoredSandbox, sysctls: &[PodSysctl]) -> Outcome<StoredSandbox> {
        self.set_sysctls(&record, sysctls)?;
        Ok(record)
    }

    fn connect_to_bridge(
        &self,
        mut record: StoredSandbox,
        config: &PodSandboxConfig,
    ) -> Outcome<StoredSandbox> {
        let (ports, pod) = (host_ports(config)?, record.pod());
        let bandwidth = bandwidth(config)?;
        let request =
            SandboxNetworkRequest { sandbox: &record.id, pod: &pod, ports: &ports, bandwidth };
        let network = self.network.set_up(request)?;
        self.note_host_changes(network.host_changes);
        record.addresses = network.addresses;
        Ok(record)
    }

    async fn connect_by_plugins(
        self: &Arc<Self>,
        network: &CniNetwork,
        mut record: StoredSandbox,
        config: &PodSandboxConfig,
    ) -> Outcome<StoredSandbox> {
        let (id, pod) = (record.id.clone(), pod_arguments(config)?);
        note_unused(network, &record, &pod);
        let sandbox = id.clone();
        let prepare = move |inner: &Self| Ok(inner.network.prepare_namespace(&sandbox)?);
        let namespace = self.on_network(&id, prepare).await?;
        let request = AttachRequest { sandbox: id, namespace, pod };
        record.addresses = self.cni.attach(network, request).await?;
        Ok(record)
    }

    /// Has plugins disconnect a sandbox that they have connected. One that was given up is left to the upkeep.
    pub(crate) async fn disconnect(&self, id: &str) -> Outcome<()> {
        match self.cni.is_attached(id) {
            true => Ok(self.cni.detach(id).await?),
            false => Ok(()),
        }
    }

    /// What connects the next sandbox.
    async fn network_plan(&self) -> Result<NetworkPlan, NoNetwork> {
        let (mode, cni) = (self.settings.pod_networks.mode, &self.cni);
        let configured = match mode {
            PodNetworkMode::Bridge => None,
            PodNetworkMode::Cni | PodNetworkMode::CniIfConfigured => {
                cni.network().await.map_err(Box::new)?
            }
        };
        choose(mode, configured, cni.has_attachments(), cni.configuration_directory())
    }

    /// Whether there is a network for pods, and what stands in the way of their packets.
    pub(crate) async fn network_conditions(self: &Arc<Self>) -> Vec<RuntimeCondition> {
        let trouble = match self.network_plan().await {
            Ok(NetworkPlan::Bridge) => {
                let mut conditions = vec![network_ready(None)];
                conditions.extend(self.traffic_obstacles().await);
                return conditions;
            }
            Ok(NetworkPlan::Plugins(network)) => self.cni.trouble(&network).await,
            Err(error) => Some(error.to_string()),
        };
        vec![network_ready(trouble)]
    }
}

/// In the words of containerd, which kubelets show.
fn network_ready(trouble: Option<String>) -> RuntimeCondition {
    let condition = RuntimeCondition {
        r#type: NETWORK_READY.to_owned(),
        status: trouble.is_none(),
        ..RuntimeCondition::default()
    };
    match trouble {
        None => condition,
        Some(trouble) => RuntimeCondition {
            reason: NOT_READY.to_owned(),
            message: format!("Network plugin returns error: {trouble}"),
            ..condition
        },
    }
}

/// A network may do without plugins for these, as those that watch pods at the API server.
fn note_unused(network: &CniNetwork, record: &StoredSandbox, pod: &CniPodArguments) {
    let asked = [
        (!pod.port_mappings.is_empty(), PORT_MAPPINGS),
        (pod.bandwidth != PodBandwidth::default(), BANDWIDTH),
    ];
    for (_, capability) in asked.iter().filter(|(is_asked, _)| *is_asked) {
        if !network.has_capability(capability) {
            let (pod, object) = (record.pod(), network.name());
            tracing::info!(pod, object, detail = capability, "no plugin of the network is told");
        }
    }
}

fn pod_arguments(config: &PodSandboxConfig) -> Outcome<CniPodArguments> {
    let metadata = config.metadata.clone().unwrap_or_default();
    let dns = config.dns_config.clone().unwrap_or_default();
    let cgroup = config.linux.as_ref().map(|linux| linux.cgroup_parent.clone());
    Ok(CniPodArguments {
        namespace: metadata.namespace,
        name: metadata.name,
        uid: metadata.uid,
        annotations: config.annotations.clone(),
        port_mappings: host_ports(config)?.iter().map(port_mapping).collect(),
        bandwidth: bandwidth(config)?,
        dns: resolv_conf::is_given(&dns).then_some(CniDns {
            servers: dns.servers,
            searches: dns.searches,
            options: dns.options,
        }),
        cgroup: cgroup.unwrap_or_default(),
    })
}

fn port_mapping(port: &HostPort) -> CniPortMapping {
    CniPortMapping {
        host_port: port.host_port,
        container_port: port.pod_port,
        protocol: match port.protocol {
            PortProtocol::Tcp => "tcp",
            PortProtocol::Udp => "udp",
            PortProtocol::Sctp => "sctp",
        },
        host_ip: port.host_ip,
    }
}

fn bandwidth(config: &PodSandboxConfig) -> Outcome<PodBandwidth> {
    let asked = PodBandwidth::of_annotations(&config.annotations);
    asked.map_err(|error| EmbeddedRuntimeError::Invalid(error.to_string()))
}

fn host_ports(config: &PodSandboxConfig) -> Outcome<Vec<HostPort>> {
    use oarsman_cri_types::v1::Protocol;
    let invalid = |what: String| EmbeddedRuntimeError::Invalid(what);
    let mut ports = Vec::new();
    for mapping in config.port_mappings.iter().filter(|mapping| mapping.host_port != 0) {
        let number = |port: i32| {
            u16::try_from(port).map_err(|_| invalid(format!("there is no port {port}")))
        };
        let address = || {
            mapping
                .host_ip
                .parse()
                .map_err(|_| invalid(format!("the host IP {:?} is no address", mapping.host_ip)))
        };
        ports.push(HostPort {
            protocol: match mapping.protocol() {
                Protocol::Tcp => PortProtocol::Tcp,
                Protocol::Udp => PortProtocol::Udp,
                Protocol::Sctp => PortProtocol::Sctp,
            },
            host_ip: (!mapping.host_ip.is_empty()).then(address).transpose()?,
            host_port: number(mapping.host_port)?,
            pod_port: number(mapping.container_port)?,
        });
    }
    Ok(ports)
}
