//! Tests with real links, addresses and rules, each in a network and mount namespace of its own.

mod cleaning;
mod host_ports;
mod host_state;
mod private_host;
mod shaping;
mod traffic;
