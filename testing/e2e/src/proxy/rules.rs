//! Rules: what is done to which calls.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use oarsman_cri::{Code, CriError};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::subject::Subject;

/// Which calls a rule is for.
#[derive(Debug, Clone, Default)]
pub struct Which {
    call: Option<String>,
    about: Option<String>,
    first: Option<usize>,
}

impl Which {
    /// All of them; what follows narrows it down.
    pub fn every() -> Self {
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

    fn fits(&self, call: &str, subject: &Subject) -> bool {
        self.call.as_ref().is_none_or(|name| name == call)
            && self.about.as_ref().is_none_or(|name| subject.names.contains(name))
    }
}

/// What is done to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// It waits until the rule is released, and then goes on to the runtime.
    Hold,
    /// The runtime does it, and its answer waits until the rule is released.
    HoldAnswer,
    /// It waits that long, and then goes on to the runtime.
    Delay(Duration),
    /// It fails and never reaches the runtime.
    Fail(Code),
    /// The runtime does it, and the caller is told that it failed.
    FailAnswer(Code),
}

/// A rule in force. Dropping it releases it.
#[must_use = "a rule that is dropped is no longer in force"]
pub struct Rule {
    rules: Arc<Rules>,
    terms: Arc<Terms>,
}

/// What a rule says, and what came of it.
pub(super) struct Terms {
    which: Which,
    deed: Deed,
    released: CancellationToken,
    met: watch::Sender<usize>,
    waiting: watch::Sender<usize>,
}

impl Rule {
    /// How many calls it was applied to.
    pub fn met(&self) -> usize {
        *self.terms.met.borrow()
    }

    /// How many calls wait now for its release.
    pub fn waiting(&self) -> usize {
        *self.terms.waiting.borrow()
    }

    /// Waits until it was applied to so many calls in all.
    ///
    /// # Errors
    /// When that takes longer than `patience`.
    pub async fn until_met(&self, count: usize, patience: Duration) -> Result<()> {
        self.until(&self.terms.met, count, patience).await
    }

    /// Waits until so many calls wait for its release.
    ///
    /// # Errors
    /// When that takes longer than `patience`.
    pub async fn until_waiting(&self, count: usize, patience: Duration) -> Result<()> {
        self.until(&self.terms.waiting, count, patience).await
    }

    async fn until(
        &self,
        number: &watch::Sender<usize>,
        count: usize,
        patience: Duration,
    ) -> Result<()> {
        let mut changes = number.subscribe();
        timeout(patience, changes.wait_for(|found| *found >= count)).await.with_context(
            || {
                let (found, which) = (*number.borrow(), &self.terms.which);
                format!(
                    "after {patience:?} there are {found} calls where {count} should be: {which:?}"
                )
            },
        )??;
        Ok(())
    }

    /// Takes the rule back and lets go of what it holds.
    pub fn release(self) {
        drop(self);
    }
}

impl Drop for Rule {
    fn drop(&mut self) {
        self.rules.lock().retain(|terms| !Arc::ptr_eq(terms, &self.terms));
        self.terms.released.cancel();
    }
}

/// All rules in force, oldest first.
#[derive(Default)]
pub(super) struct Rules {
    terms: Mutex<Vec<Arc<Terms>>>,
}

impl Rules {
    pub(super) fn add(self: &Arc<Self>, which: Which, deed: Deed) -> Rule {
        let terms = Arc::new(Terms {
            which,
            deed,
            released: CancellationToken::new(),
            met: watch::Sender::new(0),
            waiting: watch::Sender::new(0),
        });
        self.lock().push(Arc::clone(&terms));
        Rule { rules: Arc::clone(self), terms }
    }

    /// The rule for a call, if there is one; it counts as met.
    pub(super) fn find(&self, call: &str, subject: &Subject) -> Option<Arc<Terms>> {
        let rules = self.lock();
        let is_open =
            |terms: &Terms| terms.which.first.is_none_or(|first| *terms.met.borrow() < first);
        let found = rules.iter().find(|it| it.which.fits(call, subject) && is_open(it))?;
        found.met.send_modify(|met| *met += 1);
        Some(Arc::clone(found))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Terms>>> {
        self.terms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Terms {
    /// What comes before the runtime is asked.
    pub(super) async fn before(&self, call: &'static str) -> oarsman_cri::Result<()> {
        match self.deed {
            Deed::Hold => self.wait().await,
            Deed::Delay(time) => sleep(time).await,
            Deed::Fail(code) => return Err(failure(call, code)),
            Deed::HoldAnswer | Deed::FailAnswer(_) => {}
        }
        Ok(())
    }

    /// What comes after the runtime has answered.
    pub(super) async fn after(&self, call: &'static str) -> oarsman_cri::Result<()> {
        match self.deed {
            Deed::HoldAnswer => self.wait().await,
            Deed::FailAnswer(code) => return Err(failure(call, code)),
            Deed::Hold | Deed::Delay(_) | Deed::Fail(_) => {}
        }
        Ok(())
    }

    /// A caller may give up meanwhile; then it does not wait any more.
    async fn wait(&self) {
        self.waiting.send_modify(|waiting| *waiting += 1);
        let _until_here = Departure(&self.waiting);
        self.released.cancelled().await;
    }
}

/// Counts one less who waits, however it comes to its end.
struct Departure<'a>(&'a watch::Sender<usize>);

impl Drop for Departure<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|waiting| *waiting -= 1);
    }
}

fn failure(call: &'static str, code: Code) -> CriError {
    CriError::new(call, code, "the test wants this call to fail")
}
