//! A resize that is not carried out.

use k8s_openapi::api::core::v1::{ContainerStatus, PodCondition};

use super::*;

fn cpu_of(pod: &Pod) -> &str {
    let resources = pod.spec.as_ref().unwrap().containers[0].resources.as_ref().unwrap();
    &resources.requests.as_ref().unwrap()["cpu"].0
}

fn started(pod: Pod, requests: &[(&str, &str)]) -> Pod {
    let resources = requirements(requests);
    let status = ContainerStatus {
        name: "c".to_owned(),
        container_id: Some("containerd://1".to_owned()),
        allocated_resources: resources.requests.clone(),
        resources: Some(resources),
        ..ContainerStatus::default()
    };
    let status = PodStatus { container_statuses: Some(vec![status]), ..PodStatus::default() };
    Pod { status: Some(status), ..pod }
}

#[test]
fn a_resized_pod_keeps_what_it_was_given_until_its_spec_asks_for_that_again() {
    let (mut admission, node) = (admission(), node(&[("pods", "9"), ("cpu", "2")]));
    let with = |cpu| Arc::new(requesting(pod("1", 1), &[("cpu", cpu)]));
    let handlers = NodeAdmitHandlers::default();
    admission.admit(vec![with("1")], &cx(&handlers, &node));
    let uid = PodUid::from("1");
    for (cpu, given, pending) in [("2", "1", true), ("500m", "1", true), ("1000m", "1000m", false)]
    {
        let pod = admission.update(&with(cpu));
        assert_eq!((cpu_of(&pod), admission.is_resize_pending(&uid)), (given, pending), "{cpu}");
        assert_eq!(admission.admitted_pod(&uid), Some(&pod));
    }
    let other = Arc::new(requesting(pod("2", 2), &[("cpu", "1")]));
    admission.update(&with("2"));
    let results = admission.admit(vec![other], &cx(&handlers, &node));
    assert_eq!(
        brief(&results[0]),
        "2 admitted",
        "what was given is counted, not what is asked for"
    );
}

#[test]
fn an_edit_that_changes_no_cpu_or_memory_is_no_resize() {
    let (mut admission, node) = (admission(), node(&[("pods", "9")]));
    let first = requesting(pod("1", 1), &[("cpu", "1"), ("ephemeral-storage", "1Gi")]);
    admission.admit(vec![Arc::new(first)], &cx(&NodeAdmitHandlers::default(), &node));
    let mut edited = requesting(pod("1", 1), &[("cpu", "1"), ("ephemeral-storage", "2Gi")]);
    edited.spec.as_mut().unwrap().containers[0].image = Some("new".to_owned());
    let edited = Arc::new(edited);
    assert_eq!(admission.update(&edited), edited);
    assert!(!admission.is_resize_pending(&"1".into()));
}

#[test]
fn a_pod_that_ran_before_has_what_its_status_says_it_was_given() {
    let rows = [
        (started(requesting(pod("1", 1), &[("cpu", "2")]), &[("cpu", "1")]), "1", true),
        (started(requesting(pod("1", 1), &[("cpu", "1")]), &[("cpu", "1000m")]), "1", false),
        (requesting(pod("1", 1), &[("cpu", "2")]), "2", false),
    ];
    for (pod, given, pending) in rows {
        let (mut admission, node) = (admission(), AdmissionNode::default());
        let context = AdmitContext { handler: &Capacity(0), node: &node, ran_before: &|_| true };
        let results = admission.admit(vec![Arc::new(pod)], &context);
        let [PodAdmitResult::Admitted(pod)] = &results[..] else { panic!("{results:?}") };
        let is_pending = admission.is_resize_pending(&"1".into());
        assert_eq!((cpu_of(pod), is_pending), (given, pending));
    }
}

#[test]
fn a_resize_is_a_warning_event_once() {
    let mut resized = pod("1", 1);
    let expected = PodEvent::warning("ResizeInfeasible", RESIZE_INFEASIBLE);
    assert_eq!(resize_event(&resized), Some(expected));
    let condition =
        PodCondition { type_: "PodResizePending".to_owned(), ..PodCondition::default() };
    let status = PodStatus { conditions: Some(vec![condition]), ..PodStatus::default() };
    resized.status = Some(status);
    assert_eq!(resize_event(&resized), None);
}
