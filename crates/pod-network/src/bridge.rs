//! The bridge of the host, and the pod's end of a veth pair.

use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use oarsman_host::namespaces::NamespaceKind;
use oarsman_host::thread_namespaces;

use crate::error::{PodNetworkError, refused};
use crate::faults::after_step;
use crate::host_settings::set_of_link;
use crate::names::Names;
use crate::records::SandboxRecord;
use crate::route::{
    LinkChanges, LinkOperation, LinkState, NewBridge, NewPair, RouteEntry, RouteSocket,
};
use crate::subnet::Subnet;

/// The pod's link, as containers expect it.
pub(crate) const POD_LINK: &str = "eth0";
const LOOPBACK: &str = "lo";
/// The lease of the bridge's own address.
const GATEWAY: u32 = 1;
/// The bridge's link-local address beside the one that the kernel makes. The kernel asks for the hardware address of a pod from such an
/// address when it forwards a packet of another host, and does not use its own one before it has looked for a duplicate: up to two seconds,
/// more on a busy host. It gives a neighbour up after three seconds, and answers "address unreachable" for it. Ours is usable at once.
const LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const LINK_LOCAL_PREFIX: u8 = 64;
/// How long a link has to carry packets. The kernel needs milliseconds, and more on a busy host.
pub(crate) const CARRIER_PATIENCE: Duration = Duration::from_secs(10);
/// What Ethernet has.
const USUAL_MTU: u32 = 1500;

/// The bridge, made and completed where it is missing or half-made.
pub(crate) fn ensure(
    socket: &mut RouteSocket,
    names: &Names,
    subnets: &[Subnet],
) -> Result<LinkState, PodNetworkError> {
    let bridge = ensure_link(socket, names)?;
    after_step("bridge")?;
    if bridge.alias.is_empty() {
        let named = socket.set_alias(bridge.index, &names.alias);
        named.map_err(refused(format!("set the alias of {}", bridge.name)))?;
    }
    if !bridge.is_up {
        // Another program has set it down, which has removed its addresses of IPv6 too.
        socket.set_link_up(bridge.index).map_err(refused(format!("set {} up", bridge.name)))?;
    }
    // A host that forwards may have another default for new links.
    set_of_link("ipv4", &bridge.name, "forwarding", "1")?;
    if subnets.iter().any(|subnet| !subnet.is_ipv4()) {
        set_of_link("ipv6", &bridge.name, "disable_ipv6", "0")?;
        // Pods are no routers.
        set_of_link("ipv6", &bridge.name, "accept_ra", "0")?;
    }
    for (address, subnet) in gateways(subnets).chain(link_local(subnets)) {
        let added = socket.add_address(bridge.index, address, subnet);
        added.map_err(refused(format!("give {} the address {address}", bridge.name)))?;
        after_step("bridge address")?;
    }
    Ok(bridge)
}

fn ensure_link(socket: &mut RouteSocket, names: &Names) -> Result<LinkState, PodNetworkError> {
    let name = names.bridge();
    let found = find_link(socket, &name)?;
    if let Some(bridge) = found {
        return check_owner(bridge, names);
    }
    let mtu = default_mtu(socket)?;
    let new = NewBridge { name: &name, mtu, hardware_address: names.hardware_address(0) };
    socket.add_bridge(&new).map_err(refused(format!("make the bridge {name}")))?;
    find_link(socket, &name)?.ok_or_else(|| missing(&name))
}

/// A bridge without alias is one that we were about to name when we were killed.
fn check_owner(bridge: LinkState, names: &Names) -> Result<LinkState, PodNetworkError> {
    match bridge.alias.is_empty() || bridge.alias == names.alias {
        true => Ok(bridge),
        false => Err(PodNetworkError::BridgeOfAnother { bridge: bridge.name, alias: bridge.alias }),
    }
}

/// The bridge, if there is one and it is ours.
pub(crate) fn find(
    socket: &mut RouteSocket,
    names: &Names,
) -> Result<Option<LinkState>, PodNetworkError> {
    find_link(socket, &names.bridge())?.map(|bridge| check_owner(bridge, names)).transpose()
}

