//! Lists of pods, for clients that do not read them.

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use tower::ServiceExt;

use super::*;

#[tokio::test]
async fn lists_of_pods_are_limited_and_make_room_when_they_end() {
    let directory = tempfile::tempdir().unwrap();
    let router = endpoints::read_only(&endpoint_state(ended(directory.path())));
    let ask = || {
        let request = Request::get("/pods").body(Body::empty()).unwrap();
        let router = router.clone();
        async move { router.oneshot(request).await.unwrap() }
    };
    let mut stalled = Vec::new();
    for _ in 0..32 {
        stalled.push(ask().await);
    }
    assert!(stalled.iter().all(|answer| answer.status() == StatusCode::OK));
    assert_eq!(ask().await.status(), StatusCode::TOO_MANY_REQUESTS);
    let read = to_bytes(stalled.remove(0).into_body(), usize::MAX).await.unwrap();
    let list: Value = serde_json::from_slice(&read).unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 2);
    assert_eq!(ask().await.status(), StatusCode::OK, "one was sent");
    stalled.remove(0);
    stalled.push(ask().await);
    assert!(stalled.iter().all(|answer| answer.status() == StatusCode::OK), "one was given up");
}
