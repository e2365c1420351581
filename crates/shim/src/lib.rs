//! The process that holds the containers of one pod, its helper that calls libcontainer, and the client of its socket.
//!
//! One shim a pod is a process of our program, forked from one that has executed it again ([`client::ShimSpawner`], [`shim::main`]). It outlives the
//! agent, is the parent of the pod's containers, writes their logs and exit files, and answers on a unix socket. It never calls what clones
//! without exec: for every create, exec and delete it runs a helper ([`helper::main`]), also our program, which ends when that one step is done.
//! The agent speaks to it by [`client::ShimClient`].
//!
//! Containers are OCI specs here; nothing in this crate knows CRI, images or networks.

mod capabilities;
pub mod client;
mod directory;
mod file_io;
pub mod helper;
mod log;
mod pod_init;
pub mod protocol;
pub mod seccomp;
mod server;
pub mod shim;
mod socket;
mod spawner;
pub mod user_namespace;

pub use directory::ShimDirectory;

pub use log::fuzz_log_lines;
pub use protocol::fuzz_messages;
