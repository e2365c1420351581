//! Pods come, change and go, and every index agrees.

use k8s_openapi::api::core::v1::ContainerStatus;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::pod::SOURCE_ANNOTATION;
use crate::qos::QosClass;
use crate::sources::Source;

const SYNCING: PodStage = PodStage::Worker(Stage::Syncing);

fn pod(uid: &str, name: &str) -> Arc<Pod> {
    let metadata = json!({ "uid": uid, "name": name, "namespace": "default" });
    Arc::new(serde_json::from_value(json!({ "metadata": metadata })).unwrap())
}

fn name(name: &str) -> FullName {
    FullName { name: name.to_owned(), namespace: "default".to_owned() }
}

fn status(container: &str) -> Arc<PodStatus> {
    let container_id = Some(format!("containerd://{container}"));
    let container = ContainerStatus { container_id, ..ContainerStatus::default() };
    Arc::new(PodStatus { container_statuses: Some(vec![container]), ..PodStatus::default() })
}

fn made(container: &str) -> PodUpdate {
    PodUpdate { status: Some(status(container)), stage: None }
}

fn reached(stage: Stage) -> PodUpdate {
    PodUpdate { stage: Some(stage), status: None }
}

fn uid_of(found: Option<&Arc<ActivePod>>) -> Option<String> {
    found.map(|found| found.pod.uid().to_string())
}

#[test]
fn a_static_pod_has_the_uid_of_its_mirror_pod_too() {
    let mut pods = ActivePods::default();
    let mut file = Pod::clone(&pod("1", "static"));
    file.metadata.annotations = Some([(SOURCE_ANNOTATION.to_owned(), "file".to_owned())].into());
    pods.set_pod(&Arc::new(file), SYNCING);
    pods.set_pod(&pod("2", "web"), SYNCING);
    let found = |pods: &ActivePods, of: &str, uid: &str| {
        uid_of(pods.by_name_and_uid(&name(of), &PodUid::from(uid)))
    };
    assert_eq!(found(&pods, "static", "mirror"), None);
    let mirrors = [("static", "mirror"), ("web", "no mirror of web")];
    let mirrors = mirrors.map(|(of, uid)| (name(of), PodUid::from(uid)));
    pods.set_mirrors(mirrors.into());
    assert_eq!(found(&pods, "static", "mirror").as_deref(), Some("1"));
    assert_eq!(found(&pods, "static", "1").as_deref(), Some("1"));
    assert_eq!(found(&pods, "web", "2").as_deref(), Some("2"));
    for (of, uid) in [("static", "2"), ("web", "mirror"), ("web", "no mirror of web")] {
        assert_eq!(found(&pods, of, uid), None, "{of} {uid}");
    }
    pods.set_mirrors(BTreeMap::new());
    assert_eq!(found(&pods, "static", "mirror"), None);
}

#[test]
fn a_pod_is_found_by_uid_name_and_its_present_container() {
    let (mut pods, uid) = (ActivePods::default(), PodUid::from("1"));
    let found = |pods: &ActivePods| {
        let container = |id: &str| uid_of(pods.by_container(&ContainerId::from(id)));
        let by_name = uid_of(pods.by_name(&name("web")));
        [uid_of(pods.by_uid(&uid)), by_name, container("old"), container("new")]
            .map(|uid| uid.is_some())
    };
    assert_eq!(found(&pods), [false, false, false, false]);
    pods.set_pod(&pod("1", "web"), SYNCING);
    assert_eq!(found(&pods), [true, true, false, false]);
    pods.apply(&uid, made("old"));
    assert_eq!(found(&pods), [true, true, true, false]);
    pods.apply(&uid, made("new"));
    assert_eq!(found(&pods), [true, true, false, true]);
    pods.remove(&uid);
    assert_eq!(found(&pods), [false, false, false, false]);
}

#[test]
fn of_two_pods_of_one_name_the_one_that_has_come_least_far_is_found() {
    let rows = [
        (PodStage::Waiting, None, "1"),
        (PodStage::Waiting, Some(PodStage::Worker(Stage::Terminating)), "2"),
        (PodStage::Waiting, Some(PodStage::Worker(Stage::Finished)), "2"),
        (SYNCING, Some(PodStage::Worker(Stage::Finished)), "1"),
        (PodStage::Worker(Stage::Loading), Some(PodStage::Worker(Stage::Terminated)), "1"),
    ];
    for (first, second, want) in rows {
        let mut pods = ActivePods::default();
        pods.set_pod(&pod("1", "web"), first);
        second.into_iter().for_each(|stage| pods.set_pod(&pod("2", "web"), stage));
        assert_eq!(uid_of(pods.by_name(&name("web"))).as_deref(), Some(want), "{first:?}");
    }
}

