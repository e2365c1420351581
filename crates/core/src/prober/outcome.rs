//! What one probe came to, and the event that tells of it.

use crate::event::PodEvent;
use crate::probe::{ProbeKind, ProbeResult};

/// More of a probe's output is not kept.
pub const OUTPUT_LIMIT: usize = 10 * 1024;

/// What one probe came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeOutcome {
    /// The answer is good.
    Success {
        /// What was answered.
        output: String,
    },
    /// The answer is good enough, and its author should know about it.
    Warning {
        /// What was answered.
        output: String,
    },
    /// The answer is bad, or there is none.
    Failure {
        /// What was answered.
        output: String,
    },
    /// The question could not be asked, which says nothing about the container.
    Error {
        /// Why.
        message: String,
    },
}

/// Counts of the results of probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeTally {
    /// Successes and warnings.
    pub successful: u64,
    /// Failures.
    pub failed: u64,
    /// Errors.
    pub unknown: u64,
}

impl ProbeOutcome {
    /// A good answer.
    pub fn success(output: impl AsRef<[u8]>) -> Self {
        Self::Success { output: capped(output.as_ref()) }
    }

    /// An answer that is good enough.
    pub fn warning(output: impl AsRef<[u8]>) -> Self {
        Self::Warning { output: capped(output.as_ref()) }
    }

    /// A bad answer.
    pub fn failure(output: impl AsRef<[u8]>) -> Self {
        Self::Failure { output: capped(output.as_ref()) }
    }

    /// No question.
    pub fn error(message: impl AsRef<[u8]>) -> Self {
        Self::Error { message: capped(message.as_ref()) }
    }

    /// What it counts as; an error counts as nothing.
    pub fn result(&self) -> Option<ProbeResult> {
        match self {
            Self::Success { .. } | Self::Warning { .. } => Some(ProbeResult::Success),
            Self::Failure { .. } => Some(ProbeResult::Failure),
            Self::Error { .. } => None,
        }
    }

    /// What was answered, or why nothing was asked.
    pub fn output(&self) -> &str {
        match self {
            Self::Success { output } | Self::Warning { output } | Self::Failure { output } => {
                output
            }
            Self::Error { message } => message,
        }
    }

    /// The event of it; none of a success.
    pub fn event(&self, kind: ProbeKind) -> Option<PodEvent> {
        let (reason, message) = match self {
            Self::Success { .. } => return None,
            Self::Warning { output } => ("ProbeWarning", format!("{kind} probe warning: {output}")),
            Self::Failure { output } => ("Unhealthy", format!("{kind} probe failed: {output}")),
            Self::Error { message } => (
                "Unhealthy",
                format!("{kind} probe errored and resulted in unknown state: {message}"),
            ),
        };
        Some(PodEvent::warning(reason, message))
    }
}

impl ProbeTally {
    /// Counts one more.
    pub fn count(&mut self, outcome: &ProbeOutcome) {
        match outcome.result() {
            Some(ProbeResult::Success) => self.successful += 1,
            Some(ProbeResult::Failure) => self.failed += 1,
            Some(ProbeResult::Unknown) | None => self.unknown += 1,
        }
    }
}

/// As much of it as is kept, as text.
fn capped(output: &[u8]) -> String {
    String::from_utf8_lossy(output.get(..OUTPUT_LIMIT).unwrap_or(output)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_a_success_is_an_event_in_the_words_that_tools_match_on() {
        let rows = [
            (ProbeOutcome::success("ok"), ProbeKind::Liveness, None),
            (
                ProbeOutcome::failure("no"),
                ProbeKind::Readiness,
                Some(("Unhealthy", "Readiness probe failed: no")),
            ),
            (
                ProbeOutcome::error("no port"),
                ProbeKind::Liveness,
                Some((
                    "Unhealthy",
                    "Liveness probe errored and resulted in unknown state: no port",
                )),
            ),
            (
                ProbeOutcome::warning("elsewhere"),
                ProbeKind::Startup,
                Some(("ProbeWarning", "Startup probe warning: elsewhere")),
            ),
        ];
        for (outcome, kind, expected) in rows {
            let event = outcome.event(kind);
            let told = event.as_ref().map(|event| (&*event.reason, &*event.message));
            assert_eq!(told, expected);
        }
    }

    #[test]
    fn a_warning_is_a_success_and_an_error_is_no_result() {
        let mut tally = ProbeTally::default();
        let rows = [
            (ProbeOutcome::success(""), Some(ProbeResult::Success)),
            (ProbeOutcome::warning(""), Some(ProbeResult::Success)),
            (ProbeOutcome::failure(""), Some(ProbeResult::Failure)),
            (ProbeOutcome::error(""), None),
        ];
        for (outcome, result) in rows {
            assert_eq!(outcome.result(), result);
            tally.count(&outcome);
        }
        assert_eq!(tally, ProbeTally { successful: 2, failed: 1, unknown: 1 });
    }

    #[test]
    fn output_is_cut_to_ten_kibibytes() {
        let long = vec![b'a'; OUTPUT_LIMIT + 1];
        let rows = [
            ProbeOutcome::success(&long),
            ProbeOutcome::warning(&long),
            ProbeOutcome::failure(&long),
            ProbeOutcome::error(&long),
        ];
        for outcome in rows {
            assert_eq!(outcome.output().len(), OUTPUT_LIMIT);
        }
        assert_eq!(ProbeOutcome::failure(b"\xff").output(), "\u{fffd}", "and made text");
    }
}
