//! The record of a run, stored in a file beside the page that shows it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::kubelet_kind::KubeletKind;

/// One whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ConformanceRun {
    pub(super) kubelet: KubeletKind,
    /// The number of the run for its agent, from one.
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
            let record: ConformanceRun = serde_json::from_slice(&fs::read(&path)?)
                .with_context(|| format!("reading {}", path.display()))?;
            records.push(record);
        }
    }
    records.sort_by_key(|record| (record.kubelet, record.number));
    Ok(records)
}

/// The number of a kubelet's next run.
pub(super) fn next_number(records: &[ConformanceRun], kubelet: KubeletKind) -> u32 {
    let numbers = records.iter().filter(|it| it.kubelet == kubelet).map(|it| it.number);
    numbers.max().unwrap_or(0) + 1
}

pub(super) fn write(directory: &Path, record: &ConformanceRun) -> Result<PathBuf> {
    let path = directory.join(format!("{}-{}.json", record.kubelet, record.number));
    let text = serde_json::to_string_pretty(record)? + "\n";
    fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}
