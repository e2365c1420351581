//! What the agent has to say about a pod, as data: an event with its reason and message.

use crate::pod::ContainerKind;

/// Whether somebody should worry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    /// Things go as they should.
    Normal,
    /// Somebody should look.
    Warning,
}

/// Something that happened to a pod or to one of its containers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodEvent {
    /// Whether somebody should worry.
    pub kind: EventKind,
    /// The one word that tools match on, such as `Killing`.
    pub reason: &'static str,
    /// The sentence that a person reads.
    pub message: String,
    /// The part of the pod it is about, such as `spec.containers{web}`; none for the pod itself.
    pub field_path: Option<String>,
}

impl PodEvent {
    /// An event of the usual course of things.
    pub fn normal(reason: &'static str, message: impl Into<String>) -> Self {
        Self { kind: EventKind::Normal, reason, message: message.into(), field_path: None }
    }

    /// An event that somebody should look at.
    pub fn warning(reason: &'static str, message: impl Into<String>) -> Self {
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
