//! How long pods take to start, from their creation until the API server shows that all of them runs.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use oarsman_core::exposition::HistogramSnapshot;
use oarsman_core::ids::PodUid;
use oarsman_core::pod::PodExt;
use oarsman_core::status::startup::{PodStartup, StartupProgress, startup_progress};
use oarsman_sync::Guarded;

use super::Histogram;

/// The pods that are being started, and how long the others took.
#[derive(Debug)]
pub(crate) struct PodStartTracker {
    /// How long images were pulled for each pod that has not been started yet.
    starting: Guarded<BTreeMap<PodUid, Duration>>,
    total: Histogram,
    sli: Histogram,
    /// Of the first pod with a network of its own: it tells how long the network plugin took to be ready.
    first_network_sli: Guarded<Option<Duration>>,
}

impl PodStartTracker {
    pub(super) fn new(bounds: &'static [f64]) -> Self {
        let (total, sli) = (Histogram::new(bounds), Histogram::new(bounds));
        Self { starting: Guarded::default(), total, sli, first_network_sli: Guarded::default() }
    }

    /// A pod of the API server was admitted. One that an agent has begun to start before is not measured, nor one that is not shown there.
    pub(crate) fn begin(&self, pod: &Pod) {
        let was_begun = pod.status.as_ref().is_some_and(|status| status.start_time.is_some());
        if !pod.is_static() && !was_begun {
            self.starting.lock().insert(pod.uid(), Duration::ZERO);
        }
    }

    /// An image was pulled for the pod, or its pull has failed, after this time.
    pub(crate) fn add_pull(&self, uid: &PodUid, duration: Duration) {
        if let Some(pulls) = self.starting.lock().get_mut(uid) {
            *pulls += duration;
        }
    }

    /// The API server shows this pod.
    pub(crate) fn observe(&self, pod: &Pod, seen: Timestamp) {
        let uid = pod.uid();
        let mut starting = self.starting.lock();
        let Some((pulls, status)) = starting.get(&uid).zip(pod.status.as_ref()) else { return };
        match startup_progress(pod, status, seen, *pulls) {
            StartupProgress::Starting => return,
            StartupProgress::Started(PodStartup { total, sli }) => {
                self.total.observe_duration(total);
                self.sli.observe_duration(sli);
                if !pod.host_network() {
                    self.first_network_sli.lock().get_or_insert(sli);
                }
            }
            StartupProgress::Ended => {}
        }
        starting.remove(&uid);
    }

    /// Nothing is left of the pod.
    pub(crate) fn forget(&self, uid: &PodUid) {
        self.starting.lock().remove(uid);
    }

    /// The whole durations.
    pub(crate) fn total(&self) -> HistogramSnapshot {
        self.total.snapshot()
    }

    /// Those without image pulls and init containers.
    pub(crate) fn sli(&self) -> HistogramSnapshot {
        self.sli.snapshot()
    }

    /// That of the first pod with a network of its own.
    pub(crate) fn first_network_sli(&self) -> Option<Duration> {
        *self.first_network_sli.lock()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(source: &str, status: &Value) -> Pod {
        let metadata = json!({
            "uid": "a", "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": { "kubernetes.io/config.source": source },
        });
        serde_json::from_value(json!({ "metadata": metadata, "status": status })).unwrap()
    }

    #[test]
    fn the_first_start_of_a_pod_with_a_network_of_its_own_is_kept() {
        let tracker = PodStartTracker::new(&[1.0]);
        let start = |uid: &str, host_network: bool, seconds: i64| {
            let running = json!({ "phase": "Running", "containerStatuses": [{
                "name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                "state": { "running": {} },
            }]});
            let mut pod = pod("api", &json!({}));
            pod.metadata.uid = Some(uid.to_owned());
            pod.spec =
                serde_json::from_value(json!({ "containers": [], "hostNetwork": host_network }))
                    .unwrap();
            tracker.begin(&pod);
            pod.status = serde_json::from_value(running).unwrap();
            let created: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
            tracker.observe(&pod, created + jiff::SignedDuration::from_secs(seconds));
        };
        start("host", true, 1);
        assert_eq!(tracker.first_network_sli(), None);
        start("first", false, 5);
        start("second", false, 7);
        assert_eq!(tracker.first_network_sli(), Some(Duration::from_secs(5)));
    }

    #[test]
    fn a_start_is_measured_once_and_only_of_a_pod_that_this_agent_starts() {
        let running = json!({ "phase": "Running", "containerStatuses": [{
            "name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "state": { "running": {} },
        }]});
        let begun = json!({ "startTime": "2026-01-01T00:00:01Z" });
        let seen = "2026-01-01T00:00:09Z".parse().unwrap();
        let rows =
            [("api", json!({}), 1, 9.0), ("api", begun, 0, 0.0), ("file", json!({}), 0, 0.0)];
        for (source, first, count, total) in rows {
            let tracker = PodStartTracker::new(&[1.0]);
            tracker.begin(&pod(source, &first));
            tracker.add_pull(&"a".into(), Duration::from_secs(2));
            tracker.observe(&pod(source, &json!({ "phase": "Pending" })), seen);
            tracker.observe(&pod(source, &running), seen);
            tracker.observe(&pod(source, &running), seen);
            let (all, sli) = (tracker.total(), tracker.sli());
            assert_eq!((all.count, all.sum, sli.count), (count, total, count), "{source} {first}");
            assert_eq!(sli.sum, (total - 2.0).max(0.0));
            assert!(tracker.starting.lock().is_empty(), "{source} {first}");
        }
    }
}
