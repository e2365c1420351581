//! Checkpoints of a runtime that makes them, and of one that does not.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use axum::body::{Body, to_bytes};
use axum::http::Request;
use oarsman_clock::SystemClock;
use oarsman_sync::Guarded;
use tempfile::TempDir;
use tower::ServiceExt;

use super::*;
use crate::tests::FakeHost;

/// Makes archives, unless it fails.
#[derive(Default)]
struct FakeCheckpoints {
    failure: Option<&'static str>,
    asked: Guarded<Vec<CheckpointContainerRequest>>,
}

#[async_trait]
impl CheckpointRuntime for FakeCheckpoints {
    async fn running_container(&self, pod: &Pod, container: &str) -> Result<String, String> {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        if name == "idle" {
            return Err(format!("container not found ({container:?})"));
        }
        Ok(format!("id-of-{name}-{container}"))
    }

    async fn checkpoint(&self, request: CheckpointContainerRequest) -> Result<(), String> {
        self.asked.lock().push(request);
        self.failure.map_or(Ok(()), |why| Err(why.to_owned()))
    }
}

struct CheckpointFixture {
    root: TempDir,
    runtime: Arc<FakeCheckpoints>,
    router: Router,
}

fn fixture(runtime: FakeCheckpoints) -> CheckpointFixture {
    let (root, runtime) = (tempfile::tempdir().unwrap(), Arc::new(runtime));
    let host: Arc<dyn HostInterface> = FakeHost::with_state(root.path(), &json!({ "running": {} }));
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let router = routes(root.path(), &host, Arc::clone(&runtime) as _, &clock);
    CheckpointFixture { root, runtime, router }
}

impl CheckpointFixture {
    async fn ask(&self, path: &str) -> (u16, String) {
        let request = Request::post(format!("/checkpoint/{path}")).body(Body::empty()).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), 4096).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }
}

#[tokio::test]
async fn the_archive_is_below_the_root_in_a_directory_for_root_alone() {
    let fixture = fixture(FakeCheckpoints::default());
    let (status, body) = fixture.ask("default/web/c?timeout=9").await;
    let directory = fixture.root.path().join("checkpoints");
    let asked = fixture.runtime.asked.lock().clone();
    assert_eq!((status, asked.len()), (200, 1), "{body}");
    assert_eq!((asked[0].container_id.as_str(), asked[0].timeout), ("id-of-web-c", 9));
    let name = asked[0].location.strip_prefix(&directory.display().to_string()).unwrap();
    assert!(name.starts_with("/checkpoint-web_default-c-") && name.ends_with("Z.tar"), "{name}");
    assert_eq!(body, json!({ "items": [asked[0].location] }).to_string());
    assert_eq!(fs::metadata(&directory).unwrap().permissions().mode() & 0o777, 0o700);
}

#[tokio::test]
async fn what_is_not_there_is_not_found_and_a_failure_of_the_runtime_is_told() {
    let fixture = fixture(FakeCheckpoints {
        failure: Some("CheckpointContainer: this runtime does not have it"),
        ..FakeCheckpoints::default()
    });
    let rows = [
        ("default/other/c", 404, "pod does not exist"),
        ("default/web/x", 404, "container x does not exist"),
        ("default/web/c?timeout=x", 404, "cannot parse value of timeout parameter"),
        (
            "default/idle/c",
            500,
            "checkpointing of default/idle/c failed (container not found (\"c\"))",
        ),
        (
            "default/web/c",
            500,
            "checkpointing of default/web/c failed (CheckpointContainer: this runtime does not have it)",
        ),
    ];
    for (path, status, said) in rows {
        assert_eq!(fixture.ask(path).await, (status, said.to_owned()), "{path}");
    }
}

#[test]
fn the_time_that_a_client_gives_is_limited() {
    let wrong = || (StatusCode::NOT_FOUND, "cannot parse value of timeout parameter".to_owned());
    let rows = [
        ("", Ok(0)),
        ("timeout=7", Ok(7)),
        ("timeout=x&timeout=9", Ok(9)),
        ("timeout=9223372036854775807", Ok(3600)),
        ("timeout=-1", Err(wrong())),
        ("timeout=1s", Err(wrong())),
    ];
    for (query, expected) in rows {
        assert_eq!(timeout(query), expected, "{query}");
    }
}

#[test]
fn an_archive_is_named_after_pod_container_and_second() {
    let pod = FullName { name: "web".to_owned(), namespace: "default".to_owned() };
    let name = file_name(&pod, "c", "2026-01-02T03:04:05.6Z".parse().unwrap());
    assert_eq!(name, "checkpoint-web_default-c-2026-01-02T03:04:05Z.tar");
}
