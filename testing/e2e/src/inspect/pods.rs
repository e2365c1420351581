//! Pods as the runtime reports them.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;
use oarsman_cri_types::v1::{ContainerState, ContainerStatus, PodSandbox, PodSandboxState};

/// The annotation in which agents count restarts.
const RESTARTS: &str = "io.kubernetes.container.restartCount";

/// All sandboxes and containers of a pod.
#[derive(Debug, Clone, Default)]
pub struct ObservedPod {
    /// Newest first.
    pub sandboxes: Vec<ObservedSandbox>,
    /// Oldest first.
    pub containers: Vec<ObservedContainer>,
}

/// A sandbox.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "as CRI names them")]
pub struct ObservedSandbox {
    pub id: String,
    pub uid: String,
    pub namespace: String,
    pub name: String,
    pub attempt: u32,
    pub is_ready: bool,
    /// In nanoseconds since 1970.
    pub created: i64,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
}

/// A container.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "as CRI names them")]
pub struct ObservedContainer {
    pub id: String,
    pub sandbox: String,
    pub name: String,
    pub attempt: u32,
    pub state: ContainerState,
    /// The value of its annotation.
    pub restarts: Option<u32>,
    /// In nanoseconds since 1970; zero for what has not happened.
    pub created: i64,
    pub started: i64,
    pub finished: i64,
    pub exit_code: i32,
    pub reason: String,
    pub message: String,
    pub log: PathBuf,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
}

/// A line of a container's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedLogLine {
    /// The time as written.
    pub time: String,
    /// `stdout` or `stderr`.
    pub stream: String,
    /// Whether the line goes on in the next one.
    pub is_partial: bool,
    /// What the container wrote.
    pub text: String,
}

impl ObservedPod {
    pub(super) fn assemble(
        uid: &str,
        all: &[ObservedSandbox],
        containers: &[ObservedContainer],
    ) -> Self {
        let mut sandboxes: Vec<_> = all.iter().filter(|it| it.uid == uid).cloned().collect();
        sandboxes.sort_by_key(|sandbox| std::cmp::Reverse(sandbox.created));
        let is_ours = |it: &&ObservedContainer| sandboxes.iter().any(|s| s.id == it.sandbox);
        let mut containers: Vec<_> = containers.iter().filter(is_ours).cloned().collect();
        containers.sort_by_key(|container| container.created);
        Self { sandboxes, containers }
    }

    /// The newest sandbox.
    ///
    /// # Errors
    /// When there is none.
    pub fn sandbox(&self) -> Result<&ObservedSandbox> {
        self.sandboxes.first().context("the pod has no sandbox")
    }

    /// The pod's UID; empty when it has no sandbox.
    pub fn uid(&self) -> &str {
        self.sandboxes.first().map_or("", |sandbox| &sandbox.uid)
    }

    /// Whether no sandbox and no container of it is left.
    pub fn is_gone(&self) -> bool {
        self.sandboxes.is_empty()
    }

    /// The containers of that name, oldest first.
    pub fn all(&self, container: &str) -> Vec<&ObservedContainer> {
        self.containers.iter().filter(|it| it.name == container).collect()
    }

    /// The newest container of that name.
    ///
    /// # Errors
    /// When there is none.
    pub fn container(&self, name: &str) -> Result<&ObservedContainer> {
        self.all(name).pop().with_context(|| format!("the pod has no container {name}"))
    }

    /// Whether a container of that name runs.
    pub fn runs(&self, container: &str) -> bool {
        self.all(container).iter().any(|it| it.is_running())
    }

    pub(super) fn is_named(&self, name: &str) -> bool {
        self.sandboxes.first().is_some_and(|sandbox| sandbox.name == name)
    }

    pub(super) fn created(&self) -> i64 {
        self.sandboxes.first().map_or(0, |sandbox| sandbox.created)
    }
}

