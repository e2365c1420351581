//! A table with its chains and rules, as the messages that make it.

use super::rule::Rule;
use super::{NFPROTO_INET, message};
use crate::netlink::{Attributes, Message};

const NFT_MSG_NEWTABLE: u16 = 0;
const NFT_MSG_GETTABLE: u16 = 1;
const NFT_MSG_DELTABLE: u16 = 2;
const NFT_MSG_NEWCHAIN: u16 = 3;
const NFT_MSG_NEWRULE: u16 = 6;

const NFTA_TABLE_NAME: u16 = 1;
const NFTA_CHAIN_TABLE: u16 = 1;
const NFTA_CHAIN_NAME: u16 = 3;
const NFTA_CHAIN_HOOK: u16 = 4;
const NFTA_CHAIN_TYPE: u16 = 7;
const NFTA_HOOK_NUMBER: u16 = 1;
const NFTA_HOOK_PRIORITY: u16 = 2;
const NFTA_RULE_TABLE: u16 = 1;
const NFTA_RULE_CHAIN: u16 = 2;
const NFTA_RULE_EXPRESSIONS: u16 = 4;
const NFTA_RULE_USERDATA: u16 = 7;

const NLM_F_CREATE: u16 = 0x400;
const NLM_F_APPEND: u16 = 0x800;
/// The kind of user data that `nft` shows as a comment.
const COMMENT: u8 = 0;

/// Where a chain sees packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hook {
    /// `nat` or `filter`.
    pub(crate) kind: &'static str,
    pub(crate) number: u32,
    pub(crate) priority: i32,
}

impl Hook {
    /// Incoming packets before anything else, connection tracking too.
    pub(crate) const RAW_PREROUTING: Self = Self { kind: "filter", number: 0, priority: -300 };
    /// Incoming packets before it is decided where they go.
    pub(crate) const NAT_PREROUTING: Self = Self { kind: "nat", number: 0, priority: -100 };
    /// Packets of this host's own processes.
    pub(crate) const NAT_OUTPUT: Self = Self { kind: "nat", number: 3, priority: -100 };
    /// Outgoing packets.
    pub(crate) const NAT_POSTROUTING: Self = Self { kind: "nat", number: 4, priority: 100 };
}

/// A chain with its rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    pub(crate) name: &'static str,
    /// None for a chain that others jump to.
    pub(crate) hook: Option<Hook>,
    pub(crate) rules: Vec<Rule>,
}

/// A table; a chain that is jumped to stands before those that jump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) chains: Vec<Chain>,
}

impl Table {
    /// The messages that make it where there is none.
    pub(super) fn creation(&self) -> Vec<Message> {
        let chains = self.chains.iter().map(|chain| self.new_chain(chain));
        let rules = self
            .chains
            .iter()
            .flat_map(|chain| chain.rules.iter().map(|rule| self.new_rule(chain.name, rule)));
        [new_table(&self.name)].into_iter().chain(chains).chain(rules).collect()
    }

    fn new_chain(&self, chain: &Chain) -> Message {
        let mut attributes =
            Attributes::new().text(NFTA_CHAIN_TABLE, &self.name).text(NFTA_CHAIN_NAME, chain.name);
        if let Some(hook) = chain.hook {
            let place = Attributes::new()
                .network_number(NFTA_HOOK_NUMBER, hook.number)
                .network_number(NFTA_HOOK_PRIORITY, hook.priority.cast_unsigned());
            attributes =
                attributes.nested(NFTA_CHAIN_HOOK, &place).text(NFTA_CHAIN_TYPE, hook.kind);
        }
        message(NFT_MSG_NEWCHAIN, NFPROTO_INET, &attributes).with_flags(NLM_F_CREATE)
    }

    fn new_rule(&self, chain: &str, rule: &Rule) -> Message {
        let mut attributes = Attributes::new()
            .text(NFTA_RULE_TABLE, &self.name)
            .text(NFTA_RULE_CHAIN, chain)
            .nested(NFTA_RULE_EXPRESSIONS, rule.expressions());
        if !rule.comment.is_empty() {
            attributes = attributes.bytes(NFTA_RULE_USERDATA, &comment(&rule.comment));
        }
        let flags = NLM_F_CREATE | NLM_F_APPEND;
        message(NFT_MSG_NEWRULE, NFPROTO_INET, &attributes).with_flags(flags)
    }
}

fn new_table(name: &str) -> Message {
    let attributes = Attributes::new().text(NFTA_TABLE_NAME, name);
    message(NFT_MSG_NEWTABLE, NFPROTO_INET, &attributes).with_flags(NLM_F_CREATE)
}

/// The messages that remove a table. It is made first if there is none, because what is not there cannot be removed.
pub(super) fn removal(name: &str) -> Vec<Message> {
    let attributes = Attributes::new().text(NFTA_TABLE_NAME, name);
    vec![new_table(name), message(NFT_MSG_DELTABLE, NFPROTO_INET, &attributes)]
}

/// Asks for a table by its name.
pub(super) fn question(name: &str) -> Message {
    let attributes = Attributes::new().text(NFTA_TABLE_NAME, name);
    message(NFT_MSG_GETTABLE, NFPROTO_INET, &attributes)
}

/// A kind, a length and the text with its zero byte. The length has one byte, and `nft` reads 128 letters.
fn comment(text: &str) -> Vec<u8> {
    let text: Vec<u8> = text.bytes().filter(u8::is_ascii).take(127).chain([0]).collect();
    let length = u8::try_from(text.len()).unwrap_or_default();
    [&[COMMENT, length][..], &text].concat()
}
