//! What is said of machines, good ones and bad ones, as they were seen or are known to be.

mod machine;
mod runtimes;

use super::super::finding::{Finding, Weight};
use super::super::plan::Plan;

/// To run pods as a guest.
fn guest() -> Plan {
    Plan::of_guest("/var/lib/oarsman".into(), None)
}

/// To be a node, with the defaults of a kubelet.
fn node() -> Plan {
    Plan { is_node: true, ..Plan::of_guest("/var/lib/kubelet".into(), None) }
}

/// What is expected to be wrong: how much each matters, and some words of it.
type Told<'a> = &'a [(Weight, &'a str)];

/// The findings that are not as they should be, told by weight and the beginning of what is said.
fn assert_told(findings: &[Finding], want: Told<'_>, row: &str) {
    let bad: Vec<&Finding> = findings.iter().filter(|f| f.weight != Weight::Ok).collect();
    assert_eq!(bad.len(), want.len(), "{row}: {bad:#?}");
    for (finding, (weight, what)) in bad.iter().zip(want) {
        assert_eq!(finding.weight, *weight, "{row}: {finding:?}");
        assert!(finding.what.contains(what), "{row}: {finding:?}");
    }
    assert!(!findings.is_empty(), "{row}: nothing is said at all");
    for finding in findings {
        let has_fix = finding.fix.as_ref().is_some_and(|fix| !fix.is_empty());
        assert_eq!(has_fix, finding.weight != Weight::Ok, "{row}: {finding:?}");
        assert!(!finding.what.contains("  "), "{row}: {finding:?}");
    }
}
