//! One container of a pod: its spec beside its status.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::{
    Container, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus, Pod,
};

use super::phrases::capitalized;
use crate::pod::{ContainerKind, PodContainer, PodExt};
use crate::status::container_status_ext::ContainerStatusExt;

/// A container as it is wanted and as it is.
pub(super) struct ContainerSnapshot<'a> {
    pub(super) kind: ContainerKind,
    pub(super) spec: Cow<'a, Container>,
    /// Its place in the list of the spec.
    index: usize,
    pub(super) status: Option<&'a ContainerStatus>,
}

impl<'a> ContainerSnapshot<'a> {
    /// All containers of a pod, in the order in which they are started.
    pub(super) fn all(pod: &'a Pod) -> Vec<Self> {
        let first_regular = pod.init().len();
        let first_ephemeral = first_regular + pod.regular().len();
        let each = pod.all_containers().into_iter().enumerate().map(|(at, wanted)| {
            let index = match wanted.kind {
                ContainerKind::Init | ContainerKind::Sidecar => at,
                ContainerKind::Regular => at - first_regular,
                ContainerKind::Ephemeral => at - first_ephemeral,
            };
            let status = status_of(pod, &wanted);
            Self { kind: wanted.kind, spec: wanted.spec, index, status }
        });
        each.collect()
    }

    pub(super) fn name(&self) -> &str {
        &self.spec.name
    }

    pub(super) fn image(&self) -> &str {
        self.spec.image.as_deref().unwrap_or_default()
    }

    /// As a sentence calls it in its middle.
    pub(super) fn label(&self) -> String {
        let what = match self.kind {
            ContainerKind::Init => "init container",
            ContainerKind::Sidecar => "sidecar",
            ContainerKind::Regular => "container",
            ContainerKind::Ephemeral => "ephemeral container",
        };
        format!("{what} {}", self.name())
    }

    /// As a sentence calls it at its beginning.
    pub(super) fn capitalized_label(&self) -> String {
        capitalized(&self.label())
    }

    /// The path of one of its fields.
    pub(super) fn field(&self, field: &str) -> String {
        let list = match self.kind {
            ContainerKind::Init | ContainerKind::Sidecar => "initContainers",
            ContainerKind::Regular => "containers",
            ContainerKind::Ephemeral => "ephemeralContainers",
        };
        format!("spec.{list}[{}].{field}", self.index)
    }

    pub(super) fn waiting(&self) -> Option<&'a ContainerStateWaiting> {
        self.status?.state.as_ref()?.waiting.as_ref()
    }

    /// The reason for which it waits.
    pub(super) fn reason(&self) -> &'a str {
        self.waiting().and_then(|waiting| waiting.reason.as_deref()).unwrap_or_default()
    }

    /// What is said about its waiting.
    pub(super) fn message(&self) -> &'a str {
        self.waiting().and_then(|waiting| waiting.message.as_deref()).unwrap_or_default()
    }

    pub(super) fn running(&self) -> Option<&'a ContainerStateRunning> {
        self.status?.state.as_ref()?.running.as_ref()
    }

    pub(super) fn is_ready(&self) -> bool {
        self.status.is_some_and(|status| status.ready)
    }

    pub(super) fn has_started(&self) -> bool {
        self.status.is_some_and(ContainerStatusExt::has_started)
    }

    pub(super) fn restarts(&self) -> i32 {
        self.status.map(|status| status.restart_count).unwrap_or_default()
    }

    /// How it ended, if that is how it stands.
    pub(super) fn ended(&self) -> Option<&'a ContainerStateTerminated> {
        self.status?.ended()
    }

    /// How it, or the one of its name before it, ended.
    pub(super) fn last_end(&self) -> Option<&'a ContainerStateTerminated> {
        let status = self.status?;
        status.ended().or_else(|| status.ended_before())
    }

    /// How much memory it may use, as its spec says it.
    pub(super) fn memory_limit(&self) -> Option<&str> {
        let limits = self.spec.resources.as_ref()?.limits.as_ref()?;
        Some(&limits.get("memory")?.0)
    }

    /// Whether it runs to its end before the others come.
    pub(super) fn is_init(&self) -> bool {
        self.kind == ContainerKind::Init
    }
}

fn status_of<'a>(pod: &'a Pod, wanted: &PodContainer<'_>) -> Option<&'a ContainerStatus> {
    let status = pod.status.as_ref()?;
    let list = match wanted.kind {
        ContainerKind::Init | ContainerKind::Sidecar => &status.init_container_statuses,
        ContainerKind::Regular => &status.container_statuses,
        ContainerKind::Ephemeral => &status.ephemeral_container_statuses,
    };
    list.iter().flatten().find(|status| status.name == wanted.spec.name)
}
