//! What stands in the way of pods' packets on this host, for `oarsman check` and `oarsman explain`.

use std::path::Path;

use crate::error::{PodNetworkError, refused};
use crate::names::Names;
use crate::nftables::{BaseChain, NftablesSocket, forward_chains_that_drop};

/// Something on this host that stands in the way of pods' packets, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkFinding {
    /// What was found, and what follows from it.
    pub problem: String,
    /// What to do, with commands.
    pub fix: String,
}

/// Looks at the packet filters of this host.
///
/// # Errors
/// When the kernel does not tell.
pub fn find_obstacles(root: &Path) -> Result<Vec<NetworkFinding>, PodNetworkError> {
    let names = Names::of_root(root);
    let mut socket = NftablesSocket::open().map_err(refused("open a netlink socket"))?;
    let bridge = names.bridge();
    let chains = forward_chains_that_drop(&mut socket, &names.table(), &bridge)
        .map_err(refused("list the chains of nftables"))?;
    Ok(chains.iter().map(|chain| forward_drop(chain, &bridge)).collect())
}

fn forward_drop(chain: &BaseChain, bridge: &str) -> NetworkFinding {
    let BaseChain { family, table, name } = chain;
    let place = format!("{family} {table} {name}");
    NetworkFinding {
        problem: format!(
            "the firewall drops forwarded packets that none of its rules accept (nftables chain {place:?} with policy drop): \
             pods reach nothing outside of this host and host ports do not answer to others; an accept in a table of our own cannot change that"
        ),
        fix: format!(
            "allow the bridge {bridge} there: `nft insert rule {place} iifname {bridge} accept` and \
             `nft insert rule {place} oifname {bridge} accept`{}; and make it last in the firewall's own configuration",
            iptables_fix(chain, bridge)
        ),
    }
}

/// Tables of iptables should be changed by iptables.
fn iptables_fix(chain: &BaseChain, bridge: &str) -> String {
    let command = match chain.family {
        "ip" => "iptables",
        "ip6" => "ip6tables",
        _ => return String::new(),
    };
    match (chain.table.as_str(), chain.name.as_str()) {
        ("filter", "FORWARD") => format!(
            ", or `{command} -I FORWARD -i {bridge} -j ACCEPT` and `{command} -I FORWARD -o {bridge} -j ACCEPT`"
        ),
        _ => String::new(),
    }
}
