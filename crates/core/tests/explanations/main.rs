//! Explanations: every cause with whole sentences, the page that tells of them, and that nothing makes them fall silent.
//!
//! `cases/*.yaml` are the questions and the answers, in shorthand (see `cases.rs`).
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod cases;
mod page;
mod properties;

use std::collections::BTreeSet;

use oarsman_core::explain::ExplanationCause;

use cases::ExplanationCase;

#[test]
fn every_case_is_explained_with_its_cause_its_sentence_and_its_next_step() {
    let wrong = |case: &ExplanationCase| {
        let got = case.explain();
        let expected = (case.cause.as_str(), case.sentence.as_str(), case.next.as_str());
        let is = (got.cause.slug(), got.sentence.as_str(), got.next_step.as_str());
        (is != expected || got.details != case.details).then(|| {
            let is = serde_json::to_string_pretty(&got).unwrap();
            format!("{} should be: {}\nis: {is}", case.cause, case.sentence)
        })
    };
    let wrong: Vec<String> = cases::all().iter().filter_map(wrong).collect();
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn every_cause_has_a_case() {
    let told: BTreeSet<String> = cases::all().into_iter().map(|case| case.cause).collect();
    let causes: BTreeSet<String> =
        ExplanationCause::ALL.iter().map(|cause| cause.slug().to_owned()).collect();
    assert_eq!(causes, told);
    assert_eq!(causes.len(), ExplanationCause::ALL.len(), "two causes share a word");
}

#[test]
fn sentences_are_sentences() {
    for case in cases::all() {
        for text in [&case.sentence, &case.next] {
            let first = text.chars().next().unwrap();
            assert!(first.is_uppercase() || first == '`', "{text}");
            assert!(text.ends_with('.') && !text.ends_with(".."), "{text}");
            assert!(!text.contains("  "), "{text}");
        }
    }
}
