//! The seam to what the machine says of itself, on the fake disk: its files of names, and addresses that can be changed.

use std::net::IpAddr;
use std::path::Path;

use async_trait::async_trait;
use oarsman_core::cri_spec::NameFiles;
use oarsman_core::gc::images::ImageFsStats;
use oarsman_core::node::addresses::AddressCandidates;
use oarsman_host::host_info::{HostInfo, HostInfoError};

use super::FakeDisk;
use crate::lock;

/// The path of the machine's resolv.conf.
pub const RESOLV_CONF: &str = "/etc/resolv.conf";
/// The path of the machine's hosts file.
pub const HOSTS: &str = "/etc/hosts";

impl FakeDisk {
    /// Gives the machine other addresses.
    pub fn set_addresses(&self, ips: &[IpAddr]) {
        *lock(&self.0.addresses) = ips.to_vec();
    }

    /// Gives the disk another size.
    pub fn set_capacity(&self, bytes: u64) {
        *lock(&self.0.capacity) = bytes;
    }

    fn text_or_empty(&self, path: &str) -> String {
        let bytes = self.0.files.read(Path::new(path)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[async_trait]
impl HostInfo for FakeDisk {
    async fn name_files(&self) -> Result<NameFiles, HostInfoError> {
        let resolv_conf = Some(self.text_or_empty(RESOLV_CONF));
        Ok(NameFiles { resolv_conf, hosts: self.text_or_empty(HOSTS) })
    }

    async fn address_candidates(&self, _: &str) -> Result<AddressCandidates, HostInfoError> {
        let by_name = Some(lock(&self.0.addresses).clone());
        Ok(AddressCandidates { by_name, ..AddressCandidates::default() })
    }

    /// There is one file system, and images are all that is on it.
    async fn file_system(&self, _: &str) -> Result<ImageFsStats, HostInfoError> {
        let capacity = *lock(&self.0.capacity);
        let available = capacity.saturating_sub(self.0.runtime.image_bytes());
        Ok(ImageFsStats { capacity, available })
    }
}
