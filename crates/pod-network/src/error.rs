//! What can go wrong with the network of a pod.

use std::io;
use std::path::{Path, PathBuf};

use crate::host_port::HostPort;
use crate::subnet::Subnet;

/// What can go wrong with the network of a pod.
#[derive(Debug, thiserror::Error)]
pub enum PodNetworkError {
    /// The kernel refused a change of links, addresses, routes, rules or namespaces.
    #[error("cannot {action}: {source}{}", hint(source))]
    Kernel {
        /// What was to be done, with the object.
        action: String,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// A file or mount of ours could not be read or changed.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was to be done.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// An id of a sandbox that could lead out of our directory.
    #[error("{sandbox:?} is no id of a sandbox: it must be one plain file name")]
    SandboxId {
        /// The id.
        sandbox: String,
    },
    /// Two pods want one port of the host.
    #[error(
        "host port {port} is taken by pod {pod} (sandbox {sandbox}): remove that pod, or give one of the two another hostPort or hostIP"
    )]
    HostPortTaken {
        /// The port that was asked for.
        port: HostPort,
        /// The pod that has it.
        pod: String,
        /// The sandbox of that pod.
        sandbox: String,
    },
    /// Every address has a pod.
    #[error(
        "no address is free in {subnet}: {held} sandboxes hold all of them; remove pods, or configure a larger subnet"
    )]
    NoFreeAddress {
        /// The smallest subnet.
        subnet: Subnet,
        /// How many sandboxes have an address.
        held: usize,
    },
    /// Every subnet that we would take is routed elsewhere.
    #[error(
        "no subnet for pods is free: all candidates overlap with routes of this host, such as {}; configure a subnet that does not",
        route.map(|route| route.to_string()).unwrap_or_default()
    )]
    NoFreeSubnet {
        /// A route that is in the way.
        route: Option<Subnet>,
    },
    /// The configuration changed while pods have addresses.
    #[error(
        "sandbox {sandbox} has an address outside of the configured subnets: remove the pods that were started with the old subnets first"
    )]
    SubnetChanged {
        /// One of the sandboxes.
        sandbox: String,
    },
    /// A link has the name of our bridge and is not ours.
    #[error(
        "the link {bridge} belongs to {alias:?} and not to this root directory: remove it with `ip link delete {bridge}` if nothing uses it, or use another root directory"
    )]
    BridgeOfAnother {
        /// The name of the link.
        bridge: String,
        /// What its alias says.
        alias: String,
    },
    /// There are sandboxes that need what is to be removed.
    #[error("the bridge is in use by {} sandboxes, such as {}: tear them down first", sandboxes.len(), sandboxes.first().map_or("", String::as_str))]
    InUse {
        /// The sandboxes.
        sandboxes: Vec<String>,
    },
    /// Several things failed, one after the other.
    #[error("{first} (and {} more: {})", others.len(), listed(others))]
    Several {
        /// The first one.
        #[source]
        first: Box<PodNetworkError>,
        /// The rest.
        others: Vec<PodNetworkError>,
    },
}

impl PodNetworkError {
    /// One error for all that failed; none when nothing did.
    pub(crate) fn all_of(errors: impl IntoIterator<Item = Self>) -> Result<(), Self> {
        let mut errors = errors.into_iter();
        let Some(first) = errors.next() else {
            return Ok(());
        };
        let others: Vec<Self> = errors.collect();
        match others.is_empty() {
            true => Err(first),
            false => Err(Self::Several { first: Box::new(first), others }),
        }
    }
}

/// The usual reason for an answer of the kernel.
fn hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => " (needs root with CAP_NET_ADMIN and CAP_SYS_ADMIN)",
        io::ErrorKind::Unsupported => {
            " (the kernel needs veth, bridge and nf_tables with inet NAT: Linux 5.2 or newer)"
        }
        _ => "",
    }
}

fn listed(errors: &[PodNetworkError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Makes the error of a call to the kernel.
pub(crate) fn refused(action: impl Into<String>) -> impl FnOnce(io::Error) -> PodNetworkError {
    move |source| PodNetworkError::Kernel { action: action.into(), source }
}

/// Makes the error of a file.
pub(crate) fn file_error(
    action: &'static str,
    path: &Path,
) -> impl FnOnce(io::Error) -> PodNetworkError {
    let path = path.to_owned();
    move |source| PodNetworkError::File { action, path, source }
}