/// Connects a sandbox to the bridge. A link that an earlier try has left is replaced.
pub(crate) fn connect(
    socket: &mut RouteSocket,
    names: &Names,
    bridge: &LinkState,
    record: &SandboxRecord,
    namespace: BorrowedFd<'_>,
) -> Result<(), PodNetworkError> {
    let name = names.link(record.lease);
    let action = || format!("make the link {name}");
    socket.delete_link(&name).map_err(refused(format!("replace the link {name}")))?;
    let pair = NewPair {
        name: &name,
        master: bridge.index,
        mtu: if bridge.mtu == 0 { USUAL_MTU } else { bridge.mtu },
        namespace,
        pod_name: POD_LINK,
        pod_hardware_address: names.hardware_address(record.lease),
    };
    socket.add_pair(&pair).map_err(refused(action()))?;
    after_step("link")?;
    let port = find_link(socket, &name)?.ok_or_else(|| missing(&name))?;
    // With br_netfilter, what a pod sends to its own host port comes back by the port of the bridge that it came from.
    socket.set_hairpin(port.index).map_err(refused(format!("let {name} send packets back")))?;
    after_step("hairpin")
}

/// Makes the link of a sandbox a port of the bridge again, if it is not; false when the link is gone.
pub(crate) fn reconnect(
    socket: &mut RouteSocket,
    names: &Names,
    bridge: &LinkState,
    record: &SandboxRecord,
) -> Result<bool, PodNetworkError> {
    let name = names.link(record.lease);
    let Some(port) = find_link(socket, &name)? else {
        return Ok(false);
    };
    if port.master != Some(bridge.index) {
        let connected = socket.set_master(port.index, bridge.index);
        connected.map_err(refused(format!("make {name} a port of {}", bridge.name)))?;
        socket.set_hairpin(port.index).map_err(refused(format!("let {name} send packets back")))?;
    }
    Ok(true)
}

/// Gives the pod's link and its loopback link what they need, inside of its namespace.
pub(crate) fn configure_pod(
    namespace: BorrowedFd<'_>,
    addresses: &[IpAddr],
    subnets: &[Subnet],
) -> Result<(), PodNetworkError> {
    in_namespace(namespace, |socket| configure_here(socket, addresses, subnets))
}

/// Sets the pod's loopback link up, and nothing else.
pub(crate) fn set_loopback_up(namespace: BorrowedFd<'_>) -> Result<(), PodNetworkError> {
    in_namespace(namespace, set_loopback_up_here)
}

fn in_namespace(
    namespace: BorrowedFd<'_>,
    work: impl FnOnce(&mut RouteSocket) -> Result<(), PodNetworkError> + Send,
) -> Result<(), PodNetworkError> {
    let work = || {
        let mut socket = RouteSocket::open().map_err(refused("open a netlink socket"))?;
        work(&mut socket)
    };
    thread_namespaces::in_existing(namespace.as_fd(), NamespaceKind::Network, work)
        .map_err(refused("enter the network namespace of the pod"))?
}

fn set_loopback_up_here(socket: &mut RouteSocket) -> Result<(), PodNetworkError> {
    let loopback = find_link(socket, LOOPBACK)?.ok_or_else(|| missing(LOOPBACK))?;
    socket.set_link_up(loopback.index).map_err(refused("set the pod's loopback link up"))
}

fn configure_here(
    socket: &mut RouteSocket,
    addresses: &[IpAddr],
    subnets: &[Subnet],
) -> Result<(), PodNetworkError> {
    set_loopback_up_here(socket)?;
    let link = find_link(socket, POD_LINK)?.ok_or_else(|| missing(POD_LINK))?;
    if addresses.iter().any(IpAddr::is_ipv6) {
        set_of_link("ipv6", LOOPBACK, "disable_ipv6", "0")?;
        set_of_link("ipv6", POD_LINK, "disable_ipv6", "0")?;
        // Addresses are leased by us, and another pod must not announce routes.
        set_of_link("ipv6", POD_LINK, "accept_dad", "0")?;
        set_of_link("ipv6", POD_LINK, "accept_ra", "0")?;
    }
    socket.set_link_up(link.index).map_err(refused("set the pod's link up"))?;
    for (address, subnet) in addresses.iter().zip(subnets) {
        let added = socket.add_address(link.index, *address, *subnet);
        added.map_err(refused(format!("give the pod the address {address}")))?;
    }
    for (gateway, _) in gateways(subnets) {
        let added = socket.add_default_route(link.index, gateway);
        added.map_err(refused(format!("route the pod's packets to {gateway}")))?;
    }
    Ok(())
}

