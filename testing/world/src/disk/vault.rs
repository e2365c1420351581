//! The agent's vault, on the same disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use oarsman_agent::seams::{DiskError, Vault};

use super::FakeDisk;
use super::client::Connection;
use crate::line::Line;
use crate::lock;

/// A page as a reader sees it, and what a crash of the machine leaves of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Page {
    written: Vec<u8>,
    synced: Option<Vec<u8>>,
}

/// The vault at the other end of a line.
pub fn connect_vault(disk: FakeDisk, line: Line) -> Arc<dyn Vault> {
    Arc::new(Connection { disk, line })
}

impl FakeDisk {
    fn keep(&self, name: String, page: Vec<u8>, lasting: bool) {
        let mut pages = lock(&self.0.vault);
        let kept = pages.entry(name).or_default();
        if lasting {
            kept.synced = Some(page.clone());
        }
        kept.written = page;
    }

    fn kept(&self) -> BTreeMap<String, Vec<u8>> {
        let pages = lock(&self.0.vault);
        pages.iter().map(|(name, page)| (name.clone(), page.written.clone())).collect()
    }

    fn discard(&self, name: &str) {
        lock(&self.0.vault).remove(name);
    }

    pub(super) fn lose_unsynced_pages(&self) {
        let mut pages = lock(&self.0.vault);
        pages.retain(|_, page| page.synced.is_some());
        for page in pages.values_mut() {
            page.written = page.synced.clone().unwrap_or_default();
        }
    }
}

#[async_trait]
impl Vault for Connection {
    async fn keep(&self, name: &str, page: Vec<u8>, lasting: bool) -> Result<(), DiskError> {
        let kept = name.to_owned();
        forward!(self, "keep", name, disk => {
            disk.keep(kept, page, lasting);
            Ok(())
        })
    }

    async fn kept(&self) -> Result<BTreeMap<String, Vec<u8>>, DiskError> {
        forward!(self, "read what is kept", "", disk => Ok(disk.kept()))
    }

    async fn discard(&self, name: &str) -> Result<(), DiskError> {
        let kept = name.to_owned();
        forward!(self, "discard", name, disk => {
            disk.discard(&kept);
            Ok(())
        })
    }
}
