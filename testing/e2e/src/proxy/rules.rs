//! The rules of the proxy: which calls are held, delayed or failed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use oarsman_cri::{CriError, ErrorCode};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::subject::CallSubject;

/// Which calls a rule is for.
#[derive(Debug, Clone, Default)]
pub struct CallFilter {
    call: Option<String>,
    about: Option<String>,
    first: Option<usize>,
}

impl CallFilter {
    /// All of them; what follows narrows it down.
    pub fn all() -> Self {
        Self::default()
    }

    /// Those of that RPC name, such as `RunPodSandbox`.
    #[must_use]
    pub fn named(mut self, call: &str) -> Self {
        self.call = Some(call.to_owned());
        self
    }

    /// Those that concern a pod, given by UID, name or `namespace/name`, or a sandbox or container
    /// given by id, or an image by its name. Lists count if they ask for one pod's only.
    #[must_use]
    pub fn about(mut self, thing: &str) -> Self {
        self.about = Some(thing.to_owned());
        self
    }

    /// The first so many of them; those after pass.
    #[must_use]
    pub fn first(mut self, count: usize) -> Self {
        self.first = Some(count);
        self
    }

    fn fits(&self, call: &str, subject: &CallSubject) -> bool {
        self.call.as_ref().is_none_or(|name| name == call)
            && self.about.as_ref().is_none_or(|name| subject.names.contains(name))
    }
}

/// What is done to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleAction {
    /// It waits until the rule is released, and then goes on to the runtime.
    Hold,
    /// The runtime does it, and its answer waits until the rule is released.
    HoldAnswer,
    /// It waits that long, and then goes on to the runtime.
    Delay(Duration),
    /// It fails and never reaches the runtime.
    Fail(ErrorCode),
    /// The runtime does it, and the caller is told that it failed.
    FailAnswer(ErrorCode),
}

/// A rule in force. Dropping it releases it.
#[must_use = "a rule that is dropped is no longer in force"]
pub struct ProxyRule {
    rules: Arc<RuleSet>,
    state: Arc<RuleState>,
}

/// A rule and its counters.
pub(super) struct RuleState {
    filter: CallFilter,
    action: RuleAction,
    released: CancellationToken,
    met: watch::Sender<usize>,
    waiting: watch::Sender<usize>,
}

impl ProxyRule {
    /// How many calls it was applied to.
    pub fn applied(&self) -> usize {
        *self.state.met.borrow()
    }

    /// How many calls wait now for its release.
    pub fn waiting(&self) -> usize {
        *self.state.waiting.borrow()
    }

    /// Waits until it was applied to so many calls in all.
    ///
    /// # Errors
    /// When that takes longer than `max_wait`.
    pub async fn wait_until_applied(&self, count: usize, max_wait: Duration) -> Result<()> {
        self.until(&self.state.met, count, max_wait).await
    }

    /// Waits until so many calls wait for its release.
    ///
    /// # Errors
    /// When that takes longer than `max_wait`.
    pub async fn wait_until_held(&self, count: usize, max_wait: Duration) -> Result<()> {
        self.until(&self.state.waiting, count, max_wait).await
    }

    async fn until(
        &self,
        number: &watch::Sender<usize>,
        count: usize,
        max_wait: Duration,
    ) -> Result<()> {
        let mut changes = number.subscribe();
        timeout(max_wait, changes.wait_for(|found| *found >= count)).await.with_context(
            || {
                let (found, filter) = (*number.borrow(), &self.state.filter);
                format!(
                    "after {max_wait:?} there are {found} calls where {count} should be: {filter:?}"
                )
            },
        )??;
        Ok(())
    }

    /// Removes the rule and releases the calls that it holds.
    pub fn release(self) {
        drop(self);
    }
}

impl Drop for ProxyRule {
    fn drop(&mut self) {
        self.rules.lock().retain(|state| !Arc::ptr_eq(state, &self.state));
        self.state.released.cancel();
    }
}

/// All rules in force, oldest first.
#[derive(Default)]
pub(super) struct RuleSet {
    state: Mutex<Vec<Arc<RuleState>>>,
}

impl RuleSet {
    pub(super) fn add(self: &Arc<Self>, filter: CallFilter, action: RuleAction) -> ProxyRule {
        let state = Arc::new(RuleState {
            filter,
            action,
            released: CancellationToken::new(),
            met: watch::Sender::new(0),
            waiting: watch::Sender::new(0),
        });
        self.lock().push(Arc::clone(&state));
        ProxyRule { rules: Arc::clone(self), state }
    }

    /// The rule for a call, if there is one; it counts as applied.
    pub(super) fn find(&self, call: &str, subject: &CallSubject) -> Option<Arc<RuleState>> {
        let rules = self.lock();
        let is_open =
            |state: &RuleState| state.filter.first.is_none_or(|first| *state.met.borrow() < first);
        let found = rules.iter().find(|it| it.filter.fits(call, subject) && is_open(it))?;
        found.met.send_modify(|met| *met += 1);
        Some(Arc::clone(found))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<RuleState>>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RuleState {
    /// Applies the rule before the runtime is called.
    pub(super) async fn before(&self, call: &'static str) -> oarsman_cri::Result<()> {
        match self.action {
            RuleAction::Hold => self.wait().await,
            RuleAction::Delay(time) => sleep(time).await,
            RuleAction::Fail(code) => return Err(failure(call, code)),
            RuleAction::HoldAnswer | RuleAction::FailAnswer(_) => {}
        }
        Ok(())
    }

    /// Applies the rule after the runtime has answered.
    pub(super) async fn after(&self, call: &'static str) -> oarsman_cri::Result<()> {
        match self.action {
            RuleAction::HoldAnswer => self.wait().await,
            RuleAction::FailAnswer(code) => return Err(failure(call, code)),
            RuleAction::Hold | RuleAction::Delay(_) | RuleAction::Fail(_) => {}
        }
        Ok(())
    }

    /// A caller may drop the call meanwhile; then the wait ends.
    async fn wait(&self) {
        self.waiting.send_modify(|waiting| *waiting += 1);
        let _until_here = WaitGuard(&self.waiting);
        self.released.cancelled().await;
    }
}

/// Counts a waiting call as done, however its wait ends.
struct WaitGuard<'a>(&'a watch::Sender<usize>);

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|waiting| *waiting -= 1);
    }
}

fn failure(call: &'static str, code: ErrorCode) -> CriError {
    CriError::new(call, code, "the test wants this call to fail")
}
