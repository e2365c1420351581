//! What failures have in common.

use std::collections::BTreeMap;

use super::record::{Outcome, Record};

/// Failed tests of some runs, by cause, the most frequent first. Each test comes with how many of the runs it failed in.
pub(super) fn by_cause<'a>(records: &[&'a Record]) -> Vec<(String, BTreeMap<&'a str, usize>)> {
    let mut causes = BTreeMap::<String, BTreeMap<&str, usize>>::new();
    let tests = records.iter().flat_map(|record| &record.tests);
    for test in tests.filter(|test| test.outcome == Outcome::Failed) {
        let cause = cause(test.message.as_deref().unwrap_or("no reason given"));
        *causes.entry(cause).or_default().entry(&test.name).or_default() += 1;
    }
    let mut causes: Vec<_> = causes.into_iter().collect();
    causes.sort_by_key(|(_, tests)| std::cmp::Reverse(tests.len()));
    causes
}

/// A message without what is particular to one run: names that were made up, addresses, times.
fn cause(message: &str) -> String {
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
        let first = cause("pod \"pod-1f3\" on 10.0.0.1:80 not Running after 300.001s");
        assert_eq!(first, cause("pod \"pod-2a\" on 10.0.0.2:80 not Running after 300.02s"));
        assert_eq!(first, "pod … on … not Running after …");
        assert_ne!(first, cause("pod \"pod-2a\" on 10.0.0.2:80 not Ready after 300.02s"));
    }
}
