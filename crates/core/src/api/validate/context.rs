//! What checks of one part have to know of the rest of the pod.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, Volume};

use crate::api::path::Path;
use crate::pod::{ContainerKind, PodExt};

/// A container and where it stands.
pub(super) struct ContainerPosition<'a> {
    pub(super) at: Path,
    pub(super) kind: ContainerKind,
    pub(super) container: Cow<'a, Container>,
}

/// The pod around a container.
pub(super) struct PodValidationContext<'a> {
    pub(super) spec: &'a PodSpec,
    /// Volumes that are good, by name; a mount of a bad one has nothing to mount.
    pub(super) volumes: BTreeMap<&'a str, &'a Volume>,
    pub(super) claims: BTreeSet<&'a str>,
}

impl PodValidationContext<'_> {
    /// Whether the pod's users are those of the host.
    pub(super) fn host_users(&self) -> bool {
        self.spec.host_users != Some(false)
    }

    pub(super) fn os(&self) -> Option<&str> {
        self.spec.os.as_ref().map(|os| os.name.as_str())
    }

    pub(super) fn restart_policy(&self) -> &str {
        self.spec.restart_policy.as_deref().unwrap_or_default()
    }
}

/// Every container with its place: init, regular, ephemeral.
pub(super) fn container_positions<'a>(at: &Path, pod: &'a Pod) -> Vec<ContainerPosition<'a>> {
    let mut counts = BTreeMap::new();
    let mut place = |kind, container| {
        let list = match kind {
            ContainerKind::Init | ContainerKind::Sidecar => "initContainers",
            ContainerKind::Regular => "containers",
            ContainerKind::Ephemeral => "ephemeralContainers",
        };
        let count = counts.entry(list).or_insert(0_usize);
        *count += 1;
        ContainerPosition { at: at.child(list).index(*count - 1), kind, container }
    };
    pod.all_containers().into_iter().map(|wanted| place(wanted.kind, wanted.spec)).collect()
}
