//! Static pods that another kubelet runs already keep their UIDs.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use oarsman_agent::sources::with_adopted_uids;
use oarsman_core::ids::PodUid;
use oarsman_core::labels::POD_UID_LABEL;
use oarsman_core::pod::{HASH_ANNOTATION, PodExt, SOURCE_ANNOTATION};
use oarsman_core::sources::Source;
use oarsman_core::static_pod::{MADE_UID_ANNOTATION, ManifestOrigin, StaticPodNaming, prepare};
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::{PodSandboxConfig, PodSandboxMetadata, RunPodSandboxRequest};
use oarsman_world::faults::FaultPlan;
use oarsman_world::{World, simulate};

/// The UID that another kubelet made.
const THEIRS: &str = "0123456789abcdef0123456789abcdef";

fn pod(image: &str) -> Pod {
    let main = Container {
        name: "main".to_owned(),
        image: Some(image.to_owned()),
        ..Container::default()
    };
    let mut pod = Pod {
        spec: Some(PodSpec { containers: vec![main], ..PodSpec::default() }),
        ..Pod::default()
    };
    pod.metadata.name = Some("web".to_owned());
    prepare(
        pod,
        &ManifestOrigin::File("/pods/web.yaml".to_owned()),
        "node",
        StaticPodNaming::OfNode,
    )
    .unwrap()
}

/// A sandbox with the labels of another kubelet.
async fn run_theirs(world: &World, source: &str) {
    let text = |pairs: &[(&str, &str)]| {
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        pairs.iter().map(own).collect::<BTreeMap<_, _>>()
    };
    let metadata = PodSandboxMetadata {
        name: "web-node".to_owned(),
        uid: THEIRS.to_owned(),
        namespace: "default".to_owned(),
        attempt: 0,
    };
    let config = PodSandboxConfig {
        metadata: Some(metadata),
        labels: text(&[(POD_UID_LABEL, THEIRS)]),
        annotations: text(&[(SOURCE_ANNOTATION, source), (HASH_ANNOTATION, THEIRS)]),
        ..PodSandboxConfig::default()
    };
    let request = RunPodSandboxRequest { config: Some(config), ..RunPodSandboxRequest::default() };
    world.runtime.run_pod_sandbox(request).await.unwrap();
}

/// The UIDs of two sets of one source, one after the other.
fn uids(faults: FaultPlan, theirs: Option<&str>, sets: [Pod; 2]) -> Vec<PodUid> {
    let simulation = async |world: World| {
        if let Some(source) = theirs {
            run_theirs(&world, source).await;
        }
        let sets = stream::iter(sets).map(|pod| vec![Arc::new(pod)]).boxed();
        let adopted = with_adopted_uids(Source::File, sets, world.seams(1).runtime);
        let pods: Vec<Vec<Arc<Pod>>> = adopted.collect().await;
        pods.into_iter().flatten().map(|pod| marked(&pod)).collect()
    };
    simulate(1, faults, simulation).unwrap()
}

/// The pod's UID; an adopted pod also has its original UID as a mark.
fn marked(pod: &Pod) -> PodUid {
    let made = pod.annotation(MADE_UID_ANNOTATION).is_some();
    assert_eq!(made, pod.uid().as_str() == THEIRS);
    pod.uid()
}

#[test]
fn a_pod_that_another_kubelet_runs_keeps_its_uid_until_it_is_edited() {
    let (before, edited) = (pod("web:1"), pod("web:2"));
    let theirs = PodUid::from(THEIRS);
    let own = |pod: &Pod| pod.uid();
    let both = || [before.clone(), edited.clone()];
    let rows = [
        ("nobody runs it", None, vec![own(&before), own(&edited)]),
        ("another kubelet does", Some("file"), vec![theirs, own(&edited)]),
        ("from another source", Some("http"), vec![own(&before), own(&edited)]),
    ];
    for (name, running, want) in rows {
        assert_eq!(uids(FaultPlan::quiet(), running, both()), want, "{name}");
    }
}

#[test]
fn a_runtime_that_does_not_answer_is_asked_until_it_does() {
    let plan = FaultPlan {
        until: Some(Duration::from_secs(30)),
        unavailable: oarsman_world::rng::Probability::ALWAYS,
        ..FaultPlan::quiet()
    };
    let got = uids(plan, Some("file"), [pod("web:1"), pod("web:1")]);
    assert_eq!(got, [PodUid::from(THEIRS), PodUid::from(THEIRS)]);
}
