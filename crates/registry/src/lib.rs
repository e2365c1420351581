//! The client of OCI registries: where an image may be had (`hosts`), as whom (`authentication`), and its way into the image store (`pull`).
//!
//! A registry is not trusted: what it sends is checked by its digest, bounded in size and time, and it cannot send us to addresses of this
//! machine (`dialer`). A download that breaks off goes on where it was, within a pull and in the next one.

mod authentication;
mod challenge;
mod dialer;
mod download;
mod error;
mod fuzzing;
mod host_session;
mod hosts;
mod hosts_file;
mod paced_body;
mod proxies;
mod pull;
mod redirect;
mod settings;
#[cfg(test)]
mod tests;
mod transport;

pub use authentication::PullCredentials;
pub use error::RegistryError;
pub use fuzzing::{fuzz_answers, fuzz_hosts_file};
pub use proxies::ProxySettings;
pub use pull::{ImagePull, PullCounters, pull_into};
pub use settings::{RegistrySettings, TransferLimits};
