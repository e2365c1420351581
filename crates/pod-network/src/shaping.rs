//! Limits what a pod receives and sends.
//!
//! What goes to the pod is limited by what the host's end of its link sends. What comes from it is received by that end, which can only be
//! dropped there and not made to wait; so it is redirected through a link of its own (ifb), which is limited. The pod's own end is not touched: a
//! container that may change its network could take the limit away.

use std::io::ErrorKind;

use crate::error::{PodNetworkError, refused};
use crate::faults::after_step;
use crate::names::Names;
use crate::records::SandboxRecord;
use crate::route::{LinkState, RateLimit, RouteSocket};

/// Limits a sandbox whose link was just made.
pub(crate) fn apply(
    socket: &mut RouteSocket,
    names: &Names,
    record: &SandboxRecord,
) -> Result<(), PodNetworkError> {
    limit_received(socket, names, record)?;
    limit_sent(socket, names, record)
}

/// Limits a sandbox again whose limits another program has removed: without the link that it is redirected to, nothing comes from the pod. One that
/// is there stays, with the packets that wait in it.
pub(crate) fn restore(
    socket: &mut RouteSocket,
    names: &Names,
    record: &SandboxRecord,
) -> Result<(), PodNetworkError> {
    limit_received(socket, names, record)?;
    match find(socket, &names.shaper(record.lease))? {
        Some(_) => Ok(()),
        None => limit_sent(socket, names, record),
    }
}

fn limit_received(
    socket: &mut RouteSocket,
    names: &Names,
    record: &SandboxRecord,
) -> Result<(), PodNetworkError> {
    let Some(rate) = record.bandwidth.ingress else { return Ok(()) };
    let link = found(socket, &names.link(record.lease))?;
    limit(socket, &link, rate)?;
    after_step("limit of what is received")
}

fn limit_sent(
    socket: &mut RouteSocket,
    names: &Names,
    record: &SandboxRecord,
) -> Result<(), PodNetworkError> {
    let Some(rate) = record.bandwidth.egress else { return Ok(()) };
    let link = found(socket, &names.link(record.lease))?;
    let name = names.shaper(record.lease);
    let made = socket.add_intermediate(&name, link.mtu);
    made.map_err(refused(format!("make the link {name} (the kernel needs ifb)")))?;
    after_step("intermediate link")?;
    let shaper = found(socket, &name)?;
    limit(socket, &shaper, rate)?;
    let redirected = socket.redirect_received(link.index, shaper.index);
    redirected.map_err(refused(format!(
        "redirect what {} receives (the kernel needs sch_ingress, cls_u32 and act_mirred)",
        link.name
    )))?;
    after_step("limit of what is sent")
}

/// Removes what is beside the link of a sandbox; fine when there is nothing.
pub(crate) fn remove(
    socket: &mut RouteSocket,
    names: &Names,
    lease: u16,
) -> Result<(), PodNetworkError> {
    let name = names.shaper(lease);
    socket.delete_link(&name).map_err(refused(format!("remove the link {name}")))
}

fn limit(socket: &mut RouteSocket, link: &LinkState, rate: u64) -> Result<(), PodNetworkError> {
    let limited = socket.limit_sent(link.index, RateLimit::of(rate));
    limited.map_err(refused(format!("limit what {} sends (the kernel needs sch_tbf)", link.name)))
}

fn find(socket: &mut RouteSocket, name: &str) -> Result<Option<LinkState>, PodNetworkError> {
    socket.link(name).map_err(refused(format!("look for the link {name}")))
}

fn found(socket: &mut RouteSocket, name: &str) -> Result<LinkState, PodNetworkError> {
    let missing = || refused(format!("use the link {name}"))(ErrorKind::NotFound.into());
    find(socket, name)?.ok_or_else(missing)
}
