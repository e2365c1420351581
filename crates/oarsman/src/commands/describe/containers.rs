//! The section of `oarsman describe` on a pod's containers: spec and state of each.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStatus, EnvVar, PodSpec, PodStatus,
};

use super::field_writer::FieldWriter;
use super::quantities;

pub(super) fn list(writer: &mut FieldWriter, spec: &PodSpec, status: &PodStatus) {
    let inits = spec.init_containers.clone().unwrap_or_default();
    if !inits.is_empty() {
        writer.within("Init Containers", |writer| {
            all(writer, &inits, status.init_container_statuses.as_ref());
        });
    }
    writer.within("Containers", |writer| {
        all(writer, &spec.containers, status.container_statuses.as_ref());
    });
}

fn all(
    writer: &mut FieldWriter,
    containers: &[Container],
    statuses: Option<&Vec<ContainerStatus>>,
) {
    for container in containers {
        let status = statuses.into_iter().flatten().find(|it| it.name == container.name);
        writer.within(&container.name, |writer| one(writer, container, status));
    }
}

fn one(writer: &mut FieldWriter, container: &Container, status: Option<&ContainerStatus>) {
    writer.field(
        "Container ID",
        status.and_then(|it| it.container_id.as_deref()).unwrap_or_default(),
    );
    writer.field("Image", container.image.as_deref().unwrap_or_default());
    writer.field("Image ID", status.map(|it| it.image_id.as_str()).unwrap_or_default());
    writer.field("Ports", &ports(container));
    writer.list("Command", &container.command.clone().unwrap_or_default());
    writer.list("Args", &container.args.clone().unwrap_or_default());
    let (now, before) =
        (status.and_then(|it| it.state.as_ref()), status.and_then(|it| it.last_state.as_ref()));
    state(writer, "State", now);
    state(writer, "Last State", before);
    writer.field("Ready", if status.is_some_and(|it| it.ready) { "True" } else { "False" });
    writer.number("Restart Count", status.map(|it| it.restart_count));
    let resources = container.resources.clone().unwrap_or_default();
    writer.map("Limits", &quantities(resources.limits.as_ref()), ": ");
    writer.map("Requests", &quantities(resources.requests.as_ref()), ": ");
    writer.map("Environment", &environment(container), ": ");
    writer.list("Mounts", &mounts(container));
}

fn ports(container: &Container) -> String {
    let ports = container.ports.iter().flatten().map(|port| {
        format!("{}/{}", port.container_port, port.protocol.as_deref().unwrap_or("TCP"))
    });
    ports.collect::<Vec<_>>().join(", ")
}

fn state(writer: &mut FieldWriter, name: &str, state: Option<&ContainerState>) {
    let Some(state) = state else { return };
    if let Some(waiting) = &state.waiting {
        writer.field(name, "Waiting");
        writer.field("  Reason", waiting.reason.as_deref().unwrap_or_default());
        writer.field("  Message", waiting.message.as_deref().unwrap_or_default());
    } else if let Some(running) = &state.running {
        writer.field(name, "Running");
        writer.time("  Started", running.started_at.as_ref());
    } else if let Some(ended) = &state.terminated {
        writer.field(name, "Terminated");
        writer.field("  Reason", ended.reason.as_deref().unwrap_or_default());
        writer.field("  Message", ended.message.as_deref().unwrap_or_default());
        writer.number("  Exit Code", Some(ended.exit_code));
        writer.number("  Signal", ended.signal.filter(|signal| *signal != 0));
        writer.time("  Started", ended.started_at.as_ref());
        writer.time("  Finished", ended.finished_at.as_ref());
    }
}

fn environment(container: &Container) -> BTreeMap<String, String> {
    container.env.iter().flatten().map(|it| (it.name.clone(), value(it))).collect()
}

/// A value, or the reference it comes from: secrets are not resolved.
fn value(variable: &EnvVar) -> String {
    let from = variable.value_from.clone().unwrap_or_default();
    let of = |kind: &str, key: &str, name: &str| format!("<the key {key} of {kind} {name}>");
    let fields = from.field_ref.map(|it| format!("<{}>", it.field_path));
    let resource = from.resource_field_ref.map(|it| format!("<{}>", it.resource));
    let map = from.config_map_key_ref.map(|it| of("ConfigMap", &it.key, &it.name));
    let secret = from.secret_key_ref.map(|it| of("Secret", &it.key, &it.name));
    let given = variable.value.clone();
    fields.or(resource).or(map).or(secret).or(given).unwrap_or_default()
}

fn mounts(container: &Container) -> Vec<String> {
    let mount = |it: &k8s_openapi::api::core::v1::VolumeMount| {
        let mode = if it.read_only == Some(true) { "ro" } else { "rw" };
        let path = it.sub_path.as_ref().map(|path| format!(",path={path:?}")).unwrap_or_default();
        format!("{} from {} ({mode}{path})", it.mount_path, it.name)
    };
    container.volume_mounts.iter().flatten().map(mount).collect()
}
