//! Watches pods at the API server and records all that any client could have seen.
//!
//! A watch may end and start anew, as when the API server is away. What happened in between follows from the transition time of a condition: a
//! pod that was Ready and is Ready, but since another time, was not Ready meanwhile. Within one watch the same is no flip, because no client saw
//! one, but a wrong transition time.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::Api;
use kube::runtime::watcher::{self, Event, watcher};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::inspect::eventually;

/// How long a watch may take to deliver its first list.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// How long it waits after an error.
const RETRY_DELAY: Duration = Duration::from_millis(200);

/// Watches until it is dropped.
pub struct PodObserver {
    observations: Arc<Mutex<Observations>>,
    task: JoinHandle<()>,
}

/// The observations of all pods, by `namespace/name`, in order.
#[derive(Debug, Default)]
struct Observations {
    pods: BTreeMap<String, Vec<PodObservation>>,
    /// How many lists were begun: a watch that resumes misses nothing.
    watches: usize,
    /// How many lists were delivered completely.
    lists: usize,
    /// How often the watch failed.
    failures: usize,
}

/// One observation of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodObservation {
    /// The time since the observer started.
    pub at: Duration,
    /// The number of the watch, counted from one.
    pub watch: usize,
    /// Another UID under the same name is another pod.
    pub uid: String,
    /// `Pending`, `Running` and so on.
    pub phase: String,
    /// Whether it was Ready, and since when; none without that condition.
    pub ready: Option<(bool, String)>,
    /// The restarts of all its containers.
    pub restarts: i32,
    /// The ids of its containers in the status.
    pub containers: Vec<String>,
    /// Whether it was deleted.
    pub is_gone: bool,
}

/// Disturbances of a pod that a client could have seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disturbance {
    /// How often it became not Ready.
    pub flips: usize,
    /// By how much the count of restarts grew.
    pub restarts: i32,
    /// How often another pod, or none, was there under its name.
    pub replacements: usize,
    /// How often the transition time of Ready changed, though it was never seen otherwise. The Go kubelet does that to static pods whenever it
    /// starts.
    pub new_times: usize,
}

impl Disturbance {
    /// Whether there was no disturbance.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { flips, restarts, replacements, new_times } = self;
        write!(
            f,
            "{flips} flips, {restarts} restarts, {replacements} replacements, {new_times} new times"
        )
    }
}

impl PodObserver {
    /// Starts the watch, and has seen all existing pods when this returns.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn begin(client: kube::Client) -> Result<Self> {
        let observations = Arc::<Mutex<Observations>>::default();
        let task = tokio::spawn(watch(client, Arc::clone(&observations)));
        let observer = Self { observations, task };
        let lists = async || Ok(lock(&observer.observations).lists);
        eventually(MAX_WAIT, "the witness has seen all pods", lists, |lists| *lists > 0).await?;
        Ok(observer)
    }

    /// All observations of a pod, by `namespace/name`.
    ///
    /// # Errors
    /// When it was never seen.
    pub fn history(&self, pod: &str) -> Result<Vec<PodObservation>> {
        let observations = lock(&self.observations);
        observations.pods.get(pod).cloned().with_context(|| format!("{pod} was never seen"))
    }

    /// The last observation of a pod.
    ///
    /// # Errors
    /// When it was never seen.
    pub fn last(&self, pod: &str) -> Result<PodObservation> {
        self.history(pod)?.pop().with_context(|| format!("{pod} was never seen"))
    }

    /// The names of all pods that were ever seen, as `namespace/name`.
    pub fn names(&self) -> Vec<String> {
        lock(&self.observations).pods.keys().cloned().collect()
    }

    /// The disturbances of each pod that was Ready once, since then.
    pub fn disturbances(&self) -> BTreeMap<String, Disturbance> {
        let observations = lock(&self.observations);
        let ready = observations.pods.iter().filter(|(_, history)| history.iter().any(is_ready));
        ready.map(|(name, history)| (name.clone(), disturbance(history))).collect()
    }

    /// How often the watch failed so far.
    pub fn failures(&self) -> usize {
        lock(&self.observations).failures
    }

    /// Fails unless that many pods were Ready once, and nothing has disturbed any of them since.
    ///
    /// # Errors
    /// With all observations of those that were disturbed.
    pub fn undisturbed(&self, count: usize) -> Result<()> {
        let all = self.disturbances();
        ensure!(all.len() == count, "{} pods were Ready, not {count}: {all:?}", all.len());
        for (name, disturbance) in &all {
            ensure!(disturbance.is_none(), "{name}: {disturbance}: {:#?}", self.history(name)?);
        }
        Ok(())
    }
}

