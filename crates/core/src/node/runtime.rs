//! The runtime's health, as it reports it itself.

use std::time::Duration;

use oarsman_cri_types::v1::{
    RuntimeCondition, RuntimeFeatures, RuntimeHandler, StatusResponse, VersionResponse,
};

use crate::report::TrafficObstacle;
use crate::time::Mono;

/// A runtime that did not say for so long that it is well is down.
const PATIENCE: Duration = Duration::from_secs(30);

/// For how long an answer says whether there is a network for pods; a bit longer than the period of the health loop, so that a node of a
/// cluster asks for no pod.
const NETWORK_ANSWER_LASTS: Duration = Duration::from_secs(15);
/// The same for an answer that there is none: pods wait for the network, so they should not wait longer than it takes.
const NETWORK_TROUBLE_LASTS: Duration = Duration::from_secs(2);

/// The condition by which a runtime tells that packets of pods are dropped on their way: its message is the problem, and in a second line
/// what to do about it. The embedded runtime has it.
pub const POD_TRAFFIC_CONDITION: &str = "PodTrafficForwarded";

/// What stands in the way of pods' packets, if the runtime tells of it.
pub fn traffic_obstacle(status: &StatusResponse) -> Option<TrafficObstacle> {
    let conditions = &status.status.as_ref()?.conditions;
    let told = |condition: &&RuntimeCondition| {
        condition.r#type == POD_TRAFFIC_CONDITION && !condition.status
    };
    let message = &conditions.iter().find(told)?.message;
    let (problem, fix) = message.split_once('\n').unwrap_or((message, ""));
    Some(TrafficObstacle { problem: problem.to_owned(), fix: fix.to_owned() })
}

/// Whether a sandbox with a network of its own can be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkState {
    /// The runtime reports NetworkReady.
    Ready,
    /// It cannot, for this reason.
    NotReady(String),
    /// The last answer is too old: the runtime has to be asked.
    Unknown,
}

/// What the runtime has said of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct RuntimeHealth {
    /// What it calls itself.
    pub name: String,
    /// The version that the runtime reports.
    pub version: String,
    /// When it last said that it is well.
    pub last_good: Option<Mono>,
    /// When it last said anything.
    pub last_answer: Option<Mono>,
    /// Why it is not ready, as it says.
    pub trouble: Option<String>,
    /// Why there is no network for pods, as it says.
    pub network_trouble: Option<String>,
    /// What a RuntimeClass can name, by name.
    pub handlers: Vec<RuntimeHandler>,
    /// What it can do, whatever the handler.
    pub features: Option<RuntimeFeatures>,
}

impl Default for RuntimeHealth {
    fn default() -> Self {
        Self {
            name: String::new(),
            version: String::new(),
            last_good: None,
            last_answer: None,
            trouble: None,
            network_trouble: Some("network state unknown".to_owned()),
            handlers: Vec::new(),
            features: None,
        }
    }
}

impl RuntimeHealth {
    /// Takes name and version from the runtime's response.
    pub fn set_version(&mut self, version: &VersionResponse) {
        self.name.clone_from(&version.runtime_name);
        self.version.clone_from(&version.runtime_version);
    }

    /// Takes conditions, handlers and features from the runtime's response.
    pub fn set_status(&mut self, status: &StatusResponse, now: Mono) {
        let conditions = status.status.as_ref().map_or(&[][..], |status| &status.conditions);
        let not_ready = |what: &str, name: &str| {
            let found = conditions.iter().find(|condition| condition.r#type == name);
            let is_ready = found.is_some_and(|condition| condition.status);
            (!is_ready).then(|| format!("{what} not ready: {}", format_condition(found)))
        };
        self.last_answer = Some(now);
        self.network_trouble = not_ready("container runtime network", "NetworkReady");
        self.trouble = not_ready("container runtime", "RuntimeReady");
        if self.trouble.is_some() {
            return;
        }
        self.handlers.clone_from(&status.runtime_handlers);
        self.handlers.sort_by(|one, other| one.name.cmp(&other.name));
        self.features.clone_from(&status.features);
        self.last_good = Some(now);
    }

    /// Whether the sandboxes of a handler can have user namespaces.
    pub fn has_user_namespaces(&self, handler: &str) -> bool {
        let named = self.handlers.iter().find(|known| known.name == handler);
        let features = named.and_then(|known| known.features.as_ref());
        features.is_some_and(|features| features.user_namespaces)
    }

    /// What is wrong with the runtime, the worst first.
    pub fn errors(&self, now: Mono) -> Vec<String> {
        let silence = match self.last_good {
            None => Some("container runtime status check may not have completed yet"),
            Some(good) if now.since(good) >= PATIENCE => Some("container runtime is down"),
            Some(_) => None,
        };
        silence.map(str::to_owned).into_iter().chain(self.trouble.clone()).collect()
    }

    /// Whether pods can be run.
    pub fn is_ready(&self, now: Mono) -> bool {
        self.network_trouble.is_none() && self.errors(now).is_empty()
    }

    /// Whether there is a network for pods, by an answer that is recent enough.
    pub fn network_state(&self, now: Mono) -> NetworkState {
        let Some(answered) = self.last_answer else { return NetworkState::Unknown };
        let age = now.since(answered);
        match &self.network_trouble {
            None if age < NETWORK_ANSWER_LASTS => NetworkState::Ready,
            Some(trouble) if age < NETWORK_TROUBLE_LASTS => NetworkState::NotReady(trouble.clone()),
            None | Some(_) => NetworkState::Unknown,
        }
    }

    /// Whether it says the same, but for when.
    pub fn equals_except_time(&self, other: &Self) -> bool {
        let at = |health: &Self| Self { last_good: None, last_answer: None, ..health.clone() };
        self.last_good.is_some() == other.last_good.is_some() && at(self) == at(other)
    }
}

fn format_condition(condition: Option<&RuntimeCondition>) -> String {
    let Some(RuntimeCondition { r#type, status, reason, message }) = condition else {
        return "<nil>".to_owned();
    };
    format!("{type}={status} reason:{reason} message:{message}", r#type = r#type)
}
