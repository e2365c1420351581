//! One call under way: its name, its object, and its deadline.

use std::future::Future;
use std::time::Duration;

use oarsman_spans::traceparent;
use prost::Message;
use tokio::time::timeout;
use tonic::{Request, Response, Status};

use crate::error::causes;
use crate::wire::LARGEST_MESSAGE;
use crate::{CriError, ErrorCode, Result};

/// How much longer the deadline is that the runtime is given. It keeps our own timer ahead of the runtime's and of gRPC's, so that it is always
/// our error that the caller sees.
const HEAD_START: Duration = Duration::from_secs(1);

/// A call, before its answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct PendingCall<'a> {
    pub(super) call: &'static str,
    pub(super) subject: &'a str,
    pub(super) limit: Option<Duration>,
    /// After how long the call counts as slow.
    pub(super) slow_after: Option<Duration>,
}

impl PendingCall<'_> {
    /// Sends the message and waits for the answer as long as the limit allows.
    ///
    /// A request that finds its connection closed and never leaves is sent once more, on a new
    /// one: the runtime was restarted, which is no reason to fail.
    pub(super) async fn send<Q, A, F>(self, message: Q, rpc: impl Fn(Request<Q>) -> F) -> Result<A>
    where
        Q: Message + Clone,
        F: Future<Output = std::result::Result<Response<A>, Status>>,
    {
        self.check_size(message.encoded_len())?;
        let answering = async {
            match rpc(self.request(message.clone())).await {
                Err(status) if was_not_sent(&status) => rpc(self.request(message)).await,
                answer => answer,
            }
        };
        let answering = self.warn_when_slow(answering);
        let answered = match self.limit {
            Some(limit) => {
                timeout(limit, answering).await.map_err(|_| self.timeout_error(limit))?
            }
            None => answering.await,
        };
        answered.map(Response::into_inner).map_err(|status| self.failed(&status))
    }

    /// Waits on, but logs a warning once the call is slow, so that the cause of a delay can be found.
    async fn warn_when_slow<T>(self, answering: impl Future<Output = T>) -> T {
        let mut answering = std::pin::pin!(answering);
        let Some(slow_after) = self.slow_after else { return answering.await };
        match timeout(slow_after, &mut answering).await {
            Ok(answer) => answer,
            Err(_) => {
                let (call, object, seconds) = (self.call, self.subject, slow_after.as_secs_f64());
                tracing::warn!(
                    call,
                    object,
                    seconds,
                    "runtime has not answered yet, still waiting"
                );
                answering.await
            }
        }
    }

    /// The message with the deadline for the runtime, and with the span that the call is in.
    fn request<Q>(&self, message: Q) -> Request<Q> {
        let mut request = Request::new(message);
        if let Some(Ok(parent)) = traceparent().map(|parent| parent.parse()) {
            request.metadata_mut().insert("traceparent", parent);
        }
        if let Some(limit) = self.limit {
            request.set_timeout(limit.saturating_add(HEAD_START));
        }
        request
    }

    fn check_size(&self, size: usize) -> Result<()> {
        if size <= LARGEST_MESSAGE {
            return Ok(());
        }
        let message = format!("the request has {size} bytes, more than {LARGEST_MESSAGE}");
        Err(self.error(ErrorCode::ResourceExhausted, message))
    }

    /// The error of a call that ended with this status.
    pub(super) fn failed(&self, status: &Status) -> CriError {
        CriError::from_status(self.call, self.subject, status)
    }

    /// A part of the answer that CRI says is always there.
    pub(super) fn part<T>(&self, part: Option<T>, name: &str) -> Result<T> {
        let missing = || format!("the runtime's answer has no {name}");
        part.ok_or_else(|| self.error(ErrorCode::Internal, missing()))
    }

    /// A text in the answer that CRI says is never empty.
    pub(super) fn text(&self, text: String, name: &str) -> Result<String> {
        self.part(Some(text).filter(|text| !text.is_empty()), name)
    }

    fn timeout_error(&self, limit: Duration) -> CriError {
        let message = format!("no answer within {limit:?}");
        self.error(ErrorCode::DeadlineExceeded, message)
    }

    fn error(&self, code: ErrorCode, message: String) -> CriError {
        CriError::new(self.call, code, message).on(self.subject)
    }
}

/// Whether a call failed before anything of it was sent.
fn was_not_sent(status: &Status) -> bool {
    causes(status)
        .filter_map(|cause| cause.downcast_ref::<hyper::Error>())
        .any(hyper::Error::is_canceled)
}

/// Makes a call by a generated client: `send!(self.runtime.stop_container(message), attempt)`.
macro_rules! send {
    ($self:ident.$service:ident.$rpc:ident($message:expr), $attempt:expr) => {
        $attempt
            .send($message, |request| {
                let mut client = $self.$service.clone();
                async move { client.$rpc(request).await }
            })
            .await
    };
}
pub(super) use send;

#[cfg(test)]
mod tests {
    use super::*;

    const ATTEMPT: PendingCall<'static> =
        PendingCall { call: "ContainerStatus", subject: "c1", limit: None, slow_after: None };

    #[test]
    fn an_answer_that_lacks_what_cri_promises_is_an_error() {
        let error = ATTEMPT.part(None::<()>, "status").unwrap_err();
        assert_eq!(error.code(), ErrorCode::Internal);
        assert_eq!(error.message(), "the runtime's answer has no status");
        assert_eq!(error.subject(), Some("c1"));
        assert!(ATTEMPT.text(String::new(), "URL").is_err());
        assert_eq!(ATTEMPT.text("x".to_owned(), "URL"), Ok("x".to_owned()));
    }
}
