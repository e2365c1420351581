//! Cases as trials of a test binary: one after the other or side by side, each with a deadline.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use futures::FutureExt;
use futures::future::BoxFuture;
use libtest_mimic::{Failed, Trial};

use crate::{Harness, Stage};

/// No case takes this long on a loaded machine.
const DEADLINE: Duration = Duration::from_secs(90);

/// One thing that a runtime does.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The thing, as a sentence with underscores.
    pub name: &'static str,
    /// Its proof.
    pub run: fn(Arc<Stage>) -> BoxFuture<'static, Result<()>>,
}

/// All cases.
pub fn cases() -> Vec<Case> {
    crate::cases::all()
}

/// All cases as trials named `<prefix>::<case>`, run on that executor.
pub fn trials(
    prefix: &str,
    harness: &Arc<dyn Harness>,
    executor: &tokio::runtime::Handle,
) -> Vec<Trial> {
    let trial = |case: Case| {
        let (harness, executor) = (Arc::clone(harness), executor.clone());
        Trial::test(format!("{prefix}::{}", case.name), move || {
            executor.block_on(case.perform(harness)).map_err(|e| Failed::from(format!("{e:?}")))
        })
    };
    cases().into_iter().map(trial).collect()
}

impl Case {
    /// Performs the case and removes what it made, also when it failed, panicked or hung.
    pub async fn perform(self, harness: Arc<dyn Harness>) -> Result<()> {
        let stage = Arc::new(Stage::new(harness, self.name));
        let proof = AssertUnwindSafe((self.run)(Arc::clone(&stage))).catch_unwind();
        let outcome = match tokio::time::timeout(DEADLINE, proof).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(panic)) => Err(anyhow!("{}", panic_message(panic.as_ref()))),
            Err(_) => Err(anyhow!("not done after {DEADLINE:?}")),
        };
        let cleared = stage.clear().await;
        outcome.and(cleared)
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panicked")
}
