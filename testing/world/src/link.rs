//! The link from an agent to a service of the world: calls over it are slow, fail, hang, and end with the agent's incarnation.

mod remote_call;

use std::fmt;
use std::future::{Future, pending};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use oarsman_seam::{self as seam, CallFault, Middleware, SeamError};
use oarsman_sync::ordered_watch as watch;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::faults::{Fault, FaultKind, Faults};
use crate::kill_switch::{CallPermit, KillMoment, KillSwitch};
use crate::panics::PanicSwitch;
use crate::rng::Probability;
use crate::trace::{CallOutcome, Caller, Trace, TraceEntry};
use remote_call::RemoteCall;

#[cfg(test)]
mod tests;

/// A service at the other end of a link, which may restart.
pub trait RemoteService: Send + Sync + 'static {
    /// Restarts with an outage this long; each thing in memory may be forgotten with that probability.
    fn restart(&self, down: Duration, forgets: Probability);
    /// Counts outages. Calls under way at an outage fail.
    fn outages(&self) -> watch::Receiver<u64>;
}

/// What happens to a call whose caller is dropped or times out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbandonPolicy {
    /// It is cancelled: it only reads, or can be stopped half-way.
    Read,
    /// It takes effect all the same.
    Change,
    /// It begins all the same, and is then cancelled: it waits for something it has started.
    Wait,
}

/// A call into the world.
pub struct LinkCall {
    name: &'static str,
    subject: String,
    policy: AbandonPolicy,
    limit: Option<Duration>,
    stale_name: Option<StaleName>,
}

/// Reserves the name that a call would have used, for so long or until a restart.
type StaleName = Box<dyn FnOnce(Option<Duration>) + Send + Sync>;

impl LinkCall {
    /// A call with no deadline.
    pub fn new(name: &'static str, subject: impl Into<String>, policy: AbandonPolicy) -> Self {
        Self { name, subject: subject.into(), policy, limit: None, stale_name: None }
    }

    /// The same call, with a time after which its caller stops waiting.
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// The same call, which creates something under a name; this is how it can leave that name reserved.
    #[must_use]
    pub fn with_stale_name(
        mut self,
        stale_name: impl FnOnce(Option<Duration>) + Send + Sync + 'static,
    ) -> Self {
        self.stale_name = Some(Box::new(stale_name));
        self
    }
}

impl fmt::Debug for LinkCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {:?} {:?}", self.name, self.subject, self.policy, self.limit)
    }
}

/// What all links of a world share.
#[derive(Debug, Clone)]
pub struct Links {
    trace: Trace,
    faults: Faults,
    switch: KillSwitch,
    /// The executor of effects: they do not end with the agent that made the call.
    executor: Handle,
    calls: Arc<AtomicU64>,
    panics: PanicSwitch,
}

impl Links {
    /// Links whose effects run on the current tokio runtime.
    pub fn new(trace: Trace, faults: Faults, switch: KillSwitch) -> Self {
        let (executor, calls, panics) = (Handle::current(), Arc::default(), PanicSwitch::default());
        Self { trace, faults, switch, executor, calls, panics }
    }

    /// The switch that makes a call panic in the task of its caller.
    pub fn panics(&self) -> PanicSwitch {
        self.panics.clone()
    }

    /// A link from an incarnation of an agent to a service.
    pub fn link(&self, incarnation: u32, service: Arc<dyn RemoteService>) -> Link {
        Link { links: self.clone(), incarnation, service }
    }
}

/// A link from one incarnation of an agent to one service.
#[derive(Clone)]
pub struct Link {
    links: Links,
    incarnation: u32,
    service: Arc<dyn RemoteService>,
}

