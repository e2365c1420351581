//! One call on the other side: when it takes effect, what goes wrong, and who still waits for it.

use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use oarsman_seam::{self as seam, CallFault, SeamError};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::{Call, Conduct, Service};
use crate::faults::{Fault, Mishap};
use crate::life::KillSwitch;

/// When the connection of a call without a deadline breaks after nothing was heard on it.
const CONNECTION_PATIENCE: Duration = Duration::from_secs(10 * 60);

/// A call on the other side.
pub(super) struct Errand {
    pub(super) call: Call,
    pub(super) fault: Fault,
    /// The switch to throw after the effect, when it is the last call of a life.
    pub(super) last: Option<KillSwitch>,
    pub(super) service: Arc<dyn Service>,
}

/// Where an answer goes, and whether somebody still waits there.
type Answer<T, E> = oneshot::Sender<Result<T, E>>;

impl Errand {
    /// Carries the call out. The service going away ends it at once: what it had not done by then it
    /// never does, and the caller sees a broken line.
    pub(super) async fn run<T, E: SeamError>(
        mut self,
        effect: impl Future<Output = Result<T, E>>,
        mut answer: Answer<T, E>,
    ) {
        let mut outages = self.service.outages();
        let result = tokio::select! {
            biased;
            _ = outages.changed() => None,
            result = self.carry_out(effect, &mut answer) => result,
        };
        if let Some(switch) = self.last {
            switch.end();
            answer.closed().await;
        } else if let Some(result) = result {
            // A caller that is gone wants no answer.
            answer.send(result).ok();
        }
    }

    /// What the caller is told; nothing once nobody waits.
    async fn carry_out<T, E: SeamError>(
        &mut self,
        effect: impl Future<Output = Result<T, E>>,
        answer: &mut Answer<T, E>,
    ) -> Option<Result<T, E>> {
        let Fault { before, after, mishap } = self.fault;
        let conduct = self.call.conduct;
        unless_gone(answer, conduct == Conduct::Read, sleep(before)).await?;
        let Some(mishap) = mishap else {
            let result = unless_gone(answer, conduct != Conduct::Change, effect).await?;
            sleep(after).await;
            return Some(result);
        };
        if mishap.comes_after_effect() {
            drop(unless_gone(answer, conduct != Conduct::Change, effect).await?);
            return self.suffer(mishap, answer).await;
        }
        let told = self.suffer(mishap, answer).await;
        if let (Mishap::Late(wait), Conduct::Change) = (mishap, conduct) {
            sleep(wait).await;
            drop(effect.await);
        }
        told
    }

    /// What the caller is told of a call that goes wrong.
    async fn suffer<T, E: SeamError>(
        &mut self,
        mishap: Mishap,
        answer: &mut Answer<T, E>,
    ) -> Option<Result<T, E>> {
        match mishap {
            Mishap::Unavailable => Some(Err(self.broken(CallFault::Unavailable))),
            Mishap::Unknown => Some(Err(self.broken(CallFault::Unknown))),
            Mishap::Refused => Some(Err(self.broken(CallFault::Refused))),
            Mishap::Busy(wait) => Some(Err(self.broken(CallFault::Busy(wait)))),
            Mishap::Silent | Mishap::Hang | Mishap::Late(_) => self.say_nothing(answer).await,
            Mishap::Botch { reserved, silent } => {
                // The name is held as long as the call is, and for a while after.
                let held = self.call.limit.filter(|_| silent).unwrap_or_default();
                if let Some(botch) = self.call.botch.take() {
                    botch(reserved.map(|time| time + held));
                }
                if silent {
                    return self.say_nothing(answer).await;
                }
                Some(Err(self.broken(CallFault::Unknown)))
            }
            Mishap::Restart { down, forgets, .. } => {
                self.service.restart(down, forgets);
                pending().await
            }
        }
    }

    /// Waits until the caller has given up, or the connection breaks where no deadline makes it.
    async fn say_nothing<T, E: SeamError>(
        &self,
        answer: &mut Answer<T, E>,
    ) -> Option<Result<T, E>> {
        let endless = self.call.limit.is_none();
        tokio::select! {
            biased;
            () = answer.closed() => None,
            () = sleep(CONNECTION_PATIENCE), if endless => Some(Err(self.broken(CallFault::Unknown))),
        }
    }

    fn broken<E: SeamError>(&self, how: CallFault) -> E {
        let call = seam::Call { name: self.call.name, object: self.call.subject.clone() };
        E::of_fault(&call, how)
    }
}

/// Does the work, but gives it up, where it may be given up, when nobody waits for the answer any
/// more. It has begun in any case.
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
