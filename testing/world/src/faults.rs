//! What goes wrong, and how often: a plan, and the dice that play it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::clock::WorldClock;
use crate::dice::{Chance, Dice};
use crate::lock;

#[cfg(test)]
mod tests;

/// How likely each kind of fault is. Chances of what may happen to a call stand side by side, so
/// together they must not exceed [`Chance::ALWAYS`]; what is left goes well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultPlan {
    /// Every call takes up to this long before its effect, and again after it. No fault: it stays
    /// when faults have ended.
    pub latency: Duration,
    /// Virtual time since the world began at which faults end; none for a world that never mends.
    pub until: Option<Duration>,
    /// A call takes up to [`FaultPlan::slowness`] longer before and after its effect.
    pub slow: Chance,
    /// How much longer a slow call takes at most.
    pub slowness: Duration,
    /// A call fails without effect, saying that the other side cannot be reached.
    pub unavailable: Chance,
    /// A call fails without effect, for a reason that nobody knows.
    pub unknown: Chance,
    /// A call takes effect, but no answer comes until its deadline has passed.
    pub silent: Chance,
    /// A call takes no effect, and no answer comes until its deadline has passed.
    pub hang: Chance,
    /// No answer comes until a call's deadline has passed, and it takes effect up to this long after.
    pub late: (Chance, Duration),
    /// A call fails without effect because the other side says no, as the API server does to what it finds in conflict. Others than
    /// the API server have no such word.
    pub refused: Chance,
    /// A call fails without effect because the other side has too much to do, and asks to be left alone for up to this long. Others
    /// than the API server have no such word.
    pub busy: (Chance, Duration),
    /// A call that makes something leaves its name reserved and nothing made.
    pub botch: Chance,
    /// How long such a name stays reserved.
    pub reserved: Reserved,
    /// The other side restarts, and the call fails.
    pub restart: Chance,
    /// What a restart is like.
    pub outage: Outage,
    /// What goes wrong with events.
    pub events: EventFaults,
}

/// How long a name stays reserved for which nothing was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserved {
    /// How long, at most.
    pub longest: Duration,
    /// How likely it is that it stays until the runtime restarts, however long that takes.
    pub until_restart: Chance,
}

/// A restart of the runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// How long it is away, at most.
    pub longest: Duration,
    /// How likely it is to lose track of a container that was created or runs, each.
    pub forgets: Chance,
}

/// What goes wrong with events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventFaults {
    /// An event does not come.
    pub lose: Chance,
    /// An event comes twice.
    pub double: Chance,
    /// An event comes up to [`EventFaults::longest_delay`] late, behind those that came after it.
    pub delay: Chance,
    /// How late an event comes at most.
    pub longest_delay: Duration,
    /// A subscription begins with all events of the last minutes, read by somebody or not.
    pub replay: Chance,
}

/// What happens to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Wait before the effect.
    pub before: Duration,
    /// Wait between the effect and the answer.
    pub after: Duration,
    /// What goes wrong.
    pub mishap: Option<Mishap>,
}

/// What goes wrong with one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mishap {
    /// It fails without effect: cannot be reached.
    Unavailable,
    /// It fails without effect: unknown.
    Unknown,
    /// It takes effect and then gives no answer.
    Silent,
    /// It takes no effect and gives no answer.
    Hang,
    /// It gives no answer, and takes effect this long after its caller gave up.
    Late(Duration),
    /// It fails without effect: refused.
    Refused,
    /// It fails without effect: not before this time is over.
    Busy(Duration),
    /// It leaves its name reserved for a time, or until the other side restarts; then it fails, or
    /// gives no answer.
    Botch {
        /// How long the name stays reserved after the call.
        reserved: Option<Duration>,
        /// No answer comes.
        silent: bool,
    },
    /// The other side restarts.
    Restart {
        /// How long it is away.
        down: Duration,
        /// How likely it is to forget each thing.
        forgets: Chance,
        /// The call takes effect first.
        after_effect: bool,
    },
}

impl Mishap {
    /// The mishap in a word or two.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Unknown => "unknown",
            Self::Silent => "effect without answer",
            Self::Hang => "hangs",
            Self::Late(_) => "late effect",
            Self::Refused => "refused",
            Self::Busy(_) => "busy",
            Self::Botch { .. } => "name left reserved",
            Self::Restart { .. } => "restart",
        }
    }

    /// Whether the call has done all it was to do by then.
    pub(crate) fn comes_after_effect(self) -> bool {
        matches!(self, Self::Silent | Self::Restart { after_effect: true, .. })
    }
}

/// What happens to one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventFate {
    /// It comes.
    Comes,
    /// It does not come.
    Lost,
    /// It comes twice.
    Doubled,
    /// It comes this much later.
    Late(Duration),
}

