//! Accessors for the fields of a `Pod`, which are optional in the API.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, EphemeralContainer, Pod, PodSpec};

use crate::ids::{FullName, PodUid};

/// Where a pod came from, as the annotation spells it: `file`, `http` or `api`.
pub const SOURCE_ANNOTATION: &str = "kubernetes.io/config.source";
/// When the agent first saw the pod.
pub const SEEN_ANNOTATION: &str = "kubernetes.io/config.seen";
/// Marks an API object as the reflection of a static pod; its value is the static pod's hash.
pub const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";
/// A static pod's hash, which is its UID as made from its content.
pub const HASH_ANNOTATION: &str = "kubernetes.io/config.hash";
/// A pod of this priority or above may push others aside and is never evicted.
pub const CRITICAL_PRIORITY: i32 = 2_000_000_000;

/// What a container is to its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContainerKind {
    /// Runs to completion before the next one starts.
    Init,
    /// An init container with restart policy Always: started in turn, then kept beside the regular ones.
    Sidecar,
    /// What the pod is for.
    Regular,
    /// Added to a running pod to look into it; never restarted.
    Ephemeral,
}

/// One container of a pod's spec with its role.
#[derive(Clone, Debug, PartialEq)]
pub struct PodContainer<'a> {
    /// Init container, sidecar, regular or ephemeral.
    pub kind: ContainerKind,
    /// Its spec; an ephemeral container's is put into the common form.
    pub spec: Cow<'a, Container>,
    /// The container whose process namespace an ephemeral one joins.
    pub target: Option<&'a str>,
}

/// Questions to a pod.
pub trait PodExt {
    /// Its UID; empty when it has none yet.
    fn uid(&self) -> PodUid;
    /// Its name and namespace.
    fn full_name(&self) -> FullName;
    /// Its spec; every pod that passed validation has one.
    fn spec(&self) -> Option<&PodSpec>;
    /// The value of an annotation; none when the pod has no such key.
    fn annotation(&self, key: &str) -> Option<&str>;
    /// When its source first had it, as far as this agent knows.
    fn first_seen(&self) -> Option<Timestamp>;
    /// Whether it came from a file or a URL rather than from the API server.
    fn is_static(&self) -> bool;
    /// Whether it is the API server's reflection of a static pod.
    fn is_mirror(&self) -> bool;
    /// Static, mirror, or of critical priority.
    fn is_critical(&self) -> bool;
    /// Whether its deletion has been asked for.
    fn is_deleting(&self) -> bool;
    /// Whether it shares the node's network.
    fn host_network(&self) -> bool;
    /// `Always`, `OnFailure` or `Never`.
    fn restart_policy(&self) -> &str;
    /// `Failed` or `Succeeded` in the API's copy of its status.
    fn has_terminal_phase(&self) -> bool;
    /// Regular containers in spec order.
    fn regular(&self) -> &[Container];
    /// Init containers and sidecars in spec order.
    fn init(&self) -> &[Container];
    /// Ephemeral containers in spec order.
    fn ephemeral(&self) -> &[EphemeralContainer];
    /// Every container: init and sidecars, regular, ephemeral, each in spec order.
    fn all_containers(&self) -> Vec<PodContainer<'_>>;
    /// The names of the volumes that its containers mount: no other is made.
    fn mounted_volumes(&self) -> BTreeSet<String> {
        let names = |container: &Container| {
            let mounts = container.volume_mounts.iter().flatten().map(|mount| mount.name.clone());
            let devices =
                container.volume_devices.iter().flatten().map(|device| device.name.clone());
            mounts.chain(devices).collect::<Vec<_>>()
        };
        self.all_containers().iter().flat_map(|wanted| names(&wanted.spec)).collect()
    }
    /// The container of that name.
    fn container(&self, name: &str) -> Option<PodContainer<'_>> {
        self.all_containers().into_iter().find(|c| c.spec.name == name)
    }
}

impl PodExt for Pod {
    fn uid(&self) -> PodUid {
        PodUid::from(self.metadata.uid.clone().unwrap_or_default())
    }

    fn full_name(&self) -> FullName {
        FullName {
            name: self.metadata.name.clone().unwrap_or_default(),
            namespace: self.metadata.namespace.clone().unwrap_or_else(|| "default".to_owned()),
        }
    }

    fn spec(&self) -> Option<&PodSpec> {
        self.spec.as_ref()
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        annotations(self).and_then(|all| all.get(key)).map(String::as_str)
    }

    fn first_seen(&self) -> Option<Timestamp> {
        self.annotation(SEEN_ANNOTATION)?.parse().ok()
    }

    fn is_static(&self) -> bool {
        self.annotation(SOURCE_ANNOTATION).is_some_and(|source| source != "api")
    }

    fn is_mirror(&self) -> bool {
        self.annotation(MIRROR_ANNOTATION).is_some()
    }

