//! Settings of the kernel below `/proc/sys/net` that pods need. They are those of the network namespace of the thread that looks.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{PodNetworkError, file_error, refused};
use crate::route::RouteSocket;

/// A setting of the host that was changed because pods cannot do without, to be told to the host's administrator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostChange {
    /// The setting as `sysctl` names it.
    pub setting: String,
    /// Its value before.
    pub before: String,
    /// Its value now.
    pub now: &'static str,
    /// Why it was changed.
    pub reason: &'static str,
}

/// Whether the host speaks IPv6 at all.
pub(crate) fn has_ipv6() -> bool {
    read(&["net", "ipv6", "conf", "all", "disable_ipv6"]).is_ok_and(|value| value == "0")
}

/// Switches on what is off and needed for packets to be forwarded between pods and other hosts. Returns what was changed.
pub(crate) fn allow_forwarding(
    socket: &mut RouteSocket,
    bridge: u32,
) -> Result<Vec<HostChange>, PodNetworkError> {
    let mut changes = Vec::new();
    let reason = "packets of pods are forwarded between the bridge and other links";
    changes.extend(switch(&["net", "ipv4", "ip_forward"], "1", reason)?);
    let ipv6 = ["net", "ipv6", "conf", "all", "forwarding"];
    if has_ipv6() && read(&ipv6).is_ok_and(|value| value == "0") && is_on_ipv6(socket, bridge)? {
        changes.extend(keep_announced_routes(socket)?);
        changes.extend(switch(&ipv6, "1", reason)?);
    }
    Ok(changes)
}

/// Whether another host can be reached by IPv6: without, there is nothing to forward.
fn is_on_ipv6(socket: &mut RouteSocket, bridge: u32) -> Result<bool, PodNetworkError> {
    let addresses = socket.addresses().map_err(refused("list the addresses of this host"))?;
    let mut others = addresses.iter().filter(|found| found.link != bridge);
    Ok(others.any(|found| found.is_global && found.address.is_ipv6()))
}

/// A host that forwards ignores what routers announce, and the kernel removes the default routes that it has from them. So links with
/// such routes are told first to listen all the same.
fn keep_announced_routes(socket: &mut RouteSocket) -> Result<Vec<HostChange>, PodNetworkError> {
    let routes = socket.routes().map_err(refused("list the routes of this host"))?;
    let links = socket.links().map_err(refused("list the links of this host"))?;
    let announced =
        |index: u32| routes.iter().any(|route| route.is_announced && route.link == Some(index));
    let mut changes = Vec::new();
    for link in links.iter().filter(|link| announced(link.index)) {
        let setting = ["net", "ipv6", "conf", &link.name, "accept_ra"];
        if read(&setting).is_ok_and(|value| value == "1") {
            let reason = "a host that forwards ignores router advertisements otherwise";
            changes.extend(switch(&setting, "2", reason)?);
        }
    }
    Ok(changes)
}

/// Sets a setting of one of our own links; fine when the kernel does not have that setting.
pub(crate) fn set_of_link(
    family: &str,
    link: &str,
    setting: &str,
    value: &'static str,
) -> Result<(), PodNetworkError> {
    match switch(&["net", family, "conf", link, setting], value, "") {
        Err(PodNetworkError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            Ok(())
        }
        other => other.map(drop),
    }
}

/// Changes a setting, if it has another value. The parts of its name are given one by one: a link may have a dot in its name.
fn switch(
    name: &[&str],
    value: &'static str,
    reason: &'static str,
) -> Result<Option<HostChange>, PodNetworkError> {
    let path = path_of(name);
    let before = read(name).map_err(file_error("read", &path))?;
    if before == value {
        return Ok(None);
    }
    fs::write(&path, value).map_err(file_error("write", &path))?;
    Ok(Some(HostChange { setting: name.join("."), before, now: value, reason }))
}

fn read(name: &[&str]) -> io::Result<String> {
    Ok(fs::read_to_string(path_of(name))?.trim().to_owned())
}

fn path_of(name: &[&str]) -> PathBuf {
    name.iter().fold(Path::new("/proc/sys").to_owned(), |path, part| path.join(part))
}
