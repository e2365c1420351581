//! Rows of pod states and the columns that kubectl prints for them.

use serde_json::{Value, json};

use super::*;

fn report(status: &Value, leaving: bool) -> PodReport {
    let spec = json!({
        "initContainers": [{ "name": "i" }, { "name": "s", "restartPolicy": "Always" }],
        "containers": [{ "name": "a" }, { "name": "b" }],
    });
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": spec, "status": status });
    PodReport { pod: serde_json::from_value(pod).unwrap(), leaving, ..PodReport::default() }
}

fn container(name: &str, state: &Value) -> Value {
    let ready = state.get("running").is_some();
    json!({
        "name": name, "state": state, "ready": ready, "started": ready, "restartCount": 1,
        "image": "", "imageID": "",
    })
}

fn status(inits: &[Value], containers: &[Value]) -> Value {
    let name = |names: [&str; 2], states: &[Value]| -> Vec<Value> {
        names.iter().zip(states).map(|(name, state)| container(name, state)).collect()
    };
    json!({
        "phase": "Pending",
        "initContainerStatuses": name(["i", "s"], inits),
        "containerStatuses": name(["a", "b"], containers),
    })
}

fn shown(status: &Value) -> (String, String) {
    let summary = summary(&report(status, false));
    (summary.status, format!("{}/{}", summary.ready, summary.total))
}

fn running() -> Value {
    json!({ "running": {} })
}

fn done() -> Value {
    ended(0, "Completed")
}

fn waits(reason: &str) -> Value {
    json!({ "waiting": { "reason": reason } })
}

fn ended(code: i32, reason: &str) -> Value {
    json!({ "terminated": { "exitCode": code, "reason": reason } })
}

#[test]
fn the_status_word_is_that_of_kubectl() {
    let later = [waits("PodInitializing"), waits("PodInitializing")];
    let rows = [
        (status(&[running(), waits("PodInitializing")], &later), "Init:0/2", "0/3"),
        (status(&[done(), waits("PodInitializing")], &later), "Init:1/2", "0/3"),
        (status(&[waits("ImagePullBackOff")], &later), "Init:ImagePullBackOff", "0/3"),
        (status(&[ended(3, "")], &later), "Init:ExitCode:3", "0/3"),
        (status(&[ended(1, "Error")], &later), "Init:Error", "0/3"),
        (status(&[done(), running()], &later), "PodInitializing", "1/3"),
        (status(&[done(), running()], &[running(), running()]), "Pending", "3/3"),
        (status(&[], &[waits("ContainerCreating"), running()]), "ContainerCreating", "1/3"),
        (status(&[], &[waits("CrashLoopBackOff"), done()]), "CrashLoopBackOff", "0/3"),
        (status(&[], &[done(), done()]), "Completed", "0/3"),
        (status(&[], &[done(), running()]), "NotReady", "1/3"),
        (status(&[], &[ended(1, "Error"), running()]), "Error", "1/3"),
        (status(&[], &[ended(137, "OOMKilled")]), "OOMKilled", "0/3"),
        (
            status(&[], &[json!({ "terminated": { "exitCode": 1, "signal": 9 } })]),
            "Signal:9",
            "0/3",
        ),
        (json!({ "phase": "Running" }), "Running", "0/3"),
        (json!({ "phase": "Failed", "reason": "Evicted" }), "Evicted", "0/3"),
        (json!({}), "Pending", "0/3"),
    ];
    for (status, word, ready) in rows {
        assert_eq!(shown(&status), (word.to_owned(), ready.to_owned()), "{status:#}");
    }
}

#[test]
fn a_pod_being_removed_is_terminating_unless_it_has_ended() {
    let word = |phase: &str| summary(&report(&json!({ "phase": phase }), true)).status;
    assert_eq!(word("Running"), "Terminating");
    assert_eq!(word("Succeeded"), "Succeeded");
}

#[test]
fn restarts_of_init_containers_count_until_they_have_completed() {
    let restarts = |status: Value| summary(&report(&status, false)).restarts;
    assert_eq!(restarts(status(&[running()], &[json!({})])), 1, "the init container's");
    let through = status(&[done(), running()], &[running()]);
    assert_eq!(restarts(through), 2, "the sidecar's and the container's");
}

#[test]
fn the_last_restart_is_the_latest_end_of_a_container_that_runs_again() {
    let mut status = status(&[], &[json!({ "running": {} }), json!({ "running": {} })]);
    for (number, at) in ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"].iter().enumerate() {
        let ended = json!({ "terminated": { "exitCode": 1, "finishedAt": at } });
        status["containerStatuses"][number]["lastState"] = ended;
    }
    let summary = summary(&report(&status, false));
    assert_eq!(summary.last_restart, Some("2026-01-02T00:00:00Z".parse().unwrap()));
}
