//! Images: credentials for their registries. Pulling, storing, unpacking and mounting will be added.

mod credential_plugins;

pub use credential_plugins::{
    CredentialError, CredentialPlugins, CredentialPluginsLayer, HostCredentialPlugins,
};
