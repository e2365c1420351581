//! The agents that tasks run on: the Go kubelet, or ours in its place.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use oarsman_rig::Implementation;
use oarsman_rig::parts::kubernetes::{self, KUBELET};
use serde::{Deserialize, Serialize};

use crate::command::cargo;

/// A node agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum KubeletKind {
    /// The Go kubelet, built from its module
    Go,
    /// Ours, built for release
    Oarsman,
}

impl fmt::Display for KubeletKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Go => "go",
            Self::Oarsman => "oarsman",
        })
    }
}

impl KubeletKind {
    /// Its name on a page.
    pub(crate) fn shown(self) -> &'static str {
        match self {
            Self::Go => "Go kubelet",
            Self::Oarsman => "Oarsman",
        }
    }

    /// Builds it; needs a network.
    pub(crate) fn prepare(self, root: &Path) -> Result<()> {
        match self {
            Self::Go => kubernetes::prepare(&[KUBELET]),
            Self::Oarsman => {
                let target = build_directory()?.display().to_string();
                let build = ["build", "--release", "--package", "oarsman", "--target-dir"];
                cargo(root, &[&build[..], &[target.as_str()]].concat())
            }
        }
    }

    /// The built program.
    pub(crate) fn program(self) -> Result<PathBuf> {
        match self {
            Self::Go => KUBELET.path(),
            Self::Oarsman => Ok(build_directory()?.join("release/oarsman")),
        }
    }

    pub(crate) fn implementation(self) -> Result<Implementation> {
        match self {
            Self::Go => Ok(Implementation::Go),
            Self::Oarsman => self.program().map(Implementation::Oarsman),
        }
    }
}

/// cargo's build directory, which this program is in, too: below it is a directory for each profile.
pub(crate) fn build_directory() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let directory = program.ancestors().nth(2).map(Path::to_owned);
    directory.with_context(|| format!("{} was not built by cargo", program.display()))
}
