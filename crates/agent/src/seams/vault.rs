//! What is kept on this machine for the day on which no API server answers.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::DiskError;

/// Pages by name. Whoever steals the pages alone cannot read them.
#[async_trait]
pub trait Vault: Send + Sync + 'static {
    /// Keeps a page in the place of the one of that name; when `lasting`, a crash of the machine does not lose it.
    async fn keep(&self, name: &str, page: Vec<u8>, lasting: bool) -> Result<(), DiskError>;

    /// Every page that can be read. One that cannot is told of in the log and left out: it must not keep the others from being read.
    async fn kept(&self) -> Result<BTreeMap<String, Vec<u8>>, DiskError>;

    /// Removes a page; one that is not there is gone already.
    async fn discard(&self, name: &str) -> Result<(), DiskError>;
}
