//! Facts about what is sent when a status changes.

use k8s_openapi::api::core::v1::{ContainerStatus, HostIP, PodCondition, PodIP};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::fixture::at;
use crate::status::merge::merge;

fn phase(phase: &str) -> PodStatus {
    PodStatus { phase: Some(phase.to_owned()), ..PodStatus::default() }
}

fn with_ips(ips: &[&str]) -> PodStatus {
    let list = ips.iter().map(|ip| PodIP { ip: (*ip).to_owned() }).collect();
    PodStatus {
        pod_ip: ips.first().map(|ip| (*ip).to_owned()),
        pod_ips: Some(list),
        ..phase("Running")
    }
}

fn with_containers(names: &[&str]) -> PodStatus {
    let status =
        |name: &&str| ContainerStatus { name: (*name).to_owned(), ..ContainerStatus::default() };
    PodStatus { container_statuses: Some(names.iter().map(status).collect()), ..phase("Running") }
}

fn condition(kind: &str, status: &str, message: Option<&str>) -> PodCondition {
    PodCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        message: message.map(str::to_owned),
        ..PodCondition::default()
    }
}

fn with_conditions(conditions: &[PodCondition]) -> PodStatus {
    PodStatus { conditions: Some(conditions.to_vec()), ..phase("Running") }
}

fn sent(known: &PodStatus, wanted: &PodStatus) -> Value {
    patch(known, wanted).unwrap().unwrap_or(Value::Null)
}

#[test]
fn only_what_differs_is_sent() {
    let reason = PodStatus { reason: Some("Evicted".to_owned()), ..phase("Failed") };
    let rows = [
        (phase("Running"), phase("Running"), Value::Null),
        (PodStatus::default(), phase("Pending"), json!({ "phase": "Pending" })),
        (phase("Pending"), phase("Running"), json!({ "phase": "Running" })),
        (phase("Running"), reason.clone(), json!({ "phase": "Failed", "reason": "Evicted" })),
        (reason, phase("Failed"), json!({ "reason": null })),
    ];
    for (known, wanted, want) in rows {
        assert_eq!(sent(&known, &wanted), want);
    }
}

#[test]
fn what_the_api_server_drops_makes_no_difference() {
    let mut wanted = with_conditions(&[condition("Ready", "True", None)]);
    let mut known = wanted.clone();
    let started = |millis| Some(Time(at(3) + jiff::SignedDuration::from_millis(millis)));
    (known.start_time, wanted.start_time) = (started(0), started(700));
    (known.reason, wanted.reason) = (None, Some(String::new()));
    (known.init_container_statuses, wanted.init_container_statuses) = (None, Some(Vec::new()));
    assert_eq!(patch(&known, &wanted).unwrap(), None);
}

#[test]
fn containers_are_sent_as_a_whole_and_those_that_go_are_gone() {
    let (one, two) = (with_containers(&["a"]), with_containers(&["a", "b"]));
    let names = |sent: &Value| -> Vec<String> {
        let list = sent["containerStatuses"].as_array().unwrap().iter();
        list.map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&sent(&one, &two)), ["a", "b"]);
    assert_eq!(names(&sent(&two, &one)), ["a"]);
    assert_eq!(sent(&one, &phase("Running")), json!({ "containerStatuses": null }));
}

#[test]
fn addresses_replace_the_list_together_with_its_first_entry() {
    let replace = json!({ "$patch": "replace" });
    let rows = [
        (&["10.0.0.1"][..], &["10.0.0.1"][..], Value::Null),
        (
            &[],
            &["10.0.0.1"],
            json!({ "podIP": "10.0.0.1", "podIPs": [replace, { "ip": "10.0.0.1" }] }),
        ),
        (
            &["10.0.0.1"],
            &["10.0.0.2", "fd00::2"],
            json!({ "podIP": "10.0.0.2", "podIPs": [replace, { "ip": "10.0.0.2" }, { "ip": "fd00::2" }] }),
        ),
        (
            &["10.0.0.1", "fd00::1"],
            &["10.0.0.1"],
            json!({ "podIP": "10.0.0.1", "podIPs": [replace, { "ip": "10.0.0.1" }] }),
        ),
        (&["10.0.0.1"], &[], json!({ "podIP": null, "podIPs": null })),
    ];
    for (known, wanted, want) in rows {
        assert_eq!(sent(&with_ips(known), &with_ips(wanted)), want, "{known:?} to {wanted:?}");
    }
    let host = PodStatus {
        host_ip: Some("192.0.2.1".to_owned()),
        host_ips: Some(vec![HostIP { ip: "192.0.2.1".to_owned() }]),
        ..phase("Running")
    };
    let only_first = PodStatus { host_ips: None, ..host.clone() };
    let want = json!({ "hostIP": "192.0.2.1", "hostIPs": [replace, { "ip": "192.0.2.1" }] });
    assert_eq!(sent(&only_first, &host), want);
}

#[test]
fn conditions_are_sent_one_by_one_and_named_when_they_go() {
    let known = with_conditions(&[
        condition("PodScheduled", "True", None),
        condition("Ready", "False", Some("not yet")),
        condition("PodResizePending", "True", None),
    ]);
    let wanted = with_conditions(&[
        condition("Initialized", "True", None),
        condition("Ready", "True", None),
        condition("PodScheduled", "True", None),
    ]);
    let want = json!([
        { "type": "Initialized", "status": "True" },
        { "type": "Ready", "status": "True", "message": null },
        { "$patch": "delete", "type": "PodResizePending" },
    ]);
    assert_eq!(sent(&known, &wanted), json!({ "conditions": want }));
}

#[test]
fn another_order_of_conditions_is_no_change() {
    let (a, b) = (condition("Ready", "True", None), condition("Initialized", "True", None));
    let (one, other) = (with_conditions(&[a.clone(), b.clone()]), with_conditions(&[b, a]));
    assert_eq!(patch(&one, &other).unwrap(), None);
}

#[test]
fn what_others_set_is_never_sent() {
    let gate = condition("example.com/gate", "True", None);
    let api = PodStatus {
        nominated_node_name: Some("n2".to_owned()),
        ..with_conditions(&[gate, condition("Ready", "False", None)])
    };
    let stale = condition("example.com/gate", "False", None);
    let ours = with_conditions(&[stale, condition("Ready", "True", None)]);
    let merged = merge(&api, &ours, true, at(9));
    let want = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
    assert_eq!(sent(&api, &merged), want);
}
