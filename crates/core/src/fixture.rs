//! Pods and views for tests, in few words.
//!
//! ```text
//! let pod = pod().policy("Never").init("setup").regular("app").build();
//! let view = view(&pod).sandbox().exited("setup", 0).running("app").build();
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, EphemeralContainer, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::hash::container_hash;
use crate::ids::SandboxId;
use crate::pod::PodExt;
use crate::time::{Mono, Now};
use crate::view::{ContainerLabel, ContainerState, ContainerView, Exit, PodView, SandboxView};

/// So many seconds into the test, on the wall clock.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

/// So many seconds into the test, on both clocks.
pub(crate) fn now(seconds: u32) -> Now {
    Now { wall: at(seconds.into()), mono: Mono(Duration::from_secs(seconds.into())) }
}

/// A pod named `web` with no containers yet and restart policy Always.
pub(crate) fn pod() -> PodBuilder {
    let mut pod = Pod { spec: Some(PodSpec::default()), ..Pod::default() };
    pod.metadata.name = Some("web".to_owned());
    pod.metadata.namespace = Some("default".to_owned());
    pod.metadata.uid = Some("uid-web".to_owned());
    PodBuilder { pod }.policy("Always").grace(30)
}

/// Makes a pod.
#[derive(Clone)]
pub(crate) struct PodBuilder {
    pod: Pod,
}

impl PodBuilder {
    /// A regular container.
    pub(crate) fn regular(self, name: &str) -> Self {
        self.regular_with(name, |_| ())
    }

    /// A regular container, edited.
    pub(crate) fn regular_with(self, name: &str, edit: impl FnOnce(&mut Container)) -> Self {
        let container = container(name, edit);
        self.spec(|spec| spec.containers.push(container))
    }

    /// An init container.
    pub(crate) fn init(self, name: &str) -> Self {
        self.init_with(name, |_| ())
    }

    /// An init container, edited.
    pub(crate) fn init_with(self, name: &str, edit: impl FnOnce(&mut Container)) -> Self {
        let container = container(name, edit);
        self.spec(|spec| spec.init_containers.get_or_insert_default().push(container))
    }

    pub(crate) fn sidecar(self, name: &str) -> Self {
        self.sidecar_with(name, |_| ())
    }

    /// A sidecar, edited.
    pub(crate) fn sidecar_with(self, name: &str, edit: impl FnOnce(&mut Container)) -> Self {
        self.init_with(name, |container| {
            container.restart_policy = Some("Always".to_owned());
            edit(container);
        })
    }

    /// An ephemeral container.
    pub(crate) fn ephemeral(self, name: &str) -> Self {
        let image = Some(format!("{name}:1"));
        let container = EphemeralContainer { name: name.to_owned(), image, ..Default::default() };
        self.spec(|spec| spec.ephemeral_containers.get_or_insert_default().push(container))
    }

    /// `Always`, `OnFailure` or `Never`.
    pub(crate) fn policy(self, policy: &str) -> Self {
        self.spec(|spec| spec.restart_policy = Some(policy.to_owned()))
    }

    /// The termination grace period.
    pub(crate) fn grace(self, seconds: i64) -> Self {
        self.spec(|spec| spec.termination_grace_period_seconds = Some(seconds))
    }

    /// On the node's network.
    pub(crate) fn host_network(self) -> Self {
        self.spec(|spec| spec.host_network = Some(true))
    }

    /// Being deleted, with that grace period.
    pub(crate) fn deleting(self, grace: i64) -> Self {
        self.edit(|pod| {
            pod.metadata.deletion_timestamp = Some(Time(at(0)));
            pod.metadata.deletion_grace_period_seconds = Some(grace);
        })
    }

    pub(crate) fn spec(self, edit: impl FnOnce(&mut PodSpec)) -> Self {
        self.edit(|pod| edit(pod.spec.get_or_insert_default()))
    }

    /// Edits anything.
    pub(crate) fn edit(mut self, edit: impl FnOnce(&mut Pod)) -> Self {
        edit(&mut self.pod);
        self
    }

    pub(crate) fn build(self) -> Pod {
        self.pod
    }
}

fn container(name: &str, edit: impl FnOnce(&mut Container)) -> Container {
    let image = Some(format!("{name}:1"));
    let mut container = Container { name: name.to_owned(), image, ..Container::default() };
    edit(&mut container);
    container
}

