//! What can go wrong with CNI: each error names the network, the plugin, the pod, and what to do.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use crate::network::ConfigurationError;
use crate::refusal::PluginRefusal;
use crate::result::ResultError;

/// What plugins are asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CniOperation {
    /// Connect a pod.
    Add,
    /// Disconnect a pod.
    Delete,
    /// Say whether a pod is connected as it should be.
    Check,
    /// Remove what belongs to no pod.
    CollectGarbage,
    /// Say whether pods can be connected.
    Status,
}

impl CniOperation {
    /// The value of `CNI_COMMAND`.
    pub(crate) fn command(self) -> &'static str {
        match self {
            Self::Add => "ADD",
            Self::Delete => "DEL",
            Self::Check => "CHECK",
            Self::CollectGarbage => "GC",
            Self::Status => "STATUS",
        }
    }

    /// As libcni names it in errors.
    fn shown(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Delete => "delete",
            Self::Check => "check",
            Self::CollectGarbage => "gc",
            Self::Status => "status",
        }
    }
}

/// What can go wrong with CNI.
#[derive(Debug, thiserror::Error)]
pub enum CniError {
    /// A network configuration cannot be used.
    #[error("the CNI configuration {} cannot be used: {source}; correct or remove it", .path.display())]
    Configuration {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ConfigurationError,
    },
    /// A network configuration cannot be read.
    #[error("the CNI configuration {} cannot be read: {source}", .path.display())]
    Unreadable {
        /// The file or directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A pod could not be connected or disconnected, or is not connected as it should be.
    #[error(
        "failed to {} network for sandbox {sandbox:?}: {call}, on network {network:?} of pod {pod}",
        .call.verb()
    )]
    Attachment {
        /// The sandbox.
        sandbox: String,
        /// The pod, `namespace/name`.
        pod: String,
        /// The network.
        network: String,
        /// What failed.
        call: Box<FailedCall>,
    },
    /// A network is not ready for pods, or was not cleaned.
    #[error("network {network:?}: {call}")]
    Network {
        /// The network.
        network: String,
        /// What failed.
        call: Box<FailedCall>,
    },
    /// A plugin answered, and the pod has no address by it.
    #[error(
        "failed to setup network for sandbox {sandbox:?}: network {network:?} gives pod {pod} no address for its interface {interface}: look at \"ipam\" in its configuration"
    )]
    NoAddress {
        /// The sandbox.
        sandbox: String,
        /// The pod, `namespace/name`.
        pod: String,
        /// The network.
        network: String,
        /// The interface of the pod.
        interface: String,
    },
    /// The name of a pod would be taken for something else.
    #[error(
        "{label} {value:?} cannot be told to CNI plugins: take \";\", \"=\" and line breaks out of it"
    )]
    Label {
        /// The label.
        label: String,
        /// Its value.
        value: String,
    },
    /// What was kept of an attachment cannot be read or written.
    #[error("cannot {doing} {}: {source}", .path.display())]
    Store {
        /// What was tried.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The disk hangs, or another call for the same sandbox does.
    #[error(
        "files of CNI were not read or written within {deadline:?}: see whether their disk hangs"
    )]
    FilesLate {
        /// How long it might take.
        deadline: Duration,
    },
    /// A thread of ours panicked.
    #[error("work on files of CNI failed: {0}")]
    Panicked(String),
}

/// A call of a plugin that failed.
#[derive(Debug, thiserror::Error)]
#[error("plugin type={plugin:?} failed ({}): {failure}", .operation.shown())]
pub struct FailedCall {
    /// What it was asked to do.
    pub operation: CniOperation,
    /// The type of the plugin, which is the name of its program.
    pub plugin: String,
    /// What happened.
    pub failure: PluginFailure,
}

impl FailedCall {
    fn verb(&self) -> &'static str {
        match self.operation {
            CniOperation::Add => "setup",
            CniOperation::Delete => "destroy",
            CniOperation::Check | CniOperation::CollectGarbage | CniOperation::Status => "check",
        }
    }
}

/// Why a plugin did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum PluginFailure {
    /// There is no such program.
    #[error(
        "failed to find plugin {plugin:?} in path [{}]: install it there, or name its directory (--cni-bin-dir)",
        listed(.directories)
    )]
    Missing {
        /// Its name.
        plugin: String,
        /// Where it was looked for.
        directories: Vec<PathBuf>,
    },
    /// It could not be executed.
    #[error("{} cannot be executed: {source}", .path.display())]
    Execute {
        /// The program.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It took too long, and was killed.
    #[error(
        "the plugins of the network have not answered within {deadline:?}, it was killed: see what it waits for, such as a daemon of the network that does not run"
    )]
    Deadline {
        /// How long they had together.
        deadline: Duration,
    },
    /// It wrote too much, and was killed.
    #[error("its answer is longer than {limit} bytes, it was killed: replace the plugin")]
    TooLong {
        /// How much it may write.
        limit: usize,
    },
    /// Its output could not be read.
    #[error("its output cannot be read: {0}")]
    Pipe(#[source] io::Error),
    /// It said no.
    #[error("{refusal}{}", said(.errors))]
    Refused {
        /// What it said.
        refusal: PluginRefusal,
        /// What it wrote to stderr.
        errors: String,
    },
    /// It failed without an error that can be read.
    #[error("it ended with {status} and no error of CNI{}{}", answered(.output), said(.errors))]
    Failed {
        /// How it ended.
        status: ExitStatus,
        /// What it wrote to stdout.
        output: String,
        /// What it wrote to stderr.
        errors: String,
    },
    /// Its answer is no result.
    #[error("its answer cannot be used: {source}{}: replace the plugin, or correct cniVersion", said(.errors))]
    Result {
        /// What is wrong with it.
        source: ResultError,
        /// What it wrote to stderr.
        errors: String,
    },
}

fn listed(directories: &[PathBuf]) -> String {
    directories.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ")
}

fn said(errors: &str) -> String {
    if errors.is_empty() { String::new() } else { format!(" (it wrote {errors:?})") }
}

fn answered(output: &str) -> String {
    if output.is_empty() { String::new() } else { format!(" but {output:?}") }
}

/// Makes the error of a file.
pub(crate) fn store_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CniError {
    let path = path.to_owned();
    move |source| CniError::Store { doing, path, source }
}
