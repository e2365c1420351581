//! Facts about what is ours to say, what is others', and what has to wait.

use k8s_openapi::api::core::v1::PodExtendedResourceClaimStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::fixture::at;

fn condition(kind: &str, status: &str, second: i64) -> PodCondition {
    PodCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        last_transition_time: Some(Time(at(second))),
        ..PodCondition::default()
    }
}

fn status(phase: &str, conditions: &[PodCondition]) -> PodStatus {
    let conditions = Some(conditions.to_vec()).filter(|conditions| !conditions.is_empty());
    PodStatus { phase: Some(phase.to_owned()), conditions, ..PodStatus::default() }
}

fn words(status: &PodStatus) -> [Option<&str>; 3] {
    [status.phase.as_deref(), status.reason.as_deref(), status.message.as_deref()]
}

fn with_words(phase: &str, reason: &str, message: &str) -> PodStatus {
    let (reason, message) = (Some(reason.to_owned()), Some(message.to_owned()));
    PodStatus { reason, message, ..status(phase, &[]) }
}

#[test]
fn conditions_of_others_are_the_api_servers_and_the_rest_are_ours() {
    let api = [
        condition("Ready", "False", 1),
        condition("example.com/gate", "True", 1),
        condition("PodResizeInProgress", "True", 1),
    ];
    let ours = [condition("example.com/gate", "False", 2), condition("Ready", "True", 2)];
    let merged = merge(&status("Running", &api), &status("Running", &ours), true, at(9));
    let expected = vec![condition("example.com/gate", "True", 1), condition("Ready", "True", 2)];
    assert_eq!(merged.conditions, Some(expected));
}

#[test]
fn the_agent_owns_these_conditions_and_shares_disruption_target() {
    let rows = [
        ("PodScheduled", false),
        ("Ready", false),
        ("Initialized", false),
        ("ContainersReady", false),
        ("PodReadyToStartContainers", false),
        ("PodResizePending", false),
        ("PodResizeInProgress", false),
        ("AllContainersRestarting", false),
        ("DisruptionTarget", true),
        ("example.com/gate", true),
    ];
    for (kind, kept) in rows {
        let api = status("Running", &[condition(kind, "True", 1)]);
        let merged = merge(&api, &status("Running", &[]), true, at(9));
        assert_eq!(merged.conditions.is_some(), kept, "{kind}");
    }
}

#[test]
fn what_schedulers_and_drivers_wrote_stays() {
    let claimed = PodExtendedResourceClaimStatus {
        resource_claim_name: "gpu".to_owned(),
        ..PodExtendedResourceClaimStatus::default()
    };
    let api = PodStatus {
        nominated_node_name: Some("n2".to_owned()),
        resource_claim_statuses: Some(Vec::new()),
        extended_resource_claim_status: Some(claimed.clone()),
        pod_ip: Some("10.0.0.1".to_owned()),
        ..PodStatus::default()
    };
    let merged = merge(&api, &status("Running", &[]), true, at(9));
    assert_eq!(merged.nominated_node_name.as_deref(), Some("n2"));
    assert_eq!(merged.resource_claim_statuses, Some(Vec::new()));
    assert_eq!(merged.extended_resource_claim_status, Some(claimed));
    let ours = PodStatus { resource_claim_statuses: Some(Vec::new()), ..status("Running", &[]) };
    let untold = merge(&PodStatus::default(), &ours, true, at(9));
    assert_eq!(untold.resource_claim_statuses, None, "nor do we make them up");
    assert_eq!(merged.pod_ip, None, "but an address is for us to say");
}

#[test]
fn an_end_is_held_back_while_something_may_run() {
    let (api, ours) = (with_words("Running", "", ""), with_words("Failed", "Evicted", "low"));
    assert_eq!(words(&merge(&api, &ours, false, at(9))), [Some("Running"), Some(""), Some("")]);
    assert_eq!(
        words(&merge(&api, &ours, true, at(9))),
        [Some("Failed"), Some("Evicted"), Some("low")]
    );
    let held = merge(&PodStatus::default(), &ours, false, at(9));
    assert_eq!(words(&held), [Some("Pending"), None, None], "a pod nobody has spoken of yet");
}

#[test]
fn an_end_that_others_have_seen_is_not_taken_back() {
    let api = with_words("Succeeded", "Done", "well");
    for ours in ["Pending", "Running", "Failed"] {
        let merged = merge(&api, &with_words(ours, "Other", "words"), true, at(9));
        assert_eq!(words(&merged), [Some("Succeeded"), Some("Done"), Some("well")], "{ours}");
    }
}

