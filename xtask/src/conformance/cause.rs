//! Groups failed tests by cause.

use std::collections::BTreeMap;

use super::record::{ConformanceRun, TestOutcome, TestResult};
use crate::kubelet_kind::KubeletKind;

/// A known cause, and how its failures are recognised.
struct KnownCause {
    cause: &'static str,
    /// The agent whose failures it explains; both if none is named.
    of: Option<KubeletKind>,
    /// Parts of tests' names.
    tests: &'static [&'static str],
    /// Parts of messages.
    messages: &'static [&'static str],
}

/// The first match counts. Causes that are fixed are removed.
const KNOWN: &[KnownCause] = &[
    KnownCause {
        cause: "this kernel has no links of type dummy",
        of: None,
        tests: &[],
        messages: &["RTNETLINK answers: Operation not supported"],
    },
    KnownCause {
        cause: "the image had bash for a shell, which words its error otherwise than busybox's (mended since: it passed when run alone)",
        of: None,
        tests: &["read only busybox container should not write to root filesystem"],
        messages: &[],
    },
    KnownCause {
        cause: "exec is not served yet",
        of: Some(KubeletKind::Oarsman),
        tests: &["remote command execution over websockets"],
        messages: &["unable to upgrade connection"],
    },
    KnownCause {
        cause: "there are no probes yet: what has one is never ready, and nothing is restarted by one",
        of: Some(KubeletKind::Oarsman),
        tests: &[
            "] Probing container",
            "] Probing restartable init container",
            "Granular Checks: Pods should function for",
            "Lifecycle Hook when create a pod with lifecycle hook",
        ],
        messages: &[],
    },
    KnownCause {
        cause: "subPath is not built yet",
        of: Some(KubeletKind::Oarsman),
        tests: &["HostPath should support subPath", "nonexistent volume subPath"],
        messages: &[],
    },
    KnownCause {
        cause: "pods are admitted that ask for another system or for unsafe sysctls",
        of: Some(KubeletKind::Oarsman),
        tests: &["should reject pod when the node OS", "should not launch unsafe"],
        messages: &[],
    },
    KnownCause {
        cause: "a gate that others open did not wake the pod's worker (mended since: it passed when run alone)",
        of: Some(KubeletKind::Oarsman),
        tests: &["should support pod readiness gates"],
        messages: &[],
    },
    KnownCause {
        cause: "the test reads the log once, as soon as the container is told to run, which was before it had written",
        of: Some(KubeletKind::Oarsman),
        tests: &["retrieving logs from the container over websockets"],
        messages: &["Unexpected websocket logs:"],
    },
];

impl KnownCause {
    fn explains(&self, kubelet: KubeletKind, test: &TestResult) -> bool {
        let message = test.message.as_deref().unwrap_or_default();
        self.of.is_none_or(|of| of == kubelet)
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
            let known = KNOWN.iter().find(|known| known.explains(record.kubelet, test));
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
    fn a_known_cause_is_recognised_by_a_name_or_a_message_of_its_own_kubelet() {
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
            (KubeletKind::Oarsman, &probe, true),
            (KubeletKind::Go, &probe, false),
            (KubeletKind::Oarsman, &exec, true),
            (KubeletKind::Oarsman, &test("any", "else"), false),
        ];
        for (kubelet, test, want) in rows {
            let is_known = KNOWN.iter().any(|known| known.explains(kubelet, test));
            assert_eq!(is_known, want, "{kubelet} {test:?}");
        }
    }
}
