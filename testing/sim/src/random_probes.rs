//! Draws probes for the containers of random pods, with servers and commands whose answers are known.

use std::time::Duration;

use k8s_openapi::api::core::v1::{
    Container, ExecAction, GRPCAction, HTTPGetAction, Pod, Probe, TCPSocketAction,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use oarsman_core::pod::{ContainerKind, PodExt, init_kind};
use oarsman_core::probe::ProbeKind;
use oarsman_world::network::FakeHealth;
use oarsman_world::rng::{Probability, Rng};

use crate::random_pods::pick;

/// The port of servers that are probed.
pub(crate) const PORT: u16 = 80;

/// The health of a server, as the first part of its name says it.
const HEALTHS: [(&str, FakeHealth); 4] = [
    ("good", FakeHealth::Good),
    ("bad", FakeHealth::Bad),
    ("hanging", FakeHealth::Hanging),
    (
        "flapping",
        FakeHealth::Flapping { good: Duration::from_secs(45), bad: Duration::from_secs(30) },
    ),
];

/// Gives some of the pod's containers probes.
pub(crate) fn add(rng: &mut Rng, pod: &mut Pod) {
    let (uid, host_network) = (pod.uid(), pod.host_network());
    let Some(spec) = &mut pod.spec else { return };
    let sidecars = spec.init_containers.iter_mut().flatten();
    let sidecars = sidecars.filter(|spec| init_kind(spec) == ContainerKind::Sidecar);
    for container in sidecars.chain(&mut spec.containers) {
        let chances = [
            (ProbeKind::Startup, Probability::percent(12)),
            (ProbeKind::Liveness, Probability::percent(20)),
            (ProbeKind::Readiness, Probability::percent(35)),
        ];
        for (kind, chance) in chances {
            if rng.happens(chance) {
                let probe = probe(rng, uid.as_str(), container, kind, host_network);
                *field(container, kind) = Some(probe);
            }
        }
    }
}

fn field(container: &mut Container, kind: ProbeKind) -> &mut Option<Probe> {
    match kind {
        ProbeKind::Startup => &mut container.startup_probe,
        ProbeKind::Liveness => &mut container.liveness_probe,
        ProbeKind::Readiness => &mut container.readiness_probe,
    }
}

fn probe(
    rng: &mut Rng,
    uid: &str,
    container: &mut Container,
    kind: ProbeKind,
    host_network: bool,
) -> Probe {
    let health =
        *pick(rng, &[&"good", &"good", &"good", &"good", &"good", &"flapping", &"bad", &"hanging"]);
    let success_threshold = if kind == ProbeKind::Readiness { *pick(rng, &[&1, &2]) } else { 1 };
    let probe = Probe {
        initial_delay_seconds: Some(*pick(rng, &[&0, &0, &5])),
        period_seconds: Some(*pick(rng, &[&2, &5, &10])),
        timeout_seconds: Some(*pick(rng, &[&1, &1, &2])),
        failure_threshold: Some(*pick(rng, &[&1, &2, &3])),
        success_threshold: Some(success_threshold),
        ..Probe::default()
    };
    let marker = marker(uid, &container.name, kind);
    let host = Some(format!("{health}.{marker}"));
    match rng.below(4) {
        0 => {
            let end = match health {
                "bad" | "flapping" => "exit:1",
                "hanging" => "forever",
                _ => "exit:0",
            };
            let command = ["/script".to_owned(), format!("out:{marker}"), end.to_owned()];
            Probe { exec: Some(ExecAction { command: Some(command.into()) }), ..probe }
        }
        1 if !host_network => {
            let port = grpc_port(uid, &container.name, kind);
            container.args.get_or_insert_default().insert(0, format!("listen:{port}"));
            let service = Some(health.to_owned());
            let action = GRPCAction { port: port.into(), service };
            Probe { grpc: Some(action), ..probe }
        }
        2 => {
            let action = TCPSocketAction { host, port: IntOrString::Int(PORT.into()) };
            Probe { tcp_socket: Some(action), ..probe }
        }
        _ => {
            let port = IntOrString::Int(PORT.into());
            let action = HTTPGetAction { host, port, ..HTTPGetAction::default() };
            Probe { http_get: Some(action), ..probe }
        }
    }
}

/// What the trace shows of every call of that probe, unless it is one of gRPC.
pub(crate) fn marker(uid: &str, container: &str, kind: ProbeKind) -> String {
    format!("{}.{container}.{uid}.", kind.name())
}

/// A gRPC probe asks the pod's own address: its port has to tell the probes of a life apart.
pub(crate) fn grpc_port(uid: &str, container: &str, kind: ProbeKind) -> u16 {
    let sum = marker(uid, container, kind)
        .bytes()
        .fold(7_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    20_000 + u16::try_from(sum % 40_000).unwrap_or_default()
}

/// The servers that the pod's probes ask, by name.
pub(crate) fn servers(pod: &Pod) -> Vec<(String, FakeHealth)> {
    let containers = pod.all_containers();
    let probes = containers.iter().flat_map(|container| {
        ProbeKind::ALL.into_iter().filter_map(|kind| kind.of(&container.spec))
    });
    let hosts = probes.filter_map(|probe| {
        let http = probe.http_get.as_ref().and_then(|action| action.host.clone());
        http.or_else(|| probe.tcp_socket.as_ref().and_then(|action| action.host.clone()))
    });
    hosts.filter_map(|host| Some((host.clone(), health_of(&host)?))).collect()
}

/// The ports on which containers of the pod are asked for their health, and what that is.
pub(crate) fn grpc_healths(pod: &Pod) -> Vec<(u16, FakeHealth)> {
    let containers = pod.all_containers();
    let probes = containers.iter().flat_map(|container| {
        ProbeKind::ALL.into_iter().filter_map(|kind| kind.of(&container.spec)?.grpc.clone())
    });
    let health =
        |action: GRPCAction| Some((u16::try_from(action.port).ok()?, health_of(&action.service?)?));
    probes.filter_map(health).collect()
}

fn health_of(host: &str) -> Option<FakeHealth> {
    let name = host.split('.').next()?;
    HEALTHS.iter().find(|(health, _)| *health == name).map(|(_, health)| *health)
}

/// Whether every answer of the probe is good as long as no call fails.
pub(crate) fn is_always_good(probe: &Probe) -> bool {
    let host =
        |host: &Option<String>| host.as_deref().and_then(health_of) == Some(FakeHealth::Good);
    let command = |exec: &ExecAction| {
        exec.command.iter().flatten().next_back().is_some_and(|step| step == "exit:0")
    };
    probe.exec.as_ref().is_some_and(command)
        || probe.http_get.as_ref().is_some_and(|action| host(&action.host))
        || probe.tcp_socket.as_ref().is_some_and(|action| host(&action.host))
}