#[test]
fn disruption_target_is_written_together_with_the_terminal_phase() {
    let ours = |phase| status(phase, &[condition("DisruptionTarget", "True", 2)]);
    let running = status("Running", &[]);
    assert_eq!(merge(&running, &ours("Failed"), false, at(9)).conditions, None);
    assert_eq!(merge(&running, &ours("Running"), true, at(9)).conditions, None);
    let said = merge(&running, &ours("Failed"), true, at(9));
    assert_eq!(
        said.conditions,
        Some(vec![condition("DisruptionTarget", "True", 9)]),
        "its time is now"
    );
    let again = merge(&said, &ours("Failed"), true, at(10));
    assert_eq!(again.conditions, said.conditions, "and stays");
    let theirs = status("Running", &[condition("DisruptionTarget", "True", 1)]);
    let merged = merge(&theirs, &ours("Failed"), true, at(9));
    assert_eq!(merged.conditions, theirs.conditions, "somebody else had said so before");
}

#[test]
fn nothing_that_has_ended_is_ready() {
    let ready = [condition("Ready", "True", 1), condition("ContainersReady", "True", 1)];
    for (phase, reason) in [("Failed", "PodFailed"), ("Succeeded", "PodCompleted")] {
        let merged = merge(&status("Running", &ready), &status(phase, &ready), true, at(9));
        for condition in merged.conditions.unwrap() {
            assert_eq!(
                (condition.status.as_str(), condition.reason.as_deref()),
                ("False", Some(reason))
            );
            assert_eq!(condition.last_transition_time, Some(Time(at(9))));
        }
    }
    let merged = merge(&status("Running", &ready), &status("Running", &ready), true, at(9));
    assert_eq!(merged.conditions, Some(ready.to_vec()));
}

#[test]
fn only_fractions_of_a_second_make_no_difference() {
    let exact = status("Running", &[condition("Ready", "True", 1)]);
    let mut finer = exact.clone();
    finer.conditions.as_mut().unwrap()[0].last_transition_time =
        Some(Time(at(1) + jiff::SignedDuration::from_millis(999)));
    assert!(!differs(&exact, &finer));
    let later = status("Running", &[condition("Ready", "True", 2)]);
    assert!(differs(&exact, &later));
    assert!(differs(&exact, &status("Running", &[])));
}

#[test]
fn a_status_is_reconciled_unless_the_api_server_lost_a_field_of_ours() {
    let ready = |answer| status("Running", &[condition("Ready", answer, 1)]);
    let gate = |answer| {
        status(
            "Running",
            &[condition("example.com/gate", answer, 1), condition("Ready", "True", 1)],
        )
    };
    let later = status("Running", &[condition("Ready", "True", 5)]);
    assert!(is_reconciled(&ready("True"), &later), "it may be of another time");
    assert!(is_reconciled(&ready("True"), &gate("False")), "others may say more");
    assert!(!is_reconciled(&ready("True"), &ready("False")), "somebody took us for dead");
    assert!(!is_reconciled(&ready("True"), &status("Running", &[])));
    assert!(!is_reconciled(&status("Running", &[]), &status("Pending", &[])));
}

#[test]
fn the_phase_published_last_counts_unless_another_component_wrote_an_end() {
    let ours = with_words("Running", "Mine", "hello");
    let copy = |phase| PodStatus {
        nominated_node_name: Some("n".to_owned()),
        ..with_words(phase, "Theirs", "bye")
    };
    let table = [
        ("nothing is known", None, None, [None, None, None]),
        (
            "only the copy",
            None,
            Some(copy("Pending")),
            [Some("Pending"), Some("Theirs"), Some("bye")],
        ),
        ("only ours", Some(&ours), None, [Some("Running"), Some("Mine"), Some("hello")]),
        (
            "an older copy",
            Some(&ours),
            Some(copy("Pending")),
            [Some("Running"), Some("Mine"), Some("hello")],
        ),
        (
            "an end of others",
            Some(&ours),
            Some(copy("Failed")),
            [Some("Failed"), Some("Theirs"), Some("bye")],
        ),
    ];
    for (name, published, api, want) in table {
        let before = published_before(published, api.as_ref());
        assert_eq!(words(&before), want, "{name}");
        assert_eq!(before.nominated_node_name.is_some(), api.is_some(), "{name}");
    }
}
