//! The table and the JSON list of events.

use super::*;

fn event(pod: &str, count: u32, container: Option<&str>) -> EventReport {
    EventReport {
        namespace: "default".to_owned(),
        pod: pod.to_owned(),
        uid: "u".to_owned(),
        is_warning: container.is_some(),
        reason: "BackOff".to_owned(),
        message: "Back-off\nrestarting".to_owned(),
        field_path: container.map(|name| format!("spec.containers{{{name}}}")),
        count,
        first: "2026-01-01T00:50:00Z".parse().unwrap(),
        last: "2026-01-01T00:59:30Z".parse().unwrap(),
    }
}

fn node(events: Vec<EventReport>) -> NodeReport {
    let (now, node) = ("2026-01-01T01:00:00Z".parse().unwrap(), "node".to_owned());
    NodeReport { now, node, events, ..NodeReport::default() }
}

#[test]
fn the_table_of_events_has_their_counts() {
    let node = node(vec![event("web-node", 3, Some("main")), event("db", 1, None)]);
    let events: Vec<&EventReport> = node.events.iter().collect();
    let text = anstream::adapter::strip_str(&rows(&events, node.now, true)).to_string();
    let want = "\
LAST                TYPE      REASON    OBJECT            MESSAGE
30s (x3 over 10m)   Warning   BackOff   web-node (main)   Back-off restarting
30s                 Normal    BackOff   db                Back-off restarting
";
    assert_eq!(text, want);
}

#[test]
fn events_of_a_pod_that_is_gone_are_found_by_its_name() {
    let node = node(vec![event("web-node", 1, None), event("db", 1, None)]);
    for name in ["web", "web-node", "default/web"] {
        let found = of_pod(&node, name).unwrap();
        assert_eq!(found, [&node.events[0]], "{name}");
    }
    let refused = of_pod(&node, "wob").unwrap_err().to_string();
    assert_eq!(refused, "there is no pod wob");
}

#[test]
fn programs_read_a_list_of_events() {
    let node = node(vec![event("web-node", 3, Some("main"))]);
    let list = list(&[&node.events[0]]);
    let item: k8s_openapi::api::core::v1::Event =
        serde_json::from_value(list["items"][0].clone()).unwrap();
    assert_eq!((item.count, item.reason.as_deref()), (Some(3), Some("BackOff")));
    assert_eq!(item.involved_object.field_path.as_deref(), Some("spec.containers{main}"));
}
