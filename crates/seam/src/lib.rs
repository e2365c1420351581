//! What all seams have in common.
//!
//! A seam is a trait for effects. The attribute [`seam`] on it writes a layer beside it that forwards every call through a
//! [`Middleware`], so that deadlines, delays and faults are written once for all methods of all seams. A new method touches the
//! trait, what really does it and what simulates it, and nothing else.

// What the attribute writes names this crate from outside.
#[cfg(test)]
extern crate self as oarsman_seam;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use async_trait::async_trait;
pub use oarsman_seam_macros::seam;

/// One call on a seam.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// What is called, such as `RunPodSandbox`.
    pub name: &'static str,
    /// What it is about, such as the UID of a pod; empty when it is about everything.
    pub object: String,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, object } = self;
        if object.is_empty() { f.write_str(name) } else { write!(f, "{name} {object}") }
    }
}

/// Why a middleware gives an error in the place of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallFault {
    /// No answer came within this time.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// The other side cannot be reached.
    #[error("the connection broke")]
    Unavailable,
    /// The other side gives no reason.
    #[error("something went wrong")]
    Unknown,
    /// The other side says no.
    #[error("refused")]
    Refused,
    /// The other side has too much to do and asks for this much time.
    #[error("busy for another {0:?}")]
    Busy(Duration),
}

/// The error of a seam's methods: a middleware can make one.
pub trait SeamError: std::error::Error + Send + 'static {
    /// The error of a call that ended like this.
    fn of_fault(call: &Call, fault: CallFault) -> Self;
}

/// What is done around every call of a seam: it may delay the call, give it up or answer in its place.
pub trait Middleware: Send + Sync + 'static {
    /// Carries out a call; `answer` does nothing until it is polled.
    fn around<T, E>(
        &self,
        call: Call,
        answer: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Send + 'static,
        E: SeamError;
}

/// Nothing is done around a call.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMiddleware;

impl Middleware for NoMiddleware {
    async fn around<T, E>(
        &self,
        _: Call,
        answer: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: SeamError,
    {
        answer.await
    }
}

/// A seam whose calls all go through a middleware.
pub struct WithMiddleware<S: ?Sized, M> {
    inner: Arc<S>,
    middleware: M,
}

impl<S: ?Sized, M> WithMiddleware<S, M> {
    /// Calls on this go through the middleware to the inner one.
    pub fn new(inner: Arc<S>, middleware: M) -> Self {
        Self { inner, middleware }
    }

    /// The implementation that calls are passed to.
    pub fn inner(&self) -> &Arc<S> {
        &self.inner
    }

    /// What is done around every call.
    pub fn middleware(&self) -> &M {
        &self.middleware
    }
}

impl<S: ?Sized, M> fmt::Debug for WithMiddleware<S, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithMiddleware").finish_non_exhaustive()
    }
}
