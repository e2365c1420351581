//! Feature gates that have an effect here. A field of a pod whose gate is off is dropped when the pod arrives, as an API server whose gate is
//! off does, so that no rule further down asks for the gate.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, EnvVar, Lifecycle, Pod, PodSpec};

#[cfg(test)]
mod tests;

/// The rule action that needs a gate of its own.
const RESTART_ALL: &str = "RestartAllContainers";

/// Which features are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureGates {
    /// `ContainerRestartRules`: restart policy and rules of single containers.
    pub container_restart_rules: bool,
    /// `RestartAllContainersOnContainerExits`: rules that restart the whole pod.
    pub restart_all_containers: bool,
    /// `ContainerStopSignals`: the signal that stops a container.
    pub container_stop_signals: bool,
    /// `EnvFiles`: variables from files of a volume.
    pub env_files: bool,
    /// `HostnameOverride`: the host name as the pod gives it.
    pub hostname_override: bool,
    /// `PodLevelResources`: resources of the pod as a whole.
    pub pod_level_resources: bool,
    /// `PodReadyToStartContainersCondition`: the condition of that name.
    pub ready_to_start_condition: bool,
}

impl Default for FeatureGates {
    /// As in Kubernetes v1.36.
    fn default() -> Self {
        Self::of(|name| name != "ContainerStopSignals")
    }
}

/// A field of pods with a gate.
struct GatedField {
    is_on: bool,
    is_used: fn(&PodSpec) -> bool,
    drop: fn(&mut PodSpec),
}

impl FeatureGates {
    /// The gates as `is_enabled` says by their names.
    pub fn of(is_enabled: impl Fn(&str) -> bool) -> Self {
        Self {
            container_restart_rules: is_enabled("ContainerRestartRules"),
            restart_all_containers: is_enabled("RestartAllContainersOnContainerExits"),
            container_stop_signals: is_enabled("ContainerStopSignals"),
            env_files: is_enabled("EnvFiles"),
            hostname_override: is_enabled("HostnameOverride"),
            pod_level_resources: is_enabled("PodLevelResources"),
            ready_to_start_condition: is_enabled("PodReadyToStartContainersCondition"),
        }
    }

    /// Every gate by its name, and whether it is on.
    pub fn named(self) -> [(&'static str, bool); 7] {
        [
            ("ContainerRestartRules", self.container_restart_rules),
            ("ContainerStopSignals", self.container_stop_signals),
            ("EnvFiles", self.env_files),
            ("HostnameOverride", self.hostname_override),
            ("PodLevelResources", self.pod_level_resources),
            ("PodReadyToStartContainersCondition", self.ready_to_start_condition),
            ("RestartAllContainersOnContainerExits", self.restart_all_containers),
        ]
    }

    /// The pod without the fields whose gates are off; the same one if it has none of them.
    pub fn without_disabled_fields(self, mut pod: Arc<Pod>) -> Arc<Pod> {
        for field in self.fields().into_iter().filter(|field| !field.is_on) {
            if pod.spec.as_ref().is_some_and(field.is_used) {
                Arc::make_mut(&mut pod).spec.iter_mut().for_each(field.drop);
            }
        }
        pod
    }

    fn fields(self) -> [GatedField; 6] {
        [
            GatedField {
                is_on: self.container_restart_rules,
                is_used: |spec| {
                    let by_rule = containers(spec).any(|one| one.restart_policy_rules.is_some());
                    let by_policy = spec.containers.iter().any(|one| one.restart_policy.is_some());
                    by_rule || by_policy || containers(spec).any(has_own_policy)
                },
                drop: drop_restart_rules,
            },
            GatedField {
                is_on: self.restart_all_containers,
                is_used: |spec| containers(spec).any(restarts_all),
                drop: drop_restart_all,
            },
            GatedField {
                is_on: self.container_stop_signals,
                is_used: |spec| containers(spec).any(|one| stop_signal(one).is_some()),
                drop: drop_stop_signals,
            },
            GatedField {
                is_on: self.env_files,
                is_used: |spec| variables(spec).any(from_file),
                drop: drop_env_files,
            },
            GatedField {
                is_on: self.hostname_override,
                is_used: |spec| spec.hostname_override.is_some(),
                drop: |spec| spec.hostname_override = None,
            },
            GatedField {
                is_on: self.pod_level_resources,
                is_used: |spec| spec.resources.is_some(),
                drop: |spec| spec.resources = None,
            },
        ]
    }
}

fn containers(spec: &PodSpec) -> impl Iterator<Item = &Container> {
    spec.init_containers.iter().flatten().chain(&spec.containers)
}

fn each_container(spec: &mut PodSpec, change: impl FnMut(&mut Container)) {
    spec.init_containers.iter_mut().flatten().chain(&mut spec.containers).for_each(change);
}

/// Sidecars, whose policy is Always, are older than the gate.
fn has_own_policy(container: &Container) -> bool {
    container.restart_policy.as_ref().is_some_and(|policy| policy != "Always")
}

fn drop_restart_rules(spec: &mut PodSpec) {
    each_container(spec, |container| {
        container.restart_policy_rules = None;
        container.restart_policy.take_if(|policy| policy != "Always");
    });
    spec.containers.iter_mut().for_each(|container| container.restart_policy = None);
}

fn restarts_all(container: &Container) -> bool {
    container.restart_policy_rules.iter().flatten().any(|rule| rule.action == RESTART_ALL)
}

/// The rule stays and asks for nothing: of the rules the first that fits decides, and the policies decide where it asks for nothing.
fn drop_restart_all(spec: &mut PodSpec) {
    each_container(spec, |container| {
        let rules = container.restart_policy_rules.iter_mut().flatten();
        rules.filter(|rule| rule.action == RESTART_ALL).for_each(|rule| rule.action.clear());
    });
}

fn stop_signal(container: &Container) -> Option<&String> {
    container.lifecycle.as_ref()?.stop_signal.as_ref()
}

fn drop_stop_signals(spec: &mut PodSpec) {
    each_container(spec, |container| {
        container.lifecycle.iter_mut().for_each(|lifecycle| lifecycle.stop_signal = None);
        container.lifecycle.take_if(|lifecycle| *lifecycle == Lifecycle::default());
    });
}

fn from_file(variable: &EnvVar) -> bool {
    variable.value_from.as_ref().is_some_and(|from| from.file_key_ref.is_some())
}

fn variables(spec: &PodSpec) -> impl Iterator<Item = &EnvVar> {
    let ephemeral = spec.ephemeral_containers.iter().flatten().flat_map(|one| &one.env);
    containers(spec).flat_map(|one| &one.env).chain(ephemeral).flatten()
}

fn drop_env_files(spec: &mut PodSpec) {
    let drop = |variables: &mut Option<Vec<EnvVar>>| {
        let files = variables.iter_mut().flatten().filter(|one| from_file(one));
        files.for_each(|one| one.value_from = None);
    };
    each_container(spec, |container| drop(&mut container.env));
    spec.ephemeral_containers.iter_mut().flatten().for_each(|one| drop(&mut one.env));
}
