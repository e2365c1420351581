//! Runs CNI plugins (versions 0.3.0 to 1.1.0 of the specification) as libcni does.
//!
//! Pure: the versions of the specification (`version`), network configurations (`network`), what plugins answer (`result`, `refusal`), and what they
//! are told (`arguments`, `call`). With effects: the configuration directory (`directory`), the cached configurations and results of attachments
//! (`store`), plugins as processes (`plugin`), and all operations in their order (`client`).
//!
//! A plugin is not trusted with our time and memory: it has a deadline and bounded output, and ends with all that it has started when it is given
//! up. It runs as root, though, and what it does to the network is its own affair.

mod arguments;
mod call;
mod client;
mod directory;
mod error;
mod network;
mod plugin;
mod refusal;
mod result;
mod settings;
mod store;
mod version;

pub use arguments::{CniDns, CniPodArguments, CniPortMapping};
pub use client::{AttachRequest, CniClient};
pub use error::{CniError, CniOperation, PluginFailure};
pub use network::{CniNetwork, ConfigurationError};
pub use refusal::PluginRefusal;
pub use result::{CniResult, ResultError};
pub use settings::CniSettings;
pub use version::CniVersion;
