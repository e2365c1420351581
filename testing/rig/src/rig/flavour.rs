//! The flavours of containerd, what may be in its place, and what is particular to each.

use anyhow::{Context, Result};

use super::{RigLayout, config};
use crate::parts::Parts;

/// Which containerd a rig has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ContainerdFlavour {
    /// The newest one, built by us, with the newest runc.
    #[default]
    Built,
    /// Debian 12's: containerd 1.6.20 with runc 1.1.5. It has no container events.
    Debian,
    /// `oarsman cri` in its place.
    OarsmanCri,
    /// None: agents on the rig have the embedded runtime.
    Absent,
}

impl ContainerdFlavour {
    /// The components, with this containerd and its runc.
    pub(super) fn choose(self, parts: Parts) -> Result<Parts> {
        if self != Self::Debian {
            return Ok(parts);
        }
        let debian = parts.debian.clone();
        let debian =
            debian.context("Debian's containerd is not here: it needs apt-get and dpkg")?;
        Ok(Parts { containerd: debian.containerd, runc: debian.runc, ..parts })
    }

    pub(super) fn config(self, layout: &RigLayout, parts: &Parts) -> String {
        match self {
            Self::Built => config::containerd_2(layout, parts),
            Self::Debian => config::containerd_1_6(layout, parts),
            Self::OarsmanCri | Self::Absent => String::new(),
        }
    }

    /// The directory of its shims' sockets, if that cannot be configured. It exists inside of the namespaces only.
    pub(super) fn shim_sockets(self) -> Option<&'static str> {
        match self {
            Self::Built | Self::OarsmanCri | Self::Absent => None,
            Self::Debian => Some("/run/containerd/s"),
        }
    }

    /// Whether a process of the rig serves CRI.
    pub fn has_socket(self) -> bool {
        self != Self::Absent
    }

    /// Whether that is a containerd.
    pub(crate) fn is_containerd(self) -> bool {
        matches!(self, Self::Built | Self::Debian)
    }

    /// Whether its ctr can list sandboxes: before 2.0 those are containers only.
    pub(crate) fn lists_sandboxes(self) -> bool {
        self == Self::Built
    }
}