impl Link {
    /// Makes a call: `effect` is what it does and returns without a fault.
    ///
    /// # Errors
    /// Those of the effect, and those of faults.
    pub async fn call<T, E>(
        &self,
        call: LinkCall,
        effect: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: SeamError,
    {
        self.links.panics.pass(call.name, &call.subject);
        let permit = self.links.switch.count(self.incarnation);
        let fault = self.fault(&call, permit);
        let traced = self.begin(&call, fault.fault_kind);
        let call = match permit {
            CallPermit::Proceed => call,
            // Nothing ends its wait, not even its deadline.
            CallPermit::Last(KillMoment::AfterEffect) => LinkCall { limit: None, ..call },
            CallPermit::Last(KillMoment::BeforeEffect) => {
                self.links.switch.end();
                return pending().await;
            }
            CallPermit::Dead => return pending().await,
        };
        traced.finish(self.send(call, fault, permit, effect).await)
    }

    /// Draws the fault, in an order of its own so that a kill does not shift it.
    fn fault(&self, call: &LinkCall, permit: CallPermit) -> Fault {
        let fault = self.links.faults.next_call(call.stale_name.is_some());
        // The last call ends by the switch and not by a fault.
        if permit == CallPermit::Proceed { fault } else { Fault { fault_kind: None, ..fault } }
    }

    fn begin(&self, call: &LinkCall, fault_kind: Option<FaultKind>) -> TracedCall {
        let number = self.links.calls.fetch_add(1, Ordering::Relaxed);
        let caller = Caller { incarnation: self.incarnation, number };
        self.links.trace.append(TraceEntry::Called {
            caller,
            call: call.name,
            subject: call.subject.clone(),
            fault_kind: fault_kind.map(FaultKind::name),
        });
        TracedCall { trace: self.links.trace.clone(), caller, outcome: CallOutcome::Abandoned }
    }

    /// Runs the effect, and waits for its answer as long as the call's deadline allows.
    async fn send<T, E>(
        &self,
        call: LinkCall,
        fault: Fault,
        permit: CallPermit,
        effect: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: SeamError,
    {
        let (name, subject, limit) = (call.name, call.subject.clone(), call.limit);
        let broken = |how| E::of_fault(&seam::Call { name, object: subject.clone() }, how);
        let (answer, answered) = oneshot::channel();
        let last = (permit != CallPermit::Proceed).then(|| self.links.switch.clone());
        let remote = RemoteCall { call, fault, last, service: Arc::clone(&self.service) };
        self.links.executor.spawn(remote.run(effect, answer));
        let answered =
            async { answered.await.unwrap_or_else(|_| Err(broken(CallFault::Unavailable))) };
        match limit {
            None => answered.await,
            Some(limit) => tokio::time::timeout(limit, answered)
                .await
                .unwrap_or_else(|_| Err(broken(CallFault::TimedOut(limit)))),
        }
    }
}

/// The link as a middleware of a seam: every call goes over it.
pub struct LinkMiddleware {
    link: Link,
    /// How long a call may take.
    limit: Duration,
    /// The policy of a call, by its name.
    policy: fn(&str) -> AbandonPolicy,
}

impl LinkMiddleware {
    /// Calls end after that time at the latest.
    pub fn new(link: Link, limit: Duration, policy: fn(&str) -> AbandonPolicy) -> Self {
        Self { link, limit, policy }
    }
}

impl Middleware for LinkMiddleware {
    async fn around<T, E>(
        &self,
        call: seam::Call,
        answer: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: SeamError,
    {
        let seam::Call { name, object } = call;
        let call = LinkCall::new(name, object, (self.policy)(name)).within(self.limit);
        self.link.call(call, answer).await
    }
}

/// A call under way: its outcome is traced also when its caller is dropped.
struct TracedCall {
    trace: Trace,
    caller: Caller,
    outcome: CallOutcome,
}

impl TracedCall {
    fn finish<T, E: SeamError>(mut self, result: Result<T, E>) -> Result<T, E> {
        self.outcome = match &result {
            Ok(_) => CallOutcome::Fine,
            Err(error) => CallOutcome::Failed(error.to_string()),
        };
        result
    }
}

impl Drop for TracedCall {
    fn drop(&mut self) {
        let outcome = self.outcome.clone();
        self.trace.append(TraceEntry::Answered { caller: self.caller, outcome });
    }
}
