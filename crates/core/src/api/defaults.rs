//! What a pod means where it says nothing.

mod containers;
mod resources;
mod volumes;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};

use containers::Defaultable;

const GRACE_SECONDS: i64 = 30;
/// Annotations that once listed init containers; they are not carried on, so that no component takes
/// them for the truth.
const INIT_CONTAINER_ANNOTATIONS: [&str; 4] = [
    "pod.alpha.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.beta.kubernetes.io/init-containers",
];

/// Fills in every default an API server of Kubernetes v1.36 would.
pub fn set_defaults(pod: &mut Pod) {
    if let Some(annotations) = &mut pod.metadata.annotations {
        annotations.retain(|key, _| !INIT_CONTAINER_ANNOTATIONS.contains(&key.as_str()));
    }
    let spec = pod.spec.get_or_insert_default();
    resources::set_defaults(spec);
    set_plain_fields(spec);
    set_grace(spec);
    set_service_account(spec);
    spec.volumes.iter_mut().flatten().for_each(volumes::set_defaults);
    set_host_ports(spec);
    for container in all_containers(spec) {
        container.set_defaults();
    }
    resources::round(spec);
}

fn set_plain_fields(spec: &mut PodSpec) {
    spec.enable_service_links.get_or_insert(true);
    spec.security_context.get_or_insert_default();
    set_text(&mut spec.dns_policy, "ClusterFirst");
    set_text(&mut spec.restart_policy, "Always");
    set_text(&mut spec.scheduler_name, "default-scheduler");
}

/// Less than nothing is taken for one second.
fn set_grace(spec: &mut PodSpec) {
    let grace = spec.termination_grace_period_seconds.get_or_insert(GRACE_SECONDS);
    if *grace < 0 {
        *grace = 1;
    }
}

/// The field has an old name; both say the same.
fn set_service_account(spec: &mut PodSpec) {
    if spec.service_account_name.is_none() {
        spec.service_account_name.clone_from(&spec.service_account);
    }
    spec.service_account.clone_from(&spec.service_account_name);
}

/// On the host's network a port of the container is a port of the host.
fn set_host_ports(spec: &mut PodSpec) {
    if spec.host_network != Some(true) {
        return;
    }
    let init = spec.init_containers.iter_mut().flatten();
    let containers = spec.containers.iter_mut().chain(init);
    for port in
        containers.flat_map(|container: &mut Container| container.ports.iter_mut().flatten())
    {
        if port.container_port != 0 {
            port.host_port.get_or_insert(port.container_port);
        }
    }
}

fn all_containers(spec: &mut PodSpec) -> Vec<Defaultable<'_>> {
    let init = spec.init_containers.iter_mut().flatten().map(Defaultable::from);
    let regular = spec.containers.iter_mut().map(Defaultable::from);
    let ephemeral = spec.ephemeral_containers.iter_mut().flatten().map(Defaultable::from);
    init.chain(regular).chain(ephemeral).collect()
}

fn set_text(field: &mut Option<String>, default: &str) {
    field.get_or_insert_with(|| default.to_owned());
}

#[cfg(test)]
mod tests {
    use super::set_defaults;
    use crate::api::decode::decode_pod;
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::{Value, json};

    fn defaulted(metadata: &Value, spec: &Value) -> Pod {
        let value =
            json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec });
        let mut pod = decode_pod(value).unwrap().pod;
        set_defaults(&mut pod);
        pod
    }

    #[test]
    fn an_ephemeral_container_has_the_defaults_of_any_other() {
        let container = json!({
            "name": "debug",
            "image": "busybox",
            "env": [{ "name": "A", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } }],
        });
        let spec = json!({ "containers": [container], "ephemeralContainers": [container] });
        let pod = serde_json::to_value(defaulted(&json!({}), &spec)).unwrap();
        let regular = &pod["spec"]["containers"][0];
        assert_eq!(regular["imagePullPolicy"], "Always");
        assert_eq!(regular["env"][0]["valueFrom"]["fieldRef"]["apiVersion"], "v1");
        assert_eq!(pod["spec"]["ephemeralContainers"][0], *regular);
    }

    #[test]
    fn defaults_change_nothing_the_second_time() {
        let limits = json!({ "cpu": "2.5", "memory": "0.1Gi" });
        let container = json!({ "name": "a", "image": "a", "resources": { "limits": limits } });
        let spec = json!({ "containers": [container], "resources": { "limits": { "cpu": 3 } } });
        let once = defaulted(&json!({}), &spec);
        let mut twice = once.clone();
        set_defaults(&mut twice);
        assert_eq!(twice, once);
    }

    #[test]
    fn annotations_that_once_listed_init_containers_are_dropped() {
        let annotations = json!({ "pod.beta.kubernetes.io/init-containers": "[]", "mine": "kept" });
        let pod = defaulted(&json!({ "annotations": annotations }), &json!({}));
        let left: Vec<String> = pod.metadata.annotations.unwrap().into_keys().collect();
        assert_eq!(left, ["mine"]);
    }
}
