//! Errors of watches.

use kube::core::Status;

use super::super::error;
use super::PATIENCE;
use crate::ClusterError;

/// Why a watch cannot go on as it was.
#[derive(Debug, thiserror::Error)]
pub(super) enum WatchError {
    #[error("{}", error::with_causes(.0))]
    Failed(#[from] kube::Error),
    #[error("{} ({})", .0.message, .0.code)]
    Ended(Box<Status>),
    #[error("no answer within {PATIENCE:?}")]
    Silent,
    #[error("a list that has no version")]
    NoVersion,
    #[error("it ended as soon as it had begun")]
    Short,
}

impl WatchError {
    /// Whether the API server, asked to stream a list, says that it does not do that.
    pub(super) fn is_streaming_unsupported(&self) -> bool {
        matches!(self, Self::Failed(error) if matches!(error::code(error), Some(400 | 422)))
    }

    /// Whether it tried and failed, as one does whose store is too old.
    pub(super) fn is_server_error(&self) -> bool {
        let code = match self {
            Self::Failed(error) => error::code(error),
            Self::Ended(status) => Some(status.code),
            _ => None,
        };
        code.is_some_and(|code| code >= 500)
    }

    pub(super) fn into_cluster_error(self, call: &'static str, object: &str) -> ClusterError {
        match self {
            Self::Failed(error) => error::failed(call, object, &error),
            other => {
                let (object, why) = (object.to_owned(), other.to_string());
                ClusterError::Unavailable { call, object, why }
            }
        }
    }
}
