//! What can go wrong with a registry. URLs are shown without credentials and without their query, which may hold some.

use std::path::PathBuf;
use std::time::Duration;

use oarsman_core::image_reference::InvalidName;
use oarsman_image_store::StoreError;

/// Why an image could not be pulled.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// A name no registry could have given.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// The configuration of a registry's hosts cannot be used.
    #[error("cannot use {}: {why}", .path.display())]
    HostsFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// No connection, or it broke.
    #[error("cannot reach {url}: {why}")]
    Unreachable {
        /// What was asked for.
        url: String,
        /// What the system said.
        why: String,
    },
    /// It takes too long.
    #[error("{what} of {url} did not come within {limit:?}")]
    TimedOut {
        /// What was waited for.
        what: &'static str,
        /// What was asked for.
        url: String,
        /// How long it was waited.
        limit: Duration,
    },
    /// So few bytes that the registry only seems to answer.
    #[error("{url} sends too slowly: {bytes} bytes in {window:?}, at least {least} are expected")]
    TooSlow {
        /// What was asked for.
        url: String,
        /// What came.
        bytes: u64,
        /// In this time.
        window: Duration,
        /// What should have come.
        least: u64,
    },
    /// The registry wants credentials, or does not accept those that it got.
    #[error("{url} refuses {who}: {why}")]
    Unauthorized {
        /// What was asked for.
        url: String,
        /// As whom.
        who: &'static str,
        /// What the registry said.
        why: String,
    },
    /// The registry does not have it.
    #[error("{url} is not found: {why}")]
    NotFound {
        /// What was asked for.
        url: String,
        /// What the registry said.
        why: String,
    },
    /// Any other answer that is no success.
    #[error("{url} answered with status {status}: {why}")]
    Status {
        /// What was asked for.
        url: String,
        /// The status.
        status: u16,
        /// What the registry said.
        why: String,
    },
    /// The registry sends us where it may not.
    #[error("{url} redirects to {to}, which is not followed: {why}")]
    Redirect {
        /// What was asked for.
        url: String,
        /// Where we should go.
        to: String,
        /// Why not.
        why: String,
    },
    /// The answer cannot be understood.
    #[error("the answer of {url} cannot be used: {why}")]
    Malformed {
        /// What was asked for.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The content has another digest than the name says.
    #[error("{url} sent a manifest with the digest {found}, not {wanted}")]
    WrongManifest {
        /// What was asked for.
        url: String,
        /// The digest in the image's name.
        wanted: String,
        /// That of the bytes.
        found: String,
    },
    /// A download broke off too often.
    #[error("the download of {blob} broke off {breaks} times at {at} of {size} bytes: {last}")]
    GivenUp {
        /// The digest of the blob.
        blob: String,
        /// How often in a row.
        breaks: u32,
        /// Where.
        at: u64,
        /// Of how many bytes.
        size: u64,
        /// What happened last.
        last: Box<RegistryError>,
    },
    /// None of an image's hosts has it.
    #[error("cannot pull {image}: {}", joined(.failures))]
    AllHosts {
        /// The image.
        image: String,
        /// What each host said, in the order they were asked.
        failures: Vec<RegistryError>,
    },
    /// The image store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another pull on this machine has held a blob of the image for too long.
    #[error("another pull has been downloading {blob} for {waited:?}: wait for it, or end it")]
    Busy {
        /// The digest of the blob.
        blob: String,
        /// How long it was waited.
        waited: Duration,
    },
    /// A thread of ours panicked.
    #[error("a task of the pull failed: {0}")]
    Panicked(String),
}

fn joined(failures: &[RegistryError]) -> String {
    let texts: Vec<String> = failures.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

impl RegistryError {
    /// Whether the registry said that it does not have the image.
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::NotFound { .. } => true,
            Self::AllHosts { failures, .. } => failures.iter().all(Self::is_not_found),
            _ => false,
        }
    }

    /// Whether no registry could be reached, or what was reached is out of order.
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::TimedOut { .. } | Self::TooSlow { .. } => true,
            Self::Status { status, .. } => *status >= 500 || *status == 429,
            Self::GivenUp { last, .. } => last.is_unavailable(),
            Self::AllHosts { failures, .. } => failures.iter().all(Self::is_unavailable),
            _ => false,
        }
    }

    /// Whether going on where the download broke off may help.
    pub(crate) fn is_interruption(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::TimedOut { .. } => true,
            Self::Status { status, .. } => *status >= 500 || *status == 429,
            _ => false,
        }
    }
}
