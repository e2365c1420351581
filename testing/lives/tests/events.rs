//! What is told besides the status: that the agent records what `core` has words for.

use oarsman_lives::invariants;
use oarsman_lives::stage::{MADE, container, lived, pod, told};

#[test]
fn a_deadline_that_strikes_is_told_once() {
    let mut pod = pod(vec![], vec![container("a", &["forever"])], 5);
    pod.spec.get_or_insert_default().active_deadline_seconds = Some(10);
    let life = lived(pod, &[]).unwrap();
    let events = told(&life, "DeadlineExceeded");
    assert_eq!(events.len(), 1, "{events:?}");
    let (at, event) = events[0];
    assert!((MADE + 10..MADE + 13).contains(&at), "at {at} s");
    let message = "Pod was active on the node longer than the specified deadline";
    assert_eq!(event.message, message);
    assert_eq!(invariants::judge(&life), []);
}
