//! The runtime itself.

use super::case::Case;
use super::essence::essence;
use super::{Cause, Explanation};

pub(super) fn explain(case: &Case<'_>) -> Option<Explanation> {
    let runtime = &case.node.runtime;
    let trouble = runtime.trouble.as_ref()?;
    let name = if runtime.name.is_empty() { "the runtime" } else { &runtime.name };
    let sentence = format!(
        "Nobody can tell how the pod is: {name} at {} has not answered for {} ({}).",
        runtime.endpoint,
        case.lasting(trouble.since),
        essence(&trouble.why)
    );
    let unit = if runtime.name.is_empty() { "containerd" } else { &runtime.name };
    let next = format!(
        "Start it, or see why it does not answer: `systemctl status {unit}`, `journalctl -u {unit}`. Containers that run go on meanwhile."
    );
    Some(Explanation::new(Cause::RuntimeDown, sentence, next))
}
