//! The one error of all runtime calls.

/// What a runtime call gives.
pub type Result<T> = std::result::Result<T, CriError>;

/// A runtime call that failed: which call, on what, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message} ({code})", self.what())]
pub struct CriError {
    call: &'static str,
    subject: Option<String>,
    code: Code,
    message: String,
}

impl CriError {
    /// An error of the call with this RPC name.
    pub fn new(call: &'static str, code: Code, message: impl Into<String>) -> Self {
        Self {
            call,
            subject: None,
            code,
            message: message.into(),
        }
    }

    /// The thing the call was about does not exist.
    pub fn not_found(call: &'static str, subject: &str) -> Self {
        Self::new(call, Code::NotFound, format!("{subject} does not exist")).on(subject)
    }

    /// This runtime does not have the call.
    pub fn unimplemented(call: &'static str) -> Self {
        Self::new(call, Code::Unimplemented, "this runtime does not have it")
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
    pub fn code(&self) -> Code {
        self.code
    }

    /// The runtime's own words, without call and subject.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The thing does not exist (any more).
    pub fn is_gone(&self) -> bool {
        self.code == Code::NotFound
    }

    /// No answer came in time. The runtime may still be at it.
    pub fn is_timeout(&self) -> bool {
        self.code == Code::DeadlineExceeded
    }

    /// The runtime cannot be reached.
    pub fn is_unavailable(&self) -> bool {
        self.code == Code::Unavailable
    }

    /// The runtime does not have this call.
    pub fn is_unimplemented(&self) -> bool {
        self.code == Code::Unimplemented
    }

    fn what(&self) -> String {
        match &self.subject {
            Some(subject) => format!("{} {subject}", self.call),
            None => self.call.to_owned(),
        }
    }
}

/// Kinds of failure: the gRPC codes that runtimes use. The rest count as [`Code::Unknown`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the error messages are the documentation")]
pub enum Code {
    #[error("cancelled")]
    Cancelled,
    #[error("unknown")]
    Unknown,
    #[error("invalid argument")]
    InvalidArgument,
    #[error("deadline exceeded")]
    DeadlineExceeded,
    #[error("not found")]
    NotFound,
    #[error("already exists")]
    AlreadyExists,
    #[error("permission denied")]
    PermissionDenied,
    #[error("resource exhausted")]
    ResourceExhausted,
    #[error("failed precondition")]
    FailedPrecondition,
    #[error("aborted")]
    Aborted,
    #[error("out of range")]
    OutOfRange,
    #[error("unimplemented")]
    Unimplemented,
    #[error("internal")]
    Internal,
    #[error("unavailable")]
    Unavailable,
    #[error("unauthenticated")]
    Unauthenticated,
}
