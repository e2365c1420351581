//! Scenarios on real runtimes, and what they share: a rig with everything a contract case asks for.

mod containerd;

pub use containerd::{Containerd, Road};
