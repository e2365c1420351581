//! One call at its service: when it takes effect, its fault, and whether its caller still waits.

use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use oarsman_seam::{self as seam, CallFault, SeamError};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::{AbandonPolicy, LinkCall, RemoteService};
use crate::faults::{Fault, FaultKind};
use crate::kill_switch::KillSwitch;

/// After this long without an answer the connection of a call without a deadline breaks.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// A call at its service.
pub(super) struct RemoteCall {
    pub(super) call: LinkCall,
    pub(super) fault: Fault,
    /// The switch to end the incarnation after the effect, when it is its last call.
    pub(super) last: Option<KillSwitch>,
    pub(super) service: Arc<dyn RemoteService>,
}

/// Where the answer goes; closed when the caller has gone.
type Answer<T, E> = oneshot::Sender<Result<T, E>>;

impl RemoteCall {
    /// Runs the call. An outage of the service ends it at once: what it had not done by then it never does, and the caller gets a broken
    /// connection.
    pub(super) async fn run<T, E: SeamError>(
        mut self,
        effect: impl Future<Output = Result<T, E>>,
        mut answer: Answer<T, E>,
    ) {
        let mut outages = self.service.outages();
        let result = tokio::select! {
            biased;
            _ = outages.changed() => None,
            result = self.execute(effect, &mut answer) => result,
        };
        if let Some(switch) = self.last {
            switch.end();
            answer.closed().await;
        } else if let Some(result) = result {
            // The caller may be gone.
            answer.send(result).ok();
        }
    }

    /// The answer for the caller; none when the caller has gone.
    async fn execute<T, E: SeamError>(
        &mut self,
        effect: impl Future<Output = Result<T, E>>,
        answer: &mut Answer<T, E>,
    ) -> Option<Result<T, E>> {
        let Fault { before, after, fault_kind } = self.fault;
        let policy = self.call.policy;
        unless_gone(answer, policy == AbandonPolicy::Read, sleep(before)).await?;
        let Some(fault_kind) = fault_kind else {
            let result = unless_gone(answer, policy != AbandonPolicy::Change, effect).await?;
            sleep(after).await;
            return Some(result);
        };
        if fault_kind.comes_after_effect() {
            drop(unless_gone(answer, policy != AbandonPolicy::Change, effect).await?);
            return self.apply_fault(fault_kind, answer).await;
        }
        let told = self.apply_fault(fault_kind, answer).await;
        if let (FaultKind::Late(wait), AbandonPolicy::Change) = (fault_kind, policy) {
            sleep(wait).await;
            drop(effect.await);
        }
        told
    }

    /// The answer for the caller of a call with a fault.
    async fn apply_fault<T, E: SeamError>(
        &mut self,
        fault_kind: FaultKind,
        answer: &mut Answer<T, E>,
    ) -> Option<Result<T, E>> {
        match fault_kind {
            FaultKind::Unavailable => Some(Err(self.broken(CallFault::Unavailable))),
            FaultKind::Unknown => Some(Err(self.broken(CallFault::Unknown))),
            FaultKind::Refused => Some(Err(self.broken(CallFault::Refused))),
            FaultKind::Busy(wait) => Some(Err(self.broken(CallFault::Busy(wait)))),
            FaultKind::Silent | FaultKind::Hang | FaultKind::Late(_) => {
                self.withhold_answer(answer).await
            }
            FaultKind::StaleName { reserved, silent } => {
                // The name is reserved as long as the call lasts, and for a while after.
                let held = self.call.limit.filter(|_| silent).unwrap_or_default();
                if let Some(stale_name) = self.call.stale_name.take() {
                    stale_name(reserved.map(|time| time + held));
                }
                if silent {
                    return self.withhold_answer(answer).await;
                }
                Some(Err(self.broken(CallFault::Unknown)))
            }
            FaultKind::Restart { down, forgets, .. } => {
                self.service.restart(down, forgets);
                pending().await
            }
        }
    }

    /// Waits until the caller has given up, or the connection of a call without a deadline breaks.
    async fn withhold_answer<T, E: SeamError>(
        &self,
        answer: &mut Answer<T, E>,
    ) -> Option<Result<T, E>> {
        let endless = self.call.limit.is_none();
        tokio::select! {
            biased;
            () = answer.closed() => None,
            () = sleep(CONNECTION_TIMEOUT), if endless => Some(Err(self.broken(CallFault::Unknown))),
        }
    }

    fn broken<E: SeamError>(&self, how: CallFault) -> E {
        let call = seam::Call { name: self.call.name, object: self.call.subject.clone() };
        E::of_fault(&call, how)
    }
}

/// Runs the work, but cancels it, where the policy allows that, when the caller has gone. It has begun in any case.
async fn unless_gone<T, E, R>(
    answer: &mut Answer<T, E>,
    given_up: bool,
    work: impl Future<Output = R>,
) -> Option<R> {
    tokio::select! {
        biased;
        result = work => Some(result),
        () = answer.closed(), if given_up => None,
    }
}
