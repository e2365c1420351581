//! How long the node took from its boot until it was ready, step by step.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;

use crate::time::Mono;

/// The first time of each step of an agent's start. Steps of a node that was registered before are not measured: they tell of a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeStartup {
    began: Option<Mono>,
    attempted: Option<Mono>,
    registered: Option<Mono>,
    ready: Option<Mono>,
}

/// How long each step took, as far as it is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeStartupDurations {
    /// From the start of the agent until it first tried to register the node.
    pub pre_registration: Option<Duration>,
    /// From then until the node was registered.
    pub registration: Option<Duration>,
    /// From then until the API server was told that the node is ready.
    pub post_registration: Option<Duration>,
}

impl NodeStartup {
    /// The agent begins.
    pub fn begin(&mut self, now: Mono) {
        self.began.get_or_insert(now);
    }

    /// It tries to register the node.
    pub fn attempt(&mut self, now: Mono) {
        self.attempted.get_or_insert(now);
    }

    /// The node is registered, and was not before.
    pub fn register(&mut self, now: Mono) {
        if self.attempted.is_some() {
            self.registered.get_or_insert(now);
        }
    }

    /// The API server has this status of the node.
    pub fn report(&mut self, node: &Node, now: Mono) {
        if self.registered.is_some() && is_ready(node) {
            self.ready.get_or_insert(now);
        }
    }

    /// The durations of the steps.
    pub fn durations(&self) -> NodeStartupDurations {
        let between = |from: Option<Mono>, until: Option<Mono>| Some(until?.since(from?));
        let attempted = self.registered.and(self.attempted);
        NodeStartupDurations {
            pre_registration: between(self.began, attempted),
            registration: between(attempted, self.registered),
            post_registration: between(self.registered, self.ready),
        }
    }
}

impl NodeStartupDurations {
    /// From the boot until the node was ready, if the agent began so long after the boot.
    pub fn total(&self, pre_kubelet: Duration) -> Option<Duration> {
        let Self { pre_registration, registration, post_registration } = *self;
        Some(pre_kubelet + pre_registration? + registration? + post_registration?)
    }
}

fn is_ready(node: &Node) -> bool {
    let status = node.status.as_ref();
    let mut conditions = status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(seconds: u64) -> Mono {
        Mono(Duration::from_secs(seconds))
    }

    fn node(ready: &str) -> Node {
        let condition = json!({ "type": "Ready", "status": ready });
        serde_json::from_value(json!({ "status": { "conditions": [condition] } })).unwrap()
    }

    #[test]
    fn the_first_time_of_each_step_counts() {
        let mut startup = NodeStartup::default();
        startup.begin(at(1));
        startup.attempt(at(3));
        startup.attempt(at(4));
        assert_eq!(startup.durations(), NodeStartupDurations::default(), "it is not registered");
        startup.register(at(7));
        startup.report(&node("False"), at(8));
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let registered = NodeStartupDurations {
            pre_registration: seconds(2),
            registration: seconds(4),
            post_registration: None,
        };
        assert_eq!(startup.durations(), registered);
        assert_eq!(registered.total(Duration::from_secs(10)), None);
        startup.report(&node("True"), at(12));
        startup.report(&node("True"), at(99));
        let ready = NodeStartupDurations { post_registration: seconds(5), ..registered };
        assert_eq!(startup.durations(), ready);
        assert_eq!(ready.total(Duration::from_secs(10)), seconds(21));
    }

    #[test]
    fn a_node_that_was_registered_before_is_not_measured() {
        let mut startup = NodeStartup::default();
        startup.begin(at(1));
        startup.attempt(at(2));
        startup.report(&node("True"), at(3));
        assert_eq!(startup.durations(), NodeStartupDurations::default());
    }
}
