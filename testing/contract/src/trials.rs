//! Makes trials of a test binary from the cases: one after the other or in parallel, each with a deadline.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use futures::FutureExt;
use futures::future::BoxFuture;
use libtest_mimic::{Completion, Failed, Trial};
use oarsman_cri::CriError;

use crate::{CaseContext, Harness};

/// No case takes this long on a loaded machine.
const DEADLINE: Duration = Duration::from_secs(90);

/// One behaviour that a runtime must have.
#[derive(Clone, Copy, Debug)]
pub struct ContractCase {
    /// The behaviour, as a sentence with underscores.
    pub name: &'static str,
    /// The test of it.
    pub run: fn(Arc<CaseContext>) -> BoxFuture<'static, Result<()>>,
}

/// All cases.
pub fn cases() -> Vec<ContractCase> {
    crate::cases::all()
}

/// All cases as trials named `<prefix>::<case>`, run on that executor. Those that need a call that the runtime may lack, and lacks, are reported
/// as ignored, with the reason.
pub fn trials(
    prefix: &str,
    harness: &Arc<dyn Harness>,
    executor: &tokio::runtime::Handle,
) -> Vec<Trial> {
    let trial = |case: ContractCase| {
        let (harness, executor) = (Arc::clone(harness), executor.clone());
        Trial::ignorable_test(format!("{prefix}::{}", case.name), move || {
            let outcome = executor.block_on(case.execute(Arc::clone(&harness)));
            completion(outcome, harness.may_lack())
        })
    };
    cases().into_iter().map(trial).collect()
}

/// What a test harness is told of a case: one that needs what the runtime may lack, and lacks, is ignored.
///
/// # Errors
/// When the case has failed.
pub fn completion(outcome: Result<()>, may_lack: &[&str]) -> Result<Completion, Failed> {
    match outcome {
        Ok(()) => Ok(Completion::Completed),
        Err(error) => match lacking(&error) {
            Some(call) if may_lack.contains(&call) => {
                Ok(Completion::ignored_with(format!("the runtime has no {call}")))
            }
            _ => Err(Failed::from(format!("{error:?}"))),
        },
    }
}

/// The call that a case failed for, if the runtime does not have it.
fn lacking(error: &anyhow::Error) -> Option<&'static str> {
    let error = error.downcast_ref::<CriError>();
    error.filter(|error| error.is_unimplemented()).map(CriError::call)
}

impl ContractCase {
    /// Runs the case and removes what it made, also when it failed, panicked or hung.
    pub async fn execute(self, harness: Arc<dyn Harness>) -> Result<()> {
        let cx = Arc::new(CaseContext::new(harness, self.name));
        let proof = AssertUnwindSafe((self.run)(Arc::clone(&cx))).catch_unwind();
        let outcome = match tokio::time::timeout(DEADLINE, proof).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(panic)) => Err(anyhow!("{}", panic_message(panic.as_ref()))),
            Err(_) => Err(anyhow!("not done after {DEADLINE:?}")),
        };
        let cleared = cx.remove_all().await;
        outcome.and(cleared)
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panicked")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_missing_call_that_may_be_missing_skips_a_case() {
        let lacks = || Err(CriError::unimplemented("GetContainerEvents").into());
        let gone = || Err(CriError::not_found("GetContainerEvents", "x").into());
        let rows: [(Result<()>, &[&str], Option<bool>); 5] = [
            (Ok(()), &["GetContainerEvents"], Some(false)),
            (lacks(), &["GetContainerEvents"], Some(true)),
            (lacks(), &["Attach"], None),
            (lacks(), &[], None),
            (gone(), &["GetContainerEvents"], None),
        ];
        for (outcome, may_lack, skipped) in rows {
            let told = format!("{outcome:?} {may_lack:?}");
            let found = completion(outcome, may_lack).ok();
            let found = found.map(|it| matches!(it, Completion::Ignored { .. }));
            assert_eq!(found, skipped, "{told}");
        }
    }
}
