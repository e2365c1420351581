//! One message: the header of netlink, the fixed header of its kind, and attributes.

use super::attributes::Attributes;

/// The header of netlink: length, kind, flags, sequence number and sender.
pub(super) const HEADER: usize = 16;

/// A message to the kernel, without sequence number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    kind: u16,
    flags: u16,
    body: Vec<u8>,
}

impl Message {
    /// A message of a kind with its fixed header.
    pub(crate) fn new(kind: u16, fixed: &[u8], attributes: &Attributes) -> Self {
        Self { kind, flags: 0, body: [fixed, attributes.as_bytes()].concat() }
    }

    /// The same with flags that say how to create.
    pub(crate) fn with_flags(self, flags: u16) -> Self {
        Self { flags: self.flags | flags, ..self }
    }

    /// What is sent. The kernel fills in the sender.
    pub(super) fn encode(&self, flags: u16, sequence: u32) -> Vec<u8> {
        let length = u32::try_from(HEADER + self.body.len()).unwrap_or(u32::MAX);
        let mut bytes = Vec::with_capacity(HEADER + self.body.len());
        bytes.extend(length.to_ne_bytes());
        bytes.extend(self.kind.to_ne_bytes());
        bytes.extend((self.flags | flags).to_ne_bytes());
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend(0_u32.to_ne_bytes());
        bytes.extend(&self.body);
        bytes
    }
}
