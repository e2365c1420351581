//! The conditions of a node: whether it is ready, and what it is short of.

use k8s_openapi::api::core::v1::{NodeCondition, NodeStatus};

use super::{NodeStatusInput, amounts, seconds};

/// The one that says whether the node takes pods.
pub const READY: &str = "Ready";

/// What a node is short of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressures {
    /// Whether MemoryPressure is reported.
    pub memory: bool,
    /// Disk, or files on it.
    pub disk: bool,
    /// Whether PIDPressure is reported.
    pub pids: bool,
}

/// What one kind of pressure is called.
struct Pressure {
    condition: &'static str,
    /// When there is none, and when there is: the one word and the sentence.
    reasons: [&'static str; 2],
    messages: [&'static str; 2],
    events: [&'static str; 2],
}

const PRESSURES: [Pressure; 3] = [
    Pressure {
        condition: "MemoryPressure",
        reasons: ["KubeletHasSufficientMemory", "KubeletHasInsufficientMemory"],
        messages: [
            "kubelet has sufficient memory available",
            "kubelet has insufficient memory available",
        ],
        events: ["NodeHasSufficientMemory", "NodeHasInsufficientMemory"],
    },
    Pressure {
        condition: "DiskPressure",
        reasons: ["KubeletHasNoDiskPressure", "KubeletHasDiskPressure"],
        messages: ["kubelet has no disk pressure", "kubelet has disk pressure"],
        events: ["NodeHasNoDiskPressure", "NodeHasDiskPressure"],
    },
    Pressure {
        condition: "PIDPressure",
        reasons: ["KubeletHasSufficientPID", "KubeletHasInsufficientPID"],
        messages: [
            "kubelet has sufficient PID available",
            "kubelet has insufficient PID available",
        ],
        events: ["NodeHasSufficientPID", "NodeHasInsufficientPID"],
    },
];

/// The types of the conditions that are ours, in the order in which they are told.
pub(super) fn types() -> impl Iterator<Item = &'static str> {
    PRESSURES.iter().map(|pressure| pressure.condition).chain([READY])
}

/// What people are told when a condition of ours turns to this.
pub(super) fn event(type_: &str, status: &str) -> Option<&'static str> {
    let events = match type_ {
        READY => ["NodeNotReady", "NodeReady"],
        _ => PRESSURES.iter().find(|pressure| pressure.condition == type_)?.events,
    };
    match status {
        "False" => Some(events[0]),
        "True" => Some(events[1]),
        _ => None,
    }
}

/// Sets our conditions, and leaves those of others as they are. The amounts of the status must be right already.
pub(super) fn set(input: &NodeStatusInput<'_>, status: &mut NodeStatus) {
    let Pressures { memory, disk, pids } = input.pressures;
    let ready = ready(input, status);
    let conditions = status.conditions.get_or_insert_default();
    for (pressure, is_there) in PRESSURES.iter().zip([memory, disk, pids]) {
        let (reason, message) =
            (pressure.reasons[usize::from(is_there)], pressure.messages[usize::from(is_there)]);
        put(conditions, input, condition(pressure.condition, is_there, reason, message));
    }
    put(conditions, input, ready);
}

/// A condition keeps its time of transition for as long as it keeps its status.
fn put(conditions: &mut Vec<NodeCondition>, input: &NodeStatusInput<'_>, new: NodeCondition) {
    let now = seconds(input.now.wall);
    let place = conditions.iter().position(|condition| condition.type_ == new.type_);
    let since = place.map(|place| &conditions[place]).filter(|old| old.status == new.status);
    let since = since.and_then(|old| old.last_transition_time.clone());
    let new = NodeCondition {
        last_heartbeat_time: Some(now.clone()),
        last_transition_time: Some(since.unwrap_or(now)),
        ..new
    };
    match place {
        Some(place) => conditions[place] = new,
        None => conditions.push(new),
    }
}

fn condition(type_: &str, is_true: bool, reason: &str, message: &str) -> NodeCondition {
    NodeCondition {
        type_: type_.to_owned(),
        status: if is_true { "True" } else { "False" }.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        ..NodeCondition::default()
    }
}

fn ready(input: &NodeStatusInput<'_>, status: &NodeStatus) -> NodeCondition {
    match join_errors(errors(input, status)) {
        None => condition(READY, true, "KubeletReady", "kubelet is posting ready status"),
        Some(why) => condition(READY, false, "KubeletNotReady", &why),
    }
}

/// Why the node is not ready: runtime, network, storage, shutdown, missing amounts.
fn errors(input: &NodeStatusInput<'_>, status: &NodeStatus) -> Vec<String> {
    let mut errors = input.runtime.errors(input.now.mono);
    errors.extend(input.runtime.network_trouble.clone());
    errors.extend(input.storage_trouble.map(str::to_owned));
    errors.extend(input.is_shutting_down.then(|| "node is shutting down".to_owned()));
    let capacity = status.capacity.as_ref();
    let has = |name: &str| capacity.is_some_and(|capacity| capacity.contains_key(name));
    let missing = amounts::missing(input.profile.counts_storage, has);
    if !missing.is_empty() {
        errors.push(format!("missing node capacity for resources: {}", missing.join(", ")));
    }
    errors
}

/// Several errors as one, each once.
fn join_errors(mut errors: Vec<String>) -> Option<String> {
    let mut seen = std::collections::BTreeSet::new();
    errors.retain(|trouble| seen.insert(trouble.clone()));
    match errors.len() {
        0 => None,
        1 => errors.pop(),
        _ => Some(format!("[{}]", errors.join(", "))),
    }
}
