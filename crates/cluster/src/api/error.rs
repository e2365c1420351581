//! What the API server's answers mean to the agent.

use std::error::Error as _;
use std::fmt::Write as _;
use std::time::Duration;

use kube::core::Status;

use super::retry_after::RetryAfter;
use crate::ClusterError;

/// How long is waited when the API server is busy and does not say how long it will be.
const WHILE_BUSY: Duration = Duration::from_secs(1);

/// A call that failed, and what it was about.
pub(super) fn failed(call: &'static str, object: &str, error: &kube::Error) -> ClusterError {
    let object = object.to_owned();
    if let Some(wait) = busy(error) {
        return ClusterError::Busy { call, object, wait };
    }
    match error {
        kube::Error::Api(status) if matches!(status.code, 404 | 410) => {
            ClusterError::Gone { object }
        }
        kube::Error::Api(status) if is_refusal(status) => {
            ClusterError::Refused { call, object, why: status.message.clone() }
        }
        error => ClusterError::Unavailable { call, object, why: with_causes(error) },
    }
}

/// Whether the API server certainly did nothing: it understood, and answered that it will not.
pub(super) fn is_answer(error: &kube::Error) -> bool {
    busy(error).is_some()
        || matches!(error, kube::Error::Api(status) if (400..500).contains(&status.code) && status.code != 408)
}

/// The HTTP status of an answer.
pub(super) fn code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

/// An error with its causes: kube's own words often only say that there was one.
pub(super) fn with_causes(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error {
        return format!("{} ({})", status.message, status.code);
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.ends_with(&said) {
            // Writing to a string cannot fail.
            write!(text, ": {said}").ok();
        }
        cause = error.source();
    }
    text
}

fn busy(error: &kube::Error) -> Option<Duration> {
    match error {
        kube::Error::Service(error) => error.downcast_ref::<RetryAfter>().map(|busy| busy.wait),
        kube::Error::Api(status) if status.code == 429 => {
            let said = status.details.as_ref().map(|details| details.retry_after_seconds);
            let said = said.filter(|seconds| *seconds > 0);
            Some(said.map_or(WHILE_BUSY, |seconds| Duration::from_secs(seconds.into())))
        }
        _ => None,
    }
}

fn is_refusal(status: &Status) -> bool {
    (400..500).contains(&status.code) && status.code != 408
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: u16) -> kube::Error {
        kube::Error::Api(Status::failure("no", "Because").with_code(code).boxed())
    }

    fn kind(error: &kube::Error) -> &'static str {
        match failed("the status", "pod web_default", error) {
            ClusterError::Gone { .. } => "gone",
            ClusterError::Refused { .. } => "refused",
            ClusterError::Unavailable { .. } => "unavailable",
            ClusterError::Busy { .. } => "busy",
        }
    }

    #[test]
    fn responses_are_classified() {
        let rows = [
            (400, "refused", true),
            (401, "refused", true),
            (403, "refused", true),
            (404, "gone", true),
            (408, "unavailable", false),
            (409, "refused", true),
            (410, "gone", true),
            (422, "refused", true),
            (429, "busy", true),
            (500, "unavailable", false),
            (503, "unavailable", false),
            (504, "unavailable", false),
        ];
        for (code, want, certain) in rows {
            assert_eq!(kind(&answer(code)), want, "{code}");
            assert_eq!(is_answer(&answer(code)), certain, "{code}");
        }
        let broken = kube::Error::Service("the line broke".into());
        assert_eq!(kind(&broken), "unavailable");
        assert!(!is_answer(&broken));
    }

    #[test]
    fn an_error_names_call_object_and_cause() {
        let broken = kube::Error::Service("the line broke".into());
        let said = failed("the status", "pod web_default", &broken).to_string();
        assert!(said.contains("the status of pod web_default"), "{said}");
        assert!(said.contains("the line broke"), "{said}");
    }

    #[test]
    fn a_busy_server_is_retried_after_the_time_it_asked_for() {
        let asked = kube::Error::Service(Box::new(RetryAfter { wait: Duration::from_secs(7) }));
        for (error, want) in [(asked, 7), (answer(429), 1)] {
            let error = failed("the status", "pod web_default", &error);
            let ClusterError::Busy { wait, .. } = error else { panic!("{error}") };
            assert_eq!(wait, Duration::from_secs(want));
        }
    }
}
