//! Devices by the Container Device Interface (CDI): a file of a vendor says what a device of that name changes in the spec of a container.
//!
//! Files are read when a container with such devices is made: there are few of both.

mod edits;
mod files;

use std::path::PathBuf;

use oci_spec::runtime::Spec;

use edits::NodeLookup;
use files::CdiFiles;

/// Where vendors put files; those of a later directory count before those of an earlier one.
pub(crate) const DIRECTORIES: [&str; 2] = ["/etc/cdi", "/var/run/cdi"];

/// Why a container cannot have a device.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CdiError {
    #[error("{name:?} names no CDI device: that is VENDOR/CLASS=NAME")]
    Name { name: String },
    #[error(
        "no file in {} has the CDI device {name}{}",
        .directories.iter().map(|it| it.display().to_string()).collect::<Vec<_>>().join(" or "),
        .troubles.iter().map(|it| format!("; {it}")).collect::<String>()
    )]
    Unknown { name: String, directories: Vec<PathBuf>, troubles: Vec<String> },
    #[error("the CDI device {name} is in two files of one directory, {} and {}: remove one", .files[0].display(), .files[1].display())]
    Twice { name: String, files: [PathBuf; 2] },
    #[error("the CDI devices of the container want {what}: {why}")]
    Unsupported { what: &'static str, why: &'static str },
    #[error("the device {} of a CDI file cannot be used: {why}", .path.display())]
    Node { path: PathBuf, why: String },
    #[error("the spec cannot be built: {0}")]
    Build(#[from] oci_spec::OciSpecError),
}

/// What the runtime that makes the container does with a spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpecAbilities {
    /// Whether it runs hooks as the specification says. Ours attaches mounts later than hooks may expect them.
    pub(crate) hooks: bool,
}

/// Changes a spec for the devices of these names. Blocks.
pub(crate) fn inject(
    spec: &mut Spec,
    names: &[String],
    directories: &[PathBuf],
    abilities: SpecAbilities,
) -> Result<(), CdiError> {
    if names.is_empty() {
        return Ok(());
    }
    for edits in CdiFiles::read(directories).edits_of(names)? {
        edits.apply(spec, abilities, &NodeLookup::of_host())?;
    }
    Ok(())
}
