//! Chains of other tables that throw away what is forwarded.

use std::io;

use super::{NFPROTO_INET, NftablesSocket};
use crate::netlink::{Attributes, Reply, find_attribute, read_text};

const NFT_MSG_GETCHAIN: u16 = 4;
const NFT_MSG_GETRULE: u16 = 7;
const NFTA_CHAIN_TABLE: u16 = 1;
const NFTA_CHAIN_NAME: u16 = 3;
const NFTA_CHAIN_HOOK: u16 = 4;
const NFTA_CHAIN_POLICY: u16 = 5;
const NFTA_HOOK_NUMBER: u16 = 1;
const NFTA_RULE_TABLE: u16 = 1;
const NFTA_RULE_EXPRESSIONS: u16 = 4;
const ALL_FAMILIES: u8 = 0;
const NFPROTO_IPV4: u8 = 2;
const NFPROTO_IPV6: u8 = 10;
const HOOK_FORWARD: u32 = 2;
const POLICY_DROP: u32 = 0;
/// Family, version and two bytes that are not used.
const HEADER: usize = 4;

/// A chain that sees packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BaseChain {
    /// As `nft` calls it: `ip`, `ip6` or `inet`.
    pub(crate) family: &'static str,
    pub(crate) table: String,
    pub(crate) name: String,
}

/// The chains on the hook `forward` that drop what no rule of theirs accepts, in tables without any rule about a bridge. An accept in
/// our own table would not help: a packet must pass all tables. A rule that names the bridge is taken as a decision about it.
pub(crate) fn forward_chains_that_drop(
    socket: &mut NftablesSocket,
    own_table: &str,
    bridge: &str,
) -> io::Result<Vec<BaseChain>> {
    let chains = socket.dump(NFT_MSG_GETCHAIN, ALL_FAMILIES, &Attributes::new())?;
    let mut found: Vec<BaseChain> = chains.iter().filter_map(dropping_chain).collect();
    found.retain(|chain| chain.table != own_table);
    if found.is_empty() {
        return Ok(found);
    }
    let rules = socket.dump(NFT_MSG_GETRULE, ALL_FAMILIES, &Attributes::new())?;
    let decided: Vec<_> = rules.iter().filter_map(|rule| table_of_rule(rule, bridge)).collect();
    found.retain(|chain| !decided.contains(&(chain.family, chain.table.clone())));
    Ok(found)
}

fn dropping_chain(reply: &Reply) -> Option<BaseChain> {
    let (header, attributes) = reply.body.split_first_chunk::<HEADER>()?;
    let hook = find_attribute(attributes, NFTA_CHAIN_HOOK)?;
    let hook = network_number(find_attribute(hook, NFTA_HOOK_NUMBER)?)?;
    let policy = network_number(find_attribute(attributes, NFTA_CHAIN_POLICY)?)?;
    let drops = hook == HOOK_FORWARD && policy == POLICY_DROP;
    Some(BaseChain {
        family: family_name(header[0]).filter(|_| drops)?,
        table: find_attribute(attributes, NFTA_CHAIN_TABLE).map(read_text)?,
        name: find_attribute(attributes, NFTA_CHAIN_NAME).map(read_text)?,
    })
}

/// The family and table of a rule that compares the name of a link with that of the bridge.
fn table_of_rule(reply: &Reply, bridge: &str) -> Option<(&'static str, String)> {
    let (header, attributes) = reply.body.split_first_chunk::<HEADER>()?;
    let expressions = find_attribute(attributes, NFTA_RULE_EXPRESSIONS)?;
    // Programs compare all the space of a name or, as iptables does, up to its zero byte.
    let name = [bridge.as_bytes(), &[0]].concat();
    let names_it = expressions.windows(name.len()).any(|window| window == name);
    let table = find_attribute(attributes, NFTA_RULE_TABLE).map(read_text)?;
    Some((family_name(header[0])?, table)).filter(|_| names_it)
}

/// Other families (of bridged frames, of ARP) do not see what is forwarded by IP.
fn family_name(number: u8) -> Option<&'static str> {
    match number {
        NFPROTO_INET => Some("inet"),
        NFPROTO_IPV4 => Some("ip"),
        NFPROTO_IPV6 => Some("ip6"),
        _ => None,
    }
}

fn network_number(value: &[u8]) -> Option<u32> {
    value.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}
