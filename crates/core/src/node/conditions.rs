//! The conditions of a node: whether it is ready, and what it is short of.

use k8s_openapi::api::core::v1::{NodeCondition, NodeStatus};

use super::{Scene, amounts, seconds};

/// The one that says whether the node takes pods.
pub const READY: &str = "Ready";

/// What a node is short of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressures {
    /// Memory.
    pub memory: bool,
    /// Disk, or files on it.
    pub disk: bool,
    /// Process ids.
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
pub(super) fn set(scene: &Scene<'_>, status: &mut NodeStatus) {
    let Pressures { memory, disk, pids } = scene.pressures;
    let ready = ready(scene, status);
    let conditions = status.conditions.get_or_insert_default();
    for (pressure, is_there) in PRESSURES.iter().zip([memory, disk, pids]) {
        let (reason, message) =
            (pressure.reasons[usize::from(is_there)], pressure.messages[usize::from(is_there)]);
        put(conditions, scene, condition(pressure.condition, is_there, reason, message));
    }
    put(conditions, scene, ready);
}

/// A condition keeps its time of transition for as long as it keeps its status.
fn put(conditions: &mut Vec<NodeCondition>, scene: &Scene<'_>, new: NodeCondition) {
    let now = seconds(scene.now.wall);
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

fn ready(scene: &Scene<'_>, status: &NodeStatus) -> NodeCondition {
    match together(troubles(scene, status)) {
        None => condition(READY, true, "KubeletReady", "kubelet is posting ready status"),
        Some(why) => condition(READY, false, "KubeletNotReady", &why),
    }
}

/// Why the node is not ready: runtime, network, storage, shutdown, missing amounts.
fn troubles(scene: &Scene<'_>, status: &NodeStatus) -> Vec<String> {
    let mut troubles = scene.runtime.troubles(scene.now.mono);
    troubles.extend(scene.runtime.network_trouble.clone());
    troubles.extend(scene.storage_trouble.map(str::to_owned));
    troubles.extend(scene.is_shutting_down.then(|| "node is shutting down".to_owned()));
    let capacity = status.capacity.as_ref();
    let has = |name: &str| capacity.is_some_and(|capacity| capacity.contains_key(name));
    let missing = amounts::missing(scene.profile.counts_storage, has);
    if !missing.is_empty() {
        troubles.push(format!("missing node capacity for resources: {}", missing.join(", ")));
    }
    troubles
}

/// Several errors as one, each once.
fn together(mut troubles: Vec<String>) -> Option<String> {
    let mut seen = std::collections::BTreeSet::new();
    troubles.retain(|trouble| seen.insert(trouble.clone()));
    match troubles.len() {
        0 => None,
        1 => troubles.pop(),
        _ => Some(format!("[{}]", troubles.join(", "))),
    }
}
