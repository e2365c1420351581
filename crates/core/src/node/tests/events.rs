//! What people are told.

use crate::event::EventKind;
use crate::node::conditions::Pressures;
use crate::node::events::{NodeEvent, between, cordoned, old_cgroups, starting};
use crate::node::{object, status};

use super::Stage;

fn reasons(events: &[NodeEvent]) -> Vec<&str> {
    events.iter().map(|event| event.reason).collect()
}

#[test]
fn the_first_report_says_everything_and_the_next_nothing() {
    let stage = Stage::new();
    let node = stage.look(object::registered);
    let first = between(None, &node);
    let expected =
        ["NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID", "NodeReady"];
    assert_eq!(reasons(&first), expected);
    assert_eq!(first[3].message, "Node n1 status is now: NodeReady");
    assert_eq!(between(Some(&node), &node), []);
}

#[test]
fn what_flips_is_told() {
    let mut stage = Stage::new();
    let node = stage.look(object::registered);
    stage.at = 60;
    stage.pressures = Pressures { disk: true, ..Pressures::default() };
    let later = stage.look(|scene| status::next(scene, &node));
    assert_eq!(reasons(&between(Some(&node), &later)), ["NodeHasDiskPressure", "NodeNotReady"]);
    let back = between(Some(&later), &node);
    assert_eq!(reasons(&back), ["NodeHasNoDiskPressure", "NodeReady"]);
}

#[test]
fn another_boot_is_told_once_and_not_of_a_node_that_never_booted() {
    let mut stage = Stage::new();
    let node = stage.look(object::registered);
    stage.machine.boot_id = "c".to_owned();
    let later = stage.look(|scene| status::next(scene, &node));
    let events = between(Some(&node), &later);
    assert_eq!(events[0].message, "Node n1 has been rebooted, boot id: c");
    assert_eq!((reasons(&events), events[0].kind), (vec!["Rebooted"], EventKind::Warning));
    assert_eq!(between(Some(&later), &later), []);
    let mut unborn = node;
    unborn.status.as_mut().unwrap().node_info = None;
    assert_eq!(between(Some(&unborn), &later), []);
}

#[test]
fn cordons_and_the_beginning_have_words_of_their_own() {
    let rows = [
        (false, false, None),
        (false, true, Some("Node n1 status is now: NodeNotSchedulable")),
        (true, false, Some("Node n1 status is now: NodeSchedulable")),
        (true, true, None),
    ];
    for (was, is, expected) in rows {
        let told = cordoned("n1", was, is).map(|event| event.message);
        assert_eq!(told.as_deref(), expected, "{was} {is}");
    }
    assert_eq!((old_cgroups().reason, old_cgroups().kind), ("CgroupV1", EventKind::Warning));
    assert_eq!((starting().reason, starting().message.as_str()), ("Starting", "Starting kubelet."));
}