    fn is_critical(&self) -> bool {
        let priority = self.spec.as_ref().and_then(|s| s.priority).unwrap_or_default();
        self.is_static() || self.is_mirror() || priority >= CRITICAL_PRIORITY
    }

    fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    fn host_network(&self) -> bool {
        self.spec.as_ref().and_then(|s| s.host_network).unwrap_or_default()
    }

    fn restart_policy(&self) -> &str {
        self.spec.as_ref().and_then(|s| s.restart_policy.as_deref()).unwrap_or("Always")
    }

    fn has_terminal_phase(&self) -> bool {
        let phase = self.status.as_ref().and_then(|s| s.phase.as_deref());
        matches!(phase, Some("Failed" | "Succeeded"))
    }

    fn regular(&self) -> &[Container] {
        self.spec.as_ref().map_or(&[], |s| s.containers.as_slice())
    }

    fn init(&self) -> &[Container] {
        self.spec.as_ref().and_then(|s| s.init_containers.as_deref()).unwrap_or_default()
    }

    fn ephemeral(&self) -> &[EphemeralContainer] {
        self.spec.as_ref().and_then(|s| s.ephemeral_containers.as_deref()).unwrap_or_default()
    }

    fn all_containers(&self) -> Vec<PodContainer<'_>> {
        let init = self.init().iter().map(|spec| wanted(init_kind(spec), spec));
        let regular = self.regular().iter().map(|spec| wanted(ContainerKind::Regular, spec));
        let ephemeral = self.ephemeral().iter().map(|spec| PodContainer {
            kind: ContainerKind::Ephemeral,
            spec: Cow::Owned(to_container(spec)),
            target: spec.target_container_name.as_deref(),
        });
        init.chain(regular).chain(ephemeral).collect()
    }
}

/// An init container that restarts always is a sidecar.
pub fn init_kind(spec: &Container) -> ContainerKind {
    match spec.restart_policy.as_deref() {
        Some("Always") => ContainerKind::Sidecar,
        _ => ContainerKind::Init,
    }
}

fn wanted(kind: ContainerKind, spec: &Container) -> PodContainer<'_> {
    PodContainer { kind, spec: Cow::Borrowed(spec), target: None }
}

fn annotations(pod: &Pod) -> Option<&BTreeMap<String, String>> {
    pod.metadata.annotations.as_ref()
}

/// An ephemeral container has every field of a container and its target besides.
fn to_container(spec: &EphemeralContainer) -> Container {
    let spec = spec.clone();
    Container {
        name: spec.name,
        image: spec.image,
        command: spec.command,
        args: spec.args,
        working_dir: spec.working_dir,
        ports: spec.ports,
        env_from: spec.env_from,
        env: spec.env,
        resources: spec.resources,
        resize_policy: spec.resize_policy,
        restart_policy: spec.restart_policy,
        restart_policy_rules: spec.restart_policy_rules,
        volume_mounts: spec.volume_mounts,
        volume_devices: spec.volume_devices,
        liveness_probe: spec.liveness_probe,
        readiness_probe: spec.readiness_probe,
        startup_probe: spec.startup_probe,
        lifecycle: spec.lifecycle,
        termination_message_path: spec.termination_message_path,
        termination_message_policy: spec.termination_message_policy,
        image_pull_policy: spec.image_pull_policy,
        security_context: spec.security_context,
        stdin: spec.stdin,
        stdin_once: spec.stdin_once,
        tty: spec.tty,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(annotations: &[(&str, &str)], priority: Option<i32>) -> Pod {
        let mut pod = Pod::default();
        let texts = annotations.iter().map(|&(key, value)| (key.to_owned(), value.to_owned()));
        pod.metadata.annotations = Some(texts.collect());
        pod.spec = Some(PodSpec { priority, ..PodSpec::default() });
        pod
    }

    #[test]
    fn a_pod_is_static_when_it_comes_from_anywhere_but_the_api_server() {
        for (source, is_static) in [("file", true), ("http", true), ("api", false)] {
            assert_eq!(
                pod(&[(SOURCE_ANNOTATION, source)], None).is_static(),
                is_static,
                "{source}"
            );
        }
        assert!(!pod(&[], None).is_static(), "one without an annotation");
    }

    #[test]
    fn static_pods_mirrors_and_those_of_high_priority_are_critical() {
        let rows = [
            (pod(&[(SOURCE_ANNOTATION, "file")], None), true),
            (pod(&[(SOURCE_ANNOTATION, "api")], None), false),
            (pod(&[(SOURCE_ANNOTATION, "api"), (MIRROR_ANNOTATION, "hash")], None), true),
            (pod(&[], Some(CRITICAL_PRIORITY)), true),
            (pod(&[], Some(CRITICAL_PRIORITY - 1)), false),
        ];
        for (pod, critical) in rows {
            assert_eq!(pod.is_critical(), critical, "{pod:?}");
        }
    }
}
