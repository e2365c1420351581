//! What is said of machines, good ones and bad ones, as they were seen or are known to be.

mod machine;
mod runtimes;

use super::super::finding::{Finding, FindingSeverity};
use super::super::requirements::Requirements;

/// To run pods as a guest.
fn guest() -> Requirements {
    Requirements::for_guest("/var/lib/oarsman".into(), None)
}

/// To be a node, with the defaults of a kubelet.
fn node() -> Requirements {
    Requirements { is_node: true, ..Requirements::for_guest("/var/lib/kubelet".into(), None) }
}

/// What is expected to be wrong: how much each matters, and some words of it.
type ExpectedFindings<'a> = &'a [(FindingSeverity, &'a str)];

/// The findings that are not as they should be, told by weight and the beginning of what is said.
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
