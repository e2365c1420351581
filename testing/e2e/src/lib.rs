//! Scenarios on real runtimes, and what they share: rigs for contract cases, the agent as a real process, a proxy before its runtime, and
//! inspection that does not rely on the agent.

pub mod agent_process;
pub mod cluster;
mod containerd;
pub mod disk;
pub mod inspect;
pub mod manifest;
pub mod notify_socket;
pub mod pod_observer;
pub mod program;
pub mod proxy;
pub mod run_process;
pub mod scenario;
pub mod server_clients;
pub mod terminal;

pub use containerd::{ContainerdFixture, Route, run_contract};
