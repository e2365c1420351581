//! The endpoints over a provider of the test's own.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use oarsman_core::active_pods::ActivePod;
use oarsman_core::ids::FullName;
use oarsman_core::stats::{
    CgroupStats, CpuUsage, MachineStats, MeasuredCgroup, MemoryUsage, StatsSnapshot,
};
use oarsman_core::time::{Mono, Now};
use oarsman_sync::Guarded;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::*;
use crate::host_interface::{HostInterface, LogDirectory};
use crate::stats_provider::StatsProvider;
use crate::tests::endpoint_state;

/// Answers with a node that used five seconds of CPU time, or not at all; records what it is asked.
#[derive(Clone, Default)]
struct FakeStats {
    fails: bool,
    asked: Arc<Guarded<Vec<StatsScope>>>,
}

#[async_trait::async_trait]
impl StatsProvider for FakeStats {
    async fn stats(&self, scope: StatsScope) -> Result<Arc<StatsSnapshot>, StatsError> {
        self.asked.lock().push(scope);
        if self.fails { Err(StatsError("no files".to_owned())) } else { Ok(Arc::new(snapshot())) }
    }
}

impl HostInterface for FakeStats {
    fn pods(&self) -> Vec<Arc<ActivePod>> {
        Vec::new()
    }

    fn pod(&self, _: &FullName) -> Option<Arc<ActivePod>> {
        None
    }

    fn sync_loop_health(&self) -> Result<(), String> {
        Ok(())
    }

    fn log_health(&self) -> Result<(), String> {
        Ok(())
    }

    fn set_log_verbosity(&self, _: u32) {}

    fn log_directory(&self, _: &Pod, _: &str) -> LogDirectory {
        LogDirectory(Path::new("/").to_owned())
    }

    fn stats_provider(&self) -> Arc<dyn StatsProvider> {
        Arc::new(self.clone())
    }
}

/// A node that used five seconds of CPU time.
pub(crate) fn snapshot() -> StatsSnapshot {
    let at = Now { wall: Timestamp::UNIX_EPOCH, mono: Mono(Duration::ZERO) };
    let stats = CgroupStats {
        cpu: Some(CpuUsage { total: 5_000_000_000, ..CpuUsage::default() }),
        memory: Some(MemoryUsage { usage: 4096, ..MemoryUsage::default() }),
        ..CgroupStats::at(at)
    };
    let path = "/".to_owned();
    StatsSnapshot {
        at: at.wall,
        node_name: "n1".to_owned(),
        machine: MachineStats {
            tasks: Some(3),
            devices: BTreeMap::new(),
            ..MachineStats::default()
        },
        root: Some(MeasuredCgroup { path, stats, nano_cores: Some(9), started: None }),
        groups: Vec::new(),
        system: Vec::new(),
        pods: Vec::new(),
        node_fs: None,
        image_fs: None,
        container_fs: None,
    }
}

struct Answer {
    status: StatusCode,
    content_type: String,
    text: String,
}

async fn ask(stats: &FakeStats, method: &str, path: &str) -> Answer {
    let router = crate::endpoints::read_only(&endpoint_state(Arc::new(stats.clone())));
    let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
    let response = router.oneshot(request).await.unwrap();
    let content_type = response.headers().get(header::CONTENT_TYPE).cloned();
    let content_type = content_type.map(|it| it.to_str().unwrap().to_owned());
    let status = response.status();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let text = String::from_utf8(body.to_vec()).unwrap();
    Answer { status, content_type: content_type.unwrap_or_default(), text }
}

#[tokio::test]
async fn the_summary_is_answered_to_get_and_post() {
    let rows = [
        ("GET", "/stats/summary", StatsScope::Summary),
        ("POST", "/stats/summary", StatsScope::Summary),
        ("GET", "/stats/summary/", StatsScope::Summary),
        ("GET", "/stats/summary?only_cpu_and_memory=true", StatsScope::CpuAndMemory),
        ("POST", "/stats/summary?only_cpu_and_memory=true", StatsScope::CpuAndMemory),
        ("GET", "/stats/summary?only_cpu_and_memory=1", StatsScope::Summary),
        (
            "GET",
            "/stats/summary?only_cpu_and_memory=true&only_cpu_and_memory=true",
            StatsScope::Summary,
        ),
    ];
    for (method, path, scope) in rows {
        let stats = FakeStats::default();
        let answer = ask(&stats, method, path).await;
        assert_eq!(answer.status, StatusCode::OK, "{method} {path}");
        assert_eq!(answer.content_type, "application/json");
        assert_eq!(*stats.asked.lock(), [scope], "{method} {path}");
        let shown: Value = serde_json::from_str(&answer.text).unwrap();
        assert_eq!(shown["node"]["cpu"]["usageCoreNanoSeconds"], 5_000_000_000_u64);
        assert_eq!(shown["pods"], json!([]));
        let has_rlimit = shown["node"].get("rlimit").is_some();
        assert_eq!(has_rlimit, scope == StatsScope::Summary, "{method} {path}");
    }
}

#[tokio::test]
async fn metrics_are_answered_in_the_text_format() {
    let rows = [
        ("/metrics/resource", StatsScope::Resources, "\nnode_cpu_usage_seconds_total 5 0\n"),
        ("/metrics/cadvisor", StatsScope::Containers, "pod=\"\",cpu=\"total\"} 5 0\n"),
    ];
    for (path, scope, line) in rows {
        let stats = FakeStats::default();
        let answer = ask(&stats, "GET", path).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}");
        assert_eq!(answer.content_type, CONTENT_TYPE);
        assert_eq!(*stats.asked.lock(), [scope]);
        assert!(answer.text.contains(line), "{}", answer.text);
        assert_eq!(ask(&stats, "POST", path).await.status, StatusCode::METHOD_NOT_ALLOWED);
    }
}

#[tokio::test]
async fn a_node_that_cannot_be_measured_says_so() {
    let stats = FakeStats { fails: true, ..FakeStats::default() };
    for path in ["/stats/summary", "/metrics/cadvisor"] {
        let answer = ask(&stats, "GET", path).await;
        assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(answer.text, "the node cannot be measured: no files");
    }
    let answer = ask(&stats, "GET", "/metrics/resource").await;
    assert_eq!(answer.status, StatusCode::OK);
    assert!(answer.text.contains("\nresource_scrape_error 1\n"), "{}", answer.text);
}
