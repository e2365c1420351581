//! What a node must have for a pod.

use k8s_openapi::api::core::v1::{
    Affinity, ContainerPort, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm,
    PodOS, Taint, Toleration,
};

use super::*;

/// The answer as reason and message; an empty text for a pod that is admitted.
fn answer(node: &AdmissionNode, others: &[&Pod], pod: &Pod) -> String {
    let handlers = NodeAdmitHandlers::default();
    match handlers.admit(&PodAdmitAttributes { pod, others, node }) {
        Ok(()) => String::new(),
        Err(AdmitRefusal::Rejected(rejection)) => {
            format!("{}: {}", rejection.reason, rejection.message)
        }
        Err(other) => format!("{other:?}"),
    }
}

fn out_of(resource: &str, requested: i64, used: i64, capacity: i64) -> String {
    format!(
        "OutOf{resource}: Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, capacity: {capacity}"
    )
}

#[test]
fn a_resource_that_is_short_is_named_with_the_numbers() {
    let node = node(&[
        ("pods", "3"),
        ("cpu", "2"),
        ("memory", "1Gi"),
        ("ephemeral-storage", "10Gi"),
        ("hugepages-2Mi", "4Mi"),
        ("example.com/dongle", "2"),
    ]);
    let used = [("cpu", "1500m"), ("memory", "1Mi"), ("example.com/dongle", "1")];
    let other = requesting(pod("other", 1), &used);
    let rows: [(&[(&str, &str)], String); 9] = [
        (&[("cpu", "500m"), ("memory", "1023Mi")], String::new()),
        (&[("cpu", "501m")], out_of("cpu", 501, 1500, 2000)),
        (&[("memory", "1Gi")], out_of("memory", 1 << 30, 1 << 20, 1 << 30)),
        (&[("ephemeral-storage", "11Gi")], out_of("ephemeral-storage", 11 << 30, 0, 10 << 30)),
        (&[("hugepages-2Mi", "6Mi")], out_of("hugepages-2Mi", 6 << 20, 0, 4 << 20)),
        (&[("hugepages-1Gi", "1Gi")], out_of("hugepages-1Gi", 1 << 30, 0, 0)),
        (&[("example.com/dongle", "2")], out_of("example.com/dongle", 2, 1, 2)),
        // The Go kubelet ignores what it never heard of, and runs the pod without the device.
        (&[("example.com/gpu", "1")], out_of("example.com/gpu", 1, 0, 0)),
        // The first that is short is told.
        (&[("example.com/gpu", "1"), ("cpu", "3")], out_of("cpu", 3000, 1500, 2000)),
    ];
    for (requests, expected) in rows {
        let pod = requesting(pod("1", 1), requests);
        assert_eq!(answer(&node, &[&other], &pod), expected, "{requests:?}");
    }
    let none = requesting(pod("1", 1), &[]);
    let full = [&other, &none, &none];
    assert_eq!(answer(&node, &full, &none), out_of("pods", 1, 3, 3));
}

#[test]
fn a_resource_that_the_node_does_not_count_is_no_reason() {
    let pod = requesting(pod("1", 1), &[("ephemeral-storage", "1Gi"), ("storage", "1Gi")]);
    assert_eq!(answer(&node(&[("pods", "3"), ("cpu", "1")]), &[], &pod), "");
}

#[test]
fn of_a_node_that_was_never_read_only_its_own_facts_count() {
    let unread = AdmissionNode {
        object_state: NodeObjectState::Unread,
        ..node(&[("pods", "3"), ("cpu", "1")])
    };
    let mut selective = requesting(pod("1", 1), &[("example.com/dongle", "1")]);
    let selector = [("disk".to_owned(), "ssd".to_owned())];
    selective.spec.as_mut().unwrap().node_selector = Some(selector.into());
    assert_eq!(answer(&unread, &[], &selective), "");
    let big = requesting(pod("1", 1), &[("cpu", "2")]);
    assert_eq!(answer(&unread, &[], &big), out_of("cpu", 2000, 0, 1000));
}

fn on_port(uid: &str, address: Option<&str>, protocol: Option<&str>, port: i32) -> Pod {
    let port = ContainerPort {
        container_port: 80,
        host_port: Some(port),
        host_ip: address.map(str::to_owned),
        protocol: protocol.map(str::to_owned),
        ..ContainerPort::default()
    };
    let mut pod = requesting(pod(uid, 1), &[]);
    pod.spec.as_mut().unwrap().containers[0].ports = Some(vec![port]);
    pod
}

