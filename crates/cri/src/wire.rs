//! The generated services, and limits that client and server share.
#![expect(
    clippy::allow_attributes_without_reason,
    unreachable_pub,
    unused_qualifications,
    reason = "generated code has its own style"
)]

/// The largest message in either direction: the bound that the Go kubelet and runtimes use.
pub(crate) const LARGEST_MESSAGE: usize = 16 * 1024 * 1024;

include!(concat!(env!("OUT_DIR"), "/runtime.v1.rs"));
