//! Sees all pods of the bench by a watch at the API server, and remembers when what happened.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use kube::api::{WatchEvent, WatchParams};
use kube::core::Request;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Duration, Instant, timeout};

use super::api::{Api, path};

/// What was seen of a pod.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sight {
    /// When its phase was first Running.
    pub(super) running: Option<Instant>,
    /// When it was deleted for good.
    pub(super) gone: Option<Instant>,
    /// Whether it is ready, and how often that has changed.
    is_ready: bool,
    pub(super) turns: usize,
    pub(super) restarts: u64,
}

/// By the names of pods.
pub(super) type Sights = BTreeMap<String, Sight>;

/// Watches until it is dropped.
pub(super) struct Witness {
    seen: watch::Receiver<Sights>,
    task: JoinHandle<()>,
}

#[derive(Debug, Clone, Deserialize)]
struct Pod {
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    resource_version: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: String,
    container_statuses: Vec<Container>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Container {
    ready: bool,
    restart_count: u64,
}

impl Witness {
    /// Begins to watch.
    pub(super) async fn begin(api: &Api) -> Result<Self> {
        let version = api.version().await?;
        let (tell, seen) = watch::channel(Sights::new());
        let api = api.clone();
        let task = tokio::spawn(async move {
            if let Err(error) = follow(&api, version, &tell).await {
                // Whoever waits is told by the channel that it ends.
                eprintln!("bench: the watch has ended: {error:#}");
            }
        });
        Ok(Self { seen, task })
    }

    /// What was seen so far.
    pub(super) fn sights(&self) -> Sights {
        self.seen.borrow().clone()
    }

    /// Waits until `done` is seen of all these pods, and says when it was seen of each.
    pub(super) async fn until(
        &self,
        what: &str,
        names: &[String],
        patience: Duration,
        done: impl Fn(&Sight) -> Option<Instant>,
    ) -> Result<Vec<Instant>> {
        let of = |sights: &Sights, name: &String| sights.get(name).and_then(&done);
        let mut seen = self.seen.clone();
        let all = seen.wait_for(|sights| names.iter().all(|name| of(sights, name).is_some()));
        let Ok(waited) = timeout(patience, all).await else {
            let sights = self.sights();
            let late: Vec<&String> =
                names.iter().filter(|name| of(&sights, name).is_none()).take(3).collect();
            bail!("not {what} after {patience:?}: {late:?} and perhaps more");
        };
        let sights = waited.context("the watch has ended")?;
        Ok(names.iter().filter_map(|name| of(&sights, name)).collect())
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The server ends every watch after some minutes; it goes on where it ended.
async fn follow(api: &Api, mut version: String, tell: &watch::Sender<Sights>) -> Result<()> {
    loop {
        let request = Request::new(path("pods")).watch(&WatchParams::default(), &version)?;
        let events = api.client().request_events::<Pod>(request).await?;
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
            tell.send_modify(|sights| note(sights, &pod, is_gone, now));
        }
    }
}

fn note(sights: &mut Sights, pod: &Pod, is_gone: bool, now: Instant) {
    let sight = sights.entry(pod.metadata.name.clone()).or_default();
    if is_gone {
        sight.gone.get_or_insert(now);
        return;
    }
    if pod.status.phase == "Running" {
        sight.running.get_or_insert(now);
    }
    let containers = &pod.status.container_statuses;
    let is_ready = !containers.is_empty() && containers.iter().all(|it| it.ready);
    sight.turns += usize::from(sight.is_ready != is_ready);
    sight.is_ready = is_ready;
    sight.restarts = containers.iter().map(|it| it.restart_count).sum();
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(phase: &str, ready: bool) -> Pod {
        serde_json::from_value(json!({
            "metadata": { "name": "a", "resourceVersion": "1", "uid": "x" },
            "status": { "phase": phase, "containerStatuses": [{ "ready": ready, "restartCount": 2 }] },
        }))
        .unwrap()
    }

    #[tokio::test]
    async fn the_first_time_counts_and_changes_are_counted() {
        let (mut sights, start) = (Sights::new(), Instant::now());
        let later = |seconds| start + Duration::from_secs(seconds);
        for (after, phase, ready) in [
            (1, "Pending", false),
            (2, "Running", true),
            (3, "Running", false),
            (4, "Running", true),
        ] {
            note(&mut sights, &pod(phase, ready), false, later(after));
        }
        note(&mut sights, &pod("Failed", false), true, later(5));
        let sight = sights["a"];
        assert_eq!((sight.running, sight.gone), (Some(later(2)), Some(later(5))));
        assert_eq!((sight.turns, sight.restarts), (3, 2));
    }
}
