//! Stopping containers: hooks first, then one's turn, then the runtime; all of it paid from the grace period.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::core::v1::{LifecycleHandler, Pod};
use oarsman_core::actions::Stop;
use oarsman_core::event::PodEvent;
use oarsman_core::grace::Budget;
use oarsman_core::ids::{ContainerId, SandboxId};
use oarsman_core::lifecycle::Grace;
use oarsman_core::report::Activity;
use oarsman_core::time::Mono;
use oarsman_cri::CriError;

use super::hooks::{HookError, Owner};
use super::room::Room;
use crate::latest;

/// Word from the pod's worker that there is less time than was said.
#[derive(Clone, Debug)]
pub(super) struct Hurry(latest::Receiver<Grace>);

impl Hurry {
    pub(super) fn new(grace: latest::Receiver<Grace>) -> Self {
        Self(grace)
    }

    /// Waits until there is less time than was said.
    async fn heard(&mut self) -> Budget {
        match self.0.changed().await {
            Ok(grace) => Budget::from_seconds(grace.seconds()),
            Err(latest::Closed) => std::future::pending().await,
        }
    }
}

/// Stops containers side by side, each in its turn. One that fails keeps nobody else.
pub(super) async fn all(
    room: &Room,
    pod: Option<&Pod>,
    stops: &[Stop],
    hurry: Option<Hurry>,
) -> Result<(), CriError> {
    room.say(pod, stops.iter().map(Stop::event));
    let ended = latest::Sender::new(BTreeSet::new());
    let each = stops.iter().map(|stop| {
        let purse = Purse { room, budget: stop.grace, since: room.now(), hurry: hurry.clone() };
        one(room, pod, stop, purse, &ended)
    });
    join_all(each).await.into_iter().collect()
}

/// Stops sandboxes; one that fails keeps nobody else.
pub(super) async fn sandboxes(room: &Room, ids: &[SandboxId]) -> Result<(), CriError> {
    let runtime = &room.node.seams.runtime;
    let each = ids.iter().map(|id| runtime.stop_pod_sandbox(id.as_str()));
    join_all(each).await.into_iter().collect()
}

async fn one(
    room: &Room,
    pod: Option<&Pod>,
    stop: &Stop,
    mut purse: Purse<'_>,
    ended: &latest::Sender<BTreeSet<ContainerId>>,
) -> Result<(), CriError> {
    if let Some(hook) = &stop.pre_stop {
        let _running = room.busy_with(&stop.name, Activity::PreStop);
        pre_stop(room, pod, stop, hook, &mut purse).await;
    }
    let _stopping = room.busy_with(&stop.name, Activity::Stopping(purse.left().stop_timeout()));
    let mut others = ended.subscribe();
    let my_turn = |ended: &BTreeSet<_>| stop.after.iter().all(|id| ended.contains(id));
    // Whoever comes before has ended, or there is no time left to wait for them.
    purse.spend(async { others.wait_for(my_turn).await.is_ok() }).await;
    let stopped = ask(room, &stop.id, &mut purse).await;
    // Also one that would not stop lets the others have their turn.
    ended.send_modify(|ended| {
        ended.insert(stop.id.clone());
    });
    stopped
}

/// Asks the runtime, and again with less grace when there is less time than was said.
async fn ask(room: &Room, id: &ContainerId, purse: &mut Purse<'_>) -> Result<(), CriError> {
    loop {
        let seconds = purse.left().stop_timeout();
        let grace = Duration::from_secs(seconds.unsigned_abs());
        tokio::select! {
            biased;
            stopped = room.node.seams.runtime.stop_container(id.as_str(), grace) => return stopped,
            () = purse.hurried() => {}
        }
    }
}

/// Runs the hook before the stop for as long as there is time. One that fails keeps nothing from going on.
async fn pre_stop(
    room: &Room,
    pod: Option<&Pod>,
    stop: &Stop,
    hook: &LifecycleHandler,
    purse: &mut Purse<'_>,
) {
    let owner = Owner { room, pod, id: &stop.id, name: &stop.name };
    let error = match purse.spend(owner.run(hook)).await {
        Some(Ok(())) => return,
        // A rest that is cut short is none the worse for it.
        None if hook.sleep.is_some() => return,
        Some(Err(error)) => error,
        None => HookError::Overdue,
    };
    tracing::warn!(pod = %room.name, container = stop.name, %error, "a preStop hook failed");
    // What a hook prints may be secret, and events are for many eyes.
    let event = PodEvent::warning("FailedPreStopHook", "PreStopHook failed");
    let event = match stop.kind {
        Some(kind) => event.about(kind, &stop.name),
        None => event,
    };
    room.say(pod, [event]);
}

impl Room {
    /// Says what happened to the pod; of one that only the runtime knows by what it is called there.
    pub(super) fn say(&self, pod: Option<&Pod>, events: impl IntoIterator<Item = PodEvent>) {
        let by_name = || {
            let mut orphan = Pod::default();
            orphan.metadata.name = Some(self.name.name.clone());
            orphan.metadata.namespace = Some(self.name.namespace.clone());
            orphan.metadata.uid = Some(self.uid.to_string());
            Cow::Owned(orphan)
        };
        self.node.recorder.record(&pod.map_or_else(by_name, Cow::Borrowed), events);
    }
}

/// The time a container has left to stop by itself.
struct Purse<'a> {
    room: &'a Room,
    budget: Budget,
    since: Mono,
    hurry: Option<Hurry>,
}

impl Purse<'_> {
    fn left(&self) -> Budget {
        self.budget.minus(self.room.now().since(self.since))
    }

    /// Waits for as long as there is time; none when it ran out.
    async fn spend<T>(&mut self, wait: impl Future<Output = T>) -> Option<T> {
        let mut wait = std::pin::pin!(wait);
        loop {
            let left = self.budget.as_duration().saturating_sub(self.room.now().since(self.since));
            tokio::select! {
                biased;
                done = &mut wait => return Some(done),
                () = tokio::time::sleep(left) => return None,
                () = self.hurried() => {}
            }
        }
    }

    /// Waits until there is less time than was said, and takes that to heart.
    async fn hurried(&mut self) {
        let Some(hurry) = &mut self.hurry else { return std::future::pending().await };
        let asked = hurry.heard().await;
        self.budget = self.left().min(asked);
        self.since = self.room.now();
    }
}
