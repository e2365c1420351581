//! Defaults of containers, their probes, hooks, ports and variables.

use k8s_openapi::api::core::v1::{
    Container, ContainerPort, EnvVar, EphemeralContainer, HTTPGetAction, Lifecycle,
    ObjectFieldSelector, Probe, ResourceFieldSelector, ResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;

use super::set_text;
use crate::image_reference::with_default_tag;

/// The fields of a container that have defaults. Regular and ephemeral containers are different
/// types with the same fields; this is what they have in common.
pub(super) struct Defaultable<'a> {
    image: &'a str,
    pull_policy: &'a mut Option<String>,
    message_path: &'a mut Option<String>,
    message_policy: &'a mut Option<String>,
    ports: &'a mut Option<Vec<ContainerPort>>,
    env: &'a mut Option<Vec<EnvVar>>,
    resources: &'a mut Option<ResourceRequirements>,
    probes: [&'a mut Option<Probe>; 3],
    lifecycle: &'a mut Option<Lifecycle>,
}

macro_rules! defaultable {
    ($container:ident) => {
        Defaultable {
            image: $container.image.as_deref().unwrap_or_default(),
            pull_policy: &mut $container.image_pull_policy,
            message_path: &mut $container.termination_message_path,
            message_policy: &mut $container.termination_message_policy,
            ports: &mut $container.ports,
            env: &mut $container.env,
            resources: &mut $container.resources,
            probes: [
                &mut $container.liveness_probe,
                &mut $container.readiness_probe,
                &mut $container.startup_probe,
            ],
            lifecycle: &mut $container.lifecycle,
        }
    };
}

impl<'a> From<&'a mut Container> for Defaultable<'a> {
    fn from(container: &'a mut Container) -> Self {
        defaultable!(container)
    }
}

impl<'a> From<&'a mut EphemeralContainer> for Defaultable<'a> {
    fn from(container: &'a mut EphemeralContainer) -> Self {
        defaultable!(container)
    }
}

impl Defaultable<'_> {
    pub(super) fn set_defaults(self) {
        set_text(self.pull_policy, pull_policy(self.image));
        set_text(self.message_path, "/dev/termination-log");
        set_text(self.message_policy, "File");
        self.resources.get_or_insert_default();
        for port in self.ports.iter_mut().flatten() {
            set_text(&mut port.protocol, "TCP");
        }
        self.env.iter_mut().flatten().for_each(set_variable);
        self.probes.into_iter().flatten().for_each(set_probe);
        if let Some(lifecycle) = self.lifecycle {
            let hooks = [&mut lifecycle.post_start, &mut lifecycle.pre_stop];
            hooks
                .into_iter()
                .flatten()
                .filter_map(|hook| hook.http_get.as_mut())
                .for_each(set_http);
        }
    }
}

/// What may change under its name is pulled again and again.
pub(super) fn pull_policy(image: &str) -> &'static str {
    let tagged = with_default_tag(image).unwrap_or_default();
    let (named, _digest) = tagged.split_once('@').unwrap_or((&tagged, ""));
    if named.ends_with(":latest") { "Always" } else { "IfNotPresent" }
}

fn set_variable(variable: &mut EnvVar) {
    let Some(source) = &mut variable.value_from else { return };
    source.field_ref.as_mut().map(set_field_ref);
    source.resource_field_ref.as_mut().map(set_resource_field_ref);
    if let Some(file) = &mut source.file_key_ref {
        file.optional.get_or_insert(false);
    }
}

pub(super) fn set_field_ref(reference: &mut ObjectFieldSelector) {
    set_text(&mut reference.api_version, "v1");
}

/// The divisor is never absent in the API; a zero stands for one.
pub(super) fn set_resource_field_ref(reference: &mut ResourceFieldSelector) {
    reference.divisor.get_or_insert_with(|| WireQuantity("0".to_owned()));
}

fn set_probe(probe: &mut Probe) {
    probe.timeout_seconds.get_or_insert(1);
    probe.period_seconds.get_or_insert(10);
    probe.success_threshold.get_or_insert(1);
    probe.failure_threshold.get_or_insert(3);
    probe.http_get.as_mut().map(set_http);
    if let Some(grpc) = &mut probe.grpc {
        set_text(&mut grpc.service, "");
    }
}

fn set_http(action: &mut HTTPGetAction) {
    set_text(&mut action.path, "/");
    set_text(&mut action.scheme, "HTTP");
}