/// Waits until packets pass the link of a sandbox and the bridge. The kernel sees by and by that the pod's end is up, and drops what is sent
/// to the pod before: a neighbour solicitation that was dropped is repeated only after a second.
pub(crate) fn await_carrier(
    socket: &mut RouteSocket,
    names: &Names,
    lease: u16,
    patience: Duration,
) -> Result<(), PodNetworkError> {
    let name = names.link(lease);
    if carries(socket, names, &name)? {
        return Ok(());
    }
    let action = || refused(format!("wait until packets pass the link {name}"));
    let mut changes = LinkChanges::until(patience).map_err(action())?;
    while !carries(socket, names, &name)? {
        changes.wait().map_err(action())?;
    }
    Ok(())
}

/// The bridge has always carried packets if the kernel has not looked at it yet. A link has carried none before it was looked at.
fn carries(socket: &mut RouteSocket, names: &Names, link: &str) -> Result<bool, PodNetworkError> {
    // In this order: newer kernels look when they are asked, and the bridge is up with its first link.
    let link = find_link(socket, link)?.ok_or_else(|| missing(link))?;
    let bridge = find_link(socket, &names.bridge())?.ok_or_else(|| missing(&names.bridge()))?;
    Ok(link.operation == LinkOperation::Up && bridge.operation != LinkOperation::Down)
}

fn gateways(subnets: &[Subnet]) -> impl Iterator<Item = (IpAddr, Subnet)> {
    subnets.iter().filter_map(|subnet| subnet.nth(GATEWAY).map(|gateway| (gateway, *subnet)))
}

/// The link-local address of the bridge, if pods have IPv6.
fn link_local(subnets: &[Subnet]) -> Option<(IpAddr, Subnet)> {
    let has_ipv6 = subnets.iter().any(|subnet| !subnet.is_ipv4());
    let subnet = Subnet::of(LINK_LOCAL.into(), LINK_LOCAL_PREFIX).filter(|_| has_ipv6)?;
    Some((LINK_LOCAL.into(), subnet))
}

/// The MTU of the link by which the host reaches the rest of the world: larger packets would not pass it.
fn default_mtu(socket: &mut RouteSocket) -> Result<u32, PodNetworkError> {
    let routes = socket.routes().map_err(refused("list the routes of this host"))?;
    let links = socket.links().map_err(refused("list the links of this host"))?;
    let leaving = routes.iter().filter(|route| route.is_default()).filter_map(|route| route.link);
    let mtu = |index| links.iter().find(|link| link.index == index).map(|link| link.mtu);
    Ok(leaving.filter_map(mtu).filter(|mtu| *mtu > 0).min().unwrap_or(USUAL_MTU))
}

/// The host's routes without those of our bridge.
pub(crate) fn foreign_routes(
    socket: &mut RouteSocket,
    names: &Names,
) -> Result<Vec<RouteEntry>, PodNetworkError> {
    let bridge = find(socket, names)?.map(|bridge| bridge.index);
    let mut routes = socket.routes().map_err(refused("list the routes of this host"))?;
    routes.retain(|route| bridge.is_none() || route.link != bridge);
    Ok(routes)
}

fn find_link(socket: &mut RouteSocket, name: &str) -> Result<Option<LinkState>, PodNetworkError> {
    socket.link(name).map_err(refused(format!("look for the link {name}")))
}

fn missing(name: &str) -> PodNetworkError {
    refused(format!("use the link {name}"))(std::io::ErrorKind::NotFound.into())
}
