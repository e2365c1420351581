//! What runs the containers of the node that is tested.

use clap::ValueEnum;
use oarsman_rig::ContainerdFlavour;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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
}

impl TestedRuntime {
    /// What names of files of its runs have in addition.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::Containerd => "",
            Self::Embedded => "-embedded",
        }
    }

    /// What the command of its runs has in addition.
    pub(super) fn flag(self) -> &'static str {
        match self {
            Self::Containerd => "",
            Self::Embedded => " --runtime embedded",
        }
    }

    /// What the name of its kubelet has in addition on a page.
    pub(super) fn shown(self) -> &'static str {
        match self {
            Self::Containerd => "",
            Self::Embedded => ", embedded runtime",
        }
    }

    pub(super) fn flavour(self) -> ContainerdFlavour {
        match self {
            Self::Containerd => ContainerdFlavour::Built,
            Self::Embedded => ContainerdFlavour::Absent,
        }
    }

    /// Fields of the agent's configuration that are other than usual.
    pub(super) fn settings(self) -> Map<String, Value> {
        match self {
            Self::Containerd => Map::new(),
            Self::Embedded => {
                Map::from_iter([("containerRuntimeEndpoint".to_owned(), Value::from("embedded"))])
            }
        }
    }
}
