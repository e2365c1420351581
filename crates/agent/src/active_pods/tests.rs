//! Reports of workers, writes of the supervisor, and what readers get.

use std::time::Duration;

use oarsman_core::active_pods::PodStage;
use tokio::time::timeout;

use super::*;

const LOADING: PodStage = PodStage::Worker(Stage::Loading);

fn pod(uid: &str) -> Arc<Pod> {
    let mut pod = Pod::default();
    pod.metadata.uid = Some(uid.to_owned());
    pod.metadata.name = Some(uid.to_owned());
    Arc::new(pod)
}

fn status(reason: &str) -> PodStatus {
    PodStatus { reason: Some(reason.to_owned()), ..PodStatus::default() }
}

fn access() -> (ActivePodsReader, PodUpdates, ActivePodsWriter) {
    let (readers, updates) = (ActivePodsReader::default(), PodUpdates::default());
    let writer = ActivePodsWriter::new(readers.clone(), updates.clone());
    (readers, updates, writer)
}

#[test]
fn readers_share_entries_and_the_next_supervisor_begins_with_none() {
    let (readers, updates, writer) = access();
    let pod = pod("1");
    writer.update(|pods| pods.set_pod(&pod, LOADING));
    let found = readers.by_name(&pod.full_name()).unwrap();
    let again = readers.by_uid(&pod.uid()).unwrap();
    assert!(Arc::ptr_eq(&found, &again) && Arc::ptr_eq(&found, &readers.all()[0]));
    assert!(Arc::ptr_eq(&found.pod, &pod), "the pod is the supervisor's own");
    drop(writer);
    let _next = ActivePodsWriter::new(readers.clone(), updates);
    assert_eq!(readers.all(), []);
    assert_eq!(found.stage, LOADING, "an entry stays as it was read");
}

#[tokio::test(start_paused = true)]
async fn reports_of_a_worker_become_one_write_of_the_supervisor() {
    let (readers, updates, writer) = access();
    let (pod, other) = (pod("1"), pod("2"));
    writer.update(|pods| [&pod, &other].into_iter().for_each(|pod| pods.set_pod(pod, LOADING)));
    let before = readers.by_uid(&other.uid()).unwrap();
    updates.set_stage(&pod.uid(), Stage::Syncing);
    updates.set_status(&pod.uid(), status("early"));
    updates.set_status(&pod.uid(), status("late"));
    assert_eq!(readers.by_uid(&pod.uid()).unwrap().stage, LOADING, "workers do not write");
    writer.reported().await;
    writer.apply_reports();
    let found = readers.by_uid(&pod.uid()).unwrap();
    assert_eq!(found.stage, PodStage::Worker(Stage::Syncing));
    assert_eq!(found.status(), Some(&status("late")));
    assert!(Arc::ptr_eq(&before, &readers.by_uid(&other.uid()).unwrap()));
    assert!(timeout(Duration::from_secs(1), writer.reported()).await.is_err(), "all is applied");
}

#[test]
fn a_report_of_an_earlier_worker_does_not_reach_the_entry_of_its_successor() {
    let (readers, updates, writer) = access();
    let pod = pod("1");
    writer.update(|pods| pods.set_pod(&pod, LOADING));
    updates.set_stage(&pod.uid(), Stage::Finished);
    updates.set_status(&pod.uid(), status("ended"));
    writer.update(|pods| pods.remove(&pod.uid()));
    writer.update(|pods| pods.set_pod(&pod, PodStage::Waiting));
    writer.apply_reports();
    let found = readers.by_uid(&pod.uid()).unwrap();
    assert_eq!((found.stage, found.status()), (PodStage::Waiting, None));
}
