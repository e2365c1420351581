//! `docs/explain.md`, which is made of the cases.
//!
//! To make it anew: `OARSMAN_RENEW=1 cargo test -p oarsman-core --test explanations`.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use oarsman_core::explain::ExplanationCause;

use crate::cases;

const HEAD: &str = "\
# Why a pod is not running

`oarsman explain POD` says in one sentence why a pod is not running, not ready, has ended or still exists, and what to do next. These are the
causes it knows, each with its identifier for tools (`-o json`) and an example. The scenarios in `testing/e2e/tests/explain` provoke each of
them on real containerd, except for the few that are listed there with the reason.

This page is generated from the cases in `crates/core/tests/explanations/cases`, and a test compares the two:
`OARSMAN_RENEW=1 cargo test -p oarsman-core --test explanations` generates it again.
";

fn rendered() -> String {
    let cases = cases::all();
    let mut page = HEAD.to_owned();
    for cause in ExplanationCause::ALL {
        let case = cases.iter().find(|case| case.cause == cause.slug()).unwrap();
        let (slug, meaning) = (cause.slug(), cause.meaning());
        write!(
            page,
            "\n## `{slug}`\n{meaning}\n\n> {}\n>\n> **Next:** {}\n",
            case.sentence, case.next
        )
        .unwrap();
    }
    page
}

#[test]
fn the_page_of_causes_is_as_the_cases_are() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/explain.md");
    let page = rendered();
    if env::var_os("OARSMAN_RENEW").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let there = fs::read_to_string(&path).unwrap_or_default();
    let how = "OARSMAN_RENEW=1 cargo test -p oarsman-core --test explanations";
    assert!(there == page, "docs/explain.md is not as the cases are; make it anew: {how}");
}
