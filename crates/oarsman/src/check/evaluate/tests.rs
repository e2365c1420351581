//! Findings for facts of good and bad machines, as they were seen or are known to be.

mod machine;
mod runtimes;

use super::super::finding::{Finding, FindingSeverity};
use super::super::requirements::Requirements;
use crate::runtime_endpoint::{NamedRuntime, RemoteRuntimeKind};

/// The requirements of `oarsman run`.
fn run_mode() -> Requirements {
    Requirements::for_run_mode("/var/lib/oarsman".into(), NamedRuntime::Embedded)
}

/// The requirements of a kubelet with default configuration.
fn node() -> Requirements {
    let containerd = NamedRuntime::OfKind(RemoteRuntimeKind::Containerd);
    Requirements {
        is_node: true,
        ..Requirements::for_run_mode("/var/lib/kubelet".into(), containerd)
    }
}

/// Expected findings: the severity of each, and a part of its text.
type ExpectedFindings<'a> = &'a [(FindingSeverity, &'a str)];

/// Compares the findings that are not `Ok` by severity and the beginning of the text.
fn assert_findings(findings: &[Finding], want: ExpectedFindings<'_>, row: &str) {
    let bad: Vec<&Finding> = findings.iter().filter(|f| f.weight != FindingSeverity::Ok).collect();
    assert_eq!(bad.len(), want.len(), "{row}: {bad:#?}");
    for (finding, (weight, what)) in bad.iter().zip(want) {
        assert_eq!(finding.weight, *weight, "{row}: {finding:?}");
        assert!(finding.what.contains(what), "{row}: {finding:?}");
    }
    assert!(!findings.is_empty(), "{row}: nothing is said at all");
    for finding in findings {
        let has_fix = finding.fix.as_ref().is_some_and(|fix| !fix.is_empty());
        assert_eq!(has_fix, finding.weight != FindingSeverity::Ok, "{row}: {finding:?}");
        assert!(!finding.what.contains("  "), "{row}: {finding:?}");
    }
}
