//! Manifests: from text to a valid static pod, and from that to the messages that make its sandbox and containers.

use std::fs;
use std::path::Path;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::api::decode::{decode_config_map, decode_pod, decode_secret};
use oarsman_core::api::defaults::set_defaults;
use oarsman_core::api::validate::validate_pod;
use oarsman_core::cri_spec::{
    ContainerConfigRequest, ContainerHostPaths, ImageUser, Lookup, NameFiles, NodeContext,
    NodeSettings, PodGrants, generate_container_config, generate_pod_sandbox_config, payloads,
};
use oarsman_core::node::NodeFacts;
use oarsman_core::resources::pod_cgroup;
use oarsman_core::static_pod::{
    ManifestOrigin, ProvidedObjects, StaticPodNaming, check_references, prepare,
};
use prost::Message;
use serde_json::Value;

use crate::FuzzTarget;

pub(crate) const TARGET: FuzzTarget = FuzzTarget { name: "manifests", max_len: 4096, run, seeds };

/// No message to the runtime is larger.
const LARGEST_MESSAGE: usize = 16 << 20;

fn run(bytes: &[u8]) {
    for document in oarsman_manifest::documents(bytes).unwrap_or_default() {
        drop(decode_config_map(document.clone()));
        drop(decode_secret(document.clone()));
        pod(document);
    }
}

fn pod(document: Value) {
    let Ok(decoded) = decode_pod(document) else { return };
    let origin = ManifestOrigin::File("/manifests/a.yaml".to_owned());
    let Ok(mut pod) = prepare(decoded.pod, &origin, "node", StaticPodNaming::OfNode) else {
        return;
    };
    set_defaults(&mut pod);
    let mut again = pod.clone();
    set_defaults(&mut again);
    assert_eq!(again, pod, "defaults are set differently the second time");
    if !validate_pod(&pod).is_empty() {
        return;
    }
    reads_back(&pod);
    drop(check_references(&pod, &ProvidedObjects::default()));
    messages(&pod);
}

/// A pod is stored and sent as JSON.
fn reads_back(pod: &Pod) {
    let Ok(value) = serde_json::to_value(pod) else { panic!("a valid pod cannot be written") };
    match decode_pod(value) {
        Ok(read) => assert_eq!(&read.pod, pod, "written and read again"),
        Err(error) => panic!("a valid pod cannot be read again: {error}"),
    }
}

fn messages(pod: &Pod) {
    let (facts, settings) = (NodeFacts::default(), NodeSettings::of_memory(1 << 30));
    let (root, pod_logs) = ("/var/lib/kubelet", Path::new("/var/log/pods"));
    let name_files = &NameFiles::default();
    let node = &NodeContext { root, pod_logs, facts: &facts, settings: &settings, name_files };
    let (grants, lookup) = (PodGrants::default(), Lookup::default());
    pod_cgroup(pod, &settings.resources);
    drop(payloads(pod, &lookup, node));
    if let Ok(sandbox) = generate_pod_sandbox_config(pod, 0, &grants, node) {
        assert!(sandbox.config.encoded_len() < LARGEST_MESSAGE, "a sandbox without end");
    }
    let Some(spec) = &pod.spec else { return };
    for spec in spec.init_containers.iter().flatten().chain(&spec.containers) {
        let made = generate_container_config(&ContainerConfigRequest {
            pod,
            spec,
            restart_count: 0,
            image: "sha256:0",
            image_user: &ImageUser::default(),
            ips: &[],
            target: None,
            host_paths: &ContainerHostPaths::default(),
            lookup: &lookup,
            grants: &grants,
            node,
        });
        if let Ok(config) = made {
            assert!(config.encoded_len() < LARGEST_MESSAGE, "a container without end");
        }
    }
}

/// The manifests of `testing/pods`.
fn seeds() -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pods");
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.iter().filter_map(|path| fs::read(path).ok()).collect()
}