/// What the runtime holds of the pod: nothing yet.
pub(crate) fn view(pod: &Pod) -> ViewBuilder {
    let view = PodView::empty(pod.uid(), pod.full_name());
    ViewBuilder { pod: pod.clone(), view, clock: 0 }
}

/// Makes a view. What is added later is newer; containers go into the sandbox added last.
#[derive(Clone)]
pub(crate) struct ViewBuilder {
    pod: Pod,
    view: PodView,
    clock: i64,
}

impl ViewBuilder {
    /// A sandbox as the pod wants it.
    pub(crate) fn sandbox(mut self) -> Self {
        let attempt = u32::try_from(self.view.sandboxes.len()).unwrap();
        let host_network = self.pod.host_network();
        let ips = if host_network { Vec::new() } else { vec![format!("10.0.0.{attempt}")] };
        let created_at = self.tick();
        self.view.sandboxes.push(SandboxView {
            id: SandboxId::from(format!("sandbox-{attempt}")),
            attempt,
            ready: true,
            created_at,
            host_network,
            network_reported: true,
            ips,
            annotations: BTreeMap::new(),
        });
        self
    }

    /// A sandbox that has stopped.
    pub(crate) fn dead_sandbox(self) -> Self {
        self.sandbox().edit_sandbox(|sandbox| sandbox.ready = false)
    }

    /// Edits the sandbox added last.
    pub(crate) fn edit_sandbox(mut self, edit: impl FnOnce(&mut SandboxView)) -> Self {
        edit(self.view.sandboxes.last_mut().unwrap());
        self
    }

    /// A container that was made and not started.
    pub(crate) fn created(self, name: &str) -> Self {
        self.container(name, ContainerState::Created)
    }

    /// A container that runs.
    pub(crate) fn running(self, name: &str) -> Self {
        let started_at = at(self.clock);
        self.container(name, ContainerState::Running { started_at })
    }

    /// A container that ended as it was made.
    pub(crate) fn exited(self, name: &str, code: i32) -> Self {
        let finished = self.clock;
        self.exited_at(name, code, finished)
    }

    /// A container that ended so many seconds into the test.
    pub(crate) fn exited_at(self, name: &str, code: i32, finished: i64) -> Self {
        let exit = Exit {
            started_at: Some(at(self.clock.min(finished))),
            finished_at: at(finished),
            code,
            reason: if code == 0 { "Completed" } else { "Error" }.to_owned(),
            message: String::new(),
        };
        self.container(name, ContainerState::Exited(exit))
    }

    /// A container of which the runtime cannot tell.
    pub(crate) fn unknown(self, name: &str) -> Self {
        self.container(name, ContainerState::Unknown)
    }

    /// A container in that state; its restart count is one above that of the one of its name before.
    pub(crate) fn container(mut self, name: &str, state: ContainerState) -> Self {
        let before = self.view.containers.iter().filter(|c| c.name == name).count();
        let restart_count = u32::try_from(before).unwrap();
        let spec = self.pod.container(name).map(|wanted| wanted.spec.into_owned());
        let spec = spec.unwrap_or_else(|| container(name, |_| ()));
        let created_at = self.tick();
        self.view.containers.push(ContainerView {
            id: format!("{name}-{restart_count}").into(),
            sandbox: self.view.sandboxes.last().map(|s| s.id.clone()).unwrap_or_default(),
            name: name.to_owned(),
            image: spec.image.clone().unwrap_or_default(),
            image_ref: "sha256:0".to_owned(),
            created_at,
            state,
            label: ContainerLabel {
                hash: Some(container_hash(&spec)),
                restart_count,
                ..ContainerLabel::default()
            },
            message_file: None,
            user: None,
            stop_signal: None,
        });
        self
    }

    /// Edits the container added last.
    pub(crate) fn edit_container(mut self, edit: impl FnOnce(&mut ContainerView)) -> Self {
        edit(self.view.containers.last_mut().unwrap());
        self
    }

    /// The view, newest first.
    pub(crate) fn build(self) -> PodView {
        self.view.in_order()
    }

    fn tick(&mut self) -> Timestamp {
        let moment = at(self.clock);
        self.clock += 1;
        moment
    }
}
