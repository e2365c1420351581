//! Answers as containerd gives them.

use std::collections::BTreeMap;

use oarsman_cri_types::v1;
use prost::Message;

type Texts = BTreeMap<String, String>;

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let states = [
        v1::ContainerState::ContainerCreated,
        v1::ContainerState::ContainerRunning,
        v1::ContainerState::ContainerExited,
        v1::ContainerState::ContainerUnknown,
    ];
    let mut seeds: Vec<Vec<u8>> = states.into_iter().map(pod).collect();
    seeds.push(node());
    seeds
}

/// The lists and statuses of a pod with one container.
fn pod(state: v1::ContainerState) -> Vec<u8> {
    let list = v1::ListPodSandboxResponse { items: vec![sandbox()] };
    let containers = v1::ListContainersResponse { containers: vec![container()] };
    let sandbox =
        v1::PodSandboxStatusResponse { status: Some(sandbox_status()), ..Default::default() };
    let status =
        v1::ContainerStatusResponse { status: Some(container_status(state)), ..Default::default() };
    [framed(0, &list), framed(1, &containers), framed(2, &sandbox), framed(3, &status)].concat()
}

/// What the runtime says of itself.
fn node() -> Vec<u8> {
    let condition = |kind: &str, status| v1::RuntimeCondition {
        r#type: kind.to_owned(),
        status,
        reason: "r".to_owned(),
        message: "m".to_owned(),
    };
    let conditions = vec![condition("RuntimeReady", true), condition("NetworkReady", false)];
    let status = v1::StatusResponse {
        status: Some(v1::RuntimeStatus { conditions }),
        runtime_handlers: vec![v1::RuntimeHandler::default()],
        ..Default::default()
    };
    let version =
        v1::VersionResponse { runtime_name: "containerd".to_owned(), ..Default::default() };
    let image =
        v1::Image { id: "sha256:0".to_owned(), username: "root".to_owned(), ..Default::default() };
    let images = v1::ListImagesResponse { images: vec![image] };
    let event = v1::ContainerEventResponse {
        container_id: "c".to_owned(),
        pod_sandbox_status: Some(sandbox_status()),
        ..Default::default()
    };
    [framed(4, &status), framed(5, &version), framed(6, &event), framed(7, &images)].concat()
}

fn framed(call: u8, message: &impl Message) -> Vec<u8> {
    let bytes = message.encode_to_vec();
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX).to_le_bytes();
    [&[call], &length[..], &bytes].concat()
}

fn texts(pairs: &[(&str, &str)]) -> Texts {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn pod_labels() -> Texts {
    texts(&[
        ("io.kubernetes.pod.name", "a"),
        ("io.kubernetes.pod.namespace", "n"),
        ("io.kubernetes.pod.uid", "u"),
        ("io.kubernetes.container.name", "a"),
    ])
}

fn metadata() -> v1::PodSandboxMetadata {
    let owned = str::to_owned;
    v1::PodSandboxMetadata { name: owned("a"), uid: owned("u"), namespace: owned("n"), attempt: 1 }
}

fn sandbox() -> v1::PodSandbox {
    let (metadata, labels) = (Some(metadata()), pod_labels());
    v1::PodSandbox { id: "s".to_owned(), metadata, labels, ..Default::default() }
}

fn sandbox_status() -> v1::PodSandboxStatus {
    let network = v1::PodSandboxNetworkStatus { ip: "10.0.0.2".to_owned(), ..Default::default() };
    v1::PodSandboxStatus {
        id: "s".to_owned(),
        metadata: Some(metadata()),
        created_at: 1_700_000_000_000_000_000,
        network: Some(network),
        labels: pod_labels(),
        ..Default::default()
    }
}

fn container() -> v1::Container {
    v1::Container {
        id: "c".to_owned(),
        pod_sandbox_id: "s".to_owned(),
        metadata: Some(v1::ContainerMetadata { name: "a".to_owned(), attempt: 2 }),
        labels: pod_labels(),
        ..Default::default()
    }
}

fn container_status(state: v1::ContainerState) -> v1::ContainerStatus {
    v1::ContainerStatus {
        id: "c".to_owned(),
        metadata: Some(v1::ContainerMetadata { name: "a".to_owned(), attempt: 2 }),
        state: state.into(),
        created_at: 1_700_000_000_000_000_000,
        started_at: 1_700_000_001_000_000_000,
        finished_at: 1_700_000_002_000_000_000,
        exit_code: 137,
        reason: "OOMKilled".to_owned(),
        labels: pod_labels(),
        annotations: texts(&[
            ("io.kubernetes.container.hash", "1f"),
            ("io.kubernetes.container.restartCount", "2"),
            ("io.kubernetes.container.terminationMessagePath", "/dev/termination-log"),
            ("io.kubernetes.container.terminationMessagePolicy", "File"),
            ("io.kubernetes.container.ports", r#"[{"containerPort": 80}]"#),
            ("io.kubernetes.container.preStopHandler", r#"{"exec": {"command": ["x"]}}"#),
            ("io.kubernetes.pod.terminationGracePeriod", "30"),
        ]),
        ..Default::default()
    }
}
