//! How long one container has to stop by itself. The pod's own grace period, which only shrinks, is the pod worker's.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod, Probe};

use crate::pod::PodExt;
use crate::view::ContainerLabel;

/// A container is never given less, so that it can end in order even after its hook took all the time there was.
pub const CONTAINER_FLOOR: i64 = 2;

/// Why a container is stopped, as far as its grace period is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraceCause {
    /// Its liveness probe failed, and the probe may set a grace period of its own.
    Liveness,
    /// Its startup probe failed, and the probe may set a grace period of its own.
    Startup,
    /// The pod is deleted, its container was changed, or it is killed for another reason.
    Other,
}

/// The whole seconds a container still has, out of which its hook and its waiting for others are paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContainerGracePeriod(i64);

impl ContainerGracePeriod {
    /// Not even time for a hook.
    pub const NONE: Self = Self(0);

    /// From the seconds of a spec or of a deletion.
    pub fn from_seconds(seconds: i64) -> Self {
        Self(seconds)
    }

    /// What a container of a pod we know gets: what deletion set, else what the failed probe says, else what the
    /// spec says.
    pub fn of(pod: &Pod, spec: &Container, cause: GraceCause) -> Self {
        let probe = match cause {
            GraceCause::Liveness => spec.liveness_probe.as_ref(),
            GraceCause::Startup => spec.startup_probe.as_ref(),
            GraceCause::Other => None,
        };
        let of_pod = || pod.spec().and_then(|spec| spec.termination_grace_period_seconds);
        let seconds = pod.metadata.deletion_grace_period_seconds;
        Self(seconds.or_else(|| of_probe(probe)).or_else(of_pod).unwrap_or(CONTAINER_FLOOR))
    }

    /// What an orphan gets: what was written on it when it was made.
    pub fn of_orphan(label: &ContainerLabel) -> Self {
        Self(label.deletion_grace.or(label.termination_grace).unwrap_or(CONTAINER_FLOOR))
    }

    /// Whether there is time for a hook or for waiting.
    pub fn is_open(self) -> bool {
        self.0 > 0
    }

    /// How long a hook may run, or others be waited for.
    pub fn as_duration(self) -> Duration {
        u64::try_from(self.0).map_or(Duration::ZERO, Duration::from_secs)
    }

    /// What is left when this much has been spent; begun seconds are free.
    #[must_use]
    pub fn minus(self, spent: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(spent.as_secs()).unwrap_or(i64::MAX)))
    }

    /// The seconds the runtime is told to wait between asking the container to end and ending it.
    pub fn stop_timeout(self) -> i64 {
        self.0.max(CONTAINER_FLOOR)
    }
}

fn of_probe(probe: Option<&Probe>) -> Option<i64> {
    probe.and_then(|probe| probe.termination_grace_period_seconds)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::PodSpec;

    use super::*;

    fn pod(deletion: Option<i64>, termination: Option<i64>) -> Pod {
        let spec = PodSpec { termination_grace_period_seconds: termination, ..PodSpec::default() };
        let mut pod = Pod { spec: Some(spec), ..Pod::default() };
        pod.metadata.deletion_grace_period_seconds = deletion;
        pod
    }

    fn probed(seconds: i64) -> Container {
        let probe =
            |seconds| Probe { termination_grace_period_seconds: Some(seconds), ..Probe::default() };
        Container {
            liveness_probe: Some(probe(seconds)),
            startup_probe: Some(probe(seconds + 1)),
            ..Container::default()
        }
    }

    #[test]
    fn deletion_then_the_failed_probe_then_the_spec_then_two_seconds_is_the_base() {
        let plain = Container::default();
        let rows = [
            (pod(Some(7), Some(30)), probed(50), GraceCause::Liveness, 7),
            (pod(Some(0), Some(30)), plain.clone(), GraceCause::Other, 0),
            (pod(None, Some(30)), probed(50), GraceCause::Liveness, 50),
            (pod(None, Some(30)), probed(50), GraceCause::Startup, 51),
            (pod(None, Some(30)), probed(50), GraceCause::Other, 30),
            (pod(None, Some(30)), plain.clone(), GraceCause::Liveness, 30),
            (pod(None, None), plain, GraceCause::Other, 2),
        ];
        for (pod, spec, cause, expected) in rows {
            assert_eq!(
                ContainerGracePeriod::of(&pod, &spec, cause),
                ContainerGracePeriod(expected),
                "{cause:?} {expected}"
            );
        }
    }

    #[test]
    fn an_orphan_gets_what_is_written_on_it() {
        let rows = [(Some(5), Some(30), 5), (None, Some(30), 30), (None, None, 2)];
        for (deletion_grace, termination_grace, expected) in rows {
            let label =
                ContainerLabel { deletion_grace, termination_grace, ..ContainerLabel::default() };
            assert_eq!(ContainerGracePeriod::of_orphan(&label), ContainerGracePeriod(expected));
        }
    }

    #[test]
    fn hook_and_waiting_reduce_the_grace_period_by_whole_seconds_down_to_two() {
        let rows = [
            (30, 0, 30),
            (30, 999, 30),
            (30, 1000, 29),
            (30, 12_700, 18),
            (30, 29_000, 2),
            (30, 40_000, 2),
            (0, 0, 2),
            (1, 0, 2),
        ];
        for (grace, spent, expected) in rows {
            let left = ContainerGracePeriod(grace).minus(Duration::from_millis(spent));
            assert_eq!(left.stop_timeout(), expected, "{grace} s less {spent} ms");
        }
    }

    #[test]
    fn without_grace_there_is_no_time_for_a_hook() {
        assert!(!ContainerGracePeriod::NONE.is_open());
        assert!(!ContainerGracePeriod(-1).is_open());
        assert_eq!(ContainerGracePeriod(-1).as_duration(), Duration::ZERO);
        assert!(ContainerGracePeriod(1).is_open());
        assert_eq!(ContainerGracePeriod(3).as_duration(), Duration::from_secs(3));
        assert!(
            !ContainerGracePeriod(2).minus(Duration::from_secs(2)).is_open(),
            "the hook used it up"
        );
    }
}
