//! Scenarios on real runtimes, and what they share: rigs with everything a contract case asks for, an
//! agent as a real process, a proxy before its runtime, and eyes of their own.

pub mod cluster;
mod containerd;
pub mod look;
pub mod manifest;
pub mod node;
pub mod person;
pub mod program;
pub mod proxy;
pub mod scenario;
pub mod terminal;
pub mod witness;

pub use containerd::{Containerd, Road};
