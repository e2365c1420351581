//! The span that a piece of work belongs to. It is a value of the task, set while the work is polled: work that moves to another task begins anew.

use crate::ids::{SpanId, TraceId};

tokio::task_local! {
    pub(crate) static CURRENT: CurrentSpan;
}

/// Where spans that begin now belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CurrentSpan {
    /// Below that span.
    Sampled { trace: TraceId, span: SpanId },
    /// Below a root that is not sampled.
    NotSampled,
}

/// None outside of all spans.
pub(crate) fn current() -> Option<CurrentSpan> {
    CURRENT.try_with(|current| *current).ok()
}

/// The header of that name for a call that is made now, as W3C Trace Context has it, if the call is in a sampled span.
pub fn traceparent() -> Option<String> {
    match current()? {
        CurrentSpan::Sampled { trace, span } => Some(format!("00-{trace}-{span}-01")),
        CurrentSpan::NotSampled => None,
    }
}
