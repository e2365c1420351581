//! Filters sources: pods that were stopped over the local socket stay away for as long as the agent runs, whatever its sources say.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::unfold;
use k8s_openapi::api::core::v1::Pod;
use oarsman_agent::PodSets;
use oarsman_core::ids::FullName;
use oarsman_core::pod::PodExt;
use oarsman_sync::ordered_watch;

/// The pods that were asked to stop.
pub(crate) type StoppedPods = BTreeSet<FullName>;

/// The same sets without the stopped pods, sent again whenever a pod is stopped.
pub(crate) fn without_stopped_pods(
    sets: PodSets,
    stopped: ordered_watch::Receiver<StoppedPods>,
) -> PodSets {
    let filter = StoppedPodsFilter { sets, stopped, last: None };
    unfold(filter, |mut filter| async { filter.next().await.map(|pods| (pods, filter)) }).boxed()
}

struct StoppedPodsFilter {
    sets: PodSets,
    stopped: ordered_watch::Receiver<StoppedPods>,
    /// The last set of the source.
    last: Option<Vec<Arc<Pod>>>,
}

impl StoppedPodsFilter {
    async fn next(&mut self) -> Option<Vec<Arc<Pod>>> {
        loop {
            tokio::select! {
                biased;
                pods = self.sets.next() => self.last = Some(pods?),
                Ok(_) = self.stopped.changed() => {}
            }
            if let Some(pods) = &self.last {
                let stopped = self.stopped.get();
                let here = pods.iter().filter(|pod| !stopped.contains(&pod.full_name()));
                return Some(here.cloned().collect());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::sync::mpsc;

    use super::*;

    fn pod(name: &str) -> Arc<Pod> {
        let mut pod = Pod::default();
        pod.metadata.name = Some(name.to_owned());
        pod.metadata.namespace = Some("default".to_owned());
        Arc::new(pod)
    }

    fn names(pods: Option<Vec<Arc<Pod>>>) -> Vec<String> {
        pods.unwrap().iter().map(|pod| pod.metadata.name.clone().unwrap()).collect()
    }

    #[tokio::test]
    async fn a_stopped_pod_is_left_out_of_this_set_and_all_later_ones() {
        let (source, mut sets) = mpsc::channel(4);
        let stopped = ordered_watch::Sender::new(StoppedPods::new());
        let sets = futures::stream::poll_fn(move |context| sets.poll_recv(context)).boxed();
        let mut filtered = without_stopped_pods(sets, stopped.subscribe());
        source.send(vec![pod("a"), pod("b")]).await.unwrap();
        assert_eq!(names(filtered.next().await), ["a", "b"]);
        assert_eq!(filtered.next().now_or_never(), None, "nothing is told twice");
        stopped.send_replace(StoppedPods::from([pod("a").full_name()]));
        assert_eq!(names(filtered.next().await), ["b"]);
        source.send(vec![pod("a"), pod("b"), pod("c")]).await.unwrap();
        assert_eq!(names(filtered.next().await), ["b", "c"]);
        drop(source);
        assert_eq!(filtered.next().await, None);
    }
}
