//! Events of pods, as data: type, reason, message and the part of the pod they are about.

mod correlator;
mod lru_map;

use std::borrow::Cow;
use std::fmt;

use crate::pod::ContainerKind;

pub use correlator::{Correlator, EventRecord};

/// The type of an event: `Normal` or `Warning`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    /// Things go as they should.
    Normal,
    /// Something that needs attention.
    Warning,
}

/// Something that happened to a pod or to one of its containers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodEvent {
    /// `Normal` or `Warning`.
    pub kind: EventKind,
    /// The one word that tools match on, such as `Killing`.
    pub reason: Cow<'static, str>,
    /// The sentence that a person reads.
    pub message: String,
    /// The part of the pod it is about, such as `spec.containers{web}`; none for the pod itself.
    pub field_path: Option<String>,
}

impl PodEvent {
    /// An event of the usual course of things.
    pub fn normal(reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { kind: EventKind::Normal, reason, message: message.into(), field_path: None }
    }

    /// An event of type `Warning`.
    pub fn warning(reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { kind: EventKind::Warning, reason, message: message.into(), field_path: None }
    }

    /// The same event, about one container.
    #[must_use]
    pub fn about(self, kind: ContainerKind, container: &str) -> Self {
        let list = match kind {
            ContainerKind::Init | ContainerKind::Sidecar => "initContainers",
            ContainerKind::Regular => "containers",
            ContainerKind::Ephemeral => "ephemeralContainers",
        };
        Self { field_path: Some(format!("spec.{list}{{{container}}}")), ..self }
    }
}

/// The runtime's state of the pod could not be read, so that nothing could be decided about it.
pub fn status_unknown(error: impl fmt::Display) -> PodEvent {
    PodEvent::warning("FailedSync", format!("error determining status: {error}"))
}

/// A sandbox was made, and then its status could not be read.
pub fn sandbox_status_unknown(error: impl fmt::Display) -> PodEvent {
    let message = format!("Unable to get pod sandbox status: {error}");
    PodEvent::warning("FailedPodSandBoxStatus", message)
}

/// The pod's directories could not be made.
pub fn no_directories(error: impl fmt::Display) -> PodEvent {
    let message = format!("error making pod data directories: {error}");
    PodEvent::warning("FailedToMakePodDataDirectories", message)
}

/// The pod's cgroup could not be made.
pub fn no_pod_cgroup(error: impl fmt::Display) -> PodEvent {
    let message = format!("unable to ensure pod container exists: {error}");
    PodEvent::warning("FailedCreatePodContainer", message)
}

/// The runtime has no network for pods, so that no sandbox is created.
pub fn network_not_ready(error: impl fmt::Display) -> PodEvent {
    PodEvent::warning("NetworkNotReady", format!("network is not ready: {error}"))
}

/// A component of this node asked for the pod to be killed, and it still runs long after its grace period.
pub fn kill_overdue() -> PodEvent {
    let message = "Container runtime did not kill the pod within specified grace period.";
    PodEvent::warning("ExceededGracePeriod", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_the_reasons_that_tools_match_on() {
        use EventKind::{Normal, Warning};
        let rows = [
            (status_unknown("down"), Warning, "FailedSync", "error determining status: down"),
            (
                sandbox_status_unknown("down"),
                Warning,
                "FailedPodSandBoxStatus",
                "Unable to get pod sandbox status: down",
            ),
            (
                kill_overdue(),
                Warning,
                "ExceededGracePeriod",
                "Container runtime did not kill the pod within specified grace period.",
            ),
            (
                network_not_ready("container runtime network not ready: so"),
                Warning,
                "NetworkNotReady",
                "network is not ready: container runtime network not ready: so",
            ),
            (
                no_directories("full"),
                Warning,
                "FailedToMakePodDataDirectories",
                "error making pod data directories: full",
            ),
            (
                no_pod_cgroup("busy"),
                Warning,
                "FailedCreatePodContainer",
                "unable to ensure pod container exists: busy",
            ),
            (PodEvent::normal("Killing", "so"), Normal, "Killing", "so"),
        ];
        for (event, kind, reason, message) in rows {
            assert_eq!((event.kind, &*event.reason, &*event.message), (kind, reason, message));
            assert_eq!(event.field_path, None, "it is about the pod");
        }
    }

    #[test]
    fn an_event_about_a_container_names_its_place_in_the_spec() {
        let rows = [
            (ContainerKind::Init, "spec.initContainers{a}"),
            (ContainerKind::Sidecar, "spec.initContainers{a}"),
            (ContainerKind::Regular, "spec.containers{a}"),
            (ContainerKind::Ephemeral, "spec.ephemeralContainers{a}"),
        ];
        for (kind, path) in rows {
            let event = PodEvent::normal("Started", "").about(kind, "a");
            assert_eq!(event.field_path.as_deref(), Some(path));
        }
    }
}
