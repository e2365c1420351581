//! Whether a container has come up and can take traffic.

use k8s_openapi::api::core::v1::{ContainerStatus, Probe};

use crate::pod::{ContainerKind, PodContainer};
use crate::probe::{ProbeKind, ProbeResult};
use crate::restart::has_failed;
use crate::status::container_status_ext::ContainerStatusExt;
use crate::status::context::{StatusContext, exit_of};
use crate::view::ContainerView;

/// Fills in `started` and `ready`. An ephemeral container is never asked.
pub(super) fn fill(
    context: &StatusContext<'_>,
    wanted: &PodContainer<'_>,
    newest: Option<&ContainerView>,
    status: &mut ContainerStatus,
) {
    let running = newest.filter(|c| status.is_running() && context.is_current(&c.sandbox));
    let started = running.filter(|c| context.input.probes.has_started(&wanted.spec, &c.id));
    let probed = wanted.spec.readiness_probe.as_ref();
    status.started = (wanted.kind != ContainerKind::Ephemeral).then_some(started.is_some());
    status.ready = match wanted.kind {
        ContainerKind::Init => has_succeeded(status),
        ContainerKind::Ephemeral => false,
        ContainerKind::Regular | ContainerKind::Sidecar => {
            started.is_some_and(|container| is_ready(context, probed, container))
        }
    };
}

fn is_ready(context: &StatusContext<'_>, probe: Option<&Probe>, container: &ContainerView) -> bool {
    let result = || context.input.probes.get(&container.id, ProbeKind::Readiness);
    probe.is_none() || result() == Some(ProbeResult::Success)
}

fn has_succeeded(status: &ContainerStatus) -> bool {
    status.ended().is_some_and(|end| !has_failed(ContainerKind::Init, &exit_of(end)))
}
