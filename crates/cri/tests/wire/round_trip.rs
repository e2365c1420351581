//! What is asked at one end arrives at the other, and so do the answers.

use std::sync::Arc;

use oarsman_cri::{Client, Deadlines, Runtime};

use crate::harness::Place;
use crate::recorder::{Mode, Recorder};
use crate::script;

/// As many calls as the script makes; each method of the trait but `info` is among them.
const CALLS: usize = 36;

#[tokio::test]
async fn a_runtime_behind_the_wire_is_like_one_at_hand() {
    let at_hand = Recorder::new(Mode::Answer);
    let outcomes_at_hand = script::perform(&at_hand).await;

    let place = Place::new();
    let behind = Arc::new(Recorder::new(Mode::Answer));
    let _served = place.serve(behind.clone());
    let outcomes_behind = script::perform(&place.client()).await;

    assert_eq!(outcomes_behind, outcomes_at_hand);
    assert_eq!(behind.log(), at_hand.log());
    assert_eq!(behind.log().len(), CALLS);
    assert!(outcomes_behind.iter().all(|outcome| outcome.starts_with("Ok(")));
}

#[tokio::test]
async fn details_for_people_come_through_the_verbose_calls() {
    let at_hand = Recorder::new(Mode::Answer);
    let place = Place::new();
    let _served = place.serve(Arc::new(Recorder::new(Mode::Answer)));
    let outcomes = script::inspect(&place.client()).await;
    assert_eq!(outcomes, script::inspect(&at_hand).await);
    assert!(outcomes[2].contains(r#"Container(\"c1\")"#), "{outcomes:?}");
}

#[tokio::test]
async fn images_can_live_at_another_endpoint() {
    let (here, there) = (Place::new(), Place::new());
    let (runtime, images) =
        (Arc::new(Recorder::new(Mode::Answer)), Arc::new(Recorder::new(Mode::Answer)));
    let _served = (here.serve(runtime.clone()), there.serve(images.clone()));
    let elsewhere = there.endpoint();
    let client = Client::new(&here.endpoint(), Some(&elsewhere), Deadlines::default()).unwrap();

    client.pull_image(script::pull("a:1")).await.unwrap();
    client.start_container("c1").await.unwrap();

    assert_eq!(runtime.log(), [r#"StartContainer "c1""#]);
    assert_eq!(images.log().len(), 1);
    assert!(images.log()[0].starts_with("PullImage"), "{:?}", images.log());
}
