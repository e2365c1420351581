//! Conditions and their times.

use k8s_openapi::api::core::v1::{Node, NodeCondition};

use super::{NodeFixture, moment, status as runtime_status};
use crate::node::conditions::Pressures;
use crate::node::{NodeStatusInput, object, status};

fn conditions(node: &Node) -> Vec<NodeCondition> {
    node.status.clone().unwrap_or_default().conditions.unwrap_or_default()
}

fn ready(node: &Node) -> (String, String, String) {
    let ready = conditions(node).into_iter().find(|condition| condition.type_ == "Ready").unwrap();
    (ready.status, ready.reason.unwrap_or_default(), ready.message.unwrap_or_default())
}

#[test]
fn a_healthy_node_is_ready_and_short_of_nothing() {
    let node = NodeFixture::new().look(object::registered);
    let told: Vec<_> = conditions(&node)
        .into_iter()
        .map(|c| (c.type_, c.status, c.reason.unwrap_or_default(), c.message.unwrap_or_default()))
        .collect();
    let row = |type_: &str, status: &str, reason: &str, message: &str| {
        (type_.to_owned(), status.to_owned(), reason.to_owned(), message.to_owned())
    };
    let expected = [
        row(
            "MemoryPressure",
            "False",
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
        ),
        row("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        row(
            "PIDPressure",
            "False",
            "KubeletHasSufficientPID",
            "kubelet has sufficient PID available",
        ),
        row("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ];
    assert_eq!(told, expected);
}

#[test]
fn pressures_are_conditions() {
    let mut fixture = NodeFixture::new();
    fixture.pressures = Pressures { memory: true, disk: true, pids: true };
    let node = fixture.look(object::registered);
    let told: Vec<_> = conditions(&node)
        .into_iter()
        .take(3)
        .map(|c| (c.status, c.reason.unwrap_or_default(), c.message.unwrap_or_default()))
        .collect();
    let row =
        |reason: &str, message: &str| ("True".to_owned(), reason.to_owned(), message.to_owned());
    let expected = [
        row("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
        row("KubeletHasDiskPressure", "kubelet has disk pressure"),
        row("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
    ];
    assert_eq!(told, expected);
}

#[test]
fn all_reasons_not_to_be_ready_are_listed_in_order() {
    let mut fixture = NodeFixture::new();
    fixture.machine.disk = None;
    fixture.runtime.set_status(&runtime_status(&[("NetworkReady", false)]), moment(0).mono);
    fixture.at = 40;
    let node = fixture.look(|input| {
        let input = NodeStatusInput {
            storage_trouble: Some("CSINode is not yet initialized"),
            is_shutting_down: true,
            ..*input
        };
        object::registered(&input)
    });
    let message = "[container runtime is down, container runtime not ready: <nil>, \
         container runtime network not ready: NetworkReady=false reason:Why message:because, \
         CSINode is not yet initialized, node is shutting down, \
         missing node capacity for resources: ephemeral-storage]";
    let expected = ("False".to_owned(), "KubeletNotReady".to_owned(), message.to_owned());
    assert_eq!(ready(&node), expected);
}

#[test]
fn one_reason_stands_alone() {
    let mut fixture = NodeFixture::new();
    fixture.at = 30;
    let (_, _, message) = ready(&fixture.look(object::registered));
    assert_eq!(message, "container runtime is down");
}

#[test]
fn only_a_change_of_status_is_a_transition() {
    let mut fixture = NodeFixture::new();
    let mut node = fixture.look(object::registered);
    let mut times = Vec::new();
    for at in [10, 20, 30, 40] {
        fixture.at = at;
        if at == 40 {
            fixture.runtime.last_good = Some(moment(40).mono);
        }
        node = fixture.look(|input| status::next(input, &node));
        let ready = conditions(&node).pop().unwrap();
        let second = |time: Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>| {
            time.unwrap().0.duration_since(moment(0).wall).as_secs()
        };
        times.push((
            ready.status,
            second(ready.last_heartbeat_time),
            second(ready.last_transition_time),
        ));
    }
    let row = |status: &str, heartbeat, transition| (status.to_owned(), heartbeat, transition);
    assert_eq!(
        times,
        [row("True", 10, 0), row("True", 20, 0), row("False", 30, 30), row("True", 40, 40)]
    );
}

#[test]
fn conditions_of_others_stay_where_they_are() {
    let mut node = Node::default();
    let foreign = NodeCondition {
        type_: "NetworkUnavailable".to_owned(),
        status: "False".to_owned(),
        ..NodeCondition::default()
    };
    node.status.get_or_insert_default().conditions = Some(vec![foreign.clone()]);
    let node = NodeFixture::new().look(|input| status::next(input, &node));
    assert_eq!(conditions(&node).len(), 5);
    assert_eq!(conditions(&node)[0], foreign);
}
