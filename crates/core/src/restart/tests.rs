//! Each row is a rule of restarting.

use k8s_openapi::api::core::v1::{ContainerRestartRule, ContainerRestartRuleOnExitCodes};

use super::*;
use crate::fixture::{at, pod};

const RESTART: AfterExit = AfterExit::Restart;
const LEAVE: AfterExit = AfterExit::Leave;
const ALL: AfterExit = AfterExit::RestartAll;

fn exit(code: i32, reason: &str) -> Exit {
    let (started_at, message) = (Some(at(0)), String::new());
    Exit { started_at, finished_at: at(1), code, reason: reason.to_owned(), message }
}

fn container(policy: Option<&str>, rules: &[ContainerRestartRule]) -> Container {
    Container {
        restart_policy: policy.map(str::to_owned),
        restart_policy_rules: Some(rules.to_vec()),
        ..Container::default()
    }
}

fn rule(action: &str, operator: &str, values: &[i32]) -> ContainerRestartRule {
    let codes = ContainerRestartRuleOnExitCodes {
        operator: operator.to_owned(),
        values: Some(values.to_vec()),
    };
    ContainerRestartRule { action: action.to_owned(), exit_codes: Some(codes) }
}

#[test]
fn policies_of_pod_and_container_decide_by_kind_and_exit_code() {
    use ContainerKind::{Ephemeral, Init, Regular, Sidecar};
    // kind, pod policy, container policy, exit code, reason, what follows
    let rows = [
        (Regular, "Always", None, 0, "Completed", RESTART),
        (Regular, "Always", None, 1, "Error", RESTART),
        (Regular, "OnFailure", None, 0, "Completed", LEAVE),
        (Regular, "OnFailure", None, 1, "Error", RESTART),
        (Regular, "OnFailure", None, 137, "OOMKilled", RESTART),
        (Regular, "Never", None, 0, "Completed", LEAVE),
        (Regular, "Never", None, 1, "Error", LEAVE),
        (Regular, "Always", Some("Never"), 1, "Error", LEAVE),
        (Regular, "Always", Some("OnFailure"), 0, "Completed", LEAVE),
        (Regular, "Never", Some("Always"), 0, "Completed", RESTART),
        (Regular, "Never", Some("OnFailure"), 1, "Error", RESTART),
        (Init, "Always", None, 0, "Completed", LEAVE),
        (Init, "Always", None, 1, "Error", RESTART),
        (Init, "OnFailure", None, 1, "Error", RESTART),
        (Init, "Never", None, 1, "Error", LEAVE),
        (Init, "Never", Some("OnFailure"), 1, "Error", RESTART),
        (Init, "Always", Some("Never"), 1, "Error", LEAVE),
        (Init, "Always", None, 0, "OOMKilled", RESTART),
        (Init, "OnFailure", None, 0, "OOMKilled", RESTART),
        (Init, "Never", None, 0, "OOMKilled", LEAVE),
        (Sidecar, "Never", Some("Always"), 0, "Completed", RESTART),
        (Sidecar, "Never", Some("Always"), 1, "Error", RESTART),
        (Sidecar, "OnFailure", Some("Always"), 0, "Completed", RESTART),
        (Ephemeral, "Always", None, 0, "Completed", LEAVE),
        (Ephemeral, "Always", None, 1, "Error", LEAVE),
    ];
    for (kind, of_pod, of_container, code, reason, expected) in rows {
        let pod = pod().policy(of_pod).build();
        let spec = container(of_container, &[]);
        let outcome = after_exit(&pod, kind, &spec, &exit(code, reason));
        assert_eq!(outcome, expected, "{kind:?} {of_pod} {of_container:?} {code} {reason}");
    }
}

#[test]
fn the_first_rule_that_fits_the_exit_code_decides_before_any_policy() {
    let restart_on_42 = rule("Restart", "In", &[42]);
    let all_on_42 = rule("RestartAllContainers", "In", &[42, 43]);
    let restart_but_on_0 = rule("Restart", "NotIn", &[0]);
    let strange_action = rule("Dance", "In", &[42]);
    let strange_operator = rule("Restart", "Near", &[42]);
    let without_codes = ContainerRestartRule { exit_codes: None, ..restart_on_42.clone() };
    // the rules, the exit code, what follows; the container's policy is Never
    let rows = [
        (vec![restart_on_42.clone()], 42, RESTART),
        (vec![restart_on_42.clone()], 41, LEAVE),
        (vec![restart_but_on_0.clone()], 1, RESTART),
        (vec![restart_but_on_0.clone()], 0, LEAVE),
        (vec![all_on_42.clone()], 43, ALL),
        (vec![restart_on_42.clone(), all_on_42.clone()], 42, RESTART),
        (vec![all_on_42.clone(), restart_on_42.clone()], 42, ALL),
        (vec![restart_on_42, all_on_42], 43, ALL),
        (vec![strange_action, restart_but_on_0.clone()], 42, LEAVE),
        (vec![strange_operator, restart_but_on_0], 42, RESTART),
        (vec![without_codes], 42, LEAVE),
    ];
    let pod = pod().build();
    for (rules, code, expected) in rows {
        let spec = container(Some("Never"), &rules);
        let outcome = after_exit(&pod, ContainerKind::Regular, &spec, &exit(code, "Error"));
        assert_eq!(outcome, expected, "{code} with {rules:?}");
    }
}

#[test]
fn a_rule_does_not_run_a_successful_init_container_again_but_may_restart_the_pod() {
    let pod = pod().build();
    let rows = [("Restart", LEAVE), ("RestartAllContainers", ALL)];
    for (action, expected) in rows {
        let spec = container(Some("Never"), &[rule(action, "In", &[0])]);
        let outcome = after_exit(&pod, ContainerKind::Init, &spec, &exit(0, "Completed"));
        assert_eq!(outcome, expected, "{action}");
    }
}

#[test]
fn nothing_of_a_deleting_pod_is_started_again() {
    let pod = pod().deleting(30).build();
    let rules = [rule("RestartAllContainers", "In", &[1])];
    for kind in [ContainerKind::Init, ContainerKind::Sidecar, ContainerKind::Regular] {
        let spec = container(Some("Always"), &rules);
        assert_eq!(after_exit(&pod, kind, &spec, &exit(1, "Error")), LEAVE, "{kind:?}");
        assert!(!after_stop(&pod, kind, &spec), "{kind:?}");
    }
}

#[test]
fn a_container_we_stop_is_started_again_by_policy_alone() {
    use ContainerKind::{Ephemeral, Init, Regular, Sidecar};
    let rows = [
        (Regular, "Always", None, true),
        (Regular, "OnFailure", None, true),
        (Regular, "Never", None, false),
        (Regular, "Never", Some("OnFailure"), true),
        (Regular, "Always", Some("Never"), false),
        (Init, "Never", None, false),
        (Sidecar, "Never", Some("Always"), true),
        (Ephemeral, "Always", None, false),
    ];
    for (kind, of_pod, of_container, expected) in rows {
        let spec = container(of_container, &[rule("Restart", "NotIn", &[0])]);
        let pod = pod().policy(of_pod).build();
        assert_eq!(after_stop(&pod, kind, &spec), expected, "{kind:?} {of_pod} {of_container:?}");
    }
}
