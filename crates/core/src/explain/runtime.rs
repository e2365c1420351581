//! The runtime itself.

use super::context::ExplainContext;
use super::root_message::root_message;
use super::{Explanation, ExplanationCause};

pub(super) fn explain(context: &ExplainContext<'_>) -> Option<Explanation> {
    let runtime = &context.node.runtime;
    let trouble = runtime.trouble.as_ref()?;
    let name = if runtime.name.is_empty() { "the runtime" } else { &runtime.name };
    // The cause at the root comes last.
    let why = root_message(&trouble.why);
    let why = why.rsplit(": ").next().unwrap_or_default();
    let sentence = format!(
        "Nobody can tell how the pod is: {name} at {} has not answered for {} ({why}).",
        runtime.endpoint,
        context.human_duration(trouble.since)
    );
    let next = format!(
        "Start it, or see why it does not answer: {}. Containers that run go on meanwhile.",
        context.runtime_log()
    );
    Some(Explanation::new(ExplanationCause::RuntimeDown, sentence, next))
}
