//! Why a container has not been started: the last failed try, kept by the agent until one succeeds.

use std::fmt;

/// The one word, as the API spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StartReason {
    /// Its configuration could not be made: a missing Secret, a user that may not be root.
    CreateContainerConfigError,
    /// A hook before its creation failed.
    PreCreateHookError,
    /// The runtime would not create it.
    CreateContainerError,
    /// A hook before its start failed.
    PreStartHookError,
    /// The runtime would not start it.
    RunContainerError,
    /// Its postStart hook failed.
    PostStartHookError,
    /// Its image could not be pulled.
    ErrImagePull,
    /// Its image could not be pulled, and the next try is later.
    ImagePullBackOff,
    /// The runtime could not say whether it has the image.
    ImageInspectError,
    /// Its image is not here and may not be pulled.
    ErrImageNeverPull,
    /// No image can have that name.
    InvalidImageName,
    /// The registry of its image does not answer.
    RegistryUnavailable,
    /// Its image is not signed as the node demands.
    SignatureValidationFailed,
    /// It ended too often, and the next start is later.
    CrashLoopBackOff,
}

impl fmt::Display for StartReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Why a container has not been started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartError {
    /// The one word that tools match on.
    pub reason: StartReason,
    /// The sentence that a person reads.
    pub message: String,
}
