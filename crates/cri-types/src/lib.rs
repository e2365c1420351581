//! The messages of the CRI v1 wire format, without the services that send them.
//!
//! The format is that of Kubernetes v1.36, written down in `proto/` in our own words, and
//! `tests/wire_format.rs` compares it with upstream's. Maps are ordered, so that the same message
//! always encodes to the same bytes.

mod redact;

/// Messages and enums of the package `runtime.v1`.
#[expect(missing_docs, reason = "generated; the signals of `Signal` have names that say it all")]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/runtime.v1.rs"));
}
