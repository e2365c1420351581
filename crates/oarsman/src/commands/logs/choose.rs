//! Chooses the containers of a pod whose logs are printed.

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::pod::{ContainerKind, PodExt};

/// The annotation that names a pod's default container.
const DEFAULT: &str = "kubectl.kubernetes.io/default-container";

/// The chosen containers.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::commands) struct ChosenContainers {
    pub(in crate::commands) containers: Vec<String>,
    /// A remark to print for the user, such as which container was chosen by default.
    pub(in crate::commands) remark: Option<String>,
}

/// The pod has no container of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("pod {pod} has no container {name}; it has {there}")]
pub(in crate::commands) struct NoSuchContainer {
    pod: String,
    name: String,
    there: String,
}

/// The named container, all of them, or the default one.
pub(in crate::commands) fn containers(
    pod: &Pod,
    named: Option<&str>,
    all: bool,
) -> Result<ChosenContainers, NoSuchContainer> {
    let names: Vec<String> =
        pod.all_containers().iter().map(|container| container.spec.name.clone()).collect();
    if all {
        return Ok(ChosenContainers { containers: names, remark: None });
    }
    let annotated = pod.metadata.annotations.as_ref().and_then(|all| all.get(DEFAULT));
    if let Some(name) = named.or(annotated.map(String::as_str)) {
        let there = names.join(", ");
        return match names.iter().any(|it| it == name) {
            true => Ok(ChosenContainers { containers: vec![name.to_owned()], remark: None }),
            false => {
                Err(NoSuchContainer { pod: pod.full_name().name, name: name.to_owned(), there })
            }
        };
    }
    let regular = pod.all_containers();
    let regular = regular.iter().find(|container| container.kind == ContainerKind::Regular);
    let first = regular.map(|container| container.spec.name.clone()).unwrap_or_default();
    let remark = format!("This is container {first:?} out of: {}", names.join(", "));
    let remark = (names.len() > 1).then_some(remark);
    Ok(ChosenContainers { containers: vec![first], remark })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(annotated: Option<&str>, names: &[&str]) -> Pod {
        let containers: Vec<_> = names.iter().map(|name| json!({ "name": name })).collect();
        let mut pod: Pod = serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "web" },
            "spec": { "initContainers": [{ "name": "init" }], "containers": containers },
        }))
        .unwrap();
        pod.metadata.annotations =
            annotated.map(|name| [(DEFAULT.to_owned(), name.to_owned())].into());
        pod
    }

    fn chosen(pod: &Pod, named: Option<&str>, all: bool) -> Vec<String> {
        containers(pod, named, all).unwrap().containers
    }

    #[test]
    fn the_named_container_the_annotated_one_the_first_or_all_are_chosen() {
        assert_eq!(chosen(&pod(None, &["a", "b"]), None, false), ["a"]);
        assert_eq!(chosen(&pod(Some("b"), &["a", "b"]), None, false), ["b"]);
        assert_eq!(chosen(&pod(Some("b"), &["a", "b"]), Some("init"), false), ["init"]);
        assert_eq!(chosen(&pod(None, &["a", "b"]), None, true), ["init", "a", "b"]);
    }

    #[test]
    fn a_default_choice_has_a_remark_and_an_unknown_name_lists_the_containers() {
        let remark = containers(&pod(None, &["a"]), None, false).unwrap().remark.unwrap();
        assert_eq!(remark, "This is container \"a\" out of: init, a");
        let refused = containers(&pod(None, &["a"]), Some("x"), false).unwrap_err();
        assert_eq!(refused.to_string(), "pod web has no container x; it has init, a");
    }
}
