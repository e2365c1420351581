//! Watches all pods of the bench at the API server, and records the times of their changes.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use kube::api::{WatchEvent, WatchParams};
use kube::core::Request;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Duration, Instant, timeout};

use super::api::{BenchApi, path};

/// The times and counts of a pod.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PodTimes {
    /// When its phase was first Running.
    pub(super) running: Option<Instant>,
    /// When it was first ready.
    pub(super) ready: Option<Instant>,
    /// When it was deleted for good.
    pub(super) gone: Option<Instant>,
    /// Whether it is ready, and how often that has changed.
    is_ready: bool,
    pub(super) ready_changes: usize,
    pub(super) restarts: u64,
}

/// By the names of pods.
pub(super) type PodTimesByName = BTreeMap<String, PodTimes>;

/// Watches until it is dropped.
pub(super) struct PodTimesWatch {
    seen: watch::Receiver<PodTimesByName>,
    task: JoinHandle<()>,
}

#[derive(Debug, Clone, Deserialize)]
struct WatchedPod {
    metadata: WatchedMetadata,
    #[serde(default)]
    status: WatchedStatus,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WatchedMetadata {
    name: String,
    resource_version: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WatchedStatus {
    phase: String,
    container_statuses: Vec<WatchedContainer>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WatchedContainer {
    ready: bool,
    restart_count: u64,
}

impl PodTimesWatch {
    /// Starts the watch.
    pub(super) async fn begin(api: &BenchApi) -> Result<Self> {
        let version = api.version().await?;
        let (tell, seen) = watch::channel(PodTimesByName::new());
        let api = api.clone();
        let task = tokio::spawn(async move {
            if let Err(error) = follow(&api, version, &tell).await {
                // Waiting callers notice by the channel that it has ended.
                eprintln!("bench: the watch has ended: {error:#}");
            }
        });
        Ok(Self { seen, task })
    }

    /// The times so far.
    pub(super) fn times(&self) -> PodTimesByName {
        self.seen.borrow().clone()
    }

    /// Waits until `done` holds for all these pods, and returns when it first did for each.
    pub(super) async fn until(
        &self,
        what: &str,
        names: &[String],
        max_wait: Duration,
        done: impl Fn(&PodTimes) -> Option<Instant>,
    ) -> Result<Vec<Instant>> {
        let of = |times: &PodTimesByName, name: &String| times.get(name).and_then(&done);
        let mut seen = self.seen.clone();
        let all = seen.wait_for(|times| names.iter().all(|name| of(times, name).is_some()));
        let Ok(waited) = timeout(max_wait, all).await else {
            let times = self.times();
            let late: Vec<&String> =
                names.iter().filter(|name| of(&times, name).is_none()).take(3).collect();
            bail!("not {what} after {max_wait:?}: {late:?} and perhaps more");
        };
        let times = waited.context("the watch has ended")?;
        Ok(names.iter().filter_map(|name| of(&times, name)).collect())
    }
}

impl Drop for PodTimesWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The server ends every watch after some minutes; it resumes where it ended.
async fn follow(
    api: &BenchApi,
    mut version: String,
    tell: &watch::Sender<PodTimesByName>,
) -> Result<()> {
    loop {
        let request = Request::new(path("pods")).watch(&WatchParams::default(), &version)?;
        let events = api.client().request_events::<WatchedPod>(request).await?;
        let mut events = events.boxed();
        while let Some(event) = events.next().await {
            let now = Instant::now();
            let (pod, is_gone) = match event? {
                WatchEvent::Added(pod) | WatchEvent::Modified(pod) => (pod, false),
                WatchEvent::Deleted(pod) => (pod, true),
                WatchEvent::Bookmark(mark) => {
                    version = mark.metadata.resource_version;
                    continue;
                }
                WatchEvent::Error(error) => bail!("{}", error.message),
            };
            version.clone_from(&pod.metadata.resource_version);
            tell.send_modify(|times| note(times, &pod, is_gone, now));
        }
    }
}

fn note(times: &mut PodTimesByName, pod: &WatchedPod, is_gone: bool, now: Instant) {
    let pod_time = times.entry(pod.metadata.name.clone()).or_default();
    if is_gone {
        pod_time.gone.get_or_insert(now);
        return;
    }
    if pod.status.phase == "Running" {
        pod_time.running.get_or_insert(now);
    }
    let containers = &pod.status.container_statuses;
    let is_ready = !containers.is_empty() && containers.iter().all(|it| it.ready);
    if is_ready {
        pod_time.ready.get_or_insert(now);
    }
    pod_time.ready_changes += usize::from(pod_time.is_ready != is_ready);
    pod_time.is_ready = is_ready;
    pod_time.restarts = containers.iter().map(|it| it.restart_count).sum();
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(phase: &str, ready: bool) -> WatchedPod {
        serde_json::from_value(json!({
            "metadata": { "name": "a", "resourceVersion": "1", "uid": "x" },
            "status": { "phase": phase, "containerStatuses": [{ "ready": ready, "restartCount": 2 }] },
        }))
        .unwrap()
    }

    #[tokio::test]
    async fn the_first_time_counts_and_changes_are_counted() {
        let (mut times, start) = (PodTimesByName::new(), Instant::now());
        let later = |seconds| start + Duration::from_secs(seconds);
        for (after, phase, ready) in [
            (1, "Pending", false),
            (2, "Running", true),
            (3, "Running", false),
            (4, "Running", true),
        ] {
            note(&mut times, &pod(phase, ready), false, later(after));
        }
        note(&mut times, &pod("Failed", false), true, later(5));
        let pod_time = times["a"];
        assert_eq!((pod_time.running, pod_time.gone), (Some(later(2)), Some(later(5))));
        assert_eq!(pod_time.ready, Some(later(2)));
        assert_eq!((pod_time.ready_changes, pod_time.restarts), (3, 2));
    }
}
