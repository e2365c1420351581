//! The timeout of `oarsman stop`, and the messages it prints.

use k8s_openapi::api::core::v1::{Pod, PodSpec};
use oarsman_core::report::PodActivity;

use super::*;

fn pod(name: &str, grace: Option<i64>) -> PodReport {
    let mut pod = Pod::default();
    pod.metadata.name = Some(name.to_owned());
    pod.metadata.namespace = Some("default".to_owned());
    let spec = PodSpec { termination_grace_period_seconds: grace, ..PodSpec::default() };
    pod.spec = Some(spec);
    PodReport { pod, ..PodReport::default() }
}

#[test]
fn the_timeout_follows_from_the_longest_grace_period() {
    let pods = [pod("a", Some(5)), pod("b", Some(300)), pod("c", None)];
    assert_eq!(stop_timeout(&pods.iter().collect::<Vec<_>>()), Duration::from_secs(360));
    assert_eq!(stop_timeout(&[&pods[2]]), Duration::from_secs(90));
    assert_eq!(stop_timeout(&[]), ALLOWANCE);
}

#[test]
fn the_message_names_the_pods_that_are_waited_for() {
    let since = "2026-01-01T00:00:00Z".parse().unwrap();
    let node = NodeReport { now: "2026-01-01T00:00:07Z".parse().unwrap(), ..NodeReport::default() };
    let container = Some("main".to_owned());
    let stopping = PodActivity { what: Activity::Stopping(30), container, since };
    let pods = [PodReport { doing: Some(stopping), ..pod("a", None) }, pod("b", None)];
    let said = remaining_pods(&node, &pods.iter().collect::<Vec<_>>());
    assert_eq!(said, "a (main was asked to end 7s ago and has 30s for it), b");
}

#[test]
fn the_last_message_names_the_stopped_pods() {
    let names = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
    assert_eq!(stopped_message(&names, false), "Stopped a, b.");
    assert_eq!(stopped_message(&names, true), "Stopped a, b; the agent has ended.");
    assert_eq!(stopped_message(&BTreeSet::new(), true), "The agent has ended.");
}
