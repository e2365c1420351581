//! The record of a run, stored in a file beside the page that shows it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::runtime::TestedRuntime;
use super::suite::TestSuite;
use crate::kubelet_kind::KubeletKind;

/// What was run on what. Runs of the same are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct RunSubject {
    pub(super) kubelet: KubeletKind,
    #[serde(default)]
    pub(super) runtime: TestedRuntime,
    #[serde(default)]
    pub(super) suite: TestSuite,
}

impl RunSubject {
    /// The beginning of names of its files.
    pub(super) fn file_name(self) -> String {
        format!("{}{}{}", self.kubelet, self.runtime.suffix(), self.suite.suffix())
    }

    /// Its name on a page, which is one of a suite.
    pub(super) fn shown(self) -> String {
        format!("{}{}", self.kubelet.shown(), self.runtime.shown())
    }
}

/// One whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ConformanceRun {
    #[serde(flatten)]
    pub(super) subject: RunSubject,
    /// The number of the run for its subject, from one.
    pub(super) number: u32,
    /// When it began, in UTC.
    pub(super) began: String,
    pub(super) command: String,
    pub(super) processes: u8,
    pub(super) seconds: u64,
    /// The versions of programs, by name.
    pub(super) versions: BTreeMap<String, String>,
    /// Failures outside of any test.
    pub(super) suite_failures: Vec<String>,
    pub(super) tests: Vec<TestResult>,
}

/// One test of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct TestResult {
    pub(super) area: String,
    pub(super) name: String,
    pub(super) outcome: TestOutcome,
    pub(super) milliseconds: u64,
    /// The first line of why it failed or was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum TestOutcome {
    Passed,
    Failed,
    Skipped,
}

/// How many passed, failed and were skipped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct OutcomeCount {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) skipped: usize,
}

impl OutcomeCount {
    pub(super) fn of<'a>(tests: impl Iterator<Item = &'a TestResult>) -> Self {
        tests.fold(Self::default(), |mut count, test| {
            match test.outcome {
                TestOutcome::Passed => count.passed += 1,
                TestOutcome::Failed => count.failed += 1,
                TestOutcome::Skipped => count.skipped += 1,
            }
            count
        })
    }
}

/// All records in a directory: those of the Go kubelet first, each in order.
pub(super) fn read_all(directory: &Path) -> Result<Vec<ConformanceRun>> {
    let mut records = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|kind| kind == "json") {
            records.push(read(&path)?);
        }
    }
    records.sort_by_key(|record| (record.subject, record.number));
    Ok(records)
}

/// One record.
pub(super) fn read(path: &Path) -> Result<ConformanceRun> {
    let failed = || format!("reading {}", path.display());
    serde_json::from_slice(&fs::read(path).with_context(failed)?).with_context(failed)
}

/// The number of the next run.
pub(super) fn next_number(records: &[ConformanceRun], subject: RunSubject) -> u32 {
    let of_subject = records.iter().filter(|it| it.subject == subject);
    of_subject.map(|it| it.number).max().unwrap_or(0) + 1
}

impl ConformanceRun {
    /// Adds what an earlier part of the same run did.
    pub(super) fn continue_from(&mut self, earlier: Self) -> Result<()> {
        ensure!(
            earlier.versions == self.versions && earlier.processes == self.processes,
            "the unfinished run was of other versions or another number of processes: begin anew, without --resume"
        );
        self.began = earlier.began;
        self.command = format!("{}, resumed", self.command);
        self.seconds += earlier.seconds;
        self.suite_failures.splice(0..0, earlier.suite_failures);
        self.tests.extend(earlier.tests);
        self.tests.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(())
    }
}

/// The path of an unfinished run.
pub(super) fn unfinished(directory: &Path, subject: RunSubject) -> PathBuf {
    directory.join(format!("{}-unfinished.json", subject.file_name()))
}

/// Writes a whole run to the file of its number.
pub(super) fn write(directory: &Path, record: &ConformanceRun) -> Result<PathBuf> {
    let path = directory.join(format!("{}-{}.json", record.subject.file_name(), record.number));
    write_to(path, record)
}

/// Writes a run to a file.
pub(super) fn write_to(path: PathBuf, record: &ConformanceRun) -> Result<PathBuf> {
    let text = serde_json::to_string_pretty(record)? + "\n";
    fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}
