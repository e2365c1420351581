//! Runs `oarsman explain`, and compares its output with the expected one.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use oarsman_core::explain::ExplanationCause;
use oarsman_e2e::agent_process::{AgentProcess, NAME};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::{program, scenario};
use oarsman_rig::{ContainerdFlavour, images};
use serde::Deserialize;
use tokio::process::Command;

/// The third crash of a container on a busy machine is seen in this time.
const MAX_WAIT: Duration = Duration::from_secs(90);

/// The output of the command, or the expected one.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExplainAnswer {
    pub(super) cause: String,
    pub(super) sentence: String,
    pub(super) next_step: String,
}

/// The expected explanation of a pod. In the texts `{pod}` is its name, `{place}` its manifest, `{root}` the agent's root directory, `{script}`
/// and `{busybox}` are images, `{runtime}` and `{unit}` the names of the runtime and its unit; times are `N seconds`, counts are `N times`, and `…` is text that differs between machines.
#[derive(Clone, Debug)]
pub(super) struct ExpectedExplanation {
    pub(super) cause: ExplanationCause,
    pub(super) sentence: String,
    pub(super) next: String,
}

pub(super) fn expected(cause: ExplanationCause, sentence: &str, next: &str) -> ExpectedExplanation {
    ExpectedExplanation { cause, sentence: sentence.to_owned(), next: next.to_owned() }
}

/// Runs the command until its output is as expected.
pub(super) async fn until(
    agent: &AgentProcess,
    pod: &str,
    expected: &ExpectedExplanation,
) -> Result<()> {
    until_all(agent, &[(pod, expected)]).await
}

/// Runs the command on several pods until each was once explained as expected.
pub(super) async fn until_all(
    agent: &AgentProcess,
    pods: &[(&str, &ExpectedExplanation)],
) -> Result<()> {
    let mut open: Vec<_> = pods.iter().map(|(pod, it)| (*pod, it.answer(agent, pod))).collect();
    let count = open.len();
    let look = async || {
        let (mut differ, mut still_open) = (Vec::new(), Vec::new());
        for (pod, wanted) in &open {
            let said = ask(agent, pod).await?;
            if !said.is(wanted) {
                differ.push(format!("{pod} should be: {wanted:#?}\nand is: {said:#?}"));
                still_open.push((*pod, wanted.clone()));
            }
        }
        // Only now: after a failed command all pods are tried again.
        open = still_open;
        Ok(differ)
    };
    let what = format!("all {count} pods are explained");
    eventually(MAX_WAIT, &what, look, Vec::is_empty).await.map(drop)
}

impl ExplainAnswer {
    fn is(&self, wanted: &Self) -> bool {
        let sentence = match wanted.sentence.split_once('…') {
            Some((begin, end)) => self.sentence.starts_with(begin) && self.sentence.ends_with(end),
            None => self.sentence == wanted.sentence,
        };
        sentence && self.cause == wanted.cause && self.next_step == wanted.next_step
    }
}

impl ExpectedExplanation {
    fn answer(&self, agent: &AgentProcess, pod: &str) -> ExplainAnswer {
        ExplainAnswer {
            cause: self.cause.slug().to_owned(),
            sentence: filled_in(agent, pod, &self.sentence),
            next_step: filled_in(agent, pod, &self.next),
        }
    }
}

/// Runs the command once.
pub(super) async fn ask(agent: &AgentProcess, pod: &str) -> Result<ExplainAnswer> {
    let mut command = Command::new(program::path()?);
    command.args(["explain", pod, "--output=json"]).arg("--root-dir").arg(agent.root());
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await?;
    if !output.status.success() {
        bail!("oarsman explain: {}", String::from_utf8_lossy(&output.stderr));
    }
    let said: ExplainAnswer = serde_json::from_slice(&output.stdout).context("it is not JSON")?;
    Ok(ExplainAnswer {
        sentence: masked(&said.sentence),
        next_step: masked(&said.next_step),
        ..said
    })
}

fn filled_in(agent: &AgentProcess, pod: &str, text: &str) -> String {
    let place = agent.manifests().path().join(format!("{pod}.yaml"));
    let (runtime, unit) = runtime();
    text.replace("{pod}", &format!("{pod}-{NAME}"))
        .replace("{runtime}", runtime)
        .replace("{unit}", unit)
        .replace("{place}", &place.display().to_string())
        .replace("{root}", &agent.root().display().to_string())
        .replace("{script}", images::SCRIPT)
        .replace("{busybox}", images::BUSYBOX)
}

/// The name of the runtime, and of its unit.
fn runtime() -> (&'static str, &'static str) {
    match scenario::flavours() {
        [ContainerdFlavour::Built | ContainerdFlavour::Debian] => ("containerd", "containerd"),
        [ContainerdFlavour::OarsmanCri] => ("oarsman", "oarsman-cri"),
        [ContainerdFlavour::Absent] => ("oarsman", "oarsman"),
    }
}

/// Masks numbers of seconds and minutes, and counts, which differ each time.
fn masked(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let (mut told, mut rest) = (Vec::new(), words.as_slice());
    while let [word, after @ ..] = rest {
        rest = after;
        let bare = word.trim_start_matches('(');
        let opening = &word[..word.len() - bare.len()];
        let unit = after.first().copied().unwrap_or_default();
        let is_time = unit.starts_with("second") || unit.starts_with("minute");
        let word = match (bare.parse::<u32>(), bare) {
            (Ok(_), _) if is_time => {
                rest = &after[1..];
                let end: String = unit.chars().filter(|letter| !letter.is_alphabetic()).collect();
                format!("N seconds{end}")
            }
            (Ok(_), _) if unit == "times" => {
                rest = &after[1..];
                "N times".to_owned()
            }
            (_, "once" | "twice") => "N times".to_owned(),
            _ => bare.to_owned(),
        };
        told.push(format!("{opening}{word}"));
    }
    told.join(" ")
}
