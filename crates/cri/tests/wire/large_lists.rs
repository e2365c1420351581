//! Row C18 of docs/security.md: 80 pods whose annotations make a list larger than a message may be.

use std::collections::BTreeMap;
use std::sync::Arc;

use oarsman_cri::Runtime;
use oarsman_cri_types::v1 as cri;

use crate::harness::SocketFixture;
use crate::recording_runtime::{RecorderMode, RecordingRuntime};

const PODS: usize = 80;

fn annotations() -> BTreeMap<String, String> {
    [("note".to_owned(), "x".repeat(256 << 10))].into()
}

/// The sandboxes of all pods, half of them ready.
pub(crate) fn sandboxes(filter: Option<&cri::PodSandboxFilter>) -> Vec<cri::PodSandbox> {
    let sandbox = |n: usize| cri::PodSandbox {
        id: format!("s{n}"),
        state: i32::from(n % 2 == 1),
        annotations: annotations(),
        ..Default::default()
    };
    let wanted = filter.and_then(|filter| filter.state.as_ref()).map(|state| state.state);
    let all = (0..PODS).map(sandbox);
    all.filter(|sandbox| wanted.is_none_or(|wanted| wanted == sandbox.state)).collect()
}

/// One container in each sandbox.
pub(crate) fn containers(filter: Option<&cri::ContainerFilter>) -> Vec<cri::Container> {
    let container = |n: usize| cri::Container {
        id: format!("c{n}"),
        pod_sandbox_id: format!("s{n}"),
        annotations: annotations(),
        ..Default::default()
    };
    let wanted = filter.map(|filter| filter.pod_sandbox_id.as_str());
    let all = (0..PODS).map(container);
    all.filter(|container| wanted.is_none_or(|wanted| wanted == container.pod_sandbox_id)).collect()
}

#[tokio::test]
async fn lists_that_are_too_large_come_in_parts() {
    let fixture = SocketFixture::new();
    let runtime = Arc::new(RecordingRuntime::new(RecorderMode::AnswerLarge));
    let _served = fixture.serve(runtime.clone());
    let client = fixture.client();

    let listed = client.list_pod_sandboxes(None).await.unwrap();
    let mut ids: Vec<_> = listed.into_iter().map(|sandbox| sandbox.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), PODS);
    assert_eq!(runtime.log().len(), 3, "all, then those of either state");

    let listed = client.list_containers(None).await.unwrap();
    let mut ids: Vec<_> = listed.into_iter().map(|container| container.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), PODS);
}
