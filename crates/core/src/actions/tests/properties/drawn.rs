//! Pods and views drawn at random.

use k8s_openapi::api::core::v1::{
    Container, ContainerRestartRule, ContainerRestartRuleOnExitCodes,
};
use proptest::prelude::*;

use super::super::*;
use crate::backoff::{Crash, container_key};
use crate::fixture::{PodBuilder, ViewBuilder, at, pod};
use crate::pod::PodExt;

/// Any pod in any state.
pub(super) fn fixture() -> impl Strategy<Value = ActionsFixture> {
    let places = prop::collection::vec(position(), 0..8);
    let probes = prop::collection::vec((any::<prop::sample::Index>(), probe()), 0..4);
    (any_pod(), places, probes, 0u32..3).prop_map(|(pod, places, probes, restarts)| {
        let view =
            places.into_iter().fold(view(&pod), |view, position| position.put(view, &pod)).build();
        let mut fixture = ActionsFixture::of(pod, view);
        for (index, (kind, result)) in probes {
            if !fixture.view.containers.is_empty() {
                let id = index.get(&fixture.view.containers).id.clone();
                fixture.probes.set(id, kind, result);
            }
        }
        fixture.backoff = restarted(&fixture.pod, restarts);
        fixture
    })
}

fn any_pod() -> impl Strategy<Value = Pod> {
    let policy = prop_oneof![Just("Always"), Just("OnFailure"), Just("Never")];
    let init = prop::collection::vec((0u8..3, own_policy()), 0..3);
    let regular = prop::collection::vec((own_policy(), any::<bool>()), 1..3);
    let flags = (any::<bool>(), any::<bool>(), prop::bool::weighted(0.1));
    (policy, init, regular, flags).prop_map(|(policy, init, regular, (host, debug, deleting))| {
        let mut builder = pod().policy(policy);
        for (n, (kind, own)) in init.into_iter().enumerate() {
            builder = add_init(builder, &format!("init{n}"), kind, own);
        }
        for (n, (own, requests_restart_all)) in regular.into_iter().enumerate() {
            builder = builder.regular_with(&format!("app{n}"), |c| {
                set_restart_rules(c, own, requests_restart_all);
            });
        }
        builder = if host { builder.host_network() } else { builder };
        builder = if debug { builder.ephemeral("debug") } else { builder };
        if deleting { builder.deleting(5).build() } else { builder.build() }
    })
}

fn own_policy() -> impl Strategy<Value = Option<&'static str>> {
    prop_oneof![3 => Just(None), 1 => Just(Some("Always")), 1 => Just(Some("OnFailure")), 1 => Just(Some("Never"))]
}

fn add_init(builder: PodBuilder, name: &str, kind: u8, own: Option<&'static str>) -> PodBuilder {
    match kind {
        0 => builder
            .init_with(name, |c| set_restart_rules(c, own.filter(|own| *own != "Always"), false)),
        1 => builder.sidecar(name),
        _ => builder.sidecar_with(name, |c| c.startup_probe = some_probe()),
    }
}

/// With a policy of its own, and exit code 42 restarting all if it asks for that.
fn set_restart_rules(container: &mut Container, own: Option<&str>, requests_restart_all: bool) {
    container.restart_policy = own.map(str::to_owned);
    if requests_restart_all {
        let values = Some(vec![42]);
        let codes = ContainerRestartRuleOnExitCodes { operator: "In".to_owned(), values };
        let action = "RestartAllContainers".to_owned();
        container.restart_policy_rules =
            Some(vec![ContainerRestartRule { action, exit_codes: Some(codes) }]);
    }
}

/// Something the runtime holds.
#[derive(Clone, Debug)]
enum ContainerPosition {
    Sandbox { ready: bool, ip: bool },
    Container { which: prop::sample::Index, state: u8, changed: bool },
}

fn position() -> impl Strategy<Value = ContainerPosition> {
    let sandbox = (prop::bool::weighted(0.8), prop::bool::weighted(0.9));
    let sandbox = sandbox.prop_map(|(ready, ip)| ContainerPosition::Sandbox { ready, ip });
    let container = (any::<prop::sample::Index>(), 0u8..7, prop::bool::weighted(0.1));
    let container = container.prop_map(|(which, state, changed)| ContainerPosition::Container {
        which,
        state,
        changed,
    });
    prop_oneof![1 => sandbox, 3 => container]
}

impl ContainerPosition {
    fn put(self, view: ViewBuilder, pod: &Pod) -> ViewBuilder {
        match self {
            Self::Sandbox { ready: true, ip: true } => view.sandbox(),
            Self::Sandbox { ready, .. } => view.sandbox().edit_sandbox(|sandbox| {
                sandbox.ready = ready;
                sandbox.ips.clear();
            }),
            Self::Container { which, state, changed } => {
                let mut names: Vec<String> =
                    pod.all_containers().iter().map(|wanted| wanted.spec.name.clone()).collect();
                names.push("stranger".to_owned());
                let name: &String = which.get(&names);
                let view = Self::container(view, name, state);
                view.edit_container(|c| c.label.hash = c.label.hash.map(|h| h ^ u32::from(changed)))
            }
        }
    }

    fn container(view: ViewBuilder, name: &str, state: u8) -> ViewBuilder {
        match state {
            0 => view.created(name),
            1 => view.unknown(name),
            2 => view.exited_at(name, 0, 998),
            3 => view.exited_at(name, 1, 999),
            4 => view.exited_at(name, 42, 997),
            _ => view.running(name),
        }
    }
}

fn probe() -> impl Strategy<Value = (ProbeKind, ProbeResult)> {
    let kind = prop_oneof![
        Just(ProbeKind::Liveness),
        Just(ProbeKind::Startup),
        Just(ProbeKind::Readiness)
    ];
    let result = prop_oneof![
        Just(ProbeResult::Success),
        Just(ProbeResult::Failure),
        Just(ProbeResult::Unknown)
    ];
    (kind, result)
}

/// A back-off in which every container has been restarted so often recently.
fn restarted(pod: &Pod, restarts: u32) -> CrashBackoff {
    let mut backoff = CrashBackoff::default();
    for (wanted, n) in pod.all_containers().iter().flat_map(|c| (0..restarts).map(move |n| (c, n)))
    {
        let key = container_key(pod, &wanted.spec);
        let container = format!("earlier-{n}").into();
        backoff.advance(&Crash { key, container, at: at(990) }, now(990));
    }
    backoff
}
