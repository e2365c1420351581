//! The time that a container has left to stop by itself.

use oarsman_core::grace::ContainerGracePeriod;
use oarsman_core::lifecycle::Grace;
use oarsman_core::time::Mono;
use oarsman_sync::ordered_watch;

use super::context::PodContext;

/// Tells that the pod has less time than was said before.
#[derive(Clone, Debug)]
pub(super) struct GraceShortened(ordered_watch::Receiver<Grace>);

impl GraceShortened {
    pub(super) fn new(grace: ordered_watch::Receiver<Grace>) -> Self {
        Self(grace)
    }

    /// Waits until there is less time than was said.
    async fn wait(&mut self) -> ContainerGracePeriod {
        match self.0.changed().await {
            Ok(grace) => ContainerGracePeriod::from_seconds(grace.seconds()),
            Err(ordered_watch::Closed) => std::future::pending().await,
        }
    }
}

/// What is left of a container's grace period.
pub(super) struct GraceBudget<'a> {
    context: &'a PodContext,
    budget: ContainerGracePeriod,
    since: Mono,
    shortened: Option<GraceShortened>,
}

impl<'a> GraceBudget<'a> {
    /// All of it, from now on.
    pub(super) fn new(
        context: &'a PodContext,
        budget: ContainerGracePeriod,
        shortened: Option<GraceShortened>,
    ) -> Self {
        Self { context, budget, since: context.now(), shortened }
    }

    pub(super) fn remaining(&self) -> ContainerGracePeriod {
        self.budget.minus(self.context.now().since(self.since))
    }

    /// Waits for as long as there is time; none when it ran out.
    pub(super) async fn spend<T>(&mut self, wait: impl Future<Output = T>) -> Option<T> {
        let mut wait = std::pin::pin!(wait);
        loop {
            let spent = self.context.now().since(self.since);
            let remaining = self.budget.as_duration().saturating_sub(spent);
            tokio::select! {
                biased;
                done = &mut wait => return Some(done),
                () = tokio::time::sleep(remaining) => return None,
                () = self.shorten() => {}
            }
        }
    }

    /// Waits until there is less time than was said, and counts with that from then on.
    pub(super) async fn shorten(&mut self) {
        let Some(shortened) = &mut self.shortened else { return std::future::pending().await };
        let asked = shortened.wait().await;
        self.budget = self.remaining().min(asked);
        self.since = self.context.now();
    }
}