impl Drop for PodObserver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn watch(client: kube::Client, observations: Arc<Mutex<Observations>>) {
    let start = Instant::now();
    let config = watcher::Config::default();
    let mut events = Box::pin(watcher(Api::<Pod>::all(client), config));
    let mut listed = Vec::new();
    loop {
        match events.try_next().await {
            Ok(Some(event)) => {
                lock(&observations).record_event(event, start.elapsed(), &mut listed);
            }
            Ok(None) => return,
            Err(_) => {
                lock(&observations).failures += 1;
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }
}

impl Observations {
    fn record_event(&mut self, event: Event<Pod>, at: Duration, listed: &mut Vec<String>) {
        match event {
            Event::Init => {
                self.watches += 1;
                listed.clear();
            }
            Event::InitApply(pod) => {
                listed.push(name(&pod));
                self.record(&pod, at, false);
            }
            Event::InitDone => self.end_list(at, listed),
            Event::Apply(pod) => self.record(&pod, at, false),
            Event::Delete(pod) => self.record(&pod, at, true),
        }
    }

    fn record(&mut self, pod: &Pod, at: Duration, is_gone: bool) {
        let watch = self.watches;
        let observation = observation(pod, at, watch, is_gone);
        let history = self.pods.entry(name(pod)).or_default();
        let is_news = history
            .last()
            .is_none_or(|last| PodObservation { at, watch, ..last.clone() } != observation);
        if is_news {
            history.push(observation);
        }
    }

    /// Pods that a new list does not have were deleted between two watches.
    fn end_list(&mut self, at: Duration, listed: &[String]) {
        self.lists += 1;
        let watch = self.watches;
        for (name, history) in &mut self.pods {
            let last = history.last().filter(|last| !last.is_gone && !listed.contains(name));
            let gone = last.map(|last| PodObservation { at, watch, is_gone: true, ..last.clone() });
            history.extend(gone);
        }
    }
}

fn name(pod: &Pod) -> String {
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    format!("{}/{}", part(&pod.metadata.namespace), part(&pod.metadata.name))
}

fn observation(pod: &Pod, at: Duration, watch: usize, is_gone: bool) -> PodObservation {
    let status = pod.status.clone().unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready");
    let statuses: Vec<ContainerStatus> = [
        status.init_container_statuses.unwrap_or_default(),
        status.container_statuses.unwrap_or_default(),
    ]
    .concat();
    let since = |time: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Time| time.0.to_string();
    PodObservation {
        at,
        watch,
        uid: pod.metadata.uid.clone().unwrap_or_default(),
        phase: status.phase.unwrap_or_default(),
        ready: ready.map(|condition| {
            let time = condition.last_transition_time.as_ref().map(since);
            (condition.status == "True", time.unwrap_or_default())
        }),
        restarts: statuses.iter().map(|status| status.restart_count).sum(),
        containers: statuses.into_iter().filter_map(|status| status.container_id).collect(),
        is_gone,
    }
}

fn is_ready(observation: &PodObservation) -> bool {
    !observation.is_gone && observation.ready.as_ref().is_some_and(|(ready, _)| *ready)
}

/// Counted from the first observation in which the pod was Ready.
fn disturbance(history: &[PodObservation]) -> Disturbance {
    let mut seen = Disturbance::default();
    let since_ready: Vec<&PodObservation> =
        history.iter().skip_while(|observation| !is_ready(observation)).collect();
    for (before, after) in since_ready.iter().zip(since_ready.iter().skip(1)) {
        let was_replaced = after.is_gone || before.uid != after.uid;
        let is_same_watch = before.watch == after.watch;
        let has_new_time = is_ready(before) && is_ready(after) && before.ready != after.ready;
        let was_away = is_ready(before) && !is_ready(after);
        let was_away = was_away || (has_new_time && !is_same_watch);
        seen.replacements += usize::from(was_replaced && !before.is_gone);
        seen.flips += usize::from(!was_replaced && was_away);
        seen.new_times += usize::from(!was_replaced && has_new_time && is_same_watch);
        seen.restarts += (after.restarts - before.restarts).max(0);
    }
    seen
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(uid: &str, ready: bool, since: &str, restarts: i32) -> PodObservation {
        PodObservation {
            at: Duration::ZERO,
            watch: 1,
            uid: uid.to_owned(),
            phase: "Running".to_owned(),
            ready: Some((ready, since.to_owned())),
            restarts,
            containers: Vec::new(),
            is_gone: false,
        }
    }

    #[test]
    fn what_disturbs_a_pod_is_counted_from_its_first_ready_on() {
        let gone = PodObservation { is_gone: true, ..seen("a", true, "1", 0) };
        let (first, ready) = (seen("a", false, "0", 0), seen("a", true, "1", 0));
        let later = |observation: PodObservation| PodObservation { watch: 2, ..observation };
        let rows = [
            ("never ready", vec![first.clone(), first.clone()], [0, 0, 0, 0]),
            ("ready at last", vec![first.clone(), ready.clone(), ready.clone()], [0, 0, 0, 0]),
            ("away", vec![ready.clone(), seen("a", false, "2", 0)], [1, 0, 0, 0]),
            ("away unseen", vec![ready.clone(), later(seen("a", true, "3", 0))], [1, 0, 0, 0]),
            ("told wrong", vec![ready.clone(), seen("a", true, "3", 0)], [0, 0, 0, 1]),
            ("and back", vec![ready.clone(), first, seen("a", true, "3", 0)], [1, 0, 0, 0]),
            ("restarted", vec![ready.clone(), seen("a", true, "1", 2)], [0, 2, 0, 0]),
            ("gone", vec![ready.clone(), gone.clone()], [0, 0, 1, 0]),
            ("replaced", vec![ready.clone(), gone, seen("b", true, "4", 0)], [0, 0, 1, 0]),
            ("replaced unseen", vec![ready, later(seen("b", true, "4", 0))], [0, 0, 1, 0]),
        ];
        for (name, history, [flips, restarts, replacements, new_times]) in rows {
            let it = disturbance(&history);
            let restarted = usize::try_from(it.restarts).unwrap();
            let found = [it.flips, restarted, it.replacements, it.new_times];
            assert_eq!(found, [flips, restarts, replacements, new_times], "{name}");
        }
    }

    #[test]
    fn a_pod_that_a_new_list_does_not_have_is_gone() {
        let mut observations = Observations::default();
        let pod: Pod = serde_json::from_value(serde_json::json!({
            "metadata": { "name": "a", "namespace": "n", "uid": "u" },
        }))
        .unwrap();
        let mut listed = Vec::new();
        let list = [Event::Init, Event::InitApply(pod), Event::InitDone];
        for event in list.into_iter().chain([Event::Init, Event::InitDone]) {
            observations.record_event(event, Duration::ZERO, &mut listed);
        }
        let history = &observations.pods["n/a"];
        assert_eq!(history.iter().map(|it| it.is_gone).collect::<Vec<_>>(), [false, true]);
    }
}
