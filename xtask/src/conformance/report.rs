//! Reads the report that ginkgo writes of a run.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::record::{TestOutcome, TestResult};

/// How much of a failure's first line is kept.
const LONGEST: usize = 300;

/// The parts of a report that are used.
#[derive(Debug, PartialEq)]
pub(super) struct ConformanceReport {
    /// The tests that were chosen, by name.
    pub(super) tests: Vec<TestResult>,
    /// Failures outside of any test.
    pub(super) suite_failures: Vec<String>,
    /// Why the run was ended early, if it was.
    pub(super) given_up: Vec<String>,
}

/// Reads a report that ginkgo wrote as JSON, which has all that the JUnit report has.
pub(super) fn read(path: &Path) -> Result<ConformanceReport> {
    let text = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    let suites = serde_json::from_slice(&text).with_context(|| path.display().to_string())?;
    Ok(to_report(suites))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GinkgoSuite {
    spec_reports: Option<Vec<GinkgoSpec>>,
    special_suite_failure_reasons: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GinkgoSpec {
    container_hierarchy_texts: Option<Vec<String>>,
    leaf_node_type: String,
    leaf_node_text: String,
    state: String,
    /// In nanoseconds.
    run_time: u64,
    failure: Option<GinkgoFailure>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GinkgoFailure {
    message: String,
}

fn to_report(suites: Vec<GinkgoSuite>) -> ConformanceReport {
    let (tests, suite_failures, given_up) = (Vec::new(), Vec::new(), Vec::new());
    let mut report = ConformanceReport { tests, suite_failures, given_up };
    for suite in suites {
        report.given_up.extend(suite.special_suite_failure_reasons.unwrap_or_default());
        for spec in suite.spec_reports.unwrap_or_default() {
            // A run that was ended early is resumed with the tests that it interrupted.
            let is_interrupted = !report.given_up.is_empty() && spec.is_interrupted();
            if spec.leaf_node_type == "It" {
                report.tests.extend(spec.test().filter(|_| !is_interrupted));
            } else if let Some(failure) = &spec.failure {
                let line = first_line(&failure.message);
                report.suite_failures.push(format!("{}: {line}", spec.leaf_node_type));
            }
        }
    }
    report.tests.sort_by(|a, b| a.name.cmp(&b.name));
    report
}

impl GinkgoSpec {
    /// Whether the end of the run ended it.
    fn is_interrupted(&self) -> bool {
        matches!(self.state.as_str(), "timedout" | "interrupted" | "aborted")
    }

    /// None for a test that was not chosen: ginkgo calls it skipped too, but gives no reason.
    fn test(&self) -> Option<TestResult> {
        let outcome = match (self.state.as_str(), &self.failure) {
            ("passed", _) => TestOutcome::Passed,
            ("pending", _) | ("skipped", None) => return None,
            ("skipped", Some(_)) => TestOutcome::Skipped,
            _ => TestOutcome::Failed,
        };
        let containers = self.container_hierarchy_texts.as_deref().unwrap_or_default();
        let words = containers.iter().chain([&self.leaf_node_text]).map(|text| text.trim());
        Some(TestResult {
            area: containers.first().map_or_else(String::new, |text| area(text)),
            name: words.collect::<Vec<_>>().join(" "),
            outcome,
            milliseconds: self.run_time / 1_000_000,
            message: self.failure.as_ref().map(|failure| first_line(&failure.message)),
        })
    }
}

/// The special interest group and the outermost description, without its other labels.
fn area(text: &str) -> String {
    let is_label = |word: &str| word.starts_with('[') && word.ends_with(']');
    let wanted = |word: &&str| !is_label(word) || word.starts_with("[sig-");
    text.split_whitespace().filter(wanted).collect::<Vec<_>>().join(" ")
}

fn first_line(message: &str) -> String {
    let line = message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"[{
        "SpecialSuiteFailureReasons": ["Suite Timeout Elapsed"],
        "SpecReports": [
            { "ContainerHierarchyTexts": null, "LeafNodeType": "SynchronizedBeforeSuite", "LeafNodeText": "",
              "State": "failed", "RunTime": 5, "Failure": { "Message": "no node\nat all" } },
            { "ContainerHierarchyTexts": ["[sig-node] Pods [Beta]", "when asked "], "LeafNodeType": "It",
              "LeafNodeText": "should run [NodeConformance]", "State": "passed", "RunTime": 1500000000 },
            { "ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeType": "It",
              "LeafNodeText": "was not chosen", "State": "skipped", "RunTime": 0 },
            { "ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeType": "It",
              "LeafNodeText": "needs more", "State": "skipped", "RunTime": 0, "Failure": { "Message": "too few" } },
            { "ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeType": "It",
              "LeafNodeText": "breaks", "State": "failed", "RunTime": 0, "Failure": { "Message": "\n  over\nmore" } },
            { "ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeType": "It",
              "LeafNodeText": "ran at the end", "State": "timedout", "RunTime": 0, "Failure": { "Message": "late" } }
        ]
    }]"#;

    #[test]
    fn a_report_becomes_the_tests_that_were_chosen() {
        let report = to_report(serde_json::from_str(REPORT).unwrap());
        let shown: Vec<_> = report
            .tests
            .iter()
            .map(|test| (test.name.as_str(), test.outcome, test.message.as_deref()))
            .collect();
        assert_eq!(
            shown,
            [
                (
                    "[sig-node] Pods [Beta] when asked should run [NodeConformance]",
                    TestOutcome::Passed,
                    None
                ),
                ("[sig-node] Pods breaks", TestOutcome::Failed, Some("over")),
                ("[sig-node] Pods needs more", TestOutcome::Skipped, Some("too few")),
            ]
        );
        assert!(report.tests.iter().all(|test| test.area == "[sig-node] Pods"));
        assert_eq!(report.tests[0].milliseconds, 1500);
        assert_eq!(report.suite_failures, ["SynchronizedBeforeSuite: no node"]);
        assert_eq!(report.given_up, ["Suite Timeout Elapsed"]);
    }
}
