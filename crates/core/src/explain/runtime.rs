//! The runtime itself.

use super::case::Case;
use super::essence::essence;
use super::{Cause, Explanation};

pub(super) fn explain(case: &Case<'_>) -> Option<Explanation> {
    let runtime = &case.node.runtime;
    let trouble = runtime.trouble.as_ref()?;
    let name = if runtime.name.is_empty() { "the runtime" } else { &runtime.name };
    // The cause at the root comes last.
    let why = essence(&trouble.why);
    let why = why.rsplit(": ").next().unwrap_or_default();
    let sentence = format!(
        "Nobody can tell how the pod is: {name} at {} has not answered for {} ({why}).",
        runtime.endpoint,
        case.lasting(trouble.since)
    );
    let next = format!(
        "Start it, or see why it does not answer: {}. Containers that run go on meanwhile.",
        case.runtime_log()
    );
    Some(Explanation::new(Cause::RuntimeDown, sentence, next))
}
