//! How often a probe asks, how long it waits, and how many equal answers count.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, Probe};

use crate::duration;
use crate::event::PodEvent;
use crate::pod::PodExt;
use crate::probe::ProbeKind;

/// What follows the container's name in the prefix of the annotation of a period.
const ANNOTATION_DOMAIN: &str = "probe-period.oarsman.dev";
/// The shortest period.
const SHORTEST_PERIOD: Duration = Duration::from_millis(100);
/// Longer periods are set by the field `periodSeconds`.
const SECOND: Duration = Duration::from_secs(1);

/// The numbers of a probe, with the defaults of the API for those that are not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeSchedule {
    /// How long after the start of its container the first probe is due.
    pub initial_delay: Duration,
    /// From the beginning of one probe to the next.
    pub period: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
    /// How many successes in a row count.
    pub success_threshold: u32,
    /// How many failures in a row count.
    pub failure_threshold: u32,
}

/// The annotation of a period is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "annotation {key} is {value:?}, which is no period from 100ms to below 1s; write one such as 250ms, \
     or remove it: periodSeconds counts meanwhile"
)]
pub struct PeriodAnnotationError {
    key: String,
    value: String,
}

impl PeriodAnnotationError {
    /// What its author is told.
    pub fn event(&self) -> PodEvent {
        PodEvent::warning("InvalidProbePeriod", self.to_string())
    }
}

/// The annotation that sets a period below one second. Its prefix has the container's name, because the part after the slash is too short
/// for one.
pub fn period_annotation(container: &str, kind: ProbeKind) -> String {
    format!("{container}.{ANNOTATION_DOMAIN}/{}", kind.name())
}

impl ProbeSchedule {
    /// The schedule of a probe of a container, and what is wrong with its annotation.
    pub fn of(
        pod: &Pod,
        container: &str,
        kind: ProbeKind,
        probe: &Probe,
    ) -> (Self, Option<PeriodAnnotationError>) {
        let of_spec = Self::of_spec(probe);
        let key = period_annotation(container, kind);
        match pod.annotation(&key).map(|value| short_period(value).ok_or(value)) {
            None => (of_spec, None),
            Some(Ok(period)) => (Self { period, ..of_spec }, None),
            Some(Err(value)) => {
                let value = value.chars().take(100).collect();
                (of_spec, Some(PeriodAnnotationError { key, value }))
            }
        }
    }

    fn of_spec(probe: &Probe) -> Self {
        let at_least_one = |number: Option<i32>, default: u32| {
            let number = number.and_then(|number| u32::try_from(number).ok());
            number.filter(|number| *number > 0).unwrap_or(default)
        };
        let seconds = |number: u32| Duration::from_secs(number.into());
        let delay = probe.initial_delay_seconds.and_then(|delay| u32::try_from(delay).ok());
        Self {
            initial_delay: seconds(delay.unwrap_or_default()),
            period: seconds(at_least_one(probe.period_seconds, 10)),
            timeout: seconds(at_least_one(probe.timeout_seconds, 1)),
            success_threshold: at_least_one(probe.success_threshold, 1),
            failure_threshold: at_least_one(probe.failure_threshold, 3),
        }
    }
}

fn short_period(value: &str) -> Option<Duration> {
    duration::parse(value).ok().filter(|period| (SHORTEST_PERIOD..SECOND).contains(period))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::pod;

    fn annotated(value: &str) -> Pod {
        let key = "app.probe-period.oarsman.dev/readiness".to_owned();
        pod().edit(|pod| pod.metadata.annotations = Some([(key, value.to_owned())].into())).build()
    }

    #[test]
    fn what_is_not_set_is_as_the_api_defaults_it() {
        let (schedule, _) =
            ProbeSchedule::of(&pod().build(), "app", ProbeKind::Readiness, &Probe::default());
        let expected = ProbeSchedule {
            initial_delay: Duration::ZERO,
            period: Duration::from_secs(10),
            timeout: Duration::from_secs(1),
            success_threshold: 1,
            failure_threshold: 3,
        };
        assert_eq!(schedule, expected);
        let probe = Probe {
            initial_delay_seconds: Some(7),
            period_seconds: Some(2),
            timeout_seconds: Some(4),
            success_threshold: Some(3),
            failure_threshold: Some(5),
            ..Probe::default()
        };
        let (schedule, _) = ProbeSchedule::of(&pod().build(), "app", ProbeKind::Readiness, &probe);
        let seconds = [schedule.initial_delay, schedule.period, schedule.timeout];
        assert_eq!(seconds.map(|time| time.as_secs()), [7, 2, 4]);
        assert_eq!((schedule.success_threshold, schedule.failure_threshold), (3, 5));
    }

    #[test]
    fn an_annotation_sets_a_period_below_one_second_and_a_wrong_one_is_told() {
        let rows = [
            ("250ms", Some(250)),
            ("100ms", Some(100)),
            ("0.5s", Some(500)),
            ("99ms", None),
            ("1s", None),
            ("5", None),
            ("-200ms", None),
            ("often", None),
        ];
        for (value, period) in rows {
            let pod = annotated(value);
            let of = |container, kind| ProbeSchedule::of(&pod, container, kind, &Probe::default());
            let (schedule, error) = of("app", ProbeKind::Readiness);
            assert_eq!(schedule.period, Duration::from_millis(period.unwrap_or(10_000)), "{value}");
            assert_eq!(error.is_none(), period.is_some(), "{value}");
            assert_eq!(of("app", ProbeKind::Liveness).0.period, Duration::from_secs(10));
            assert_eq!(of("other", ProbeKind::Readiness).0.period, Duration::from_secs(10));
        }
        let (_, error) =
            ProbeSchedule::of(&annotated("1"), "app", ProbeKind::Readiness, &Probe::default());
        let event = error.unwrap().event();
        assert_eq!(event.reason, "InvalidProbePeriod");
        let names = "annotation app.probe-period.oarsman.dev/readiness is \"1\"";
        assert!(event.message.starts_with(names), "{}", event.message);
    }
}
