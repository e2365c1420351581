//! Ports of the host that lead to a pod.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

/// The protocols whose ports can be passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum PortProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl PortProtocol {
    /// Its number in the headers of IP.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
            Self::Sctp => 132,
        }
    }
}

impl fmt::Display for PortProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Sctp => "SCTP",
        })
    }
}

/// A port of the host and the port of the pod that it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HostPort {
    /// The protocol.
    pub protocol: PortProtocol,
    /// The address of the host; none for all addresses of both families. An unspecified address stands for all of its family.
    pub host_ip: Option<IpAddr>,
    /// The port of the host.
    pub host_port: u16,
    /// The port of the pod.
    pub pod_port: u16,
}

impl HostPort {
    /// Whether both cannot be had at once.
    pub(crate) fn conflicts_with(&self, other: &Self) -> bool {
        let same = self.protocol == other.protocol && self.host_port == other.host_port;
        same && match (self.host_ip, other.host_ip) {
            (None, _) | (_, None) => true,
            (Some(one), Some(two)) => {
                let all = one.is_unspecified() || two.is_unspecified();
                one == two || all && one.is_ipv4() == two.is_ipv4()
            }
        }
    }

    /// Whether it is open at addresses of this family.
    pub(crate) fn is_for(&self, ipv4: bool) -> bool {
        self.host_ip.is_none_or(|address| address.is_ipv4() == ipv4)
    }

    /// The one address at which it is open, unless that is every address.
    pub(crate) fn only_address(&self) -> Option<IpAddr> {
        self.host_ip.filter(|address| !address.is_unspecified())
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host_ip {
            Some(address) => {
                write!(f, "{}/{}", SocketAddr::new(address, self.host_port), self.protocol)
            }
            None => write!(f, "{}/{}", self.host_port, self.protocol),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(protocol: PortProtocol, host_ip: &str, host_port: u16) -> HostPort {
        HostPort { protocol, host_ip: host_ip.parse().ok(), host_port, pod_port: 80 }
    }

    #[test]
    fn ports_conflict_at_a_common_address_only() {
        use PortProtocol::{Tcp, Udp};
        for (one, other, expected) in [
            (port(Tcp, "", 80), port(Tcp, "", 80), true),
            (port(Tcp, "", 80), port(Tcp, "", 81), false),
            (port(Tcp, "", 80), port(Udp, "", 80), false),
            (port(Tcp, "", 80), port(Tcp, "127.0.0.1", 80), true),
            (port(Tcp, "10.0.0.1", 80), port(Tcp, "127.0.0.1", 80), false),
            (port(Tcp, "0.0.0.0", 80), port(Tcp, "127.0.0.1", 80), true),
            (port(Tcp, "0.0.0.0", 80), port(Tcp, "fd00::1", 80), false),
            (port(Tcp, "::", 80), port(Tcp, "fd00::1", 80), true),
        ] {
            assert_eq!(one.conflicts_with(&other), expected, "{one} {other}");
            assert_eq!(other.conflicts_with(&one), expected, "{other} {one}");
        }
        assert_eq!(port(Tcp, "fd00::1", 80).to_string(), "[fd00::1]:80/TCP");
        assert_eq!(port(Udp, "", 53).to_string(), "53/UDP");
    }
}
