//! Writes conformance/RESULTS.md: all runs that are kept, side by side.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::cause::by_cause;
use super::record::{ConformanceRun, OutcomeCount, RunSubject, TestOutcome};
use super::suite::TestSuite;
use crate::kubelet_kind::KubeletKind;

const HEAD: &str = "# Conformance

The node tests of Kubernetes (`[NodeConformance]` without Serial, Disruptive, Slow and Flaky), run by the official `e2e.test` against one
node in namespaces of its own. This page is written by `cargo xtask conformance` from the files beside it, one a run: do not edit it.

The Go kubelet judges the harness. A test that it fails, too, is judged by its rate: as often as the Go kubelet on the same machine is as
good.
";

const OTHERS_HEAD: &str = "# The other tests of sig-node

Those without `[NodeConformance]`, and without Serial, Disruptive, Slow, Flaky and Alpha. Many of them need what a rig does not have: images of
other programs, several nodes, features that are off. Here, too, the Go kubelet judges the harness.
";

/// The text of the page.
pub(super) fn page(records: Vec<ConformanceRun>) -> String {
    let (conformance, others): (Vec<_>, Vec<_>) =
        records.into_iter().partition(|it| it.subject.suite == TestSuite::NodeConformance);
    let mut text = HEAD.to_owned() + &results(&conformance);
    if !others.is_empty() {
        text = text + "\n" + OTHERS_HEAD + &results(&others);
    }
    text
}

/// The runs of one suite.
fn results(records: &[ConformanceRun]) -> String {
    let mut text = String::new();
    for part in [runs(records), areas(records)] {
        text.push('\n');
        text.push_str(&part);
    }
    let subjects: BTreeSet<RunSubject> = records.iter().map(|it| it.subject).collect();
    for subject in subjects {
        let of_subject: Vec<&ConformanceRun> =
            records.iter().filter(|it| it.subject == subject).collect();
        text.push('\n');
        text.push_str(&failures(subject, &of_subject, records));
    }
    text
}

fn runs(records: &[ConformanceRun]) -> String {
    let mut text = String::from(
        "## Runs\n\n| run | passed | failed | skipped | took | began (UTC) | processes | command |\n|---|---|---|---|---|---|---|---|\n",
    );
    for record in records {
        let count = OutcomeCount::of(record.tests.iter());
        // Writing to a string does not fail; here and below.
        writeln!(
            text,
            "| {} {} | {} | {} | {} | {} s | {} | {} | `{}` |",
            record.subject.shown(),
            record.number,
            count.passed,
            count.failed,
            count.skipped,
            record.seconds,
            record.began,
            record.processes,
            record.command
        )
        .ok();
    }
    let troubled = records.iter().filter(|record| !record.suite_failures.is_empty());
    for record in troubled {
        let reasons = record.suite_failures.join("; ");
        let (subject, number) = (record.subject.shown(), record.number);
        writeln!(text, "\nOutside of any test, {subject} {number}: {reasons}").ok();
    }
    text.push_str("\nWith:\n\n");
    for (name, versions) in versions(records) {
        let versions: Vec<&str> = versions.into_iter().collect();
        writeln!(text, "- {name}: {}", versions.join(", ")).ok();
    }
    text
}

fn versions(records: &[ConformanceRun]) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut versions = BTreeMap::<&str, BTreeSet<&str>>::new();
    for (name, version) in records.iter().flat_map(|record| &record.versions) {
        versions.entry(name).or_default().insert(version);
    }
    versions
}

fn areas(records: &[ConformanceRun]) -> String {
    let mut text = String::from("## By area\n\nPassed / failed / skipped.\n\n| area |");
    for record in records {
        write!(text, " {} {} |", record.subject.shown(), record.number).ok();
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(records.len()));
    text.push('\n');
    let tests = records.iter().flat_map(|record| &record.tests);
    let areas: BTreeSet<&str> = tests.map(|test| test.area.as_str()).collect();
    for area in areas {
        write!(text, "| {area} |").ok();
        for record in records {
            let count = OutcomeCount::of(record.tests.iter().filter(|test| test.area == area));
            write!(text, " {} / {} / {} |", count.passed, count.failed, count.skipped).ok();
        }
        text.push('\n');
    }
    text
}

