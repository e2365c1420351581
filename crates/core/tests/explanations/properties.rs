//! Whatever a node reports, there is a sentence and a next step.

use jiff::Timestamp;
use oarsman_core::explain::{explain, explain_missing};
use oarsman_core::report::{NodeReport, PodReport};
use proptest::prelude::*;
use serde_json::{Value, json};

const REASONS: &[&str] = &[
    "",
    "ContainerCreating",
    "PodInitializing",
    "CrashLoopBackOff",
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "CreateContainerError",
    "CreateContainerConfigError",
    "RunContainerError",
    "PostStartHookError",
    "StartError",
    "OOMKilled",
    "Error",
    "Completed",
    "SignatureValidationFailed",
    "RegistryUnavailable",
    "Evicted",
    "DeadlineExceeded",
];
const WORDS: &[&str] = &[
    "",
    "\"",
    "volume \"",
    "volume \"v\": ",
    "exec: ",
    "exec: \"",
    "exec: \"x\": permission denied",
    "not found",
    "error mounting ",
    "not a directory",
    "hostPath type check failed: ",
    "this agent has no ",
    " sysctl ",
    "spec.runtimeClassName",
    "spec.hostUsers",
    "the host name ",
    "OOM-killed",
    "failed to setup network",
    "cannot load seccomp profile \"",
    "configmap ",
    "secret \"s\" not found",
    "couldn't find key ",
    " in ",
    "rpc error: code = ",
    "desc = ",
    ": ",
    "\n",
    "ä…",
    "dial tcp",
    "mkdir ",
    "no users found",
    "apparmor",
];

fn reason() -> impl Strategy<Value = &'static str> {
    prop::sample::select(REASONS)
}

fn message() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(WORDS), 0..5).prop_map(|words| words.concat())
}

fn end() -> impl Strategy<Value = Value> {
    (any::<i32>(), 0..260, reason(), message(), any::<bool>(), time()).prop_map(
        |(wild, tame, reason, message, tamely, at)| {
            let code = if tamely { tame } else { wild };
            json!({ "exitCode": code, "reason": reason, "message": message, "finishedAt": at })
        },
    )
}

fn time() -> impl Strategy<Value = String> {
    (1_700_000_000_i64..1_900_000_000)
        .prop_map(|second| Timestamp::from_second(second).unwrap().to_string())
}

fn state() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({})),
        (reason(), message()).prop_map(
            |(reason, message)| json!({ "waiting": { "reason": reason, "message": message } })
        ),
        time().prop_map(|at| json!({ "running": { "startedAt": at } })),
        end().prop_map(|end| json!({ "terminated": end })),
    ]
}

fn status(name: &'static str) -> impl Strategy<Value = Value> {
    (state(), state(), any::<i32>(), any::<bool>(), any::<bool>()).prop_map(
        move |(state, before, restarts, ready, started)| {
            json!({ "name": name, "state": state, "lastState": before, "restartCount": restarts,
                "ready": ready, "started": started })
        },
    )
}

fn doing() -> impl Strategy<Value = Value> {
    let plain =
        ["looking", "preparing", "makingSandbox", "starting", "postStart", "preStop", "givingBack"];
    let what = prop_oneof![
        prop::sample::select(plain.to_vec()).prop_map(|kind| json!({ "kind": kind })),
        any::<i64>().prop_map(|grace| json!({ "kind": "stopping", "of": grace })),
        message().prop_map(|image| json!({ "kind": "pulling", "of": image })),
    ];
    let container = prop::option::of(prop::sample::select(vec!["first", "main", "nobody"]));
    (what, container, time()).prop_map(
        |(what, container, since)| json!({ "what": what, "container": container, "since": since }),
    )
}

fn pod() -> impl Strategy<Value = PodReport> {
    let phase = prop::sample::select(vec!["", "Pending", "Running", "Succeeded", "Failed"]);
    let stage =
        prop::sample::select(vec!["waiting", "syncing", "terminating", "terminated", "finished"]);
    let containers = (status("first"), status("main"), any::<bool>());
    let about = (phase, reason(), message(), message(), stage);
    let around = (prop::option::of(doing()), prop::option::of(time()), any::<bool>());
    (containers, about, around).prop_map(|((first, main, known), about, (doing, next_try, leaving))| {
        let (phase, reason, message, image, stage) = about;
        let status = json!({
            "phase": phase, "reason": reason, "message": message,
            "initContainerStatuses": [first], "containerStatuses": [main],
        });
        let spec = json!({
            "initContainers": [{ "name": "first", "image": image }],
            "containers": [{ "name": "main", "image": image, "workingDir": "/" }],
        });
        let pod = json!({ "metadata": { "name": "web" }, "spec": spec,
            "status": if known { status } else { json!({}) } });
        let report = json!({ "pod": pod, "stage": stage, "doing": doing, "nextTry": next_try, "leaving": leaving });
        serde_json::from_value(report).unwrap()
    })
}

proptest! {
    #[test]
    fn whatever_a_pod_is_like_there_is_a_sentence_and_a_next_step(pod in pod(), now in time()) {
        let node = NodeReport { now: now.parse().unwrap(), ..NodeReport::default() };
        let explanation = explain(&node, &pod);
        prop_assert!(explanation.sentence.len() > 10, "{explanation:?}");
        prop_assert!(explanation.next_step.len() > 10, "{explanation:?}");
    }

    #[test]
    fn whatever_name_is_asked_for_there_is_a_sentence(name in ".{0,20}") {
        let explanation = explain_missing(&NodeReport::default(), &name);
        prop_assert!(explanation.sentence.len() > 10, "{explanation:?}");
    }
}
