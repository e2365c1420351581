//! Pulls from registries on loopback that behave as real ones do, and as hostile ones could.

mod hostile;
mod pulls;
mod server;