#[test]
fn a_port_of_the_host_is_for_one_pod() {
    let node = node(&[("pods", "9")]);
    let there = on_port("there", Some("127.0.0.1"), Some("TCP"), 80);
    let taken = "NodePorts: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports";
    let rows = [
        (None, None, 80, taken),
        (Some("0.0.0.0"), Some("TCP"), 80, taken),
        (Some("127.0.0.1"), None, 80, taken),
        (Some("127.0.0.2"), None, 80, ""),
        (None, Some("UDP"), 80, ""),
        (None, None, 81, ""),
        (None, None, 0, ""),
    ];
    for (address, protocol, port, expected) in rows {
        let pod = on_port("new", address, protocol, port);
        assert_eq!(answer(&node, &[&there], &pod), expected, "{address:?} {protocol:?} {port}");
    }
    let mut sidecar = there.clone();
    let spec = sidecar.spec.as_mut().unwrap();
    let mut container = spec.containers.remove(0);
    container.restart_policy = Some("Always".to_owned());
    spec.init_containers = Some(vec![container.clone()]);
    assert_eq!(answer(&node, &[&sidecar], &there), taken, "a sidecar stays");
    container.restart_policy = None;
    sidecar.spec.as_mut().unwrap().init_containers = Some(vec![container]);
    assert_eq!(answer(&node, &[&sidecar], &there), "", "an init container does not");
}

const AFFINITY: &str = "NodeAffinity: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector";

fn labelled_node() -> AdmissionNode {
    let labels = [("disk", "ssd"), ("generation", "7")];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    AdmissionNode { labels: labels.into(), ..node(&[("pods", "9")]) }
}

#[test]
fn a_selector_names_labels_that_the_node_must_have() {
    for (key, value, expected) in
        [("disk", "ssd", ""), ("disk", "hdd", AFFINITY), ("rack", "1", AFFINITY)]
    {
        let mut pod = requesting(pod("1", 1), &[]);
        let selector = [(key.to_owned(), value.to_owned())];
        pod.spec.as_mut().unwrap().node_selector = Some(selector.into());
        assert_eq!(answer(&labelled_node(), &[], &pod), expected, "{key}={value}");
    }
}

