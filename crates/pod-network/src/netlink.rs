//! Netlink, as far as links, addresses, routes and nftables need it: messages, and a blocking socket.
//!
//! Written here because it is small: the crates for rtnetlink need an async runtime and decode attributes that we do not look at
//! (and fail on those that a newer kernel has changed), and for nftables there is none in Rust with a licence that fits.

mod attributes;
mod message;
mod socket;

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use attributes::each_attribute;
pub(crate) use attributes::{Attributes, find_attribute, read_text, read_u32};
pub(crate) use message::Message;
pub(crate) use socket::{NetlinkFamily, NetlinkSocket, Reply};
