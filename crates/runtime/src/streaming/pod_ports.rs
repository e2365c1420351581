//! Connections to the ports of a pod, from its own loopback device.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream as BlockingTcpStream};
use std::os::fd::AsFd;
use std::sync::Weak;
use std::time::Duration;

use oarsman_host::namespaces::NamespaceKind;
use oarsman_host::thread_namespaces;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::error::{Outcome, failed};
use crate::inner::RuntimeInner;

/// A program that listens answers at once. One that does not take connections any more may have a full queue.
const LONGEST_CONNECT: Duration = Duration::from_secs(10);

/// Sockets of both families. A socket is of the network namespace in which it was made, wherever it is used.
struct PodSockets {
    v4: TcpSocket,
    /// None on a kernel without it.
    v6: Option<TcpSocket>,
}

/// Connects to a port of a pod, by IPv4 and then by IPv6, or says why not.
pub(super) async fn connect(
    inner: Weak<RuntimeInner>,
    sandbox: String,
    own_network: bool,
    port: u16,
) -> Result<TcpStream, String> {
    let told = |why: String| format!("error forwarding port {port} to pod {sandbox}: {why}");
    let sockets = sockets(&inner, &sandbox, own_network).await;
    let PodSockets { v4, v6 } = sockets.map_err(told)?;
    let first = match dial(v4, SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port)).await {
        Ok(connection) => return Ok(connection),
        Err(why) => why,
    };
    let Some(v6) = v6 else { return Err(told(first)) };
    let second = dial(v6, SocketAddr::new(Ipv6Addr::LOCALHOST.into(), port)).await;
    second.map_err(|second| told(format!("{first}; {second}")))
}

async fn dial(socket: TcpSocket, address: SocketAddr) -> Result<TcpStream, String> {
    let connected = timeout(LONGEST_CONNECT, socket.connect(address)).await;
    let connected = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let connected = connected.and_then(|it| it.set_nodelay(true).map(|()| it));
    connected.map_err(|error| format!("failed to connect to {address}: {error}"))
}

async fn sockets(
    inner: &Weak<RuntimeInner>,
    sandbox: &str,
    own_network: bool,
) -> Result<PodSockets, String> {
    let inner = inner.upgrade().ok_or("the runtime has ended")?;
    let made = if own_network {
        let id = sandbox.to_owned();
        // Work of its own, which does not wait for changes of the pod's network.
        let key = format!("forward {sandbox}");
        inner.on_network(&key, move |inner| inner.sockets_of_pod(&id)).await
    } else {
        make().map_err(failed("make a socket for", sandbox.as_ref()))
    };
    made.map_err(|error| error.to_string())
}

impl RuntimeInner {
    fn sockets_of_pod(&self, sandbox: &str) -> Outcome<PodSockets> {
        let kind = NamespaceKind::Network;
        let namespace = self.network.pins().open(sandbox, kind)?;
        let made = thread_namespaces::in_existing(namespace.as_fd(), kind, make);
        made.and_then(|made| made).map_err(failed("make a socket for", sandbox.as_ref()))
    }
}

fn make() -> io::Result<PodSockets> {
    let socket = |family| -> io::Result<TcpSocket> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        Ok(TcpSocket::from_std_stream(BlockingTcpStream::from(socket)))
    };
    Ok(PodSockets { v4: socket(AddressFamily::INET)?, v6: socket(AddressFamily::INET6).ok() })
}