/// One term: expressions, and fields.
type Term<'a> = (&'a [(&'a str, &'a str, &'a [&'a str])], &'a [(&'a str, &'a str, &'a [&'a str])]);

fn requirement((key, operator, values): &(&str, &str, &[&str])) -> NodeSelectorRequirement {
    NodeSelectorRequirement {
        key: (*key).to_owned(),
        operator: (*operator).to_owned(),
        values: Some(values.iter().map(|&value| value.to_owned()).collect()),
    }
}

fn requiring(terms: &[Term<'_>]) -> Pod {
    let term = |(expressions, fields): &Term<'_>| NodeSelectorTerm {
        match_expressions: Some(expressions.iter().map(requirement).collect()),
        match_fields: Some(fields.iter().map(requirement).collect()),
    };
    let required = NodeSelector { node_selector_terms: terms.iter().map(term).collect() };
    let affinity = NodeAffinity {
        required_during_scheduling_ignored_during_execution: Some(required),
        ..NodeAffinity::default()
    };
    let mut pod = requesting(pod("1", 1), &[]);
    let affinity = Affinity { node_affinity: Some(affinity), ..Affinity::default() };
    pod.spec.as_mut().unwrap().affinity = Some(affinity);
    pod
}

#[test]
fn one_required_term_must_be_met_in_all_its_parts() {
    let rows: [(&[Term<'_>], bool); 18] = [
        (&[(&[("disk", "In", &["hdd", "ssd"])], &[])], true),
        (&[(&[("disk", "In", &["hdd"])], &[])], false),
        (&[(&[("disk", "NotIn", &["hdd"])], &[])], true),
        (&[(&[("rack", "NotIn", &["1"])], &[])], true),
        (&[(&[("disk", "NotIn", &["ssd"])], &[])], false),
        (&[(&[("disk", "Exists", &[])], &[])], true),
        (&[(&[("rack", "Exists", &[])], &[])], false),
        (&[(&[("rack", "DoesNotExist", &[])], &[])], true),
        (&[(&[("generation", "Gt", &["6"])], &[])], true),
        (&[(&[("generation", "Gt", &["7"])], &[])], false),
        (&[(&[("generation", "Lt", &["8"])], &[])], true),
        (&[(&[("disk", "Lt", &["8"])], &[])], false),
        (&[(&[], &[("metadata.name", "In", &["n1"])])], true),
        (&[(&[], &[("metadata.name", "NotIn", &["n1"])])], false),
        (&[(&[("disk", "Exists", &[])], &[("metadata.name", "In", &["n2"])])], false),
        (&[(&[("disk", "In", &["hdd"])], &[]), (&[("disk", "In", &["ssd"])], &[])], true),
        (&[(&[], &[])], false),
        (&[], false),
    ];
    for (terms, is_met) in rows {
        let expected = if is_met { "" } else { AFFINITY };
        assert_eq!(answer(&labelled_node(), &[], &requiring(terms)), expected, "{terms:?}");
    }
}

#[test]
fn a_pod_for_another_node_or_system_is_refused() {
    let node = node(&[("pods", "9")]);
    let mut elsewhere = requesting(pod("1", 1), &[]);
    elsewhere.spec.as_mut().unwrap().node_name = Some("n2".to_owned());
    let wrong_name =
        "NodeName: Predicate NodeName failed: node(s) didn't match the requested node name";
    assert_eq!(answer(&node, &[], &elsewhere), wrong_name);
    let mut of_windows = requesting(pod("1", 1), &[]);
    of_windows.spec.as_mut().unwrap().os = Some(PodOS { name: "windows".to_owned() });
    let wrong_os = "PodOSNotSupported: Failed to admit pod as the OS field doesn't match node OS";
    assert_eq!(answer(&node, &[], &of_windows), wrong_os);
    for (os, expected) in [
        ("linux", ""),
        (
            "windows",
            "PodOSSelectorNodeLabelDoesNotMatch: Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
        ),
    ] {
        let mut labelled = requesting(pod("1", 1), &[]);
        let label = [("kubernetes.io/os".to_owned(), os.to_owned())];
        labelled.metadata.labels = Some(label.into());
        assert_eq!(answer(&node, &[], &labelled), expected);
    }
}

fn toleration(key: &str, operator: &str, value: &str, effect: &str) -> Toleration {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    Toleration {
        key: text(key),
        operator: text(operator),
        value: text(value),
        effect: text(effect),
        toleration_seconds: None,
    }
}

#[test]
fn a_taint_no_execute_must_be_tolerated_except_by_static_pods() {
    let taint = |effect: &str| Taint {
        key: "k".to_owned(),
        value: Some("v".to_owned()),
        effect: effect.to_owned(),
        time_added: None,
    };
    let not = "TaintToleration: Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate";
    let rows = [
        ("NoSchedule", None, ""),
        ("NoExecute", None, not),
        ("NoExecute", Some(toleration("k", "", "v", "NoExecute")), ""),
        ("NoExecute", Some(toleration("k", "Equal", "v", "")), ""),
        ("NoExecute", Some(toleration("k", "Equal", "w", "")), not),
        ("NoExecute", Some(toleration("k", "Exists", "", "NoSchedule")), not),
        ("NoExecute", Some(toleration("l", "Exists", "", "")), not),
        ("NoExecute", Some(toleration("", "Exists", "", "")), ""),
        ("NoExecute", Some(toleration("", "", "v", "")), not),
    ];
    for (effect, toleration, expected) in rows {
        let node = AdmissionNode { taints: vec![taint(effect)], ..node(&[("pods", "9")]) };
        let mut pod = requesting(pod("1", 1), &[]);
        pod.spec.as_mut().unwrap().tolerations = toleration.clone().map(|it| vec![it]);
        assert_eq!(answer(&node, &[], &pod), expected, "{effect} {toleration:?}");
        let static_pod = requesting(from_file("s", "s"), &[]);
        assert_eq!(answer(&node, &[], &static_pod), "");
    }
}

#[test]
fn a_critical_pod_preempts_for_resources_only() {
    let node = node(&[("pods", "9"), ("cpu", "1")]);
    let there = requesting(on_port("there", None, None, 80), &[("cpu", "1")]);
    let ported = on_port("there", None, None, 80);
    let big = critical(requesting(pod("1", 1), &[("cpu", "1")]));
    assert_eq!(answer(&node, &[&there], &big), "Preempts([PodUid(\"there\")], \"cpu\")");
    let static_pod = requesting(from_file("s", "s"), &[("cpu", "1")]);
    assert_eq!(answer(&node, &[&there], &static_pod), "Preempts([PodUid(\"there\")], \"cpu\")");
    let both = critical(on_port("1", None, None, 80));
    let taken = answer(&node, &[&ported], &both);
    assert!(taken.starts_with("NodePorts: "), "{taken}");
    let too_big = critical(requesting(pod("1", 1), &[("cpu", "3")]));
    let none = "UnexpectedAdmissionError: Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 2000), ]";
    // Of the three CPUs one is on the node and one is the other pod's.
    let one = requesting(pod("one", 1), &[("cpu", "1")]);
    let node = super::node(&[("pods", "9"), ("cpu", "1")]);
    assert_eq!(answer(&node, &[&one], &too_big), none);
}
