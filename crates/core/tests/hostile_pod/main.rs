//! What a pod's author can write into a spec to exhaust the node: each test is a row of docs/security.md.
#![expect(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

mod annotations;
mod environment;
mod profiles;
mod pull_secrets;
mod references;
mod tokens;
mod volumes;

use std::path::Path;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::cri_spec::{
    ConfigError, ContainerConfigRequest, ContainerHostPaths, ImageUser, Lookup, NameFiles,
    NodeContext, NodeSettings, PodGrants, generate_container_config,
};
use oarsman_core::ids::FullName;
use oarsman_core::node::NodeFacts;
use oarsman_cri_types::v1::ContainerConfig;
use serde_json::{Value, json};

/// A pod with this spec.
fn pod(spec: &Value) -> Pod {
    let metadata = json!({ "name": "hostile", "namespace": "tenant", "uid": "u" });
    serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap()
}

/// The name of an object in the pod's namespace.
fn object(name: &str) -> FullName {
    FullName { name: name.to_owned(), namespace: "tenant".to_owned() }
}

/// Calls `test` with a node of default settings.
fn on_a_node<T>(test: impl FnOnce(&NodeContext<'_>) -> T) -> T {
    let (facts, settings) = (NodeFacts::default(), NodeSettings::of_memory(1 << 30));
    let (root, pod_logs) = ("/var/lib/kubelet", Path::new("/var/log/pods"));
    test(&NodeContext {
        root,
        pod_logs,
        facts: &facts,
        settings: &settings,
        name_files: &NameFiles::default(),
    })
}

/// The message that would create the first container of the pod.
fn container_config(pod: &Pod, lookup: &Lookup) -> Result<ContainerConfig, ConfigError> {
    let spec = &pod.spec.as_ref().unwrap().containers[0];
    on_a_node(|node| {
        generate_container_config(&ContainerConfigRequest {
            pod,
            spec,
            restart_count: 0,
            image: "sha256:0",
            image_user: &ImageUser::default(),
            ips: &[],
            target: None,
            host_paths: &ContainerHostPaths::default(),
            lookup,
            grants: &PodGrants::default(),
            node,
        })
    })
}
