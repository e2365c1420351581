//! The conditions: their answers, reasons, order and times.

use k8s_openapi::api::core::v1::{
    ContainerRestartRule, ContainerRestartRuleOnExitCodes, PodReadinessGate,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::fixture::PodBuilder;

fn kinds(status: &PodStatus) -> Vec<&str> {
    status.conditions.iter().flatten().map(|condition| condition.type_.as_str()).collect()
}

fn conditions_of_others(kind: &str, status: &str) -> PodCondition {
    PodCondition { type_: kind.to_owned(), status: status.to_owned(), ..PodCondition::default() }
}

fn with_api_conditions(pod: PodBuilder, conditions: Vec<PodCondition>) -> Pod {
    let status = PodStatus { conditions: Some(conditions), ..PodStatus::default() };
    pod.edit(|pod| pod.status = Some(status)).build()
}

fn restarts_all() -> Pod {
    let rule = ContainerRestartRule {
        action: "RestartAllContainers".to_owned(),
        exit_codes: Some(ContainerRestartRuleOnExitCodes {
            operator: "In".to_owned(),
            values: Some(vec![42]),
        }),
    };
    pod()
        .policy("Never")
        .regular_with("app", |spec| spec.restart_policy_rules = Some(vec![rule]))
        .regular("b")
        .build()
}

#[test]
fn conditions_come_in_their_usual_order_with_those_of_others_first() {
    let api = vec![
        conditions_of_others("Ready", "True"),
        conditions_of_others("example.com/gate", "True"),
        conditions_of_others("PodResizePending", "True"),
    ];
    let pod = with_api_conditions(pod().regular("app"), api);
    let mut disrupted = status_fixture(pod, |view| view.sandbox().running("app"));
    disrupted.failure = Some(PodFailure::disrupted("Evicted", "why"));
    let expected = [
        "example.com/gate",
        "DisruptionTarget",
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    ];
    assert_eq!(kinds(&disrupted.status()), expected);
    let status = status_fixture(restarts_all(), |view| view).status();
    assert_eq!(kinds(&status).last(), Some(&"AllContainersRestarting"));
}

#[test]
fn a_pod_is_ready_to_start_containers_when_its_sandbox_will_do() {
    let pod = one("Always");
    let rows = [
        (view(&pod), "False"),
        (view(&pod).sandbox(), "True"),
        (view(&pod).dead_sandbox(), "False"),
        (view(&pod).sandbox().edit_sandbox(|sandbox| sandbox.ips.clear()), "False"),
    ];
    for (held, expected) in rows {
        let status = status_fixture(pod.clone(), |_| held).status();
        assert_eq!(describe_condition(&status, "PodReadyToStartContainers"), expected);
    }
}

#[test]
fn the_feature_gate_switches_the_condition_of_the_sandbox() {
    for is_on in [true, false] {
        let mut fixture = status_fixture(one("Always"), |view| view.sandbox());
        fixture.node.features.ready_to_start_condition = is_on;
        let status = fixture.status();
        let all = status.conditions.iter().flatten();
        let found = all.filter(|condition| condition.type_ == "PodReadyToStartContainers").count();
        assert_eq!(found, usize::from(is_on));
    }
}

#[test]
fn initialised_when_init_containers_are_done_and_sidecars_up() {
    let pod = pod().policy("Never").init("a").sidecar("b").regular("app").build();
    let held = || view(&pod).sandbox();
    let no = |names: &str| {
        format!("False ContainersNotInitialized containers with incomplete status: [{names}]")
    };
    let rows = [
        ("begun", held().running("a"), no("a b")),
        ("one done", held().exited("a", 0), no("b")),
        ("sidecar up", held().exited("a", 0).running("b"), "True".to_owned()),
        (
            "sidecar restarting",
            held().exited("a", 0).exited("b", 1).running("app"),
            "True".to_owned(),
        ),
        (
            "all over",
            held().exited("a", 0).exited("b", 1).exited("app", 0),
            "True PodCompleted".to_owned(),
        ),
    ];
    for (case, held, expected) in rows {
        assert_eq!(
            describe_condition(&status_fixture(pod.clone(), |_| held).status(), "Initialized"),
            expected,
            "{case}"
        );
    }
    assert_eq!(
        describe_condition(&status_fixture(one("Always"), |view| view).status(), "Initialized"),
        "True",
        "nothing to do"
    );
}

#[test]
fn ready_when_every_regular_container_and_sidecar_is() {
    let pod = pod().policy("Never").init("i").sidecar("s").regular("b").regular("a").build();
    let held = || view(&pod).sandbox().exited("i", 0);
    let no =
        |names: &str| format!("False ContainersNotReady containers with unready status: [{names}]");
    let rows = [
        ("sidecar only", held().running("s"), no("b a")),
        ("one missing", held().running("s").running("a"), no("b")),
        ("sidecar gone", held().exited("s", 1).running("a").running("b"), no("s")),
        ("all run", held().running("s").running("a").running("b"), "True".to_owned()),
        (
            "all well",
            held().exited("s", 0).exited("a", 0).exited("b", 0),
            "False PodCompleted".to_owned(),
        ),
        (
            "not all well",
            held().exited("s", 0).exited("a", 1).exited("b", 0),
            "False PodFailed".to_owned(),
        ),
    ];
    for (case, held, expected) in rows {
        let status = status_fixture(pod.clone(), |_| held).status();
        assert_eq!(describe_condition(&status, "ContainersReady"), expected, "{case}");
        assert_eq!(describe_condition(&status, "Ready"), expected, "{case}");
    }
}

#[test]
fn gates_of_others_keep_a_pod_from_being_ready_but_not_its_containers() {
    let gates = ["example.com/lb", "example.com/dns"]
        .map(|kind| PodReadinessGate { condition_type: kind.to_owned() });
    let gated = || pod().regular("app").spec(|spec| spec.readiness_gates = Some(gates.to_vec()));
    let missing =
        "corresponding condition of pod readiness gate \"example.com/lb\" does not exist.";
    let shut = "the status of pod readiness gate \"example.com/dns\" is not \"True\", but False";
    let rows = [
        (
            vec![],
            format!("False ReadinessGatesNotReady {missing}, {}", missing.replace("/lb", "/dns")),
        ),
        (
            vec![conditions_of_others("example.com/dns", "False")],
            format!("False ReadinessGatesNotReady {missing}, {shut}"),
        ),
        (
            vec![
                conditions_of_others("example.com/lb", "True"),
                conditions_of_others("example.com/dns", "False"),
            ],
            format!("False ReadinessGatesNotReady {shut}"),
        ),
        (
            vec![
                conditions_of_others("example.com/lb", "True"),
                conditions_of_others("example.com/dns", "True"),
            ],
            "True".to_owned(),
        ),
    ];
    for (conditions, expected) in rows {
        let pod = with_api_conditions(gated(), conditions);
        let status = status_fixture(pod, |view| view.sandbox().running("app")).status();
        assert_eq!(describe_condition(&status, "Ready"), expected);
        assert_eq!(describe_condition(&status, "ContainersReady"), "True");
    }
}

#[test]
fn a_pod_that_is_here_has_been_scheduled_whatever_else_is_so() {
    let rows = [
        status_fixture(one("Always"), |view| view),
        status_fixture(one("Always"), |view| view.sandbox().running("app")),
        status_fixture(one("Never"), |view| view.sandbox().exited("app", 1)),
        status_fixture(one("Never"), |view| view.sandbox()).termination(TerminationStage::Released),
    ];
    for status_fixture in rows {
        assert_eq!(describe_condition(&status_fixture.status(), "PodScheduled"), "True");
    }
}

#[test]
fn of_a_pod_without_containers_nothing_is_known() {
    let status = status_fixture(pod().build(), |view| view.sandbox()).status();
    assert_eq!(describe_condition(&status, "ContainersReady"), "False UnknownContainerStatuses");
    assert_eq!(describe_condition(&status, "Ready"), "False UnknownContainerStatuses");
}

#[test]
fn a_condition_keeps_its_time_until_its_answer_changes() {
    let since = |status_fixture: &StatusFixture, kind: &str| {
        condition(&status_fixture.status(), kind).unwrap().last_transition_time.clone().unwrap()
    };
    let first = status_fixture(one("Always"), |view| view.sandbox());
    let second = first.then(|view| view.sandbox().running("app"));
    let third = second.then(|view| view.sandbox().running("app"));
    assert_eq!(since(&first, "Ready"), Time(at(50)));
    assert_eq!(since(&second, "Ready"), Time(at(51)));
    assert_eq!(since(&third, "Ready"), Time(at(51)));
    assert_eq!(since(&third, "PodScheduled"), Time(at(50)));
}

#[test]
fn status_and_conditions_have_the_observed_generation() {
    let pod = pod().regular("app").edit(|pod| pod.metadata.generation = Some(7)).build();
    let status = status_fixture(pod, |view| view).status();
    assert_eq!(status.observed_generation, Some(7));
    assert!(
        status
            .conditions
            .iter()
            .flatten()
            .all(|condition| condition.observed_generation == Some(7))
    );
}

#[test]
fn disruption_target_is_set_once_and_stays() {
    let mut evicted = status_fixture(one("Always"), |view| view.sandbox().running("app"));
    evicted.failure = Some(PodFailure::disrupted("Evicted", "low on memory"));
    let later =
        StatusFixture { failure: None, ..evicted.then(|view| view.sandbox().exited("app", 137)) };
    for status in [evicted.status(), later.status()] {
        assert_eq!(
            describe_condition(&status, "DisruptionTarget"),
            "True TerminationByKubelet low on memory"
        );
    }
}

#[test]
fn restarting_all_containers_is_a_condition_and_removed_containers_are_not_lost() {
    let ran = status_fixture(restarts_all(), |view| view.sandbox().running("app").running("b"));
    assert_eq!(describe_condition(&ran.status(), "AllContainersRestarting"), "False");

    let exited = ran.then(|view| view.sandbox().exited("app", 42).running("b"));
    assert!(
        describe_condition(&exited.status(), "AllContainersRestarting")
            .starts_with("True RestartAllContainersStarted")
    );

    let removed = exited.then(|view| view.sandbox().exited("app", 42));
    let expected = (
        "waiting RestartingAllContainers".to_owned(),
        "ended 137 RestartingAllContainers".to_owned(),
        0,
    );
    assert_eq!(container_state(&removed.status(), "b"), expected);
    assert_eq!(removed.status().phase.as_deref(), Some("Running"));

    let all_gone = removed.then(|view| view.sandbox());
    assert_eq!(all_gone.status().phase.as_deref(), Some("Running"), "whatever the policy");
    assert_eq!(container_state(&all_gone.status(), "app").0, "waiting RestartingAllContainers");
    assert_eq!(
        describe_condition(&all_gone.status(), "AllContainersRestarting"),
        "False",
        "all are gone: it is done"
    );

    let anew = all_gone.then(|view| view.sandbox().running("app").running("b"));
    assert_eq!(container_state(&anew.status(), "b").0, "running");
    assert_eq!(describe_condition(&anew.status(), "Ready"), "True");
}

#[test]
fn a_pod_that_was_initialised_once_stays_so() {
    let pod = pod().sidecar("s").regular("app").build();
    let up = status_fixture(pod, |view| view.sandbox().running("s"));
    assert_eq!(describe_condition(&up.status(), "Initialized"), "True");
    let restarting = up.then(|view| view.sandbox().exited("s", 1));
    assert_eq!(describe_condition(&restarting.status(), "Initialized"), "True");
}

#[test]
fn a_resize_that_is_not_carried_out_is_a_condition_as_long_as_it_is_asked_for() {
    let mut resized = status_fixture(one("Always"), |view| view.sandbox().running("app"));
    resized.resize_infeasible = true;
    let status = resized.status();
    let expected = format!("True Infeasible {}", crate::admission::RESIZE_INFEASIBLE);
    assert_eq!(describe_condition(&status, "PodResizePending"), expected);
    assert_eq!(kinds(&status).first(), Some(&"PodResizePending"), "before all others of ours");
    let mut back = resized.then(|view| view.sandbox().running("app"));
    back.resize_infeasible = false;
    assert!(!kinds(&back.status()).contains(&"PodResizePending"));
}
