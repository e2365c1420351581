//! Names that follow from the root directory, so that two agents on one machine have nothing in common.

use std::net::Ipv6Addr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::subnet::Subnet;

/// What all names of an agent's network objects are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    /// Shown by `ip link` beside the bridge.
    pub(crate) alias: String,
    hash: [u8; 32],
}

/// The kernel's limit of an alias, with its zero byte.
const MAX_ALIAS: usize = 255;

impl Names {
    /// Those of the agent with this root directory.
    pub(crate) fn of_root(root: &Path) -> Self {
        let mut alias = format!("oarsman {}", root.display());
        while alias.len() > MAX_ALIAS {
            alias.pop();
        }
        Self { alias, hash: Sha256::digest(root.as_os_str().as_bytes()).into() }
    }

    fn short(&self) -> String {
        self.hash.iter().take(3).map(|byte| format!("{byte:02x}")).collect()
    }

    /// The bridge.
    pub(crate) fn bridge(&self) -> String {
        format!("oar-{}", self.short())
    }

    /// The table of nftables.
    pub(crate) fn table(&self) -> String {
        format!("oarsman-{}", self.short())
    }

    /// The host's end of the veth pair of a lease: at most the 15 bytes that a link's name may have.
    pub(crate) fn link(&self, lease: u16) -> String {
        format!("{}{lease:x}", self.link_prefix())
    }

    /// What the names of all such links start with.
    pub(crate) fn link_prefix(&self) -> String {
        format!("oar-{}-", self.short())
    }

    /// The link through which goes what the pod of a lease sends, when it may not send as much as it likes.
    pub(crate) fn shaper(&self, lease: u16) -> String {
        format!("{}{lease:x}", self.shaper_prefix())
    }

    /// What the names of all such links start with.
    pub(crate) fn shaper_prefix(&self) -> String {
        format!("oar-{}s", self.short())
    }

    /// A hardware address: the bridge has lease 0. That of a lease never changes, so that no neighbour remembers a wrong one.
    pub(crate) fn hardware_address(&self, lease: u16) -> [u8; 6] {
        let [first, second, third, ..] = self.hash;
        let [high, low] = lease.to_be_bytes();
        // 02: given out locally, for one receiver.
        [0x02, first, second, third, high, low]
    }

    /// A number for choices that should differ between roots.
    pub(crate) fn seed(&self) -> u64 {
        self.hash.last_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
    }

    /// A unique local subnet of IPv6 (RFC 4193), which other machines do not have: the machine's id goes into it.
    pub(crate) fn local_ipv6(&self, machine_id: &[u8]) -> Option<Subnet> {
        let digest = Sha256::new().chain_update(self.hash).chain_update(machine_id).finalize();
        let mut address = [0; 16];
        address[0] = 0xfd;
        for (byte, random) in address.iter_mut().skip(1).take(5).zip(digest) {
            *byte = random;
        }
        Subnet::of(Ipv6Addr::from(address).into(), 64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_and_differ_between_roots() {
        let one = Names::of_root(Path::new("/var/lib/kubelet"));
        let other = Names::of_root(Path::new("/var/lib/other"));
        assert_eq!(one, Names::of_root(Path::new("/var/lib/kubelet")));
        assert!(one.link(u16::MAX).len() <= 15, "{}", one.link(u16::MAX));
        assert!(one.link(2).starts_with(&one.link_prefix()));
        assert!(one.shaper(u16::MAX).len() <= 15, "{}", one.shaper(u16::MAX));
        assert!(one.shaper(2).starts_with(&one.shaper_prefix()));
        assert!(!one.shaper(2).starts_with(&one.link_prefix()));
        assert_ne!(one.bridge(), other.bridge());
        assert_ne!(one.table(), other.table());
        assert_ne!(one.hardware_address(2), other.hardware_address(2));
        assert_ne!(one.hardware_address(2), one.hardware_address(3));
        assert_ne!(one.seed(), other.seed());
    }

    #[test]
    fn the_subnet_of_ipv6_is_a_local_one_of_this_machine() {
        let names = Names::of_root(Path::new("/var/lib/kubelet"));
        let subnet = names.local_ipv6(b"one").unwrap();
        assert!(subnet.to_string().starts_with("fd") && subnet.to_string().ends_with("::/64"));
        assert_ne!(Some(subnet), names.local_ipv6(b"other"));
    }

    #[test]
    fn a_long_root_has_an_alias_that_the_kernel_takes() {
        let names = Names::of_root(Path::new(&"/ä".repeat(200)));
        assert!(names.alias.len() <= MAX_ALIAS);
    }
}
