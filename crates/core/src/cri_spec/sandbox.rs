//! The message that makes a pod's sandbox.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{ContainerPort, Pod};
use oarsman_cri_types::v1::{
    LinuxPodSandboxConfig, PodSandboxConfig, PodSandboxMetadata, PortMapping, Protocol,
};

use super::dns::{self, DnsWarning};
use super::error::ConfigError;
use super::hostname::hostname;
use super::node_context::NodeContext;
use super::paths::log_directory;
use super::security::{self, PodGrants};
use crate::api::sysctl;
use crate::labels::{ROOT_ANNOTATION, sandbox_annotations, sandbox_labels};
use crate::pod::PodExt;
use crate::resources;

/// What a pod's sandbox is made with.
#[derive(Clone, Debug, PartialEq)]
pub struct SandboxSpec {
    /// The message of RunPodSandbox.
    pub config: PodSandboxConfig,
    /// What in the runtime makes it; empty for the usual one.
    pub handler: String,
    /// What the pod's owner should know about its names.
    pub warnings: Vec<DnsWarning>,
}

/// What a pod's sandbox is made with.
pub fn generate_pod_sandbox_config(
    pod: &Pod,
    attempt: u32,
    grants: &PodGrants,
    node: &NodeContext<'_>,
) -> Result<SandboxSpec, ConfigError> {
    let name = pod.full_name();
    let mut annotations = sandbox_annotations(pod);
    annotations.insert(ROOT_ANNOTATION.to_owned(), node.root.to_owned());
    let resolv_conf = node.name_files.resolv_conf.as_deref();
    let resolver = dns::resolver(pod, &node.settings.dns, resolv_conf, &node.facts.host_ips)?;
    let config = PodSandboxConfig {
        hostname: kernel_name(pod, node)?,
        metadata: Some(PodSandboxMetadata {
            name: name.name,
            namespace: name.namespace,
            uid: pod.uid().to_string(),
            attempt,
        }),
        log_directory: log_directory(node.pod_logs, pod).to_string_lossy().into_owned(),
        dns_config: Some(resolver.config),
        port_mappings: pod.regular().iter().flat_map(|c| ports(c.ports.as_deref())).collect(),
        labels: sandbox_labels(pod),
        annotations,
        linux: Some(linux(pod, grants, node)?),
        ..PodSandboxConfig::default()
    };
    Ok(SandboxSpec { config, handler: handler(pod, grants)?, warnings: resolver.warnings })
}

/// A pod that asks to be kept apart by a runtime class is never run by the usual handler instead.
fn handler(pod: &Pod, grants: &PodGrants) -> Result<String, ConfigError> {
    let class = pod.spec().and_then(|spec| spec.runtime_class_name.clone());
    match (class.filter(|class| !class.is_empty()), &grants.runtime_handler) {
        (None, _) => Ok(String::new()),
        (Some(_), Some(handler)) => Ok(handler.clone()),
        (Some(class), None) => Err(ConfigError::NoRuntimeClass(class)),
    }
}

/// The node's own name is not ours to give.
fn kernel_name(pod: &Pod, node: &NodeContext<'_>) -> Result<String, ConfigError> {
    match pod.host_network() {
        true => Ok(String::new()),
        false => hostname(pod, &node.settings.dns.domain).for_kernel(pod),
    }
}

fn linux(
    pod: &Pod,
    grants: &PodGrants,
    node: &NodeContext<'_>,
) -> Result<LinuxPodSandboxConfig, ConfigError> {
    let numbers = resources::sandbox(pod, &node.settings.resources);
    Ok(LinuxPodSandboxConfig {
        cgroup_parent: node.settings.cgroups.of_pod(pod),
        security_context: Some(security::sandbox(pod, grants)?),
        sysctls: sysctls(pod),
        overhead: Some(numbers.overhead),
        resources: Some(numbers.resources),
    })
}

fn sysctls(pod: &Pod) -> BTreeMap<String, String> {
    let context = pod.spec().and_then(|spec| spec.security_context.as_ref());
    let wanted = context.and_then(|context| context.sysctls.as_deref()).unwrap_or_default();
    wanted.iter().map(|one| (sysctl::dotted(&one.name), one.value.clone())).collect()
}

/// All ports of a container: one without a host port tells the runtime that there is none. Of two of the same name,
/// the first counts.
fn ports(ports: Option<&[ContainerPort]>) -> Vec<PortMapping> {
    let mut seen = BTreeSet::new();
    let ports = ports.unwrap_or_default().iter();
    ports.filter(|port| seen.insert(identity(port))).map(mapping).collect()
}

/// By name, else by everything that makes a port.
fn identity(port: &ContainerPort) -> (Option<String>, Option<PortMappingKey>) {
    match port.name.as_deref().filter(|name| !name.is_empty()) {
        Some(name) => (Some(name.to_owned()), None),
        None => {
            let mapping = mapping(port);
            let key =
                (mapping.protocol, mapping.host_ip, mapping.container_port, mapping.host_port);
            (None, Some(key))
        }
    }
}

type PortMappingKey = (i32, String, i32, i32);

fn mapping(port: &ContainerPort) -> PortMapping {
    let protocol = match port.protocol.as_deref() {
        Some("UDP") => Protocol::Udp,
        Some("SCTP") => Protocol::Sctp,
        _ => Protocol::Tcp,
    };
    PortMapping {
        protocol: protocol.into(),
        container_port: port.container_port,
        host_port: port.host_port.unwrap_or_default(),
        host_ip: port.host_ip.clone().unwrap_or_default(),
    }
}
