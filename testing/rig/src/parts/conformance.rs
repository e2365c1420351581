//! The components of the conformance tests' images: programs of Debian with their libraries, unpacked into the cache and never installed, and a
//! certificate.

mod libraries;

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::PartsCache;
use super::debian::apt_get;
use super::tools::output;

/// The packages of Debian 12; their dependencies are fetched, too.
const PACKAGES: [&str; 8] = [
    "bash-static",
    "bind9-dnsutils",
    "busybox-static",
    "curl",
    "hostname",
    "iproute2",
    "netcat-openbsd",
    "nginx",
];
/// The cache key; its last number changes with the packages.
const DEBIAN: &str = "debian-12-conformance-1";
const CERTIFICATE: &str = "conformance-certificate-1";

/// The paths of these components.
#[derive(Debug, Clone)]
pub struct ConformanceParts {
    /// A tree of Debian's files, in which /bin and the like are links into /usr.
    debian: PathBuf,
    /// The directory of `localhost.crt` and `localhost.key`.
    certificate: PathBuf,
}

/// Fetches and builds what is not in the cache: the first time where there is a network.
///
/// # Errors
/// When a package cannot be fetched.
pub fn prepare() -> Result<ConformanceParts> {
    let cache = PartsCache::open()?;
    Ok(ConformanceParts {
        debian: cache.part(DEBIAN, unpack)?,
        certificate: cache.part(CERTIFICATE, self_signed)?,
    })
}

impl ConformanceParts {
    /// A file of Debian's, by its absolute path there.
    ///
    /// # Errors
    /// When there is no such file.
    pub(crate) fn read(&self, path: &str) -> Result<Vec<u8>> {
        let found = libraries::resolve(&self.debian, Path::new(path))?;
        fs::read(&found).with_context(|| format!("cannot read {}", found.display()))
    }

    /// The paths of all libraries that the loader loads for a program, and of the loader.
    ///
    /// # Errors
    /// When a library is missing.
    pub(crate) fn libraries(&self, program: &str) -> Result<Vec<String>> {
        libraries::of(&self.debian, program)
    }

    /// A certificate for localhost, signed by itself, and its key; both as PEM.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(crate) fn certificate(&self) -> Result<(String, String)> {
        let read = |name| fs::read_to_string(self.certificate.join(name));
        Ok((read("localhost.crt")?, read("localhost.key")?))
    }
}

fn self_signed(directory: &Path) -> Result<()> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    fs::write(directory.join("localhost.crt"), made.cert.pem())?;
    fs::write(directory.join("localhost.key"), made.signing_key.serialize_pem())?;
    Ok(())
}

fn unpack(directory: &Path) -> Result<()> {
    for name in ["bin", "lib", "lib64", "sbin"] {
        fs::create_dir_all(directory.join("usr").join(name))?;
        symlink(format!("usr/{name}"), directory.join(name))?;
    }
    let packages = tempfile::tempdir()?;
    download(packages.path())?;
    for entry in fs::read_dir(packages.path().join("archives"))? {
        let package = entry?.path();
        if package.extension().is_some_and(|kind| kind == "deb") {
            extract(&package, directory)
                .with_context(|| format!("cannot unpack {}", package.display()))?;
        }
    }
    for unused in ["usr/share", "var"] {
        fs::remove_dir_all(directory.join(unused))?;
    }
    Ok(())
}

/// Resolves dependencies as on a machine without any packages: so that none is left out because this one has it.
fn download(into: &Path) -> Result<()> {
    fs::create_dir_all(into.join("archives/partial"))?;
    let status = into.join("status");
    File::create(&status)?;
    let option = |name: &str, value: &Path| format!("{name}={}", value.display());
    let fetch = || {
        let mut command = apt_get();
        command.args(["--yes", "--no-install-recommends", "--download-only"]);
        command.args(["--option", &option("Dir::State::status", &status)]);
        command.args(["--option", &option("Dir::Cache::archives", &into.join("archives"))]);
        output(command.args(["--option", "Debug::NoLocking=true", "install"]).args(PACKAGES))
    };
    if fetch().is_ok() {
        return Ok(());
    }
    output(apt_get().arg("update")).context("apt-get update")?;
    fetch().map(drop).with_context(|| format!("apt-get install {}", PACKAGES.join(" ")))
}

/// Packages contain /bin and /usr/bin, which must be the same directory.
fn extract(package: &Path, into: &Path) -> Result<()> {
    let mut content = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(package)
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run dpkg-deb")?;
    let archive = content.stdout.take().context("dpkg-deb has no output")?;
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--keep-directory-symlink", "--directory"]).arg(into).stdin(archive);
    let unpacked = output(&mut tar);
    let read = content.wait()?;
    unpacked?;
    ensure!(read.success(), "dpkg-deb ended with {read}");
    Ok(())
}
