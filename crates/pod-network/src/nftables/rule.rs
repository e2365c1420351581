//! One rule: conditions, each of which loads a value into a register and compares it, and what is done when all are met.

use std::net::IpAddr;

use crate::netlink::Attributes;
use crate::route::octets;
use crate::subnet::Subnet;

const NFTA_LIST_ELEM: u16 = 1;
const NFTA_EXPR_NAME: u16 = 1;
const NFTA_EXPR_DATA: u16 = 2;
const NFTA_DATA_VALUE: u16 = 1;
const NFTA_DATA_VERDICT: u16 = 2;
const NFTA_VERDICT_CODE: u16 = 1;
const NFTA_VERDICT_CHAIN: u16 = 2;

const VERDICT_REGISTER: u32 = 0;
/// A register of 16 bytes, enough for any value here.
const FIRST: u32 = 1;
const SECOND: u32 = 2;

const META_IIFNAME: u32 = 6;
const META_OIFNAME: u32 = 7;
const META_NFPROTO: u32 = 15;
const META_L4PROTO: u32 = 16;
const NFPROTO_IPV4: u8 = 2;
const NFPROTO_IPV6: u8 = 10;
const CT_STATUS: u32 = 2;
/// A connection whose destination was changed.
const IPS_DST_NAT: u32 = 0x20;
const FIB_RESULT_ADDRTYPE: u32 = 3;
const FIB_OF_DESTINATION: u32 = 2;
const RTN_LOCAL: u32 = 2;
const NETWORK_HEADER: u32 = 1;
const TRANSPORT_HEADER: u32 = 2;
const EQUAL: u32 = 0;
const NOT_EQUAL: u32 = 1;
const NAT_OF_DESTINATION: u32 = 1;
const DROP: u32 = 0;
/// -3 and -5 in the kernel's numbers.
const JUMP: u32 = 0_u32.wrapping_sub(3);
const RETURN: u32 = 0_u32.wrapping_sub(5);
/// The space that the kernel has for the name of a link.
const LINK_NAME: usize = 16;

/// The conditions and the action of a rule, in the order in which they are looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rule {
    expressions: Attributes,
    /// What `nft list` shows beside it.
    pub(super) comment: String,
}

impl Rule {
    /// A rule for every packet.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Says what it is for.
    pub(crate) fn with_comment(self, comment: &str) -> Self {
        Self { comment: comment.to_owned(), ..self }
    }

    /// Only packets that come in by a link.
    pub(crate) fn input_link(self, name: &str) -> Self {
        self.meta(META_IIFNAME).compare(EQUAL, &link_name(name))
    }

    /// Only packets that go out by a link.
    pub(crate) fn output_link(self, name: &str) -> Self {
        self.meta(META_OIFNAME).compare(EQUAL, &link_name(name))
    }

    /// Only packets that go out by another link.
    pub(crate) fn output_other_link(self, name: &str) -> Self {
        self.meta(META_OIFNAME).compare(NOT_EQUAL, &link_name(name))
    }

    /// Only packets of one version of IP.
    pub(crate) fn of_ip(self, ipv4: bool) -> Self {
        let family = if ipv4 { NFPROTO_IPV4 } else { NFPROTO_IPV6 };
        self.meta(META_NFPROTO).compare(EQUAL, &[family])
    }

    /// Only packets from a subnet.
    pub(crate) fn source_in(self, subnet: Subnet) -> Self {
        let offset = if subnet.is_ipv4() { 12 } else { 8 };
        self.of_ip(subnet.is_ipv4()).address_in(offset, subnet)
    }

    /// Only packets to a subnet.
    pub(crate) fn destination_in(self, subnet: Subnet) -> Self {
        let offset = if subnet.is_ipv4() { 16 } else { 24 };
        self.of_ip(subnet.is_ipv4()).address_in(offset, subnet)
    }

    /// Only packets to an address.
    pub(crate) fn destination_is(self, address: IpAddr) -> Self {
        let whole = if address.is_ipv4() { 32 } else { 128 };
        match Subnet::of(address, whole) {
            Some(subnet) => self.destination_in(subnet),
            None => self,
        }
    }

    /// Only packets to an address of this host.
    pub(crate) fn destination_is_local(self) -> Self {
        let fib = Attributes::new()
            .network_number(1, FIRST)
            .network_number(2, FIB_RESULT_ADDRTYPE)
            .network_number(3, FIB_OF_DESTINATION);
        self.expression("fib", &fib).compare(EQUAL, &RTN_LOCAL.to_ne_bytes())
    }

    /// Only packets of a protocol to a port.
    pub(crate) fn destination_port(self, protocol: u8, port: u16) -> Self {
        self.meta(META_L4PROTO)
            .compare(EQUAL, &[protocol])
            .payload(TRANSPORT_HEADER, 2, 2)
            .compare(EQUAL, &port.to_be_bytes())
    }

    /// Only connections whose destination was changed on this host.
    pub(crate) fn with_changed_destination(self) -> Self {
        let status = Attributes::new().network_number(1, FIRST).network_number(2, CT_STATUS);
        self.expression("ct", &status).mask(&IPS_DST_NAT.to_ne_bytes()).compare(NOT_EQUAL, &[0; 4])
    }

