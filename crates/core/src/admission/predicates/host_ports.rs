//! Whether the ports that a pod takes on the host are free.

use k8s_openapi::api::core::v1::{Container, Pod};

use crate::pod::{ContainerKind, PodExt, init_kind};

const ANY: &str = "0.0.0.0";

/// A port on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HostPort<'a> {
    address: &'a str,
    protocol: &'a str,
    port: i32,
}

impl HostPort<'_> {
    fn conflicts_with(&self, other: &Self) -> bool {
        let addresses = [self.address, other.address];
        let overlaps = addresses.contains(&ANY) || self.address == other.address;
        overlaps && self.protocol == other.protocol && self.port == other.port
    }
}

/// Whether another pod has one of the pod's ports.
pub(super) fn conflict(pod: &Pod, others: &[&Pod]) -> bool {
    let own: Vec<HostPort<'_>> = host_ports(pod).collect();
    let mut taken = others.iter().flat_map(|other| host_ports(other));
    !own.is_empty() && taken.any(|port| own.iter().any(|own| own.conflicts_with(&port)))
}

/// The ports of containers that stay: regular ones and sidecars.
fn host_ports(pod: &Pod) -> impl Iterator<Item = HostPort<'_>> {
    let sidecars = pod.init().iter().filter(|spec| init_kind(spec) == ContainerKind::Sidecar);
    pod.regular().iter().chain(sidecars).flat_map(of_container)
}

fn of_container(spec: &Container) -> impl Iterator<Item = HostPort<'_>> {
    let ports = spec.ports.iter().flatten();
    ports.filter_map(|port| {
        Some(HostPort {
            address: given(port.host_ip.as_deref()).unwrap_or(ANY),
            protocol: given(port.protocol.as_deref()).unwrap_or("TCP"),
            port: port.host_port.filter(|port| *port > 0)?,
        })
    })
}

fn given(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}
