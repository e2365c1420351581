//! `nfs` volumes: a directory of a server, mounted by the kernel. No helper program of the machine is needed.

mod options;
#[cfg(test)]
mod tests;

use std::ffi::CString;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::Path;

use k8s_openapi::api::core::v1::NFSVolumeSource;
use oarsman_core::persistent_volume::{ClaimedVolume, PersistentVolumePlugin};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};

use crate::plugin::{VolumePlugin, VolumeToSetUp, failed};
use crate::{VolumeError, mount_point, ownership};
use options::NfsOptions;

/// The annotation that had mount options before the field did.
const OPTIONS_ANNOTATION: &str = "volume.beta.kubernetes.io/mount-options";
/// The port of a name is not asked for.
const ANY_PORT: u16 = 0;

/// What mounting a directory of a server needs of the machine.
pub(crate) trait NfsClient: Send + Sync {
    /// The address of a server.
    fn address(&self, server: &str) -> io::Result<IpAddr>;

    /// Mounts it.
    fn mount(&self, call: &NfsMount<'_>) -> io::Result<()>;
}

/// One call of mount(2).
pub(crate) struct NfsMount<'a> {
    /// Server and directory.
    pub(crate) source: &'a str,
    pub(crate) path: &'a Path,
    pub(crate) flags: MountFlags,
    /// What the file system understands.
    pub(crate) data: &'a str,
}

/// The kernel's own client.
struct KernelNfs;

impl NfsClient for KernelNfs {
    fn address(&self, server: &str) -> io::Result<IpAddr> {
        let found = (server, ANY_PORT).to_socket_addrs()?.next();
        found.map(|address| address.ip()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn mount(&self, call: &NfsMount<'_>) -> io::Result<()> {
        let data = CString::new(call.data)?;
        Ok(mount(call.source, call.path, "nfs", call.flags, data.as_c_str())?)
    }
}

/// `nfs` volumes.
pub(crate) struct NfsPlugin(Box<dyn NfsClient>);

impl NfsPlugin {
    /// Mounted by the kernel.
    pub(crate) fn of_kernel() -> Self {
        Self(Box::new(KernelNfs))
    }
}

impl VolumePlugin for NfsPlugin {
    fn name(&self) -> &'static str {
        PersistentVolumePlugin::Nfs.name()
    }

    fn set_up(&self, mount: &VolumeToSetUp<'_>) -> Result<(), VolumeError> {
        let of_claim = mount.claimed.and_then(|claimed| claimed.volume.spec.as_ref());
        let of_claim = of_claim.and_then(|spec| spec.nfs.as_ref());
        let Some(source) = mount.volume.nfs.as_ref().or(of_claim) else { return Ok(()) };
        let volume = &mount.volume.name;
        let bad = |option| VolumeError::MountOption { volume: volume.clone(), option };
        let mut options = NfsOptions::parse(&wanted_options(mount.claimed)).map_err(bad)?;
        options.read_only |= is_read_only(source, mount.claimed);
        if mount_point::prepare(volume, &mount.path)? {
            self.mount(volume, source, &mount.path, &options)?;
        }
        match options.read_only {
            true => Ok(()),
            false => ownership::set_volume_ownership(mount, &mount.path).map_err(failed(
                volume,
                "give to the pod's group",
                &mount.path,
            )),
        }
    }
}

impl NfsPlugin {
    /// Tries the versions of the protocol from the newest on, unless one is asked for.
    fn mount(
        &self,
        volume: &str,
        source: &NFSVolumeSource,
        path: &Path,
        options: &NfsOptions,
    ) -> Result<(), VolumeError> {
        let unknown = |error| {
            let (volume, server) = (volume.to_owned(), source.server.clone());
            VolumeError::Server { volume, server, source: error }
        };
        let address = self.0.address(&source.server).map_err(unknown)?;
        let from = exported(source);
        let mut result = Ok(());
        for version in options.versions() {
            let (flags, data) = (options.flags(), options.data(version, address));
            result = self.0.mount(&NfsMount { source: &from, path, flags, data: &data });
            if !result.as_ref().is_err_and(is_other_version_worth_a_try) {
                break;
            }
        }
        result.map_err(failed(volume, "mount", Path::new(&from)))
    }
}

/// The server does not speak the version, or the kernel does not know it.
fn is_other_version_worth_a_try(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::PROTONOSUPPORT | Errno::INVAL))
}

/// Server and directory in one word.
fn exported(source: &NFSVolumeSource) -> String {
    match source.server.contains(':') && !source.server.starts_with('[') {
        true => format!("[{}]:{}", source.server, source.path),
        false => format!("{}:{}", source.server, source.path),
    }
}

/// Of a volume in the pod its source says so, of a persistent one the claim in the pod.
fn is_read_only(source: &NFSVolumeSource, claimed: Option<&ClaimedVolume>) -> bool {
    source.read_only == Some(true) || claimed.is_some_and(|claimed| claimed.read_only)
}

fn wanted_options(claimed: Option<&ClaimedVolume>) -> Vec<String> {
    let Some(volume) = claimed.map(|claimed| &claimed.volume) else { return Vec::new() };
    let annotations = volume.metadata.annotations.as_ref();
    if let Some(text) = annotations.and_then(|all| all.get(OPTIONS_ANNOTATION)) {
        return text.split(',').map(str::to_owned).collect();
    }
    volume.spec.as_ref().and_then(|spec| spec.mount_options.clone()).unwrap_or_default()
}
