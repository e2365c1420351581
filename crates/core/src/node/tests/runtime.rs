//! What the runtime says, and what that means.

use std::time::Duration;

use super::status;
use crate::node::runtime::Health;
use crate::time::Mono;

fn at(seconds: u64) -> Mono {
    Mono(Duration::from_secs(seconds))
}

#[test]
fn a_runtime_is_well_when_it_said_so_within_thirty_seconds() {
    let well = status(&[("RuntimeReady", true), ("NetworkReady", true)]);
    let mut health = Health::default();
    assert_eq!(
        health.troubles(at(0)),
        ["container runtime status check may not have completed yet"]
    );
    assert_eq!(health.network_trouble.as_deref(), Some("network state unknown"));
    health.heard(&well, at(0));
    assert!(health.is_well(at(29)));
    assert_eq!(health.troubles(at(30)), ["container runtime is down"]);
    health.heard(&well, at(31));
    assert!(health.is_well(at(60)));
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
        let mut health = Health::default();
        health.heard(&status(conditions), at(0));
        assert_eq!((&health.trouble, &health.network_trouble), (&runtime, &network));
        assert_eq!(health.last_good.is_some(), runtime.is_none(), "{conditions:?}");
    }
}

#[test]
fn handlers_come_by_name_and_the_same_word_again_is_no_news() {
    let mut health = Health::default();
    let before = health.clone();
    health.heard(&status(&[("RuntimeReady", true), ("NetworkReady", true)]), at(1));
    let names: Vec<&str> = health.handlers.iter().map(|handler| handler.name.as_str()).collect();
    assert_eq!(names, ["", "runc"]);
    assert!(!health.says_the_same_as(&before));
    let mut later = health.clone();
    later.heard(&status(&[("RuntimeReady", true), ("NetworkReady", true)]), at(11));
    assert!(later.says_the_same_as(&health));
    later.heard(&status(&[("RuntimeReady", true), ("NetworkReady", false)]), at(21));
    assert!(!later.says_the_same_as(&health));
}
