//! Probes beside a pod worker over the simulated world, in virtual time.

use std::time::Duration;

use k8s_openapi::api::core::v1::{
    ContainerStatus, ExecAction, GRPCAction, HTTPGetAction, Probe, TCPSocketAction,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use oarsman_core::mirror::mirror_pod;
use oarsman_core::pod::{HASH_ANNOTATION, SOURCE_ANNOTATION};
use oarsman_core::prober::{ProbeTally, period_annotation};
use oarsman_world::network::{FakeHealth, FakeServer};
use oarsman_world::trace::ContainerTransition;

use super::*;
use crate::testing::{TestNode, TestWorker, deleted, pod, seconds};

const UID: &str = "uid-web";
const SECOND: Duration = Duration::from_secs(1);
const FLAPPING: FakeHealth =
    FakeHealth::Flapping { good: Duration::from_secs(20), bad: Duration::from_secs(20) };

fn http(host: &str) -> Probe {
    let port = IntOrString::Int(80);
    let action = HTTPGetAction { host: Some(host.to_owned()), port, ..HTTPGetAction::default() };
    Probe { http_get: Some(action), period_seconds: Some(2), ..Probe::default() }
}

fn exec(script: &[&str]) -> Probe {
    let command = ["/script"].iter().chain(script).map(|&step| step.to_owned()).collect();
    let action = ExecAction { command: Some(command) };
    Probe { exec: Some(action), period_seconds: Some(2), ..Probe::default() }
}

/// A pod whose one container never ends, edited.
fn probed(name: &str, edit: impl FnOnce(&mut Container)) -> Arc<Pod> {
    let mut pod = pod(name, &["forever"]);
    edit(&mut pod.spec.get_or_insert_default().containers[0]);
    Arc::new(pod)
}

fn node() -> TestNode {
    let test = TestNode::new();
    serve(&test);
    test
}

fn serve(test: &TestNode) {
    let healths = [
        ("good", FakeHealth::Good),
        ("bad", FakeHealth::Bad),
        ("hanging", FakeHealth::Hanging),
        ("flapping", FLAPPING),
    ];
    for (host, health) in healths {
        test.world.network.serve(host, 80, FakeServer::probed(health));
    }
}

fn status(test: &TestNode, uid: &str) -> ContainerStatus {
    let status = test.report(&uid.into()).pod.status.unwrap_or_default();
    status.container_statuses.and_then(|mut all| all.pop()).unwrap_or_default()
}

fn is_ready(test: &TestNode) -> bool {
    status(test, UID).ready
}

fn start(test: &TestNode, edit: impl FnOnce(&mut Container)) -> TestWorker {
    test.start(&probed("web", edit))
}

fn events(test: &TestNode, reason: &str) -> Vec<String> {
    let events = test.node.report_store.report().events.into_iter();
    events.filter(|event| event.reason == reason).map(|event| event.message).collect()
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_handler_makes_a_container_ready_or_keeps_it_from_that() {
    let tcp = |host: &str| TCPSocketAction {
        host: Some(host.to_owned()),
        port: IntOrString::String("80".to_owned()),
    };
    let tcp = |host: &str| Probe { tcp_socket: Some(tcp(host)), ..Probe::default() };
    let grpc = |port| GRPCAction { port, service: None };
    let grpc = |port| Probe { grpc: Some(grpc(port)), ..Probe::default() };
    let rows = [
        (exec(&["exit:0"]), true),
        (exec(&["exit:1"]), false),
        (exec(&["forever"]), false),
        (http("good"), true),
        (http("bad"), false),
        (http("hanging"), false),
        (tcp("good"), true),
        (tcp("bad"), false),
        (tcp("nowhere"), false),
        (grpc(80), true),
        (grpc(81), false),
        (Probe::default(), false),
    ];
    for (probe, expected) in rows {
        let test = node();
        let spec = probe.clone();
        let mut listening = Pod::clone(&probed("web", |container| {
            container.readiness_probe = Some(spec);
        }));
        let container = &mut listening.spec.get_or_insert_default().containers[0];
        container.args = Some(vec!["listen:80".to_owned(), "forever".to_owned()]);
        let _worker = test.start(&Arc::new(listening));
        seconds(5).await;
        assert_eq!(is_ready(&test), expected, "{probe:?}");
        assert_eq!(events(&test, "Unhealthy").is_empty(), expected, "{probe:?}");
        let (series, tally) = test.node.metrics.probes.snapshot().remove(0);
        assert_eq!((series.kind, series.container.as_str()), (ProbeKind::Readiness, "main"));
        assert_eq!(tally.successful > 0, expected, "{tally:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn readiness_follows_its_probe_and_restarts_nothing() {
    let test = node();
    let _worker = start(&test, |container| {
        container.readiness_probe = Some(Probe { failure_threshold: Some(1), ..http("flapping") });
    });
    // The server is well for 20 seconds, and then not for 20.
    for (second, expected) in [(5, true), (24, false), (44, true), (64, false)] {
        seconds(second - test.world.clock.elapsed().as_secs()).await;
        assert_eq!(is_ready(&test), expected, "after {second} s");
    }
    assert_eq!(test.starts(&UID.into()).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_container_that_fails_its_liveness_probe_is_restarted_like_one_that_crashed() {
    let test = node();
    let worker = start(&test, |container| {
        container.liveness_probe =
            Some(Probe { termination_grace_period_seconds: Some(7), ..http("bad") });
    });
    seconds(3).await;
    assert_eq!(test.starts(&UID.into()).len(), 1, "two failures are not enough");
    seconds(3).await;
    assert_eq!(test.starts(&UID.into()).len(), 2, "{:?}", test.log.entries_text());
    let killing = "Container main failed liveness probe, will be restarted";
    assert!(events(&test, "Killing").contains(&killing.to_owned()));
    let graces = test.called("StopContainer");
    assert!(graces.iter().all(|call| call.ends_with(" 7s")), "{graces:?}");
    seconds(6).await;
    // There is no listener for events of the runtime here.
    worker.mailbox.hint(Hint::Runtime);
    seconds(4).await;
    assert_eq!(test.starts(&UID.into()).len(), 2, "the next restart waits for the back-off");
    seconds(10).await;
    assert_eq!(test.starts(&UID.into()).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_startup_probe_holds_back_the_others_and_restarts_when_it_fails() {
    let test = node();
    let _worker = start(&test, |container| {
        container.startup_probe = Some(Probe { failure_threshold: Some(5), ..http("bad") });
        container.liveness_probe = Some(exec(&["exit:1"]));
        container.readiness_probe = Some(exec(&["exit:0"]));
    });
    seconds(8).await;
    assert_eq!(test.called("ExecSync"), [""; 0], "neither is asked before startup succeeds");
    assert_eq!(status(&test, UID).started, Some(false));
    assert_eq!(test.starts(&UID.into()).len(), 1);
    seconds(3).await;
    assert_eq!(test.starts(&UID.into()).len(), 2);
    let killing = "Container main failed startup probe, will be restarted";
    assert!(events(&test, "Killing").contains(&killing.to_owned()));
    assert!(!is_ready(&test));
}

#[tokio::test(start_paused = true)]
async fn a_container_is_ready_right_after_its_startup_probe_succeeds() {
    let test = node();
    let _worker = start(&test, |container| {
        container.startup_probe = Some(http("good"));
        container.readiness_probe = Some(Probe { period_seconds: Some(60), ..http("good") });
    });
    seconds(2).await;
    assert!(is_ready(&test));
    assert_eq!(status(&test, UID).started, Some(true));
    let asked = test.called("get").len();
    assert_eq!(asked, 2, "once each");
}

#[tokio::test(start_paused = true)]
async fn readiness_is_asked_while_a_pod_terminates_and_liveness_is_not() {
    let test = node();
    let pod = probed("web", |container| {
        container.args = Some(vec!["on-term:sleep:25s,exit:0".to_owned(), "forever".to_owned()]);
        container.readiness_probe = Some(Probe { failure_threshold: Some(1), ..http("flapping") });
        container.liveness_probe = Some(exec(&["exit:0"]));
    });
    let worker = test.start(&pod);
    seconds(10).await;
    assert!(is_ready(&test));
    worker.mailbox.update_pod(deleted(&pod, 30));
    seconds(2).await;
    let asked = test.called("ExecSync").len();
    seconds(11).await;
    assert!(!is_ready(&test), "the server has been unwell for some seconds");
    assert_eq!(test.called("ExecSync").len(), asked);
    seconds(20).await;
    let before = test.called("get").len();
    seconds(20).await;
    assert_eq!(test.called("get").len(), before, "nothing is left to ask");
    assert_eq!(test.node.metrics.probes.snapshot(), []);
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_probes_hang_delays_no_other() {
    let test = node();
    let hanging = |container: &mut Container| {
        let mut probe = exec(&["forever"]);
        probe.timeout_seconds = Some(600);
        container.liveness_probe = Some(Probe { timeout_seconds: Some(600), ..http("hanging") });
        container.readiness_probe = Some(probe);
    };
    let workers: Vec<_> =
        (0..20).map(|number| test.start(&probed(&format!("hangs-{number}"), hanging))).collect();
    seconds(30).await;
    let _worker = start(&test, |container| {
        container.readiness_probe = Some(http("good"));
        container.liveness_probe = Some(exec(&["exit:0"]));
    });
    seconds(4).await;
    assert!(is_ready(&test));
    assert!(workers.iter().all(|worker| !worker.task.is_finished()));
    let of_web = test.node.metrics.probes.snapshot();
    let of_web = of_web.iter().filter(|(series, _)| series.pod_uid.as_str() == UID);
    assert!(of_web.clone().count() == 2 && of_web.clone().all(|(_, tally)| tally.successful >= 2));
}

#[tokio::test(start_paused = true)]
async fn another_agent_keeps_readiness_and_asks_within_half_a_second() {
    let first = node();
    let pod = probed("web", |container| {
        container.startup_probe = Some(http("good"));
        container.readiness_probe = Some(Probe { period_seconds: Some(10), ..http("good") });
    });
    first.world.cluster.create(Pod::clone(&pod)).unwrap();
    let worker = first.start(&pod);
    seconds(3).await;
    assert!(is_ready(&first));
    worker.task.abort();
    let world = first.world.clone();
    let published = world.cluster.list().remove(0);
    assert!(published.status.is_some(), "the API server has the status");
    let asked = first.called("get").len();
    let second = TestNode::with_incarnation(world, 2, |_| {});
    let _worker = second.start(&Arc::new(published));
    tokio::time::sleep(SECOND).await;
    assert!(is_ready(&second));
    assert_eq!(second.called("get").len(), asked + 1, "readiness only: it has started");
    assert_eq!(second.starts(&UID.into()).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn readiness_of_a_static_pod_that_another_agent_ran_is_kept_by_its_mirror_pod() {
    let first = node();
    let mut pod = Pod::clone(&probed("web", |container| {
        container.startup_probe = Some(http("good"));
        container.readiness_probe = Some(http("good"));
    }));
    let annotations = [(SOURCE_ANNOTATION, "file"), (HASH_ANNOTATION, UID)];
    let annotations = annotations.map(|(key, value)| (key.to_owned(), value.to_owned()));
    pod.metadata.annotations = Some(annotations.into());
    let pod = Arc::new(pod);
    let worker = first.start(&pod);
    seconds(3).await;
    assert!(is_ready(&first));
    worker.task.abort();
    let published = first.report(&UID.into()).pod.status;
    let world = first.world.clone();
    for is_shown in [true, false] {
        let life = if is_shown { 2 } else { 3 };
        let next = TestNode::with_incarnation(world.clone(), life, |_| {});
        next.node.seams.records.remove(&UID.into()).await.unwrap();
        // Until its answers time out often enough, only what is known from before counts.
        world.network.serve("good", 80, FakeServer::probed(FakeHealth::Hanging));
        let shown = published.clone().filter(|_| is_shown);
        let mirror = Pod { status: shown, ..mirror_pod(&pod, "node-uid") };
        next.node.mirrors.add_static_pod(&pod);
        let worker = next.start(&pod);
        tokio::time::sleep(SECOND / 10).await;
        next.node.mirrors.observe(vec![mirror]);
        tokio::time::sleep(SECOND).await;
        assert_eq!(is_ready(&next), is_shown, "the API server shows it: {is_shown}");
        assert_eq!(status(&next, UID).started, Some(is_shown));
        assert_eq!(next.starts(&UID.into()).len(), 1);
        worker.task.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn an_annotation_shortens_the_period_and_a_wrong_one_is_an_event() {
    let test = node();
    let annotated = |value: &str| {
        let mut pod = Pod::clone(&probed("web", |container| {
            container.readiness_probe = Some(Probe { period_seconds: Some(10), ..http("good") });
        }));
        let key = period_annotation("main", ProbeKind::Readiness);
        pod.metadata.annotations = Some([(key, value.to_owned())].into());
        Arc::new(pod)
    };
    let _worker = test.start(&annotated("200ms"));
    seconds(3).await;
    let asked = test.called("get").len();
    seconds(2).await;
    assert_eq!(test.called("get").len() - asked, 10);
    assert_eq!(events(&test, "InvalidProbePeriod"), [""; 0]);
    let test = node();
    let _worker = test.start(&annotated("2s"));
    seconds(5).await;
    assert_eq!(test.called("get").len(), 1);
    assert_eq!(events(&test, "InvalidProbePeriod").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_cannot_be_carried_out_is_tried_three_times_and_counts_as_nothing() {
    let test = node();
    let _worker = start(&test, |container| {
        let mut probe = exec(&[]);
        probe.exec = Some(ExecAction { command: Some(vec!["/missing".to_owned()]) });
        container.liveness_probe = Some(Probe { failure_threshold: Some(1), ..probe });
    });
    seconds(3).await;
    assert_eq!(test.called("ExecSync").len(), 2 * 3);
    assert_eq!(test.starts(&UID.into()).len(), 1);
    let tally = test.node.metrics.probes.snapshot().remove(0).1;
    assert_eq!(tally, ProbeTally { unknown: 2, ..ProbeTally::default() });
    let told = events(&test, "Unhealthy").remove(0);
    assert!(told.starts_with("Liveness probe errored and resulted in unknown state: "), "{told}");
    let answer = test.report(&UID.into()).probes.remove(0);
    assert_eq!((answer.answer, answer.kind), (ProbeAnswer::Error, ProbeKind::Liveness));
}

#[tokio::test(start_paused = true)]
async fn a_command_that_does_not_end_in_time_is_a_failure() {
    let test = node();
    let _worker = start(&test, |container| {
        container.liveness_probe = Some(exec(&["forever"]));
    });
    seconds(9).await;
    assert_eq!(test.starts(&UID.into()).len(), 2, "three failures in a row");
    let changes = test.changes(&UID.into());
    assert!(changes.iter().any(|(_, change)| *change == ContainerTransition::Signalled(15)));
    let told = events(&test, "Unhealthy").remove(0);
    assert!(told.starts_with("Liveness probe failed: command timed out: "), "{told}");
}