impl From<PodSandbox> for ObservedSandbox {
    fn from(sandbox: PodSandbox) -> Self {
        let is_ready = sandbox.state() == PodSandboxState::SandboxReady;
        let metadata = sandbox.metadata.unwrap_or_default();
        Self {
            id: sandbox.id,
            uid: metadata.uid,
            namespace: metadata.namespace,
            name: metadata.name,
            attempt: metadata.attempt,
            is_ready,
            created: sandbox.created_at,
            labels: sandbox.labels,
            annotations: sandbox.annotations,
        }
    }
}

impl ObservedContainer {
    pub(super) fn new(sandbox: String, status: ContainerStatus) -> Self {
        let state = status.state();
        let metadata = status.metadata.unwrap_or_default();
        Self {
            sandbox,
            state,
            name: metadata.name,
            attempt: metadata.attempt,
            restarts: status.annotations.get(RESTARTS).and_then(|count| count.parse().ok()),
            id: status.id,
            created: status.created_at,
            started: status.started_at,
            finished: status.finished_at,
            exit_code: status.exit_code,
            reason: status.reason,
            message: status.message,
            log: status.log_path.into(),
            labels: status.labels,
            annotations: status.annotations,
        }
    }

    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        self.state == ContainerState::ContainerRunning
    }

    /// Whether it has ended.
    pub fn has_exited(&self) -> bool {
        self.state == ContainerState::ContainerExited
    }

    /// The lines written so far; none before the log exists.
    ///
    /// # Errors
    /// When the log cannot be read, or a line of it is not as CRI wants it.
    pub fn log_lines(&self) -> Result<Vec<ObservedLogLine>> {
        let text = match fs::read_to_string(&self.log) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| self.log.display().to_string()),
        };
        text.lines().map(ObservedLogLine::parse).collect()
    }

    /// The same, as bare texts.
    ///
    /// # Errors
    /// As `log_lines`.
    pub fn log_texts(&self) -> Result<Vec<String>> {
        Ok(self.log_lines()?.into_iter().map(|line| line.text).collect())
    }

    /// When each line was written, by its text.
    ///
    /// # Errors
    /// As `log_lines`, and when a time cannot be read.
    pub fn log_times(&self) -> Result<BTreeMap<String, Vec<Timestamp>>> {
        let mut times = BTreeMap::<String, Vec<Timestamp>>::new();
        for line in self.log_lines()? {
            times.entry(line.text).or_default().push(line.time.parse()?);
        }
        Ok(times)
    }
}

/// The longest time from one to the next.
pub fn longest_gap(times: &[Timestamp]) -> Duration {
    let pairs = times.iter().zip(times.iter().skip(1));
    let gaps = pairs.map(|(before, after)| after.duration_since(*before).unsigned_abs());
    gaps.max().unwrap_or_default()
}

impl ObservedLogLine {
    fn parse(line: &str) -> Result<Self> {
        let mut words = line.splitn(4, ' ').map(str::to_owned);
        let mut next = || words.next().with_context(|| format!("not a line of a log: {line:?}"));
        let (time, stream, tag, text) = (next()?, next()?, next()?, next()?);
        Ok(Self { time, stream, is_partial: tag == "P", text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_log_has_four_parts() {
        let line = ObservedLogLine::parse("2026-01-01T00:00:00.1Z stderr P some words").unwrap();
        let time = "2026-01-01T00:00:00.1Z".to_owned();
        let (stream, text) = ("stderr".to_owned(), "some words".to_owned());
        assert_eq!(line, ObservedLogLine { time, stream, is_partial: true, text });
        assert_eq!(ObservedLogLine::parse("t stdout F ").unwrap().text, "");
        assert!(ObservedLogLine::parse("t stdout F").is_err());
    }

    #[test]
    fn the_longest_gap_is_between_two_that_follow_each_other() {
        let times = [0, 2, 7, 8].map(|second| Timestamp::from_second(second).unwrap());
        assert_eq!(longest_gap(&times), Duration::from_secs(5));
        assert_eq!(longest_gap(&times[..1]), Duration::ZERO);
    }
}
