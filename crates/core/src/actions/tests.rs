//! Rows of facts: a pod, what the runtime holds of it, and the plan that follows.

mod containers;
mod counts;
mod ephemeral;
mod init;
mod leftovers;
mod outcome;
mod properties;
mod restart_all;
mod sandbox;
mod teardown;
mod waits;

use k8s_openapi::api::core::v1::Probe;

use super::*;
use crate::fixture::{now, view};
use crate::probe::{ProbeKind, ProbeResult};

/// What a decision is made from, with nothing special about it.
struct ActionsFixture {
    pod: Pod,
    view: PodView,
    probes: ProbeResults,
    backoff: CrashBackoff,
    published: Option<PodStatus>,
    dead_kept: usize,
    now: Now,
}

impl std::fmt::Debug for ActionsFixture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} pod: ", self.pod.restart_policy())?;
        for wanted in self.pod.all_containers() {
            write!(
                f,
                "{} ({:?} {:?}) ",
                wanted.spec.name, wanted.kind, wanted.spec.restart_policy
            )?;
        }
        for sandbox in &self.view.sandboxes {
            write!(f, "\n{} ready: {} {:?}", sandbox.id, sandbox.ready, sandbox.ips)?;
        }
        for container in &self.view.containers {
            write!(f, "\n{} in {}: {:?}", container.id, container.sandbox, container.state)?;
        }
        write!(f, "\nprobes: {:?}", self.probes)
    }
}

impl ActionsFixture {
    fn of(pod: Pod, view: PodView) -> Self {
        let (probes, backoff) = (ProbeResults::default(), CrashBackoff::default());
        Self { pod, view, probes, backoff, published: None, dead_kept: 1, now: now(1000) }
    }

    fn probed(mut self, container: &str, kind: ProbeKind, result: ProbeResult) -> Self {
        self.probes.set(container.into(), kind, result);
        self
    }

    fn actions(&self) -> PodActions {
        compute_pod_actions(&PodActionsInput {
            pod: &self.pod,
            view: &self.view,
            probes: &self.probes,
            backoff: &self.backoff,
            published: self.published.as_ref(),
            dead_kept: self.dead_kept,
            now: self.now,
        })
    }

    /// The plan in short words.
    fn describe_actions(&self) -> String {
        describe(&self.actions())
    }
}

/// A plan in short words: `stop app-0 (Liveness, again); remove app-0; create 1; start app#1; wait app 10s; end_reason Deleting`.
fn describe(actions: &PodActions) -> String {
    let stops = actions.stop.iter().map(|stop| {
        let again = if stop.restarts { ", again" } else { "" };
        format!("stop {} ({:?}{again})", stop.id, stop.why)
    });
    let sandboxes = actions.stop_sandboxes.iter().map(|id| format!("stop {id}"));
    let removals = actions.remove.iter().map(|removal| format!("remove {}", removal.id));
    let create = match &actions.sandbox {
        SandboxAction::Create(new) => Some(format!("create {}", new.attempt)),
        SandboxAction::Keep(_) | SandboxAction::None => None,
    };
    let starts = actions.start.iter().map(|start| match start.restart_count {
        RestartCount::Known(count) => format!("start {}#{count}", start.name),
        RestartCount::FromLogs => format!("start {}", start.name),
    });
    let waits = actions.wait.iter().map(|wait| format!("wait {} {:?}", wait.name, wait.delay));
    let end_reason = actions.end_reason.iter().map(|end_reason| format!("over {end_reason:?}"));
    let steps = stops.chain(sandboxes).chain(removals).chain(create);
    steps.chain(starts).chain(waits).chain(end_reason).collect::<Vec<_>>().join("; ")
}

/// Each row: what it shows, pod, view, and the plan in short words.
fn check(rows: impl IntoIterator<Item = (&'static str, Pod, PodView, &'static str)>) {
    for (what, pod, view, expected) in rows {
        assert_eq!(ActionsFixture::of(pod, view).describe_actions(), expected, "{what}");
    }
}

/// A probe, with nothing said about it.
fn some_probe() -> Option<Probe> {
    Some(Probe::default())
}
