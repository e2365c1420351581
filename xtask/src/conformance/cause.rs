//! Groups failed tests by cause.

use std::collections::BTreeMap;

use super::record::{ConformanceRun, RunSubject, TestOutcome, TestResult};
use super::runtime::TestedRuntime;
use super::suite::TestSuite;
use crate::kubelet_kind::KubeletKind;

/// A known cause, and how its failures are recognised.
struct KnownCause {
    cause: &'static str,
    /// The agents whose failures it explains, each up to the last run before it was fixed; all of both if none is named.
    of: &'static [(KubeletKind, u32)],
    /// Parts of tests' names.
    tests: &'static [&'static str],
    /// Parts of messages.
    messages: &'static [&'static str],
}

/// For a cause that is not fixed.
const EVERY_RUN: u32 = u32::MAX;

/// The first match counts. A cause that is fixed explains the runs before that, and no later one.
const KNOWN: &[KnownCause] = &[
    KnownCause {
        cause: "this kernel has no links of type dummy",
        of: &[],
        tests: &[],
        messages: &["RTNETLINK answers: Operation not supported"],
    },
    KnownCause {
        cause: "the image had bash for a shell, which words its error otherwise than busybox's (fixed since)",
        of: &[(KubeletKind::Go, 3), (KubeletKind::Oarsman, 1)],
        tests: &["read only busybox container should not write to root filesystem"],
        messages: &[],
    },
    KnownCause {
        cause: "there were no probes: what had one was never ready, and nothing was restarted by one (built since)",
        of: &[(KubeletKind::Oarsman, 1)],
        tests: &[
            "] Probing container",
            "] Probing restartable init container",
            "Granular Checks: Pods should function for",
            "Lifecycle Hook when create a pod with lifecycle hook",
        ],
        messages: &[],
    },
    KnownCause {
        cause: "exec was not served (built since)",
        of: &[(KubeletKind::Oarsman, 2)],
        tests: &[
            "remote command execution over websockets",
            // The test's own pods ask each other by commands.
            "Granular Checks: Pods should function for",
        ],
        messages: &["unable to upgrade connection"],
    },
    KnownCause {
        cause: "the test image's shell ran its own nc, which knows no UDP (fixed since)",
        of: &[(KubeletKind::Oarsman, 3)],
        tests: &["node-pod communication: udp"],
        messages: &[],
    },
    KnownCause {
        cause: "a volume in memory with a group had no sticky bit (fixed since)",
        of: &[(KubeletKind::Oarsman, 3)],
        tests: &[],
        messages: &["dgtrwxrwxrwx"],
    },
    KnownCause {
        cause: "containerd lost what the container wrote: its log says \"Failed to pipe stdout\", \"reading from a closed fifo\" (a compiler ran beside)",
        of: &[(KubeletKind::Oarsman, 4)],
        tests: &["EmptyDir volumes should support (non-root,0777,tmpfs)"],
        messages: &[],
    },
    KnownCause {
        cause: "subPath was not built (built since)",
        of: &[(KubeletKind::Oarsman, 2)],
        tests: &["HostPath should support subPath", "nonexistent volume subPath"],
        messages: &[],
    },
    KnownCause {
        cause: "pods were admitted that ask for another system or for unsafe sysctls (built since)",
        of: &[(KubeletKind::Oarsman, 1)],
        tests: &["should reject pod when the node OS", "should not launch unsafe"],
        messages: &[],
    },
    KnownCause {
        cause: "a gate that others open did not wake the pod's worker (fixed since)",
        of: &[(KubeletKind::Oarsman, 1)],
        tests: &["should support pod readiness gates"],
        messages: &[],
    },
    KnownCause {
        cause: "the test reads the log once, as soon as the container is told to run, which was before it had written",
        of: &[(KubeletKind::Oarsman, EVERY_RUN)],
        tests: &["retrieving logs from the container over websockets"],
        messages: &["Unexpected websocket logs:"],
    },
];

