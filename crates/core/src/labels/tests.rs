//! What is written on a container is what is read from it.

use k8s_openapi::api::core::v1::{
    ContainerPort, ExecAction, HTTPGetAction, Lifecycle, LifecycleHandler, SleepAction,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use oarsman_cri_types::v1;
use proptest::prelude::*;

use super::*;
use crate::fixture::pod;
use crate::view::ContainerLabel;
use crate::view::from_cri::container_view;

fn texts(pairs: &[(&str, &str)]) -> Texts {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// What comes back of a container that was made with these annotations.
fn read_back(annotations: Texts) -> ContainerLabel {
    let status = v1::ContainerStatus { annotations, ..v1::ContainerStatus::default() };
    container_view(&v1::Container::default(), &status).label
}

#[test]
fn sandbox_labels_and_annotations_are_those_of_the_pod_and_its_identity() {
    let pod = pod().edit(|pod| {
        pod.metadata.labels = Some(texts(&[("app", "web"), (POD_NAME_LABEL, "a lie")]));
        pod.metadata.annotations = Some(texts(&[("kubernetes.io/config.source", "file")]));
    });
    let pod = pod.build();
    let expected = [
        ("app", "web"),
        ("io.kubernetes.pod.name", "web"),
        ("io.kubernetes.pod.namespace", "default"),
        ("io.kubernetes.pod.uid", "uid-web"),
    ];
    assert_eq!(sandbox_labels(&pod), texts(&expected));
    assert_eq!(sandbox_annotations(&pod), texts(&[("kubernetes.io/config.source", "file")]));
}

#[test]
fn container_labels_are_its_identity_and_none_of_the_pods_labels() {
    let pod = pod().edit(|pod| pod.metadata.labels = Some(texts(&[("app", "web")])));
    let pod = pod.regular("app").build();
    let expected = [
        ("io.kubernetes.container.name", "app"),
        ("io.kubernetes.pod.name", "web"),
        ("io.kubernetes.pod.namespace", "default"),
        ("io.kubernetes.pod.uid", "uid-web"),
    ];
    assert_eq!(container_labels(&pod, &pod.regular()[0]), texts(&expected));
}

#[test]
fn the_annotations_are_those_a_go_kubelet_writes() {
    let pod = pod().grace(30).regular_with("foo", |c| {
        c.image = Some("busybox:1.36".to_owned());
        c.termination_message_path = Some("/dev/termination-log".to_owned());
        c.termination_message_policy = Some("File".to_owned());
        c.ports = Some(vec![ContainerPort { container_port: 80, ..ContainerPort::default() }]);
        let exec = Some(ExecAction { command: Some(vec!["true".to_owned()]) });
        let pre_stop = Some(LifecycleHandler { exec, ..LifecycleHandler::default() });
        c.lifecycle = Some(Lifecycle { pre_stop, ..Lifecycle::default() });
    });
    let pod = pod.build();
    let devices = texts(&[("gpu", "0"), (RESTART_COUNT_ANNOTATION, "overruled")]);
    let expected = [
        ("gpu", "0"),
        ("io.kubernetes.container.hash", "a6957f86"),
        ("io.kubernetes.container.ports", r#"[{"containerPort":80}]"#),
        ("io.kubernetes.container.preStopHandler", r#"{"exec":{"command":["true"]}}"#),
        ("io.kubernetes.container.restartCount", "3"),
        ("io.kubernetes.container.terminationMessagePath", "/dev/termination-log"),
        ("io.kubernetes.container.terminationMessagePolicy", "File"),
        ("io.kubernetes.pod.terminationGracePeriod", "30"),
    ];
    assert_eq!(container_annotations(&pod, &pod.regular()[0], 3, devices), texts(&expected));
}

#[test]
fn the_deletion_grace_period_is_written_once_it_is_set() {
    let pod = pod().regular("app").deleting(7).build();
    let annotations = container_annotations(&pod, &pod.regular()[0], 0, Texts::new());
    assert_eq!(annotations[DELETION_GRACE_ANNOTATION], "7");
}

fn hook() -> impl Strategy<Value = LifecycleHandler> {
    let sleep = any::<u16>().prop_map(|seconds| LifecycleHandler {
        sleep: Some(SleepAction { seconds: seconds.into() }),
        ..LifecycleHandler::default()
    });
    let port = prop_oneof![
        any::<u16>().prop_map(|port| IntOrString::Int(port.into())),
        "[a-z]{1,9}".prop_map(IntOrString::String)
    ];
    let http = port.prop_map(|port| LifecycleHandler {
        http_get: Some(HTTPGetAction { port, ..HTTPGetAction::default() }),
        ..LifecycleHandler::default()
    });
    prop_oneof![sleep, http]
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        image in "\\PC{0,20}",
        restarts in any::<u32>(),
        path in "/[a-z/]{0,9}",
        (deletion, termination) in (any::<Option<i64>>(), any::<Option<i64>>()),
        pre_stop in prop::option::of(hook()),
        ports in prop::collection::vec(1i32..65536, 0..3),
    ) {
        let ports = ports.into_iter();
        let ports: Vec<_> =
            ports.map(|port| ContainerPort { container_port: port, ..Default::default() }).collect();
        let pod = pod().regular_with("app", |c| {
            c.image = Some(image);
            c.termination_message_path = Some(path.clone());
            c.termination_message_policy = Some("FallbackToLogsOnError".to_owned());
            c.lifecycle = Some(Lifecycle { pre_stop: pre_stop.clone(), ..Lifecycle::default() });
            c.ports = Some(ports.clone());
        });
        let pod = pod.spec(|spec| spec.termination_grace_period_seconds = termination);
        let pod = pod.edit(|pod| pod.metadata.deletion_grace_period_seconds = deletion).build();
        let spec = &pod.regular()[0];
        let expected = ContainerLabel {
            hash: Some(container_hash(spec)),
            restart_count: restarts,
            termination_message_path: path,
            termination_message_policy: "FallbackToLogsOnError".to_owned(),
            deletion_grace: deletion,
            termination_grace: termination,
            pre_stop,
            ports,
        };
        let written = container_annotations(&pod, spec, restarts, Texts::new());
        prop_assert_eq!(read_back(written), expected);
    }
}

#[test]
fn a_container_that_no_kubelet_made_is_read_without_complaint() {
    let rows = [
        texts(&[]),
        texts(&[("io.kubernetes.container.hash", "not hex"), (RESTART_COUNT_ANNOTATION, "-1")]),
        texts(&[(PRE_STOP_ANNOTATION, "{"), (PORTS_ANNOTATION, "7"), (HASH_ANNOTATION, "")]),
        texts(&[(DELETION_GRACE_ANNOTATION, "soon"), (TERMINATION_GRACE_ANNOTATION, "")]),
    ];
    for annotations in rows {
        assert_eq!(read_back(annotations), ContainerLabel::default());
    }
}
