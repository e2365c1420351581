//! Counts the calls of an agent's incarnations, and kills one after a number of calls.

use std::sync::{Arc, Mutex};

use oarsman_sync::ordered_watch as watch;

use crate::lock;
use crate::rng::{Probability, Rng};
use crate::trace::{Trace, TraceEntry};

/// Kills an agent at one of its calls; clones are the same switch.
///
/// From then on every call of that incarnation hangs for ever, and the simulation learns of it by [`KillSwitch::fired`] and drops the agent.
/// Calls of earlier incarnations hang too.
#[derive(Debug, Clone)]
pub struct KillSwitch {
    trace: Trace,
    inner: Arc<Mutex<KillSwitchInner>>,
    over: Arc<watch::Sender<Option<u32>>>,
}

#[derive(Debug)]
struct KillSwitchInner {
    incarnation: Option<u32>,
    calls: u64,
    last: Option<LastCall>,
    rng: Rng,
}

#[derive(Debug, Clone, Copy)]
struct LastCall {
    call: u64,
    moment: KillMoment,
}

/// At which end of its last call an agent is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KillMoment {
    /// The call takes no effect.
    BeforeEffect,
    /// The call takes effect, and the agent never gets the answer.
    AfterEffect,
}

/// What the switch decides for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallPermit {
    /// The call goes on.
    Proceed,
    /// It is the last one; [`KillSwitch::end`] at that moment.
    Last(KillMoment),
    /// The incarnation is dead.
    Dead,
}

impl KillSwitch {
    /// A switch that is not armed.
    pub fn new(trace: Trace, rng: Rng) -> Self {
        let inner = KillSwitchInner { incarnation: None, calls: 0, last: None, rng };
        let (over, _) = watch::channel(None);
        Self { trace, inner: Arc::new(Mutex::new(inner)), over: Arc::new(over) }
    }

    /// Starts an incarnation, not armed, and ends the one before. Does nothing when it has started already.
    pub fn begin(&self, incarnation: u32) {
        if lock(&self.inner).incarnation == Some(incarnation) {
            return;
        }
        self.end();
        let mut inner = lock(&self.inner);
        (inner.incarnation, inner.calls, inner.last) = (Some(incarnation), 0, None);
        self.trace.append(TraceEntry::AgentStarted(incarnation));
    }

    /// Makes the current incarnation end at that call of its own, counted from one; whether before or after the call's effect is random. A call
    /// that has passed already ends nothing.
    pub fn arm(&self, call: u64) {
        let mut inner = lock(&self.inner);
        let before = inner.rng.happens(Probability::HALF);
        let moment = if before { KillMoment::BeforeEffect } else { KillMoment::AfterEffect };
        inner.last = Some(LastCall { call, moment });
    }

    /// How many calls the current incarnation has made.
    pub fn calls(&self) -> u64 {
        lock(&self.inner).calls
    }

    /// Ends the current incarnation now.
    pub fn end(&self) {
        let incarnation = lock(&self.inner).incarnation;
        let Some(incarnation) =
            incarnation.filter(|incarnation| self.over.get() != Some(*incarnation))
        else {
            return;
        };
        self.trace.append(TraceEntry::AgentStopped(incarnation));
        self.over.send_replace(Some(incarnation));
    }

    /// Waits until the current incarnation has ended.
    pub async fn fired(&self) {
        let incarnation = lock(&self.inner).incarnation;
        // The sender lives as long as this switch, so the wait ends only on the value.
        self.over
            .subscribe()
            .wait_for(|over| *over == incarnation && incarnation.is_some())
            .await
            .ok();
    }

    /// Counts a call of that incarnation.
    pub fn count(&self, incarnation: u32) -> CallPermit {
        let over = self.over.get();
        let mut inner = lock(&self.inner);
        if inner.incarnation != Some(incarnation) || over == Some(incarnation) {
            return CallPermit::Dead;
        }
        inner.calls += 1;
        match inner.last {
            Some(last) if last.call == inner.calls => CallPermit::Last(last.moment),
            // The last call is still under way.
            Some(last) if last.call < inner.calls => CallPermit::Dead,
            _ => CallPermit::Proceed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::WorldClock;

    fn switch(seed: u64) -> KillSwitch {
        KillSwitch::new(Trace::new(WorldClock::start()), Rng::new(seed))
    }

    #[tokio::test(start_paused = true)]
    async fn an_incarnation_that_is_not_armed_goes_on() {
        let switch = switch(1);
        switch.begin(1);
        assert!((0..1_000).all(|_| switch.count(1) == CallPermit::Proceed));
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_call_is_the_one_it_was_armed_for() {
        let switch = switch(1);
        switch.begin(1);
        switch.arm(3);
        assert_eq!([switch.count(1), switch.count(1)], [CallPermit::Proceed; 2]);
        assert!(matches!(switch.count(1), CallPermit::Last(_)));
        assert_eq!(switch.count(1), CallPermit::Dead);
    }

    #[tokio::test(start_paused = true)]
    async fn both_kill_moments_occur_depending_on_the_seed() {
        let moment = |seed| {
            let switch = switch(seed);
            switch.begin(1);
            switch.arm(1);
            switch.count(1)
        };
        let seen: Vec<CallPermit> = (0..20).map(moment).collect();
        assert!(seen.contains(&CallPermit::Last(KillMoment::BeforeEffect)), "{seen:?}");
        assert!(seen.contains(&CallPermit::Last(KillMoment::AfterEffect)), "{seen:?}");
        assert_eq!(seen, (0..20).map(moment).collect::<Vec<_>>());
    }

    #[tokio::test(start_paused = true)]
    async fn the_kill_is_signalled_and_the_next_incarnation_starts_anew() {
        let switch = switch(1);
        switch.begin(1);
        let heard = tokio::spawn({
            let switch = switch.clone();
            async move { switch.fired().await }
        });
        tokio::task::yield_now().await;
        assert!(!heard.is_finished());
        switch.end();
        heard.await.unwrap();
        assert_eq!(switch.count(1), CallPermit::Dead);
        switch.begin(2);
        assert_eq!([switch.count(2), switch.count(1)], [CallPermit::Proceed, CallPermit::Dead]);
        assert_eq!(switch.calls(), 1);
    }
}
