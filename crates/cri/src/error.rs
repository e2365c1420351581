//! The one error of all runtime calls.

mod status;

use std::fmt;

use oarsman_seam::{Call, CallFault, SeamError};

pub(crate) use self::status::causes;

/// The result of a runtime call.
pub type Result<T> = std::result::Result<T, CriError>;

/// A runtime call that failed: which call, on what, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message} ({code})", self.what())]
pub struct CriError {
    call: &'static str,
    subject: Option<String>,
    code: ErrorCode,
    message: String,
}

impl SeamError for CriError {
    fn of_fault(call: &Call, fault: CallFault) -> Self {
        let code = match fault {
            CallFault::TimedOut(_) => ErrorCode::DeadlineExceeded,
            CallFault::Unavailable => ErrorCode::Unavailable,
            CallFault::Unknown | CallFault::Refused | CallFault::Busy(_) => ErrorCode::Unknown,
        };
        Self::new(call.name, code, fault.to_string()).on(call.object.as_str())
    }
}

impl CriError {
    /// An error of the call with this RPC name.
    pub fn new(call: &'static str, code: ErrorCode, message: impl Into<String>) -> Self {
        Self { call, subject: None, code, message: message.into() }
    }

    /// The thing the call was about does not exist.
    pub fn not_found(call: &'static str, subject: &str) -> Self {
        Self::new(call, ErrorCode::NotFound, format!("{subject} does not exist")).on(subject)
    }

    /// This runtime does not have the call.
    pub fn unimplemented(call: &'static str) -> Self {
        Self::new(call, ErrorCode::Unimplemented, "this runtime does not have it")
    }

    /// The same error, saying what the call was about; an empty subject says nothing.
    #[must_use]
    pub fn on(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into()).filter(|subject| !subject.is_empty());
        self
    }

    /// RPC name of the call, such as `StopContainer`.
    pub fn call(&self) -> &'static str {
        self.call
    }

    /// What the call was about, where known: the id of a sandbox or a container, the reference of
    /// an image, or `namespace/name` of a pod that has no sandbox yet.
    pub fn subject(&self) -> Option<&str> {
        self.subject.as_deref()
    }

    /// What kind of failure it is.
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// The runtime's own message, without call and subject.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The thing does not exist (any more).
    pub fn is_gone(&self) -> bool {
        self.code == ErrorCode::NotFound
    }

    /// No answer came in time. The runtime may still be working on the call.
    pub fn is_timeout(&self) -> bool {
        self.code == ErrorCode::DeadlineExceeded
    }

    /// The runtime cannot be reached.
    pub fn is_unavailable(&self) -> bool {
        self.code == ErrorCode::Unavailable
    }

    /// The name of what was to be created is reserved, though nothing may exist under it. containerd has no code for that, only a message.
    pub fn is_name_reserved(&self) -> bool {
        self.code == ErrorCode::AlreadyExists || self.message.contains("is reserved for")
    }

    /// The runtime does not have this call.
    pub fn is_unimplemented(&self) -> bool {
        self.code == ErrorCode::Unimplemented
    }

    fn what(&self) -> String {
        match &self.subject {
            Some(subject) => format!("{} {subject}", self.call),
            None => self.call.to_owned(),
        }
    }
}

/// Kinds of failure: the gRPC codes that runtimes use, under gRPC's numbers. The rest count as
/// [`ErrorCode::Unknown`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum ErrorCode {
    /// The call was cancelled by the caller or on the way.
    Cancelled = 1,
    /// Most of what goes wrong in a runtime: Go errors without a code arrive as this.
    Unknown = 2,
    /// The request makes no sense, whatever the state of the node.
    InvalidArgument = 3,
    /// No answer in time.
    DeadlineExceeded = 4,
    /// The thing does not exist.
    NotFound = 5,
    /// The name is taken.
    AlreadyExists = 6,
    /// The caller has no permission for the call.
    PermissionDenied = 7,
    /// Out of space, of quota, or a message above the size limit.
    ResourceExhausted = 8,
    /// The thing is in the wrong state for this.
    FailedPrecondition = 9,
    /// Lost a race; worth another try.
    Aborted = 10,
    /// Beyond the end of something; gRPC libraries say it of messages above their bound.
    OutOfRange = 11,
    /// The runtime does not have this call.
    Unimplemented = 12,
    /// The runtime is broken.
    Internal = 13,
    /// The runtime cannot be reached, or is not ready to serve.
    Unavailable = 14,
    /// Credentials are missing or wrong.
    Unauthenticated = 16,
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
            Self::InvalidArgument => "invalid argument",
            Self::DeadlineExceeded => "deadline exceeded",
            Self::NotFound => "not found",
            Self::AlreadyExists => "already exists",
            Self::PermissionDenied => "permission denied",
            Self::ResourceExhausted => "resource exhausted",
            Self::FailedPrecondition => "failed precondition",
            Self::Aborted => "aborted",
            Self::OutOfRange => "out of range",
            Self::Unimplemented => "unimplemented",
            Self::Internal => "internal",
            Self::Unavailable => "unavailable",
            Self::Unauthenticated => "unauthenticated",
        })
    }
}
