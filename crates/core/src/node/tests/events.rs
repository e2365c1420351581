//! What people are told.

use crate::event::EventKind;
use crate::node::conditions::Pressures;
use crate::node::events::{NodeEvent, between, cordoned, old_cgroups, starting};
use crate::node::{object, status};

use super::NodeFixture;

fn reasons(events: &[NodeEvent]) -> Vec<&str> {
    events.iter().map(|event| event.reason).collect()
}

#[test]
fn the_first_report_has_events_for_all_conditions_and_the_next_none() {
    let fixture = NodeFixture::new();
    let node = fixture.look(object::registered);
    let first = between(None, &node);
    let expected =
        ["NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID", "NodeReady"];
    assert_eq!(reasons(&first), expected);
    assert_eq!(first[3].message, "Node n1 status is now: NodeReady");
    assert_eq!(between(Some(&node), &node), []);
}

#[test]
fn a_condition_that_changes_is_an_event() {
    let mut fixture = NodeFixture::new();
    let node = fixture.look(object::registered);
    fixture.at = 60;
    fixture.pressures = Pressures { disk: true, ..Pressures::default() };
    let later = fixture.look(|input| status::next(input, &node));
    assert_eq!(reasons(&between(Some(&node), &later)), ["NodeHasDiskPressure", "NodeNotReady"]);
    let back = between(Some(&later), &node);
    assert_eq!(reasons(&back), ["NodeHasNoDiskPressure", "NodeReady"]);
}

#[test]
fn a_reboot_is_one_event_and_none_without_an_earlier_boot_id() {
    let mut fixture = NodeFixture::new();
    let node = fixture.look(object::registered);
    fixture.machine.boot_id = "c".to_owned();
    let later = fixture.look(|input| status::next(input, &node));
    let events = between(Some(&node), &later);
    assert_eq!(events[0].message, "Node n1 has been rebooted, boot id: c");
    assert_eq!((reasons(&events), events[0].kind), (vec!["Rebooted"], EventKind::Warning));
    assert_eq!(between(Some(&later), &later), []);
    let mut unborn = node;
    unborn.status.as_mut().unwrap().node_info = None;
    assert_eq!(between(Some(&unborn), &later), []);
}

#[test]
fn cordon_and_start_have_events_of_their_own() {
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
