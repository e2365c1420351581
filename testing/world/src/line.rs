//! The way from an agent to a part of the world: where calls are slow, fail, hang, and end with a life.

mod errand;

use std::fmt;
use std::future::{Future, pending};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use oarsman_seam::{self as seam, CallFault, Middleware, SeamError};
use oarsman_sync::latest as watch;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::dice::Chance;
use crate::faults::{Fault, Faults, Mishap};
use crate::life::{KillSwitch, Moment, Turn};
use crate::trace::{Caller, Entry, Outcome, Trace};
use errand::Errand;

#[cfg(test)]
mod tests;

/// The other end of a line: something that may go away and come back.
pub trait Service: Send + Sync + 'static {
    /// Goes away for so long; what it had in its head may be forgotten, each thing by that chance.
    fn restart(&self, down: Duration, forgets: Chance);
    /// Counts the times it went away. Calls under way then are broken.
    fn outages(&self) -> watch::Receiver<u64>;
}

/// What becomes of a call when its caller goes away or gives up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conduct {
    /// It is given up: it only reads, or can be stopped half-way.
    Read,
    /// It takes effect all the same.
    Change,
    /// It begins all the same, and is then given up: it waits for something it has set off.
    Wait,
}

/// A call into the world.
pub struct Call {
    name: &'static str,
    subject: String,
    conduct: Conduct,
    limit: Option<Duration>,
    botch: Option<Botch>,
}

/// Leaves the name behind that a call would have used, for so long or until a restart.
type Botch = Box<dyn FnOnce(Option<Duration>) + Send + Sync>;

impl Call {
    /// A call with no deadline.
    pub fn new(name: &'static str, subject: impl Into<String>, conduct: Conduct) -> Self {
        Self { name, subject: subject.into(), conduct, limit: None, botch: None }
    }

    /// The same call, with a time after which its caller stops waiting.
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// The same call, which makes something under a name; this is how it can leave that name behind.
    #[must_use]
    pub fn botched_by(
        mut self,
        botch: impl FnOnce(Option<Duration>) + Send + Sync + 'static,
    ) -> Self {
        self.botch = Some(Box::new(botch));
        self
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {:?} {:?}", self.name, self.subject, self.conduct, self.limit)
    }
}

/// What all lines of a world have in common.
#[derive(Debug, Clone)]
pub struct Exchange {
    trace: Trace,
    faults: Faults,
    switch: KillSwitch,
    /// Where effects are carried out: they do not end with the agent that asked for them.
    executor: Handle,
    calls: Arc<AtomicU64>,
}

impl Exchange {
    /// An exchange whose effects are carried out on the current tokio runtime.
    pub fn new(trace: Trace, faults: Faults, switch: KillSwitch) -> Self {
        Self { trace, faults, switch, executor: Handle::current(), calls: Arc::default() }
    }

    /// A line from an agent's life to a service.
    pub fn line(&self, life: u32, service: Arc<dyn Service>) -> Line {
        Line { exchange: self.clone(), life, service }
    }
}

/// A line from one life of an agent to one service.
#[derive(Clone)]
pub struct Line {
    exchange: Exchange,
    life: u32,
    service: Arc<dyn Service>,
}

impl Line {
    /// Makes a call: `effect` is what it does and answers when nothing goes wrong.
    ///
    /// # Errors
    /// Those of the effect, and those that the line makes up.
    pub async fn call<T, E>(
        &self,
        call: Call,
        effect: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: SeamError,
    {
        let turn = self.exchange.switch.count(self.life);
        let fault = self.fault(&call, turn);
        let passage = self.enter(&call, fault.mishap);
        let call = match turn {
            Turn::Goes => call,
            // Nothing ends its wait, not even its deadline.
            Turn::Last(Moment::AfterEffect) => Call { limit: None, ..call },
            Turn::Last(Moment::BeforeEffect) => {
                self.exchange.switch.end();
                return pending().await;
            }
            Turn::Over => return pending().await,
        };
        passage.close(self.send(call, fault, turn, effect).await)
    }

    /// The faults that are drawn, in an order of their own so that a kill does not shift them.
    fn fault(&self, call: &Call, turn: Turn) -> Fault {
        let fault = self.exchange.faults.next_call(call.botch.is_some());
        // A last call dies of the switch and of nothing else.
        if turn == Turn::Goes { fault } else { Fault { mishap: None, ..fault } }
    }

    fn enter(&self, call: &Call, mishap: Option<Mishap>) -> Passage {
        let number = self.exchange.calls.fetch_add(1, Ordering::Relaxed);
        let caller = Caller { life: self.life, number };
        self.exchange.trace.append(Entry::Called {
            caller,
            call: call.name,
            subject: call.subject.clone(),
            mishap: mishap.map(Mishap::name),
        });
        Passage { trace: self.exchange.trace.clone(), caller, outcome: Outcome::Abandoned }
    }

    /// Has the effect carried out, and waits for its answer as long as the call's deadline allows.
    async fn send<T, E>(
        &self,
        call: Call,
        fault: Fault,
        turn: Turn,
        effect: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: SeamError,
    {
        let (name, subject, limit) = (call.name, call.subject.clone(), call.limit);
        let broken = |how| E::of_fault(&seam::Call { name, object: subject.clone() }, how);
        let (answer, answered) = oneshot::channel();
        let last = (turn != Turn::Goes).then(|| self.exchange.switch.clone());
        let errand = Errand { call, fault, last, service: Arc::clone(&self.service) };
        self.exchange.executor.spawn(errand.run(effect, answer));
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

/// The line as a middleware: every call of a seam goes over it.
pub struct OverLine {
    line: Line,
    /// How long a call may take.
    limit: Duration,
    /// By the name of a call, what becomes of it when its caller gives up.
    conduct: fn(&str) -> Conduct,
}

impl OverLine {
    /// Calls end after that time at the latest.
    pub fn new(line: Line, limit: Duration, conduct: fn(&str) -> Conduct) -> Self {
        Self { line, limit, conduct }
    }
}

impl Middleware for OverLine {
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
        let call = Call::new(name, object, (self.conduct)(name)).within(self.limit);
        self.line.call(call, answer).await
    }
}

/// A call under way: its outcome goes to the trace also when its caller is dropped.
struct Passage {
    trace: Trace,
    caller: Caller,
    outcome: Outcome,
}

impl Passage {
    fn close<T, E: SeamError>(mut self, result: Result<T, E>) -> Result<T, E> {
        self.outcome = match &result {
            Ok(_) => Outcome::Fine,
            Err(error) => Outcome::Failed(error.to_string()),
        };
        result
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        let outcome = self.outcome.clone();
        self.trace.append(Entry::Answered { caller: self.caller, outcome });
    }
}