fn failures(subject: RunSubject, own: &[&ConformanceRun], all: &[ConformanceRun]) -> String {
    let mut text = format!("## What failed with {}\n\n", subject.shown());
    let causes = by_cause(own);
    if causes.is_empty() {
        text.push_str("Nothing.\n");
    }
    for (cause, tests) in causes {
        writeln!(text, "- {cause} ({})", tests.len()).ok();
        for (test, times) in tests {
            write!(text, "  - {test}: {times} of {}", own.len()).ok();
            if subject.kubelet != KubeletKind::Go {
                write!(text, " (Go: {})", rate(test, all)).ok();
            }
            text.push('\n');
        }
    }
    text
}

/// How often the Go kubelet fails a test.
fn rate(test: &str, records: &[ConformanceRun]) -> String {
    let of_go: Vec<&ConformanceRun> =
        records.iter().filter(|it| it.subject.kubelet == KubeletKind::Go).collect();
    let failed = |record: &&&ConformanceRun| {
        record.tests.iter().any(|it| it.name == test && it.outcome == TestOutcome::Failed)
    };
    format!("{} of {}", of_go.iter().filter(failed).count(), of_go.len())
}

#[cfg(test)]
mod tests {
    use super::super::record::TestResult;
    use super::super::runtime::TestedRuntime;
    use super::*;

    fn record(
        kubelet: KubeletKind,
        number: u32,
        outcomes: &[(&str, TestOutcome)],
    ) -> ConformanceRun {
        let tests = outcomes.iter().map(|(name, outcome)| TestResult {
            area: "[sig-node] Pods".to_owned(),
            name: (*name).to_owned(),
            outcome: *outcome,
            milliseconds: 1,
            message: (*outcome == TestOutcome::Failed).then(|| "took 7 s".to_owned()),
        });
        ConformanceRun {
            subject: RunSubject {
                kubelet,
                runtime: TestedRuntime::Containerd,
                suite: TestSuite::NodeConformance,
            },
            number,
            began: "2026-11-16 08:00".to_owned(),
            command: "cargo xtask conformance".to_owned(),
            processes: 4,
            seconds: 9,
            versions: BTreeMap::from([("runc".to_owned(), "1.5.2".to_owned())]),
            suite_failures: Vec::new(),
            tests: tests.collect(),
        }
    }

    #[test]
    fn the_page_has_all_runs_and_failures_with_the_rate_of_the_go_kubelet() {
        let records = [
            record(KubeletKind::Go, 1, &[("a", TestOutcome::Passed), ("b", TestOutcome::Failed)]),
            record(KubeletKind::Go, 2, &[("a", TestOutcome::Passed), ("b", TestOutcome::Passed)]),
            record(
                KubeletKind::Oarsman,
                1,
                &[("a", TestOutcome::Skipped), ("b", TestOutcome::Failed)],
            ),
        ];
        let mut other = record(KubeletKind::Go, 1, &[("c", TestOutcome::Passed)]);
        other.subject.suite = TestSuite::SigNode;
        let mut embedded = record(KubeletKind::Oarsman, 1, &[("a", TestOutcome::Passed)]);
        embedded.subject.runtime = TestedRuntime::Embedded;
        let page = page(records.into_iter().chain([embedded, other]).collect());
        for line in [
            "| area | Go kubelet 1 | Go kubelet 2 | Oarsman 1 | Oarsman, embedded runtime 1 |",
            "| [sig-node] Pods | 1 / 1 / 0 | 2 / 0 / 0 | 0 / 1 / 1 | 1 / 0 / 0 |",
            "- took … s (1)",
            "  - b: 1 of 2",
            "  - b: 1 of 1 (Go: 1 of 2)",
            "## What failed with Oarsman, embedded runtime",
            "- runc: 1.5.2",
            "# The other tests of sig-node",
            "| area | Go kubelet 1 |",
        ] {
            assert!(page.lines().any(|it| it == line), "no line {line:?} in:\n{page}");
        }
    }
}