impl KnownCause {
    fn explains_in(&self, run: &ConformanceRun, test: &TestResult) -> bool {
        // Runs are counted for each subject, and causes that were fixed name runs of the first suite on containerd.
        let RunSubject { kubelet, runtime, suite } = run.subject;
        let is_first = (runtime, suite) == (TestedRuntime::Containerd, TestSuite::NodeConformance);
        (self.of.is_empty() || is_first) && self.explains(kubelet, run.number, test)
    }

    fn explains(&self, kubelet: KubeletKind, run: u32, test: &TestResult) -> bool {
        let message = test.message.as_deref().unwrap_or_default();
        let is_of = |(of, last): &(KubeletKind, u32)| *of == kubelet && run <= *last;
        (self.of.is_empty() || self.of.iter().any(is_of))
            && (self.tests.iter().any(|part| test.name.contains(part))
                || self.messages.iter().any(|part| message.contains(part)))
    }
}

/// Failed tests of some runs, by cause, the most frequent first. Each test comes with how many of the runs it failed in.
pub(super) fn by_cause<'a>(
    records: &[&'a ConformanceRun],
) -> Vec<(String, BTreeMap<&'a str, usize>)> {
    let mut causes = BTreeMap::<String, BTreeMap<&str, usize>>::new();
    for record in records {
        for test in record.tests.iter().filter(|test| test.outcome == TestOutcome::Failed) {
            let known = KNOWN.iter().find(|known| known.explains_in(record, test));
            let cause = match known {
                Some(known) => known.cause.to_owned(),
                None => normalized_message(test.message.as_deref().unwrap_or("no reason given")),
            };
            *causes.entry(cause).or_default().entry(&test.name).or_default() += 1;
        }
    }
    let mut causes: Vec<_> = causes.into_iter().collect();
    causes.sort_by_key(|(_, tests)| std::cmp::Reverse(tests.len()));
    causes
}

/// A message without what is particular to one run: generated names, addresses, times.
fn normalized_message(message: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    for word in message.split_whitespace() {
        let word = if word.contains(|c: char| c.is_ascii_digit()) { "…" } else { word };
        if word != "…" || words.last() != Some(&"…") {
            words.push(word);
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_one_cause_are_equal() {
        let first = normalized_message("pod \"pod-1f3\" on 10.0.0.1:80 not Running after 300.001s");
        assert_eq!(
            first,
            normalized_message("pod \"pod-2a\" on 10.0.0.2:80 not Running after 300.02s")
        );
        assert_eq!(first, "pod … on … not Running after …");
        assert_ne!(
            first,
            normalized_message("pod \"pod-2a\" on 10.0.0.2:80 not Ready after 300.02s")
        );
    }

    #[test]
    fn a_known_cause_is_recognised_by_a_name_or_a_message_of_the_runs_that_it_explains() {
        let test = |name: &str, message: &str| TestResult {
            area: "[sig-node] Pods".to_owned(),
            name: name.to_owned(),
            outcome: TestOutcome::Failed,
            milliseconds: 1,
            message: Some(message.to_owned()),
        };
        let probe = test("[sig-node] Probing container should be restarted", "Timed out");
        let exec = test("any", "Internal error occurred: unable to upgrade connection: x");
        let rows = [
            (KubeletKind::Oarsman, 1, &probe, true),
            (KubeletKind::Oarsman, 2, &probe, false),
            (KubeletKind::Go, 1, &probe, false),
            (KubeletKind::Oarsman, 2, &exec, true),
            (KubeletKind::Oarsman, 3, &exec, false),
            (KubeletKind::Oarsman, 1, &test("any", "else"), false),
        ];
        for (kubelet, run, test, want) in rows {
            let is_known = KNOWN.iter().any(|known| known.explains(kubelet, run, test));
            assert_eq!(is_known, want, "{kubelet} {run} {test:?}");
        }
    }
}
