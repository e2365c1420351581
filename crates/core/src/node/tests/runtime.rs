//! What the runtime says, and what that means.

use std::time::Duration;

use super::status;
use crate::node::runtime::{NetworkState, POD_TRAFFIC_CONDITION, RuntimeHealth, traffic_obstacle};
use crate::report::TrafficObstacle;
use crate::time::Mono;

fn at(seconds: u64) -> Mono {
    Mono(Duration::from_secs(seconds))
}

#[test]
fn a_runtime_is_ready_if_its_last_good_status_is_less_than_thirty_seconds_old() {
    let well = status(&[("RuntimeReady", true), ("NetworkReady", true)]);
    let mut health = RuntimeHealth::default();
    assert_eq!(health.errors(at(0)), ["container runtime status check may not have completed yet"]);
    assert_eq!(health.network_trouble.as_deref(), Some("network state unknown"));
    health.set_status(&well, at(0));
    assert!(health.is_ready(at(29)));
    assert_eq!(health.errors(at(30)), ["container runtime is down"]);
    health.set_status(&well, at(31));
    assert!(health.is_ready(at(60)));
}

#[test]
fn what_the_runtime_is_not_ready_for_is_named() {
    let why = "reason:Why message:because";
    let table = [
        (&[("RuntimeReady", true), ("NetworkReady", true)][..], None, None),
        (
            &[("RuntimeReady", true), ("NetworkReady", false)],
            None,
            Some(format!("container runtime network not ready: NetworkReady=false {why}")),
        ),
        (
            &[("RuntimeReady", false), ("NetworkReady", true)],
            Some(format!("container runtime not ready: RuntimeReady=false {why}")),
            None,
        ),
        (
            &[],
            Some("container runtime not ready: <nil>".to_owned()),
            Some("container runtime network not ready: <nil>".to_owned()),
        ),
    ];
    for (conditions, runtime, network) in table {
        let mut health = RuntimeHealth::default();
        health.set_status(&status(conditions), at(0));
        assert_eq!((&health.trouble, &health.network_trouble), (&runtime, &network));
        assert_eq!(health.last_good.is_some(), runtime.is_none(), "{conditions:?}");
    }
}

#[test]
fn a_firewall_that_drops_is_told_by_a_condition_that_does_not_hold() {
    let ready = ("NetworkReady", true);
    let firewall = |is_well| status(&[ready, (POD_TRAFFIC_CONDITION, is_well)]);
    assert_eq!(traffic_obstacle(&status(&[ready])), None);
    assert_eq!(traffic_obstacle(&firewall(true)), None);
    let mut told = firewall(false);
    let obstacle = |problem: &str, fix: &str| {
        Some(TrafficObstacle { problem: problem.to_owned(), fix: fix.to_owned() })
    };
    assert_eq!(traffic_obstacle(&told), obstacle("because", ""));
    told.status.as_mut().unwrap().conditions[1].message = "it drops\nallow it".to_owned();
    assert_eq!(traffic_obstacle(&told), obstacle("it drops", "allow it"));
    let mut health = RuntimeHealth::default();
    health.set_status(&told, at(0));
    assert_eq!(health.network_trouble, None, "pods run all the same");
}

#[test]
fn runtime_handlers_are_sorted_and_the_same_status_is_no_change() {
    let mut health = RuntimeHealth::default();
    let before = health.clone();
    health.set_status(&status(&[("RuntimeReady", true), ("NetworkReady", true)]), at(1));
    let names: Vec<&str> = health.handlers.iter().map(|handler| handler.name.as_str()).collect();
    assert_eq!(names, ["", "runc"]);
    assert!(!health.equals_except_time(&before));
    let mut later = health.clone();
    later.set_status(&status(&[("RuntimeReady", true), ("NetworkReady", true)]), at(11));
    assert!(later.equals_except_time(&health));
    later.set_status(&status(&[("RuntimeReady", true), ("NetworkReady", false)]), at(21));
    assert!(!later.equals_except_time(&health));
}

#[test]
fn whether_there_is_a_network_is_asked_again_when_the_last_answer_is_old() {
    let trouble =
        "container runtime network not ready: NetworkReady=false reason:Why message:because";
    let not_ready = || NetworkState::NotReady(trouble.to_owned());
    let rows = [
        (true, 0, NetworkState::Ready),
        (true, 14, NetworkState::Ready),
        (true, 15, NetworkState::Unknown),
        (false, 0, not_ready()),
        (false, 1, not_ready()),
        (false, 2, NetworkState::Unknown),
    ];
    for (is_ready, age, expected) in rows {
        let mut health = RuntimeHealth::default();
        assert_eq!(health.network_state(at(10)), NetworkState::Unknown);
        health.set_status(&status(&[("RuntimeReady", true), ("NetworkReady", is_ready)]), at(10));
        assert_eq!(health.network_state(at(10 + age)), expected, "{is_ready} {age}");
    }
}
