//! The last answer of a probe, in words.

use super::container::ContainerSnapshot;
use super::context::ExplainContext;
use crate::probe::ProbeKind;
use crate::report::{ProbeAnswer, ProbeReport};

/// More of an answer is not quoted, in characters.
const QUOTED: usize = 160;

/// What a probe of a container was last told, as the end of a sentence.
pub(super) fn last_answer(
    context: &ExplainContext<'_>,
    container: &str,
    kind: ProbeKind,
) -> String {
    let of_probe = |answer: &&ProbeReport| answer.container == container && answer.kind == kind;
    let Some(last) = context.report.probes.iter().find(of_probe) else {
        return "it has not been asked yet".to_owned();
    };
    let ago = context.human_duration(last.at);
    let quote = match quoted(&last.output) {
        text if text.is_empty() => String::new(),
        text => format!(" ({text})"),
    };
    let times = match last.in_a_row {
        0 | 1 => String::new(),
        times => format!(", {times} times in a row"),
    };
    match last.answer {
        ProbeAnswer::Good => format!("the last answer, {ago} ago, was good{times}{quote}"),
        ProbeAnswer::Bad => format!("the last answer, {ago} ago, was bad{times}{quote}"),
        ProbeAnswer::Error => format!("it could not be asked {ago} ago{quote}"),
    }
}

/// What to look at.
pub(super) fn next_step(
    context: &ExplainContext<'_>,
    seen: &ContainerSnapshot<'_>,
    kind: ProbeKind,
) -> String {
    format!(
        "See what the container says: {}; what it is asked is in {} of {}.",
        context.logs(seen.name()),
        seen.field(kind.field()),
        context.manifest_path()
    )
}

/// The first line of a text.
fn quoted(output: &str) -> String {
    let line = output.trim().lines().next().unwrap_or_default();
    line.chars().take(QUOTED).filter(|character| !character.is_control()).collect()
}
