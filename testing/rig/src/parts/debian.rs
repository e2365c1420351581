//! Parts that are Debian packages, unpacked into the cache and never installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::tools::{is_on_path, output};
use super::{Debian, PartsCache};

/// Packages of Debian 12 that are unpacked into one directory. The end of a version is Debian's own and changes with its fixes.
struct PackageSet {
    part: &'static str,
    packages: &'static [&'static str],
}

const CONTAINERD: PackageSet = PackageSet {
    part: "debian-containerd-1.6.20-runc-1.1.5",
    packages: &["containerd=1.6.20*", "runc=1.1.5*"],
};
/// The kubectl of 2021, which knows SPDY alone.
const KUBECTL: PackageSet =
    PackageSet { part: "debian-kubectl-1.20", packages: &["kubernetes-client=1.20*"] };

const PROMETHEUS: PackageSet =
    PackageSet { part: "debian-prometheus-2.42", packages: &["prometheus=2.42*"] };

/// promtool, which checks metrics; none where there is no apt.
pub(super) fn promtool(cache: &PartsCache) -> Result<Option<PathBuf>> {
    if !has_apt() {
        return Ok(None);
    }
    let directory = cache.part(PROMETHEUS.part, |directory| unpack(&PROMETHEUS, directory))?;
    Ok(Some(directory.join("usr/bin/promtool")))
}

fn has_apt() -> bool {
    ["apt-get", "dpkg"].iter().all(|program| is_on_path(program))
}

/// containerd, runc and kubectl; none where there is no apt.
pub(super) fn fetch(cache: &PartsCache) -> Result<Option<Debian>> {
    if !has_apt() {
        return Ok(None);
    }
    let runtime = cache.part(CONTAINERD.part, |directory| unpack(&CONTAINERD, directory))?;
    let client = cache.part(KUBECTL.part, |directory| unpack(&KUBECTL, directory))?;
    Ok(Some(Debian {
        containerd: runtime.join("usr/bin"),
        runc: runtime.join("usr/sbin"),
        kubectl: client.join("usr/bin/kubectl"),
    }))
}

fn unpack(set: &PackageSet, directory: &Path) -> Result<()> {
    let packages = directory.join("packages");
    fs::create_dir(&packages)?;
    download(set, &packages)?;
    for entry in fs::read_dir(&packages)? {
        output(Command::new("dpkg").arg("--extract").arg(entry?.path()).arg(directory))?;
    }
    fs::remove_dir_all(packages)?;
    // A service, a configuration and manuals, which the rig does not use.
    for unused in ["etc", "lib", "usr/share"] {
        fs::remove_dir_all(directory.join(unused)).or_else(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })?;
    }
    Ok(())
}

/// A new machine has no package lists, and those of an old one may name packages that are gone.
fn download(set: &PackageSet, into: &Path) -> Result<()> {
    let known = || output(apt_get().arg("download").args(set.packages).current_dir(into));
    if known().is_ok() {
        return Ok(());
    }
    output(apt_get().arg("update")).context("apt-get update")?;
    known().map(drop).with_context(|| format!("apt-get download {}", set.packages.join(" ")))
}

/// Downloads as root: apt's own user may not enter the directory.
pub(super) fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.args(["--quiet", "--option", "APT::Sandbox::User=root"]);
    command
}