    /// Throws the packet away.
    pub(crate) fn drop(self) -> Self {
        self.verdict(&Attributes::new().network_number(NFTA_VERDICT_CODE, DROP))
    }

    /// Goes on with the rules of another chain.
    pub(crate) fn jump(self, chain: &str) -> Self {
        let verdict = Attributes::new().network_number(NFTA_VERDICT_CODE, JUMP);
        self.verdict(&verdict.text(NFTA_VERDICT_CHAIN, chain))
    }

    /// Goes back to the chain that jumped here.
    pub(crate) fn leave(self) -> Self {
        self.verdict(&Attributes::new().network_number(NFTA_VERDICT_CODE, RETURN))
    }

    /// Gives the connection the address of the outgoing link as its source.
    pub(crate) fn masquerade(self) -> Self {
        self.expression("masq", &Attributes::new())
    }

    /// Sends the connection to another address and port.
    pub(crate) fn send_to(self, address: IpAddr, port: u16) -> Self {
        let family = if address.is_ipv4() { NFPROTO_IPV4 } else { NFPROTO_IPV6 };
        let nat = Attributes::new()
            .network_number(1, NAT_OF_DESTINATION)
            .network_number(2, u32::from(family))
            .network_number(3, FIRST)
            .network_number(5, SECOND);
        self.immediate(FIRST, &value(&octets(address)))
            .immediate(SECOND, &value(&port.to_be_bytes()))
            .expression("nat", &nat)
    }

    /// The expressions as an attribute's value.
    pub(super) fn expressions(&self) -> &Attributes {
        &self.expressions
    }

    fn address_in(self, offset: u32, subnet: Subnet) -> Self {
        let address = octets(subnet.address());
        let length = u32::try_from(address.len()).unwrap_or_default();
        let mask = prefix_mask(address.len(), subnet.prefix());
        let mut rule = self.payload(NETWORK_HEADER, offset, length);
        // A whole address is compared as it is.
        if mask.last() != Some(&u8::MAX) {
            rule = rule.mask(&mask);
        }
        rule.compare(EQUAL, &address)
    }

    fn meta(self, key: u32) -> Self {
        let meta = Attributes::new().network_number(1, FIRST).network_number(2, key);
        self.expression("meta", &meta)
    }

    fn payload(self, base: u32, offset: u32, length: u32) -> Self {
        let payload = Attributes::new()
            .network_number(1, FIRST)
            .network_number(2, base)
            .network_number(3, offset)
            .network_number(4, length);
        self.expression("payload", &payload)
    }

    /// Keeps the bits of the loaded value that the mask has.
    fn mask(self, mask: &[u8]) -> Self {
        let length = u32::try_from(mask.len()).unwrap_or_default();
        let bitwise = Attributes::new()
            .network_number(1, FIRST)
            .network_number(2, FIRST)
            .network_number(3, length)
            .nested(4, &value(mask))
            .nested(5, &value(&vec![0; mask.len()]));
        self.expression("bitwise", &bitwise)
    }

    fn compare(self, operator: u32, with: &[u8]) -> Self {
        let compare = Attributes::new()
            .network_number(1, FIRST)
            .network_number(2, operator)
            .nested(3, &value(with));
        self.expression("cmp", &compare)
    }

    fn verdict(self, verdict: &Attributes) -> Self {
        let data = Attributes::new().nested(NFTA_DATA_VERDICT, verdict);
        self.immediate(VERDICT_REGISTER, &data)
    }

    fn immediate(self, register: u32, data: &Attributes) -> Self {
        let immediate = Attributes::new().network_number(1, register).nested(2, data);
        self.expression("immediate", &immediate)
    }

    fn expression(self, name: &str, data: &Attributes) -> Self {
        let expression = Attributes::new().text(NFTA_EXPR_NAME, name).nested(NFTA_EXPR_DATA, data);
        Self { expressions: self.expressions.nested(NFTA_LIST_ELEM, &expression), ..self }
    }
}

fn value(bytes: &[u8]) -> Attributes {
    Attributes::new().bytes(NFTA_DATA_VALUE, bytes)
}

/// The name as the kernel compares it: all of its space.
fn link_name(name: &str) -> [u8; LINK_NAME] {
    let mut bytes = [0; LINK_NAME];
    for (byte, letter) in bytes.iter_mut().zip(name.bytes()) {
        *byte = letter;
    }
    bytes
}

fn prefix_mask(length: usize, prefix: u8) -> Vec<u8> {
    let bits = |byte: usize| usize::from(prefix).saturating_sub(byte * 8).min(8);
    (0..length)
        .map(|byte| !u8::MAX.checked_shr(bits(byte).try_into().unwrap_or(8)).unwrap_or(0))
        .collect()
}

#[cfg(test)]
mod mask_tests {
    use super::*;

    #[test]
    fn a_mask_has_as_many_bits_as_the_prefix() {
        assert_eq!(prefix_mask(4, 0), [0, 0, 0, 0]);
        assert_eq!(prefix_mask(4, 20), [255, 255, 0xf0, 0]);
        assert_eq!(prefix_mask(4, 32), [255, 255, 255, 255]);
    }
}
