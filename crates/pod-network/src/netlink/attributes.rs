//! Attributes: a length, a kind and a value, padded to four bytes. Numbers are in the machine's byte order unless said otherwise.

/// Length and kind, two bytes each.
const HEADER: usize = 4;
const ALIGNMENT: usize = 4;
/// Marks a value that consists of attributes.
const NESTED: u16 = 0x8000;
/// The bits of a kind that are flags.
const FLAGS: u16 = 0xc000;

/// Attributes that are put together, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attributes(Vec<u8>);

impl Attributes {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Attributes behind a fixed header, as the peer of a veth pair has them.
    pub(crate) fn after(header: &[u8]) -> Self {
        Self(header.to_vec())
    }

    /// Adds a value as it is. A value that does not fit gets a length that the kernel refuses.
    pub(crate) fn bytes(mut self, kind: u16, value: &[u8]) -> Self {
        let length = u16::try_from(HEADER + value.len()).unwrap_or(u16::MAX);
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(ALIGNMENT), 0);
        self
    }

    /// Adds a text, which the kernel wants to end with a zero byte.
    pub(crate) fn text(self, kind: u16, value: &str) -> Self {
        self.bytes(kind, &[value.as_bytes(), &[0]].concat())
    }

    /// Adds a number of one byte.
    pub(crate) fn byte(self, kind: u16, value: u8) -> Self {
        self.bytes(kind, &[value])
    }

    /// Adds a number.
    pub(crate) fn number(self, kind: u16, value: u32) -> Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

    /// Adds a number in network order, as all of nftables has them.
    pub(crate) fn network_number(self, kind: u16, value: u32) -> Self {
        self.bytes(kind, &value.to_be_bytes())
    }

    /// Adds attributes as one value.
    pub(crate) fn nested(self, kind: u16, inner: &Self) -> Self {
        self.nested_bytes(kind, &inner.0)
    }

    /// Adds attributes as one value, as they were received.
    pub(crate) fn nested_bytes(self, kind: u16, inner: &[u8]) -> Self {
        self.bytes(kind | NESTED, inner)
    }

    /// What is sent.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The kind and value of every attribute. What is cut off at the end is left out.
pub(crate) fn each_attribute(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (length, rest) = bytes.split_first_chunk::<2>()?;
        let (kind, _) = rest.split_first_chunk::<2>()?;
        let length = usize::from(u16::from_ne_bytes(*length));
        let value = bytes.get(HEADER..length)?;
        bytes = bytes.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
        Some((u16::from_ne_bytes(*kind) & !FLAGS, value))
    })
}

/// The value of the first attribute of a kind.
pub(crate) fn find_attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    each_attribute(bytes).find(|(found, _)| *found == kind).map(|(_, value)| value)
}

/// A number in the machine's byte order.
pub(crate) fn read_u32(value: &[u8]) -> Option<u32> {
    value.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

/// A text up to its zero byte.
pub(crate) fn read_text(value: &[u8]) -> String {
    let text = value.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}
