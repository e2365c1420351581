//! What runs the containers of the node that is tested.

use clap::ValueEnum;
use oarsman_rig::ContainerdFlavour;
use serde::{Deserialize, Serialize};

/// A container runtime.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub(super) enum TestedRuntime {
    /// The newest containerd with runc
    #[default]
    Containerd,
    /// The one in our program
    Embedded,
    /// The same in a process of its own
    Cri,
}

impl TestedRuntime {
    /// What names of files of its runs have in addition.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::Containerd => "",
            Self::Embedded => "-embedded",
            Self::Cri => "-cri",
        }
    }

    /// What the command of its runs has in addition.
    pub(super) fn flag(self) -> &'static str {
        match self {
            Self::Containerd => "",
            Self::Embedded => " --runtime embedded",
            Self::Cri => " --runtime cri",
        }
    }

    /// What the name of its kubelet has in addition on a page.
    pub(super) fn shown(self) -> &'static str {
        match self {
            Self::Containerd => "",
            Self::Embedded => ", embedded runtime",
            Self::Cri => ", oarsman cri",
        }
    }

    pub(super) fn flavour(self) -> ContainerdFlavour {
        match self {
            Self::Containerd => ContainerdFlavour::Built,
            Self::Embedded => ContainerdFlavour::Absent,
            Self::Cri => ContainerdFlavour::OarsmanCri,
        }
    }

    /// Whether it is in our program.
    pub(super) fn is_ours(self) -> bool {
        self != Self::Containerd
    }
}
