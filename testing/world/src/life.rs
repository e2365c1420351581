//! An agent's lives, and the switch that ends one after a number of calls into the world.

use std::sync::{Arc, Mutex};

use oarsman_sync::latest as watch;

use crate::dice::{Chance, Dice};
use crate::lock;
use crate::trace::{Entry, Trace};

/// Ends an agent's life at one of its calls; clones are the same switch.
///
/// From then on every call of that life hangs for ever, and whoever drives the simulation hears of it
/// by [`KillSwitch::fired`] and drops the agent. Calls of lives before the current one hang too.
#[derive(Debug, Clone)]
pub struct KillSwitch {
    trace: Trace,
    inner: Arc<Mutex<Inner>>,
    over: Arc<watch::Sender<Option<u32>>>,
}

#[derive(Debug)]
struct Inner {
    life: Option<u32>,
    calls: u64,
    last: Option<Last>,
    dice: Dice,
}

#[derive(Debug, Clone, Copy)]
struct Last {
    call: u64,
    moment: Moment,
}

/// At which end of its last call an agent dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The call takes no effect.
    BeforeEffect,
    /// The call takes effect, and the agent never hears of it.
    AfterEffect,
}

/// What the switch says to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Go on.
    Goes,
    /// It is the last one; [`KillSwitch::end`] at that moment.
    Last(Moment),
    /// The life is over.
    Over,
}

impl KillSwitch {
    /// A switch that is not armed.
    pub fn new(trace: Trace, dice: Dice) -> Self {
        let inner = Inner { life: None, calls: 0, last: None, dice };
        let (over, _) = watch::channel(None);
        Self { trace, inner: Arc::new(Mutex::new(inner)), over: Arc::new(over) }
    }

    /// Begins a life, not armed, and ends the one before. Nothing happens when it has begun already.
    pub fn enter(&self, life: u32) {
        if lock(&self.inner).life == Some(life) {
            return;
        }
        self.end();
        let mut inner = lock(&self.inner);
        (inner.life, inner.calls, inner.last) = (Some(life), 0, None);
        self.trace.append(Entry::LifeBegan(life));
    }

    /// Lets the current life end at that call of its own, counted from one and from its beginning;
    /// the dice say whether before or after the call's effect. A call that has passed already ends
    /// nothing.
    pub fn arm(&self, call: u64) {
        let mut inner = lock(&self.inner);
        let before = inner.dice.happens(Chance::HALF);
        let moment = if before { Moment::BeforeEffect } else { Moment::AfterEffect };
        inner.last = Some(Last { call, moment });
    }

    /// How many calls the current life has made.
    pub fn calls(&self) -> u64 {
        lock(&self.inner).calls
    }

    /// Ends the current life now.
    pub fn end(&self) {
        let life = lock(&self.inner).life;
        let Some(life) = life.filter(|life| self.over.get() != Some(*life)) else { return };
        self.trace.append(Entry::LifeEnded(life));
        self.over.send_replace(Some(life));
    }

    /// Waits until the current life is over.
    pub async fn fired(&self) {
        let life = lock(&self.inner).life;
        // The sender lives as long as this switch, so the wait ends only as it should.
        self.over.subscribe().wait_for(|over| *over == life && life.is_some()).await.ok();
    }

    /// Counts a call of that life.
    pub fn count(&self, life: u32) -> Turn {
        let over = self.over.get();
        let mut inner = lock(&self.inner);
        if inner.life != Some(life) || over == Some(life) {
            return Turn::Over;
        }
        inner.calls += 1;
        match inner.last {
            Some(last) if last.call == inner.calls => Turn::Last(last.moment),
            // The last call is still on its way to its end.
            Some(last) if last.call < inner.calls => Turn::Over,
            _ => Turn::Goes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::WorldClock;

    fn switch(seed: u64) -> KillSwitch {
        KillSwitch::new(Trace::new(WorldClock::start()), Dice::new(seed))
    }

    #[tokio::test(start_paused = true)]
    async fn a_life_that_is_not_armed_goes_on() {
        let switch = switch(1);
        switch.enter(1);
        assert!((0..1_000).all(|_| switch.count(1) == Turn::Goes));
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_call_is_the_one_it_was_armed_for() {
        let switch = switch(1);
        switch.enter(1);
        switch.arm(3);
        assert_eq!([switch.count(1), switch.count(1)], [Turn::Goes; 2]);
        assert!(matches!(switch.count(1), Turn::Last(_)));
        assert_eq!(switch.count(1), Turn::Over);
    }

    #[tokio::test(start_paused = true)]
    async fn both_moments_come_by_the_seed() {
        let moment = |seed| {
            let switch = switch(seed);
            switch.enter(1);
            switch.arm(1);
            switch.count(1)
        };
        let seen: Vec<Turn> = (0..20).map(moment).collect();
        assert!(seen.contains(&Turn::Last(Moment::BeforeEffect)), "{seen:?}");
        assert!(seen.contains(&Turn::Last(Moment::AfterEffect)), "{seen:?}");
        assert_eq!(seen, (0..20).map(moment).collect::<Vec<_>>());
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_is_heard_and_the_next_life_begins_anew() {
        let switch = switch(1);
        switch.enter(1);
        let heard = tokio::spawn({
            let switch = switch.clone();
            async move { switch.fired().await }
        });
        tokio::task::yield_now().await;
        assert!(!heard.is_finished());
        switch.end();
        heard.await.unwrap();
        assert_eq!(switch.count(1), Turn::Over);
        switch.enter(2);
        assert_eq!([switch.count(2), switch.count(1)], [Turn::Goes, Turn::Over]);
        assert_eq!(switch.calls(), 1);
    }
}