impl FaultPlan {
    /// Nothing goes wrong and nothing takes time.
    pub const fn quiet() -> Self {
        Self {
            latency: Duration::ZERO,
            until: None,
            slow: Chance::NEVER,
            slowness: Duration::ZERO,
            unavailable: Chance::NEVER,
            unknown: Chance::NEVER,
            silent: Chance::NEVER,
            hang: Chance::NEVER,
            late: (Chance::NEVER, Duration::ZERO),
            refused: Chance::NEVER,
            busy: (Chance::NEVER, Duration::ZERO),
            botch: Chance::NEVER,
            reserved: Reserved { longest: Duration::ZERO, until_restart: Chance::NEVER },
            restart: Chance::NEVER,
            outage: Outage { longest: Duration::ZERO, forgets: Chance::NEVER },
            events: EventFaults {
                lose: Chance::NEVER,
                double: Chance::NEVER,
                delay: Chance::NEVER,
                longest_delay: Duration::ZERO,
                replay: Chance::NEVER,
            },
        }
    }

    /// Everything goes wrong now and then, up to that virtual time.
    pub const fn rough(until: Duration) -> Self {
        Self {
            latency: Duration::from_millis(20),
            until: Some(until),
            slow: Chance::percent(5),
            slowness: Duration::from_secs(30),
            unavailable: Chance::percent(1),
            unknown: Chance::percent(2),
            silent: Chance::percent(1),
            hang: Chance::percent(1),
            late: (Chance::percent(1), Duration::from_secs(10)),
            refused: Chance::percent(1),
            busy: (Chance::percent(1), Duration::from_secs(10)),
            botch: Chance::percent(2),
            reserved: Reserved {
                longest: Duration::from_secs(60),
                until_restart: Chance::percent(20),
            },
            restart: Chance::in_ten_thousand(50),
            outage: Outage { longest: Duration::from_secs(30), forgets: Chance::percent(20) },
            events: EventFaults {
                lose: Chance::percent(5),
                double: Chance::percent(5),
                delay: Chance::percent(5),
                longest_delay: Duration::from_secs(60),
                replay: Chance::HALF,
            },
        }
    }
}

/// The plan in force and its dice; clones are the same.
#[derive(Debug, Clone)]
pub struct Faults {
    clock: WorldClock,
    inner: Arc<Mutex<(FaultPlan, Dice)>>,
}

impl Faults {
    /// Faults by that plan.
    pub fn new(clock: WorldClock, plan: FaultPlan, dice: Dice) -> Self {
        Self { clock, inner: Arc::new(Mutex::new((plan, dice))) }
    }

    /// Goes on by another plan.
    pub fn change(&self, plan: FaultPlan) {
        lock(&self.inner).0 = plan;
    }

    /// What happens to the next call; `makes` says that it makes something under a name.
    pub fn next_call(&self, makes: bool) -> Fault {
        self.with(|plan, dice, active| {
            let mut wait = plan.latency;
            if active && dice.happens(plan.slow) {
                wait += plan.slowness;
            }
            let (before, after) = (dice.up_to(wait), dice.up_to(wait));
            let mishap = if active { mishap(plan, dice, makes) } else { None };
            Fault { before, after, mishap }
        })
    }

    /// What happens to the next event.
    pub fn next_event(&self) -> EventFate {
        self.with(|plan, dice, active| {
            let faults = plan.events;
            let late = EventFate::Late(dice.up_to(faults.longest_delay));
            let fates = [
                (faults.lose, EventFate::Lost),
                (faults.double, EventFate::Doubled),
                (faults.delay, late),
            ];
            dice.one_of(fates).filter(|_| active).unwrap_or(EventFate::Comes)
        })
    }

    /// Whether the next subscription begins with old events.
    pub fn replays_events(&self) -> bool {
        self.with(|plan, dice, active| active && dice.happens(plan.events.replay))
    }

    fn with<T>(&self, draw: impl FnOnce(&FaultPlan, &mut Dice, bool) -> T) -> T {
        let now = self.clock.elapsed();
        let (plan, dice) = &mut *lock(&self.inner);
        let active = plan.until.is_none_or(|end| now < end);
        draw(plan, dice, active)
    }
}

fn mishap(plan: &FaultPlan, dice: &mut Dice, makes: bool) -> Option<Mishap> {
    let kinds = [
        (plan.unavailable, Mishap::Unavailable),
        (plan.unknown, Mishap::Unknown),
        (plan.silent, Mishap::Silent),
        (plan.hang, Mishap::Hang),
        (plan.late.0, Mishap::Late(dice.up_to(plan.late.1))),
        (plan.refused, Mishap::Refused),
        (plan.busy.0, Mishap::Busy(dice.up_to(plan.busy.1))),
        (plan.restart, restart(plan, dice)),
        (plan.botch, botch(plan, dice)),
    ];
    dice.one_of(kinds).filter(|kind| makes || !matches!(kind, Mishap::Botch { .. }))
}

fn restart(plan: &FaultPlan, dice: &mut Dice) -> Mishap {
    let Outage { longest, forgets } = plan.outage;
    Mishap::Restart { down: dice.up_to(longest), forgets, after_effect: dice.happens(Chance::HALF) }
}

fn botch(plan: &FaultPlan, dice: &mut Dice) -> Mishap {
    let for_a_while = Some(dice.up_to(plan.reserved.longest));
    let reserved = for_a_while.filter(|_| !dice.happens(plan.reserved.until_restart));
    Mishap::Botch { reserved, silent: dice.happens(Chance::HALF) }
}
