//! Cases in shorthand, and what they stand for.
//!
//! A case tells of one pod, `web-node` of `/manifests/web.yaml`, at noon. Its containers are `main` and, where the case names
//! them, the init container `first` and the sidecar `side`; of each it says how it stands.

use std::fs;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use oarsman_core::explain::{Explanation, explain, explain_missing};
use oarsman_core::report::{NodeReport, PodReport};
use serde::Deserialize;
use serde_json::{Map, Value, json};

const NOON: &str = "2026-11-16T12:00:00Z";

/// A question and its answer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ExplanationCase {
    pub(crate) cause: String,
    /// A pod that is not there is asked for.
    #[serde(default)]
    missing: Option<String>,
    #[serde(default)]
    main: Option<Container>,
    #[serde(default)]
    first: Option<Container>,
    #[serde(default)]
    side: Option<Container>,
    /// Fields of the pod's spec.
    #[serde(default)]
    spec: Map<String, Value>,
    /// Fields of its status.
    #[serde(default)]
    status: Map<String, Value>,
    /// Fields of the node's report.
    #[serde(default)]
    node: Map<String, Value>,
    /// What is done to it, on which container, since so many seconds.
    #[serde(default)]
    doing: Option<(Value, Option<String>, i64)>,
    /// The last answers of probes: container, kind, answer, output, how often in a row, how many seconds ago.
    #[serde(default)]
    probes: Vec<(String, String, String, String, u32, i64)>,
    /// In so many seconds.
    #[serde(default)]
    next_try: Option<i64>,
    /// What the last try failed with.
    #[serde(default)]
    last_error: Option<String>,
    #[serde(default)]
    stage: Option<String>,
    #[serde(default)]
    leaving: bool,
    /// Reason, message, container and how many seconds ago.
    #[serde(default)]
    events: Vec<(String, String, Option<String>, i64)>,
    pub(crate) sentence: String,
    pub(crate) next: String,
    #[serde(default)]
    pub(crate) details: Vec<String>,
}

/// How a container stands.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Container {
    /// The reason.
    #[serde(default)]
    waits: Option<String>,
    #[serde(default)]
    message: Option<String>,
    /// Since so many seconds.
    #[serde(default)]
    runs: Option<i64>,
    #[serde(default)]
    ended: Option<End>,
    /// How the one before it ended.
    #[serde(default)]
    before: Option<End>,
    #[serde(default)]
    restarts: i32,
    #[serde(default)]
    ready: bool,
    #[serde(default)]
    started: bool,
    /// Fields of its spec.
    #[serde(default)]
    spec: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    code: i32,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    message: Option<String>,
    /// So many seconds.
    ago: i64,
}

/// All cases, family by family.
pub(crate) fn all() -> Vec<ExplanationCase> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/explanations/cases");
    let mut files: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |path: &std::path::PathBuf| -> Vec<ExplanationCase> {
        let text = fs::read_to_string(path).unwrap();
        serde_saphyr::from_str(&text).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
    };
    files.iter().flat_map(read).collect()
}

fn ago(seconds: i64) -> Timestamp {
    NOON.parse::<Timestamp>().unwrap() - SignedDuration::from_secs(seconds)
}

impl ExplanationCase {
    pub(crate) fn explain(&self) -> Explanation {
        let node = self.node();
        match &self.missing {
            Some(name) => explain_missing(&node, name),
            None => explain(&node, &self.pod()),
        }
    }

    fn node(&self) -> NodeReport {
        let events = self.events.iter().map(|(reason, message, container, seconds)| {
            json!({
                "namespace": "default", "pod": "web-node", "uid": "u1", "isWarning": true,
                "reason": reason, "message": message, "count": 1,
                "fieldPath": container.as_ref().map(|name| format!("spec.containers{{{name}}}")),
                "first": ago(*seconds), "last": ago(*seconds),
            })
        });
        let mut node = json!({
            "node": "node", "now": NOON, "root": "/var/lib/oarsman",
            "events": events.collect::<Vec<_>>(),
            "runtime": {
                "name": "containerd", "endpoint": "unix:///run/containerd/containerd.sock",
            },
        });
        node.as_object_mut().unwrap().extend(self.node.clone());
        serde_json::from_value(node).unwrap()
    }

    fn pod(&self) -> PodReport {
        let doing = self.doing.as_ref().map(|(what, container, seconds)| {
            json!({ "what": what, "container": container, "since": ago(*seconds) })
        });
        let probes = self.probes.iter().map(|(container, kind, answer, output, times, seconds)| {
            json!({ "container": container, "kind": kind, "answer": answer, "output": output,
                "inARow": times, "at": ago(*seconds) })
        });
        let report = json!({
            "probes": probes.collect::<Vec<_>>(),
            "pod": {
                "metadata": { "name": "web-node", "namespace": "default", "uid": "u1" },
                "spec": self.spec(),
                "status": self.status(),
            },
            "place": "/manifests/web.yaml",
            "stage": self.stage.as_deref().unwrap_or("syncing"),
            "leaving": self.leaving,
            "doing": doing,
            "nextTry": self.next_try.map(|seconds| ago(-seconds)),
            "lastError": self.last_error,
        });
        serde_json::from_value(report).unwrap()
    }

    fn spec(&self) -> Value {
        let of = |name: &str, container: &Option<Container>| {
            container.as_ref().map(|container| container.spec(name))
        };
        let mut side = of("side", &self.side);
        if let Some(side) = &mut side {
            side["restartPolicy"] = "Always".into();
        }
        let init: Vec<Value> = of("first", &self.first).into_iter().chain(side).collect();
        let containers: Vec<Value> = of("main", &self.main).into_iter().collect();
        let mut spec = json!({ "initContainers": init, "containers": containers });
        spec.as_object_mut().unwrap().extend(self.spec.clone());
        spec
    }

    fn status(&self) -> Value {
        let of = |name: &str, container: &Option<Container>| {
            container.as_ref().and_then(|container| container.status(name))
        };
        let first = of("first", &self.first).into_iter();
        let init: Vec<Value> = first.chain(of("side", &self.side)).collect();
        let main: Vec<Value> = of("main", &self.main).into_iter().collect();
        let mut status = json!({ "initContainerStatuses": init, "containerStatuses": main });
        status.as_object_mut().unwrap().extend(self.status.clone());
        status
    }
}

impl Container {
    fn spec(&self, name: &str) -> Value {
        let mut spec = json!({ "name": name, "image": "example.com/app:1" });
        spec.as_object_mut().unwrap().extend(self.spec.clone());
        spec
    }

    /// None of a container of which nothing is known.
    fn status(&self, name: &str) -> Option<Value> {
        let state = if let Some(seconds) = self.runs {
            json!({ "running": { "startedAt": ago(seconds) } })
        } else if let Some(end) = &self.ended {
            json!({ "terminated": end.json() })
        } else {
            json!({ "waiting": { "reason": self.waits.as_ref()?, "message": self.message } })
        };
        let before = self.before.as_ref().map(|end| json!({ "terminated": end.json() }));
        Some(json!({
            "name": name, "state": state, "lastState": before, "restartCount": self.restarts,
            "ready": self.ready, "started": self.started,
        }))
    }
}

impl End {
    fn json(&self) -> Value {
        json!({
            "exitCode": self.code, "reason": self.reason, "message": self.message,
            "startedAt": ago(self.ago + 5), "finishedAt": ago(self.ago),
        })
    }
}