#[test]
fn an_entry_does_not_change_and_a_write_replaces_only_its_own() {
    let (mut pods, uid) = (ActivePods::default(), PodUid::from("1"));
    pods.set_pod(&pod("1", "web"), SYNCING);
    pods.set_pod(&pod("2", "other"), SYNCING);
    let get = |pods: &ActivePods, uid: &str| Arc::clone(pods.by_uid(&PodUid::from(uid)).unwrap());
    let (before, other) = (get(&pods, "1"), get(&pods, "2"));
    pods.apply(&uid, PodUpdate { stage: Some(Stage::Terminating), status: Some(status("c")) });
    let after = get(&pods, "1");
    assert_eq!((before.stage, before.status()), (SYNCING, None));
    assert_eq!(after.stage, PodStage::Worker(Stage::Terminating));
    assert!(Arc::ptr_eq(&before.pod, &after.pod), "the pod itself is not copied");
    assert!(Arc::ptr_eq(&other, &get(&pods, "2")));
    pods.apply(&uid, PodUpdate { stage: Some(Stage::Terminating), status: Some(status("c")) });
    assert!(Arc::ptr_eq(&after, &get(&pods, "1")), "the same report again changes nothing");
}

#[test]
fn an_edit_keeps_stage_and_status_and_a_late_report_adds_no_pod() {
    let (mut pods, uid) = (ActivePods::default(), PodUid::from("1"));
    pods.set_pod(&pod("1", "web"), SYNCING);
    pods.apply(&uid, made("c"));
    pods.apply(&uid, reached(Stage::Terminating));
    let mut edited = Pod::clone(&pod("1", "web"));
    edited.status = Some(PodStatus::default());
    let edited = Arc::new(edited);
    pods.edit_pod(&edited);
    let found = pods.by_uid(&uid).unwrap();
    assert!(Arc::ptr_eq(&found.pod, &edited));
    assert_eq!(found.stage, PodStage::Worker(Stage::Terminating));
    assert_eq!(found.status(), Some(&*status("c")), "not the one that the source has");
    pods.apply(&PodUid::from("gone"), made("x"));
    pods.edit_pod(&pod("gone", "gone"));
    assert_eq!(pods.all().count(), 1);
}

#[test]
fn a_pod_without_a_status_of_its_worker_has_that_of_its_source() {
    let mut shown = Pod::clone(&pod("1", "web"));
    shown.status = Some(PodStatus::clone(&status("c")));
    let mut pods = ActivePods::default();
    pods.set_pod(&Arc::new(shown), PodStage::Worker(Stage::Loading));
    let found = pods.by_container(&ContainerId::from("c")).unwrap();
    assert_eq!(found.status(), Some(&*status("c")));
}

#[test]
fn a_pod_knows_its_requests_priority_class_and_source() {
    let resources = |cpu: &str| json!({ "requests": { "cpu": cpu }, "limits": { "cpu": "1" } });
    let spec = |resources| json!({ "containers": [{ "name": "c", "resources": resources }] });
    let mut urgent = spec(resources("100m"));
    urgent["priority"] = json!(7);
    let rows = [
        (urgent, "file", Some("100m"), 7, QosClass::Burstable, Some(Source::File)),
        (spec(json!({})), "api", None, 0, QosClass::BestEffort, Some(Source::Api)),
        (json!(null), "other", None, 0, QosClass::BestEffort, None),
    ];
    for (spec, source, cpu, priority, class, want_source) in rows {
        let metadata =
            json!({ "uid": "1", "annotations": { "kubernetes.io/config.source": source } });
        let pod = serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap();
        let mut pods = ActivePods::default();
        pods.set_pod(&Arc::new(pod), SYNCING);
        let found = pods.by_uid(&PodUid::from("1")).unwrap();
        let requested = found.requests().get("cpu").map(ToString::to_string);
        assert_eq!(requested.as_deref(), cpu, "{source}");
        assert_eq!((found.priority(), found.qos()), (priority, class), "{source}");
        assert_eq!(found.source(), want_source, "{source}");
    }
}

proptest! {
    #[test]
    fn every_index_leads_to_the_pods_there_are(
        steps in prop::collection::vec((0u8..5, 0u8..4, 0u8..2, 0u8..3), 1..60),
    ) {
        let mut pods = ActivePods::default();
        for (what, uid, named, container) in steps {
            let id = PodUid::from(uid.to_string());
            match what {
                0 => pods.set_pod(&pod(&uid.to_string(), &named.to_string()), SYNCING),
                1 => pods.edit_pod(&pod(&uid.to_string(), &named.to_string())),
                2 => pods.apply(&id, made(&format!("{uid}-{container}"))),
                3 => pods.apply(&id, reached(Stage::Terminated)),
                _ => pods.remove(&id),
            }
            let named: usize = pods.names.values().map(BTreeSet::len).sum();
            prop_assert_eq!(named, pods.pods.len());
            let containers: usize = pods.all().map(|pod| pod.container_ids().count()).sum();
            prop_assert_eq!(containers, pods.containers.len());
            for known in pods.all() {
                let same = |found: Option<&Arc<ActivePod>>| found == Some(known);
                prop_assert!(same(pods.by_uid(&known.pod.uid())));
                prop_assert!(known.container_ids().all(|id| same(pods.by_container(&id))));
                prop_assert!(pods.names[&known.pod.full_name()].contains(&known.pod.uid()));
            }
        }
    }
}
