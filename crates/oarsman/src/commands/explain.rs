//! `oarsman explain`: why a pod is in its state, as a sentence, and what to do next.

use anstyle::{Effects, Style};
use anyhow::Result;
use clap::Args;
use oarsman_core::explain::{Explanation, explain, explain_missing};

use super::find_pod::PodNotFound;
use super::output::{OutputFormat, formatted, print};
use super::{AgentSelector, find_pod};
use crate::threads;

/// Which pod.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  oarsman explain web             why web does not run, and what to do about it
  oarsman explain web -o json     the same for a program, with the cause as one word")]
pub(crate) struct Flags {
    /// The pod: NAME, NAMESPACE/NAME or how it begins.
    pod: String,
    /// How it is told, if not in words.
    #[arg(long, short, value_name = "FORMAT")]
    output: Option<OutputFormat>,
    #[command(flatten)]
    agent: AgentSelector,
}

/// Explains a pod.
pub(crate) fn run(flags: &Flags) -> Result<()> {
    threads::block_on(async {
        let (_, node) = flags.agent.fetch_report().await?;
        let explanation = match find_pod::find(&node, &flags.pod) {
            Ok(pod) => explain(&node, pod),
            Err(PodNotFound::Unknown { .. }) => explain_missing(&node, &flags.pod),
            Err(several) => return Err(several.into()),
        };
        print(&match flags.output {
            Some(format) => formatted(&explanation, format)?,
            None => as_text(&explanation),
        })
    })
}

fn as_text(explanation: &Explanation) -> String {
    let bold = Style::new().effects(Effects::BOLD);
    let Explanation { sentence, next_step, details, .. } = explanation;
    let next = match next_step.as_str() {
        "" => String::new(),
        step => format!("{bold}Next:{bold:#} {step}\n"),
    };
    let lines = details.iter().flat_map(|detail| detail.lines());
    let details: String = lines.map(|line| format!("  {line}\n")).collect();
    format!("{sentence}\n{next}{details}")
}

#[cfg(test)]
mod tests {
    use oarsman_core::report::NodeReport;

    use super::*;

    #[test]
    fn the_text_has_the_sentence_the_next_step_and_indented_details() {
        let explanation = Explanation {
            sentence: "It is so.".to_owned(),
            next_step: "do that".to_owned(),
            details: vec!["one\ntwo".to_owned()],
            ..explain_missing(&NodeReport::default(), "web")
        };
        let text = anstream::adapter::strip_str(&as_text(&explanation)).to_string();
        assert_eq!(text, "It is so.\nNext: do that\n  one\n  two\n");
    }
}
