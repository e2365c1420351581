//! The generated services, and what both ends of the wire agree on.
#![expect(
    clippy::allow_attributes_without_reason,
    unreachable_pub,
    unused_qualifications,
    reason = "generated code has its own style"
)]

/// No message may be larger, in either direction: the bound that kubelet and runtimes use.
pub(crate) const LARGEST_MESSAGE: usize = 16 * 1024 * 1024;

include!(concat!(env!("OUT_DIR"), "/runtime.v1.rs"));
