//! The pod worker with the real pieces of work over the simulated world, in virtual time.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::lifecycle::PodFailure;
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::ContainerState;
use oarsman_world::disk::{HOSTS, RESOLV_CONF};
use oarsman_world::trace::ContainerTransition;

use super::*;
use crate::testing::{PULLABLE, TestNode, TestWorker, deleted, from_file, pod, seconds};

const UID: &str = "uid-web";

fn web(script: &[&str]) -> Arc<Pod> {
    Arc::new(pod("web", script))
}

/// A worker whose pod runs.
async fn running(script: &[&str]) -> (TestNode, Arc<Pod>, TestWorker) {
    let (test, pod) = (TestNode::new(), web(script));
    let worker = test.start(&pod);
    seconds(5).await;
    assert_eq!(test.starts(&UID.into()).len(), 1);
    (test, pod, worker)
}

/// The notices so far, by their names.
fn notices(test: &mut TestNode) -> Vec<&'static str> {
    let next = || match test.notices.try_recv().ok()? {
        WorkerNotice::Stopped(_) => Some("Stopped"),
        WorkerNotice::Finished(_) => Some("Finished"),
        WorkerNotice::Forgotten(_) => Some("Forgotten"),
    };
    std::iter::from_fn(next).collect()
}

#[tokio::test(start_paused = true)]
async fn nothing_is_changed_before_the_first_read_has_succeeded() {
    for call in ["ListPodSandbox", "ListContainers", "recall the status of"] {
        let test = TestNode::new();
        test.calls.hold(call);
        test.calls.fail(call, 1);
        let worker = test.start(&web(&["forever"]));
        seconds(5).await;
        assert_eq!(test.log.entries_text(), ["Begin Wanted", "StartRead"], "{call}");
        test.calls.release(call);
        seconds(5).await;
        let first =
            ["Begin", "StartRead", "ReadDone", "Wake", "StartRead", "ReadDone", "StartSync"];
        let words = test.log.entries_text();
        assert!(
            first.iter().zip(&words).all(|(want, is)| is.starts_with(want)),
            "{call}: {words:?}"
        );
        let [begun] = test.log.times(UID, "StartSync First")[..] else { panic!("{words:?}") };
        assert!(begun >= Duration::from_secs(6), "{call}: {begun:?}");
        assert!(test.starts(&UID.into()).iter().all(|at| *at >= begun), "{call}");
        worker.task.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn an_update_during_a_sync_is_read_at_once_and_synced_afterwards() {
    let (test, pod) = (TestNode::new(), web(&["forever"]));
    test.calls.hold("StartContainer");
    let worker = test.start(&pod);
    seconds(1).await;
    for label in ["a", "b"] {
        let mut edited = Pod::clone(&pod);
        edited.metadata.labels = Some([("label".to_owned(), label.to_owned())].into());
        worker.mailbox.update_pod(Arc::new(edited));
        seconds(1).await;
    }
    let until_now =
        ["Begin Wanted", "StartRead", "ReadDone", "StartSync First", "Wanted", "Wanted"];
    assert_eq!(test.log.entries_text(), until_now);
    test.calls.release("StartContainer");
    seconds(5).await;
    let afterwards = ["SyncDone", "StartSync Updated", "SyncDone"];
    assert_eq!(test.log.entries_text()[until_now.len()..], afterwards);
    assert_eq!(test.starts(&UID.into()).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_cancels_a_slow_start_but_not_the_call_that_is_under_way() {
    // What is held, whether the sync waits for it, and how many containers have started in the end.
    for (held, runs_on, starts) in [("PullImage", false, 0), ("StartContainer", true, 1)] {
        let mut slow = pod("web", &["forever"]);
        slow.spec.get_or_insert_default().containers[0].image = Some(PULLABLE.to_owned());
        let (test, pod) = (TestNode::new(), Arc::new(slow));
        test.calls.hold(held);
        let worker = test.start(&pod);
        seconds(5).await;
        worker.mailbox.update_pod(deleted(&pod, 10));
        seconds(5).await;
        let is_killed = || !test.log.times(UID, "StartKill").is_empty();
        assert_eq!(test.log.times(UID, "CancelSync"), [Duration::from_secs(5)], "{held}");
        assert_eq!(is_killed(), !runs_on, "{held}");
        test.calls.release(held);
        seconds(1).await;
        assert!(is_killed(), "{held}");
        seconds(15).await;
        assert_eq!(test.starts(&UID.into()).len(), starts, "{held}");
        assert_eq!(test.report(&UID.into()).stage, StageReport::Finished, "{held}");
        let left = test.world.runtime.list_containers(None).await.unwrap();
        assert!(
            left.iter().all(|left| left.state() != ContainerState::ContainerRunning),
            "{held}: {left:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_deletion_shortens_the_grace_of_the_kill_under_way_and_never_lengthens_it() {
    // The grace of the second deletion, and the second in which the container is killed.
    for (second, killed) in [(2, 12), (60, 35)] {
        let (test, pod, worker) = running(&["on-term:ignore", "forever"]).await;
        worker.mailbox.update_pod(deleted(&pod, 30));
        seconds(5).await;
        worker.mailbox.update_pod(deleted(&pod, second));
        seconds(40).await;
        let exits = test.changes(&UID.into()).into_iter();
        let exits =
            exits.filter(|(_, change)| matches!(change, ContainerTransition::Exited { .. }));
        let exits: Vec<_> = exits.map(|(at, _)| at.as_secs()).collect();
        assert_eq!(exits, [killed], "{second}");
        assert_eq!(test.log.times(UID, "StartKill").len(), 1, "{second}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_kill_that_failed_is_tried_again_after_a_while_and_the_report_says_why() {
    for call in ["StopContainer", "StopPodSandbox", "ListPodSandbox"] {
        let (test, pod, worker) = running(&["forever"]).await;
        test.calls.fail(call, 1);
        worker.mailbox.update_pod(deleted(&pod, 1));
        seconds(5).await;
        let report = test.report(&UID.into());
        assert_eq!(report.stage, StageReport::Terminating, "{call}");
        let waits_for = report.waits_for.unwrap_or_default();
        assert!(waits_for.contains(call), "{call}: {waits_for}");
        assert!(report.next_try.is_some(), "{call}");
        seconds(15).await;
        let [first, second] = test.log.times(UID, "StartKill")[..] else { panic!("{call}") };
        let waited = (second - first).as_secs();
        assert!((10..=16).contains(&waited), "{call}: {waited}");
        let report = test.report(&UID.into());
        assert_eq!((report.stage, report.waits_for), (StageReport::Finished, None), "{call}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_clean_up_that_failed_is_tried_again_until_nothing_is_left() {
    for call in
        ["RemoveContainer", "RemovePodSandbox", "remove the directory of", "remove the record of"]
    {
        let (test, _, worker) = running(&["forever"]).await;
        test.calls.fail(call, 2);
        worker.mailbox.remove_pod();
        seconds(5).await;
        let report = test.report(&UID.into());
        assert_eq!(report.stage, StageReport::Finished, "{call}");
        assert!(report.waits_for.is_some_and(|why| why.contains("something went wrong")), "{call}");
        assert!(!worker.task.is_finished(), "{call}");
        seconds(35).await;
        assert!(worker.task.is_finished(), "{call}");
        assert_eq!(test.log.times(UID, "StartCleanup").len(), 3, "{call}");
        assert!(test.world.disk.pods().is_empty(), "{call}");
        let runtime = &test.world.runtime;
        assert!(runtime.list_pod_sandboxes(None).await.unwrap().is_empty(), "{call}");
        assert!(runtime.list_containers(None).await.unwrap().is_empty(), "{call}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_static_pod_is_finished_only_once_its_end_is_recorded() {
    let mut once = from_file(pod("web", &["exit:0"]));
    once.spec.get_or_insert_default().restart_policy = Some("Never".to_owned());
    let mut test = TestNode::new();
    test.calls.fail("remember the status of", u32::MAX);
    let worker = test.start(&Arc::new(once));
    seconds(60).await;
    let report = test.report(&UID.into());
    assert_eq!(report.stage, StageReport::Terminated);
    assert!(report.waits_for.is_some_and(|why| why.contains("remember the status of")));
    assert_eq!(notices(&mut test), ["Stopped"]);
    test.calls.fail("remember the status of", 0);
    seconds(20).await;
    assert_eq!(test.report(&UID.into()).stage, StageReport::Finished);
    assert_eq!(notices(&mut test), ["Finished"]);
    let recorded = test.world.disk.recorded(&UID.into()).unwrap();
    assert_eq!(recorded.phase.as_deref(), Some("Succeeded"));
    assert!(!worker.task.is_finished(), "it keeps the pod from running again");
}

#[tokio::test(start_paused = true)]
async fn a_worker_ends_once_its_pod_is_forgotten_wherever_the_pod_was_when_it_was_removed() {
    let pod = web(&["forever"]);
    let wanted = || WorkerStart::Wanted(Arc::clone(&pod));
    let rejected = WorkerStart::Rejected(Arc::clone(&pod), PodFailure::rejected("Full", "no room"));
    // What is held until the pod is removed, and how the worker begins.
    let rows = [
        ("", wanted()),
        ("ListPodSandbox", wanted()),
        ("RunPodSandbox", wanted()),
        ("StartContainer", wanted()),
        ("", rejected),
        ("", WorkerStart::Orphan),
    ];
    for (held, begin) in rows {
        let mut test = TestNode::new();
        test.calls.hold(held);
        let row = format!("{held} {begin:?}");
        let worker = test.start_as(&pod, begin);
        seconds(5).await;
        worker.mailbox.remove_pod();
        test.calls.release(held);
        seconds(60).await;
        assert!(worker.task.is_finished(), "{row}");
        assert_eq!(notices(&mut test), ["Stopped", "Finished", "Forgotten"], "{row}");
        assert!(test.world.disk.pods().is_empty(), "{row}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_sandbox_is_made_with_the_nodes_resolv_conf_as_it_is_then() {
    let node = TestNode::new();
    let mut workers = Vec::new();
    for server in ["192.0.2.53", "192.0.2.54"] {
        let text = format!("nameserver {server}\n");
        node.world.files.write(RESOLV_CONF.as_ref(), text.as_bytes()).unwrap();
        let mut pod = pod(&format!("of-{server}"), &["forever"]);
        pod.spec.get_or_insert_default().dns_policy = Some("Default".to_owned());
        workers.push(node.start(&Arc::new(pod)));
        seconds(5).await;
        let uid = format!("uid-of-{server}");
        assert_eq!(node.world.runtime.name_servers(&uid), [server]);
    }
}

#[tokio::test(start_paused = true)]
async fn containers_of_the_nodes_network_read_the_nodes_hosts_file_as_it_is_then() {
    let node = TestNode::new();
    let mut workers = Vec::new();
    for host in ["one", "two"] {
        let text = format!("192.0.2.1 {host}\n");
        node.world.files.write(HOSTS.as_ref(), text.as_bytes()).unwrap();
        let mut pod = pod(host, &["forever"]);
        pod.spec.get_or_insert_default().host_network = Some(true);
        workers.push(node.start(&Arc::new(pod)));
        seconds(5).await;
        let file = format!("/var/lib/oarsman/pods/uid-{host}/etc-hosts");
        let hosts = String::from_utf8(node.world.files.read(file.as_ref()).unwrap()).unwrap();
        assert!(hosts.ends_with(&text), "{hosts}");
    }
}
