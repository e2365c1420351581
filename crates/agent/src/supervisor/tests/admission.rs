//! Admission as the supervisor carries it out: preemption, restarts, resizes, a node that is read again.

use k8s_openapi::api::core::v1::{PodStatus, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;
use oarsman_core::admission::{NodeAdmitHandlers, NodeObjectState};
use oarsman_core::quantity::Quantity;

use super::*;

/// A node with so many CPUs for pods.
fn with_cpus(cpus: &str) -> AdmissionNode {
    let amounts = [("cpu", cpus), ("pods", "9")];
    let amounts = amounts.map(|(name, amount)| (name.to_owned(), Quantity::parse(amount).unwrap()));
    AdmissionNode { allocatable: amounts.into(), ..AdmissionNode::default() }
}

async fn fixture(test: TestNode) -> SupervisorFixture {
    SupervisorFixture::with(test, Arc::new(NodeAdmitHandlers::default())).await
}

fn node_with(node: AdmissionNode) -> TestNode {
    TestNode::with(|context| context.config.admission_node = node)
}

fn requesting(mut pod: Pod, cpu: &str) -> Pod {
    let amounts = [("cpu".to_owned(), WireQuantity(cpu.to_owned()))];
    let resources =
        ResourceRequirements { requests: Some(amounts.into()), ..ResourceRequirements::default() };
    pod.spec.as_mut().unwrap().containers[0].resources = Some(resources);
    pod
}

fn shown(fixture: &SupervisorFixture, pod: &Pod) -> PodStatus {
    fixture.test.world.cluster.get(&pod.full_name()).unwrap().status.unwrap_or_default()
}

fn told(fixture: &SupervisorFixture, pod: &Pod) -> (String, String) {
    let status = shown(fixture, pod);
    (status.phase.unwrap_or_default(), status.reason.unwrap_or_default())
}

fn texts((phase, reason): (&str, &str)) -> (String, String) {
    (phase.to_owned(), reason.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_critical_pod_starts_when_its_victims_have_stopped() {
    let fixture = fixture(node_with(with_cpus("2"))).await;
    let web = requesting(slow_to_stop("web"), "2");
    fixture.test.world.cluster.create(web.clone());
    fixture.set_sources(&[], &[&web]).await;
    assert_eq!(fixture.starts("uid-web"), 1);
    let critical = from_file(requesting(pod("critical", &["forever"]), "1"));
    fixture.set_sources(&[&critical], &[&web]).await;
    assert_eq!(fixture.starts("uid-critical"), 0, "the victim takes nine seconds to stop");
    assert_eq!(fixture.stage("uid-critical"), Some(StageReport::Waiting));
    seconds(10).await;
    assert_eq!(fixture.starts("uid-critical"), 1);
    assert_eq!(told(&fixture, &web), texts(("Failed", "Preempting")));
    let conditions = shown(&fixture, &web).conditions.unwrap_or_default();
    let disrupted = conditions.iter().find(|condition| condition.type_ == "DisruptionTarget");
    let reason = disrupted.and_then(|condition| condition.reason.as_deref());
    assert_eq!(reason, Some("TerminationByKubelet"));
}

#[tokio::test(start_paused = true)]
async fn a_critical_pod_does_not_wait_for_ever_and_one_that_is_removed_meanwhile_not_at_all() {
    for removed in [false, true] {
        let fixture = fixture(node_with(with_cpus("2"))).await;
        let web = requesting(pod("web", &["forever"]), "2");
        fixture.set_sources(&[], &[&web]).await;
        fixture.test.calls.hold("StopContainer");
        let critical = from_file(requesting(pod("critical", &["forever"]), "1"));
        fixture.set_sources(&[&critical], &[&web]).await;
        if removed {
            fixture.set_sources(&[], &[&web]).await;
        }
        // One and a half times the grace period of thirty seconds.
        seconds(44 - fixture.test.world.clock.elapsed().as_secs() + 5).await;
        assert_eq!(fixture.starts("uid-critical"), 0);
        seconds(5).await;
        assert_eq!(fixture.starts("uid-critical"), usize::from(!removed), "{removed}");
        assert_eq!(fixture.stage("uid-critical").is_none(), removed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_runs_is_not_rejected_when_the_agent_restarts() {
    let first = fixture(node_with(with_cpus("2"))).await;
    let (old, web) =
        (requesting(pod("old", &["forever"]), "1"), requesting(pod("web", &["forever"]), "2"));
    first.set_sources(&[], &[&web]).await;
    first.task.abort();
    let world = first.test.world.clone();
    // The node has become smaller, and an older pod has come.
    let node = with_cpus("1");
    let again = TestNode::with_incarnation(world, 2, |it| it.config.admission_node = node);
    again.world.cluster.create(old.clone());
    let second = fixture(again).await;
    second.set_sources(&[], &[&old, &web]).await;
    assert_eq!(second.stage("uid-web"), Some(StageReport::Syncing));
    assert_eq!(second.starts("uid-web"), 1, "it was left alone");
    assert_eq!(told(&second, &old), texts(("Failed", "OutOfcpu")));
    let message = shown(&second, &old).message;
    let expected = "Pod was rejected: Node didn't have enough resource: cpu, requested: 1000, used: 2000, capacity: 1000";
    assert_eq!(message.as_deref(), Some(expected));
}

#[tokio::test(start_paused = true)]
async fn no_pod_is_admitted_before_it_is_known_what_runs() {
    let test = node_with(with_cpus("2"));
    test.calls.fail("list the records of pods", 3);
    let fixture = fixture(test).await;
    let web = pod("web", &["forever"]);
    fixture.files.send(Vec::new()).unwrap();
    fixture.api.send(vec![Arc::new(web)]).unwrap();
    seconds(2).await;
    assert!(fixture.begins("uid-web").is_empty());
    seconds(5).await;
    assert_eq!(fixture.begins("uid-web").len(), 1, "the list is repeated within seconds");
}

#[tokio::test(start_paused = true)]
async fn a_resize_is_answered_infeasible_and_changes_nothing_that_runs() {
    let fixture = fixture(node_with(with_cpus("4"))).await;
    let web = requesting(pod("web", &["forever"]), "1");
    fixture.test.world.cluster.create(web.clone());
    fixture.set_sources(&[], &[&web]).await;
    let pending = |fixture: &SupervisorFixture| {
        let conditions = shown(fixture, &web).conditions.unwrap_or_default();
        let pending = conditions.into_iter().find(|it| it.type_ == "PodResizePending");
        pending.map(|it| (it.status, it.reason.unwrap_or_default()))
    };
    let given = |fixture: &SupervisorFixture| {
        let statuses = shown(fixture, &web).container_statuses.unwrap_or_default();
        statuses[0].resources.clone().unwrap().requests.unwrap()["cpu"].0.clone()
    };
    assert_eq!((pending(&fixture), given(&fixture)), (None, "1".to_owned()));
    fixture.set_sources(&[], &[&requesting(web.clone(), "3")]).await;
    let infeasible = Some(("True".to_owned(), "Infeasible".to_owned()));
    assert_eq!((pending(&fixture), given(&fixture)), (infeasible, "1".to_owned()));
    let events = fixture.test.node.report_store.report().events;
    let told = events.iter().filter(|it| it.reason == "ResizeInfeasible").count();
    assert_eq!((told, fixture.starts("uid-web")), (1, 1));
    fixture.set_sources(&[], &[&web]).await;
    assert_eq!(pending(&fixture), None, "it asks for what it has");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_only_labels_are_against_is_asked_again_with_the_node_as_it_is() {
    for labelled_meanwhile in [true, false] {
        let mut watched = with_cpus("2");
        watched.object_state = NodeObjectState::Watched;
        let test = node_with(watched);
        let object = test.node.seams.cluster.node().unwrap();
        let mut node = Node::default();
        node.metadata.name = Some("n1".to_owned());
        object.create(&node).await.unwrap();
        let selector = [("disk".to_owned(), "ssd".to_owned())];
        if labelled_meanwhile {
            let labels = Some(selector.clone().into());
            test.world.cluster.update_node(|node| node.metadata.labels = labels);
        }
        let mut web = pod("web", &["forever"]);
        web.spec.as_mut().unwrap().node_selector = Some(selector.into());
        test.world.cluster.create(web.clone());
        let fixture = fixture(test).await;
        fixture.set_sources(&[], &[&web]).await;
        let expected =
            if labelled_meanwhile { ("Running", "") } else { ("Failed", "NodeAffinity") };
        assert_eq!(told(&fixture, &web), texts(expected));
    }
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_cluster_wait_for_the_node_and_static_ones_do_not() {
    let mut unread = with_cpus("2");
    unread.object_state = NodeObjectState::Unread;
    let fixture = fixture(node_with(unread)).await;
    let (web, file) = (pod("web", &["forever"]), from_file(pod("file", &["forever"])));
    fixture.set_sources(&[&file], &[&web]).await;
    assert_eq!((fixture.starts("uid-web"), fixture.starts("uid-file")), (0, 1));
    let mut watched = with_cpus("2");
    watched.object_state = NodeObjectState::Watched;
    fixture.test.admission_node.send_replace(watched);
    seconds(5).await;
    assert_eq!((fixture.starts("uid-web"), fixture.starts("uid-file")), (1, 1));
}
