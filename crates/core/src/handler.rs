//! Which address, port and scheme a handler of a container means: the same for lifecycle hooks and for probes.

use k8s_openapi::api::core::v1::{ContainerPort, GRPCAction, HTTPGetAction, Pod, TCPSocketAction};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::ids::ContainerId;
use crate::pod::PodExt;
use crate::view::PodView;

/// Where a container can be reached.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContainerEndpoint {
    ports: Vec<ContainerPort>,
    address: Option<String>,
}

/// What a handler connects to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerTarget {
    /// Whether TLS is spoken.
    pub tls: bool,
    /// The host name or IP address to connect to.
    pub host: String,
    /// The number, after names of ports are resolved.
    pub port: u16,
}

/// Why a handler means nothing that can be connected to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum TargetError {
    /// No port of that name.
    #[error("the container has no port named {name:?}; name one of its ports, or give a number")]
    PortName { name: String },
    /// No port has that number.
    #[error("port {number} is not between 1 and 65535")]
    PortNumber { number: i64 },
    /// Neither HTTP nor HTTPS.
    #[error("scheme {scheme:?} is neither HTTP nor HTTPS")]
    Scheme { scheme: String },
    /// The handler names no host, and the pod has no address.
    #[error("the pod has no address, and the handler names no host")]
    NoAddress,
}

impl ContainerEndpoint {
    /// A container with these ports in a pod with this address.
    pub fn new(ports: Vec<ContainerPort>, address: Option<String>) -> Self {
        Self { ports, address }
    }

    /// The endpoint of a container of a pod. Its ports are those of the spec, or else those it was created with; its address is that
    /// of its sandbox, which is the newest for one that was just created, and the node's in the node's network.
    pub fn of(
        pod: Option<&Pod>,
        view: &PodView,
        name: &str,
        id: &ContainerId,
        host_ip: impl FnOnce() -> Option<String>,
    ) -> Self {
        let seen = view.containers.iter().find(|container| container.id == *id);
        let wanted = pod.and_then(|pod| pod.container(name));
        let ports = match wanted {
            Some(wanted) => wanted.spec.ports.clone().unwrap_or_default(),
            None => seen.map(|container| container.label.ports.clone()).unwrap_or_default(),
        };
        let home = seen.map(|container| &container.sandbox);
        let sandbox = view.sandboxes.iter().find(|sandbox| Some(&sandbox.id) == home);
        let sandbox = sandbox.or_else(|| view.newest_sandbox());
        let address = match sandbox {
            Some(found) if found.host_network => host_ip(),
            Some(found) => found.ips.first().cloned(),
            None => None,
        };
        Self { ports, address }
    }

    /// What an HTTP handler means.
    ///
    /// # Errors
    /// When port, scheme or host are missing or cannot be.
    pub fn http(&self, action: &HTTPGetAction) -> Result<HandlerTarget, TargetError> {
        let tls = is_https(action.scheme.as_deref().unwrap_or_default())?;
        self.target(tls, action.host.as_deref(), &action.port)
    }

    /// What a TCP handler means.
    ///
    /// # Errors
    /// When port or host are missing or cannot be.
    pub fn tcp(&self, action: &TCPSocketAction) -> Result<HandlerTarget, TargetError> {
        self.target(false, action.host.as_deref(), &action.port)
    }

    /// What a gRPC handler means: the pod itself, always.
    ///
    /// # Errors
    /// When there is no such port or the pod has no address.
    pub fn grpc(&self, action: &GRPCAction) -> Result<HandlerTarget, TargetError> {
        self.target(false, None, &IntOrString::Int(action.port))
    }

    fn target(
        &self,
        tls: bool,
        host: Option<&str>,
        port: &IntOrString,
    ) -> Result<HandlerTarget, TargetError> {
        let host = host.filter(|host| !host.is_empty()).or(self.address.as_deref());
        let host = host.ok_or(TargetError::NoAddress)?.to_owned();
        Ok(HandlerTarget { tls, host, port: self.port(port)? })
    }

    /// The port meant by a number, by the name of a container's port, or by a number written as text.
    fn port(&self, port: &IntOrString) -> Result<u16, TargetError> {
        let number = match port {
            IntOrString::Int(number) => i64::from(*number),
            IntOrString::String(name) => {
                let named = self.ports.iter().find(|port| port.name.as_ref() == Some(name));
                let number = named.map(|port| i64::from(port.container_port));
                let number = number.or_else(|| name.parse().ok());
                number.ok_or_else(|| TargetError::PortName { name: name.clone() })?
            }
        };
        let port = u16::try_from(number).ok().filter(|port| *port > 0);
        port.ok_or(TargetError::PortNumber { number })
    }
}

fn is_https(scheme: &str) -> Result<bool, TargetError> {
    match scheme.to_ascii_lowercase().as_str() {
        "" | "http" => Ok(false),
        "https" => Ok(true),
        _ => Err(TargetError::Scheme { scheme: scheme.to_owned() }),
    }
}

#[cfg(test)]
mod tests;
