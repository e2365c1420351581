//! A pod's containers, and how each is.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStatus, EnvVar, PodSpec, PodStatus,
};

use super::page::Page;
use super::quantities;

pub(super) fn list(page: &mut Page, spec: &PodSpec, status: &PodStatus) {
    let inits = spec.init_containers.clone().unwrap_or_default();
    if !inits.is_empty() {
        page.within("Init Containers", |page| {
            all(page, &inits, status.init_container_statuses.as_ref());
        });
    }
    page.within("Containers", |page| {
        all(page, &spec.containers, status.container_statuses.as_ref());
    });
}

fn all(page: &mut Page, containers: &[Container], statuses: Option<&Vec<ContainerStatus>>) {
    for container in containers {
        let status = statuses.into_iter().flatten().find(|it| it.name == container.name);
        page.within(&container.name, |page| one(page, container, status));
    }
}

fn one(page: &mut Page, container: &Container, status: Option<&ContainerStatus>) {
    page.field(
        "Container ID",
        status.and_then(|it| it.container_id.as_deref()).unwrap_or_default(),
    );
    page.field("Image", container.image.as_deref().unwrap_or_default());
    page.field("Image ID", status.map(|it| it.image_id.as_str()).unwrap_or_default());
    page.field("Ports", &ports(container));
    page.list("Command", &container.command.clone().unwrap_or_default());
    page.list("Args", &container.args.clone().unwrap_or_default());
    let (now, before) =
        (status.and_then(|it| it.state.as_ref()), status.and_then(|it| it.last_state.as_ref()));
    state(page, "State", now);
    state(page, "Last State", before);
    page.field("Ready", if status.is_some_and(|it| it.ready) { "True" } else { "False" });
    page.number("Restart Count", status.map(|it| it.restart_count));
    let resources = container.resources.clone().unwrap_or_default();
    page.map("Limits", &quantities(resources.limits.as_ref()), ": ");
    page.map("Requests", &quantities(resources.requests.as_ref()), ": ");
    page.map("Environment", &environment(container), ": ");
    page.list("Mounts", &mounts(container));
}

fn ports(container: &Container) -> String {
    let ports = container.ports.iter().flatten().map(|port| {
        format!("{}/{}", port.container_port, port.protocol.as_deref().unwrap_or("TCP"))
    });
    ports.collect::<Vec<_>>().join(", ")
}

fn state(page: &mut Page, name: &str, state: Option<&ContainerState>) {
    let Some(state) = state else { return };
    if let Some(waiting) = &state.waiting {
        page.field(name, "Waiting");
        page.field("  Reason", waiting.reason.as_deref().unwrap_or_default());
        page.field("  Message", waiting.message.as_deref().unwrap_or_default());
    } else if let Some(running) = &state.running {
        page.field(name, "Running");
        page.time("  Started", running.started_at.as_ref());
    } else if let Some(ended) = &state.terminated {
        page.field(name, "Terminated");
        page.field("  Reason", ended.reason.as_deref().unwrap_or_default());
        page.field("  Message", ended.message.as_deref().unwrap_or_default());
        page.number("  Exit Code", Some(ended.exit_code));
        page.number("  Signal", ended.signal.filter(|signal| *signal != 0));
        page.time("  Started", ended.started_at.as_ref());
        page.time("  Finished", ended.finished_at.as_ref());
    }
}

fn environment(container: &Container) -> BTreeMap<String, String> {
    container.env.iter().flatten().map(|it| (it.name.clone(), value(it))).collect()
}

/// A value, or where it comes from: what is secret is not read out.
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
