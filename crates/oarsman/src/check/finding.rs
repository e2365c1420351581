//! One finding of `oarsman check`: what was checked, the result, and the fix.

use serde::Serialize;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FindingSeverity {
    /// As it should be.
    Ok,
    /// Pods run, but something will not be as expected.
    Warning,
    /// Pods do not run, or the agent does not start.
    Problem,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// What was looked at, in a word or two.
    pub(crate) check: &'static str,
    pub(crate) weight: FindingSeverity,
    /// How it is.
    pub(crate) what: String,
    /// A command or an edit that makes it better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fix: Option<String>,
}

impl Finding {
    pub(super) fn ok(check: &'static str, what: impl Into<String>) -> Self {
        Self { check, weight: FindingSeverity::Ok, what: what.into(), fix: None }
    }

    pub(super) fn warning(
        check: &'static str,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { check, weight: FindingSeverity::Warning, what: what.into(), fix: Some(fix.into()) }
    }

    pub(super) fn problem(
        check: &'static str,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { check, weight: FindingSeverity::Problem, what: what.into(), fix: Some(fix.into()) }
    }

    /// A problem if the condition holds, else a warning.
    pub(super) fn problem_if(
        concerned: bool,
        check: &'static str,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        let weight = if concerned { FindingSeverity::Problem } else { FindingSeverity::Warning };
        Self { check, weight, what: what.into(), fix: Some(fix.into()) }
    }
}
