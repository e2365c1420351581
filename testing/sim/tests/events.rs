//! Events of pods that the agent records at the API server.

use std::time::Duration;

use oarsman_sim::scenario::{CREATED_AT, container, events_with_reason, pod, run_pod};
use oarsman_sim::{ExternalAction, invariants};

#[test]
fn an_exceeded_deadline_gives_one_event() {
    let mut pod = pod(vec![], vec![container("a", &["forever"])], 5);
    pod.spec.get_or_insert_default().active_deadline_seconds = Some(10);
    let result = run_pod(pod, &[]).unwrap();
    let events = events_with_reason(&result, "DeadlineExceeded");
    assert_eq!(events.len(), 1, "{events:?}");
    let (at, event) = events[0];
    assert!((CREATED_AT + 10..CREATED_AT + 13).contains(&at), "at {at} s");
    let message = "Pod was active on the node longer than the specified deadline";
    assert_eq!(event.message, message);
    assert_eq!(invariants::check(&result), []);
}

#[test]
fn what_happens_while_the_api_server_is_away_is_recorded_once_when_it_is_back() {
    let mut pod = pod(vec![], vec![container("a", &["forever"])], 5);
    pod.spec.get_or_insert_default().active_deadline_seconds = Some(10);
    let away = ExternalAction::ApiServerOutage(Duration::from_secs(300));
    let result = run_pod(pod, &[(CREATED_AT + 5, away)]).unwrap();
    let events = events_with_reason(&result, "DeadlineExceeded");
    assert_eq!(events.len(), 1, "{events:?}");
    // The longest back-off is ten seconds.
    let at = events[0].0;
    assert!((CREATED_AT + 305..=CREATED_AT + 316).contains(&at), "at {at} s");
}
