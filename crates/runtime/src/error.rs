//! What can go wrong, and the code by which a caller of CRI is told.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use oarsman_cni::CniError;
use oarsman_cri::{CriError, ErrorCode};
use oarsman_host::cgroups::CgroupError;
use oarsman_image_store::StoreError;
use oarsman_pod_network::PodNetworkError;
use oarsman_registry::RegistryError;
use oarsman_shim::client::ShimError;
use oarsman_shim::protocol::RefusalKind;

use crate::network_choice::NoNetwork;
use crate::oci::SpecError;

/// Why the runtime did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedRuntimeError {
    /// Another process has the directory.
    #[error("the embedded runtime's directory {} is in use by {holder}: stop that process, or name another directory", .root.display())]
    InUse {
        /// The directory.
        root: PathBuf,
        /// What its holder has written about itself.
        holder: String,
    },
    /// There is no such object.
    #[error("{kind} {id} does not exist")]
    NotFound {
        /// Of which kind.
        kind: &'static str,
        /// Its id.
        id: String,
    },
    /// The name is another object's.
    #[error("the name {name:?} is reserved for {id:?}")]
    NameReserved {
        /// The name.
        name: String,
        /// Who has it.
        id: String,
    },
    /// Not in the state that the object is in.
    #[error("{kind} {id} is {state}: {why}")]
    State {
        /// Of which kind.
        kind: &'static str,
        /// Its id.
        id: String,
        /// Its state.
        state: &'static str,
        /// Why that is in the way.
        why: &'static str,
    },
    /// The request is not as it has to be.
    #[error("{0}")]
    Invalid(String),
    /// An image cannot be pulled. Kubelets know the first word of one whose registry cannot be reached.
    #[error("{}{source}", unavailable(.source))]
    Registry {
        /// What happened.
        #[from]
        source: Box<RegistryError>,
    },
    /// The image store failed.
    #[error(transparent)]
    Images(#[from] StoreError),
    /// The network of a pod failed.
    #[error(transparent)]
    Network(#[from] PodNetworkError),
    /// Plugins could not connect or disconnect a pod.
    #[error(transparent)]
    Cni(Box<CniError>),
    /// There is no network for pods.
    #[error("{0}")]
    NoNetwork(String),
    /// A shim failed.
    #[error(transparent)]
    Shim(#[from] ShimError),
    /// Control groups failed.
    #[error(transparent)]
    Cgroups(#[from] CgroupError),
    /// A call of the kernel failed.
    #[error("cannot {doing} {}: {source}", .path.display())]
    Files {
        /// What was tried.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The streams of a process could not be made.
    #[error(
        "cannot make the streams of a process: {0}; the limit of open files is the usual reason"
    )]
    Streams(#[source] io::Error),
    /// Not done in time; it may yet be.
    #[error("{what} was not done within {deadline:?}")]
    Deadline {
        /// What was done.
        what: String,
        /// How long it had.
        deadline: Duration,
    },
    /// A thread or a task of ours panicked.
    #[error("a task of the runtime failed: {0}")]
    Panicked(String),
}

pub(crate) type Outcome<T> = Result<T, EmbeddedRuntimeError>;

impl From<CniError> for EmbeddedRuntimeError {
    fn from(error: CniError) -> Self {
        Self::Cni(Box::new(error))
    }
}

impl From<NoNetwork> for EmbeddedRuntimeError {
    fn from(error: NoNetwork) -> Self {
        Self::NoNetwork(error.to_string())
    }
}

impl From<SpecError> for EmbeddedRuntimeError {
    fn from(error: SpecError) -> Self {
        Self::Invalid(error.to_string())
    }
}

fn unavailable(error: &RegistryError) -> &'static str {
    if error.is_unavailable() { "RegistryUnavailable: " } else { "" }
}

impl EmbeddedRuntimeError {
    pub(crate) fn no_container(id: &str) -> Self {
        Self::NotFound { kind: "container", id: id.to_owned() }
    }

    pub(crate) fn no_sandbox(id: &str) -> Self {
        Self::NotFound { kind: "sandbox", id: id.to_owned() }
    }

    fn code(&self) -> ErrorCode {
        match self {
            Self::NotFound { .. } => ErrorCode::NotFound,
            Self::Registry { source } if source.is_not_found() => ErrorCode::NotFound,
            Self::Images(StoreError::NoImage { .. }) => ErrorCode::NotFound,
            Self::NameReserved { .. } => ErrorCode::AlreadyExists,
            Self::State { .. } | Self::InUse { .. } => ErrorCode::FailedPrecondition,
            Self::Invalid(_) => ErrorCode::InvalidArgument,
            Self::Deadline { .. } | Self::Shim(ShimError::Deadline { .. }) => {
                ErrorCode::DeadlineExceeded
            }
            Self::Shim(ShimError::Refused { kind, .. }) => match kind {
                RefusalKind::NotFound => ErrorCode::NotFound,
                RefusalKind::WrongState => ErrorCode::FailedPrecondition,
                _ => ErrorCode::Unknown,
            },
            Self::Panicked(_) => ErrorCode::Internal,
            _ => ErrorCode::Unknown,
        }
    }

    /// As the error of that call on that object.
    pub(crate) fn of_call(&self, call: &'static str, object: &str) -> CriError {
        CriError::new(call, self.code(), self.to_string()).on(object)
    }
}

/// Makes an error of what the kernel said about a path.
pub(crate) fn failed<E: Into<io::Error>>(
    doing: &'static str,
    path: &Path,
) -> impl FnOnce(E) -> EmbeddedRuntimeError {
    move |source| EmbeddedRuntimeError::Files {
        doing,
        path: path.to_owned(),
        source: source.into(),
    }
}
