//! A host of a test's own: a thread in new network and mount namespaces, with another host outside of it.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use oarsman_core::bandwidth::PodBandwidth;
use oarsman_host::namespaces::{NamespaceKind, cover_with_empty, detach};
use oarsman_host::thread_namespaces;
use rustix::mount::{MountPropagationFlags, mount_change};

use crate::pins::NamespacePins;
use crate::pod_network::{PodNetwork, SandboxNetwork, SandboxNetworkRequest};
use crate::settings::PodNetworkSettings;
use crate::{HostPort, PortProtocol};

/// The host's and the outside host's addresses on the link between them.
pub(super) const HOST: [&str; 2] = ["192.0.2.1", "2001:db8:1::1"];
pub(super) const OUTSIDE: [&str; 2] = ["192.0.2.2", "2001:db8:1::2"];
/// Long enough for any answer, and waited for by tests of what must not answer only with [`SHORT`].
const LONG: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(400);

/// A host of a test's own.
pub(super) struct PrivateHost {
    directory: tempfile::TempDir,
    outside: NamespacePins,
}

/// A network namespace, from which and in which sockets are opened.
#[derive(Clone, Debug)]
pub(super) enum Place {
    Host,
    Pinned(PathBuf),
}

/// Does a test on a host of its own. Forwarding is off there, as on a fresh machine.
pub(super) fn on_private_host(test: impl FnOnce(&PrivateHost) + Send) {
    let work = || {
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).unwrap();
        run("ip link set lo up");
        write_setting("net/ipv4/ip_forward", "0");
        let directory = tempfile::tempdir().unwrap();
        cover_with_empty(directory.path()).unwrap();
        let outside = NamespacePins::new(&directory.path().join("outside"));
        test(&PrivateHost { directory, outside });
    };
    thread_namespaces::in_new(&[NamespaceKind::Mount, NamespaceKind::Network], work).unwrap();
}

impl Drop for PrivateHost {
    /// All pins are below it.
    fn drop(&mut self) {
        detach(self.directory.path()).unwrap();
    }
}

impl PrivateHost {
    pub(super) fn settings(&self) -> PodNetworkSettings {
        PodNetworkSettings::new(self.directory.path(), self.state())
    }

    /// The directory of the network that is tested.
    pub(super) fn state(&self) -> PathBuf {
        self.directory.path().join("network")
    }

    pub(super) fn network(&self) -> PodNetwork {
        PodNetwork::open(self.settings()).unwrap()
    }

    /// Connects the host to another one, to which it has the default route.
    pub(super) fn connect_outside(&self) -> Place {
        self.outside.create("outside", &[NamespaceKind::Network], None).unwrap();
        let path = self.outside.path("outside", NamespaceKind::Network).unwrap();
        let outside = Place::Pinned(path.clone());
        run(&format!("ip link add up0 type veth peer name out0 netns {}", path.display()));
        configure_link("up0", HOST);
        outside.enter(|| configure_link("out0", OUTSIDE));
        run(&format!("ip route add default via {}", OUTSIDE[0]));
        run(&format!("ip -6 route add default via {} dev up0", OUTSIDE[1]));
        outside
    }
}

fn configure_link(name: &str, addresses: [&str; 2]) {
    run("ip link set lo up");
    run(&format!("ip link set {name} up"));
    run(&format!("ip addr add {}/24 dev {name}", addresses[0]));
    run(&format!("ip addr add {}/64 dev {name} nodad", addresses[1]));
}

impl Place {
    pub(super) fn of(network: &SandboxNetwork) -> Self {
        Self::Pinned(network.namespace.clone())
    }

    /// Does something in this namespace. Sockets stay there.
    pub(super) fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match self {
            Self::Host => work(),
            Self::Pinned(path) => {
                let file = File::open(path).unwrap();
                thread_namespaces::in_existing(file.as_fd(), NamespaceKind::Network, work).unwrap()
            }
        }
    }

    pub(super) fn listen(&self, port: u16) -> TcpListener {
        self.enter(|| TcpListener::bind(("::", port)).unwrap())
    }

    /// Connects to a listener by an address, says something both ways, and returns the address that the listener sees.
    pub(super) fn talk(&self, to: SocketAddr, listener: &TcpListener) -> IpAddr {
        let client = self.enter(|| TcpStream::connect_timeout(&to, LONG));
        let mut client = client.unwrap_or_else(|error| panic!("{self:?} to {to}: {error}"));
        let (mut server, peer) = listener.accept().unwrap();
        for stream in [&client, &server] {
            stream.set_read_timeout(Some(LONG)).unwrap();
        }
        let mut bytes = [0; 4];
        client.write_all(b"ping").unwrap();
        server.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"ping");
        server.write_all(b"pong").unwrap();
        client.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"pong");
        peer.ip().to_canonical()
    }

    /// Whether a connection can be made at all.
    pub(super) fn can_connect(&self, to: SocketAddr) -> bool {
        self.enter(|| TcpStream::connect_timeout(&to, SHORT)).is_ok()
    }

    pub(super) fn udp(&self, address: &str) -> UdpSocket {
        let socket = self.enter(|| UdpSocket::bind(address).unwrap());
        socket.set_read_timeout(Some(LONG)).unwrap();
        socket
    }
}

/// Sends a packet there and back; returns the address that the server sees.
pub(super) fn talk_udp(client: &UdpSocket, to: SocketAddr, server: &UdpSocket) -> IpAddr {
    let mut bytes = [0; 16];
    client.send_to(b"ping", to).unwrap();
    let (_, peer) = server.recv_from(&mut bytes).unwrap();
    server.send_to(b"pong", peer).unwrap();
    let (length, from) = client.recv_from(&mut bytes).unwrap();
    assert_eq!((&bytes[..length], from), (&b"pong"[..], to));
    peer.ip().to_canonical()
}

pub(super) fn set_up(network: &PodNetwork, sandbox: &str, ports: &[HostPort]) -> SandboxNetwork {
    network.set_up(request(sandbox, ports)).unwrap()
}

pub(super) fn request<'a>(sandbox: &'a str, ports: &'a [HostPort]) -> SandboxNetworkRequest<'a> {
    let bandwidth = PodBandwidth::default();
    SandboxNetworkRequest { sandbox, pod: "default/web", ports, bandwidth }
}

pub(super) fn port(protocol: PortProtocol, host_port: u16, pod_port: u16) -> HostPort {
    HostPort { protocol, host_ip: None, host_port, pod_port }
}

pub(super) fn at(address: &str, port: u16) -> SocketAddr {
    SocketAddr::new(address.parse().unwrap(), port)
}

/// Runs a program in the namespaces of this thread; its words are separated by spaces.
pub(super) fn run(command: &str) -> String {
    let mut words = command.split_whitespace();
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    text
}

pub(super) fn write_setting(name: &str, value: &str) {
    fs::write(Path::new("/proc/sys").join(name), value).unwrap();
}

pub(super) fn read_setting(name: &str) -> String {
    fs::read_to_string(Path::new("/proc/sys").join(name)).unwrap().trim().to_owned()
}
