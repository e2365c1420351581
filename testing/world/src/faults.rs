//! Plans faults of calls, and draws them at random.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::clock::WorldClock;
use crate::lock;
use crate::rng::{Probability, Rng};

#[cfg(test)]
mod tests;

/// The probability of each kind of fault. Of the faults of a call at most one is drawn, so the sum of their probabilities must not exceed
/// [`Probability::ALWAYS`]; the rest is the probability of success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultPlan {
    /// Every call takes up to this long before its effect, and again after it. No fault: it stays
    /// when faults have ended.
    pub latency: Duration,
    /// The virtual time since the world's start at which faults end; none for faults without end.
    pub until: Option<Duration>,
    /// A call takes up to [`FaultPlan::slowness`] longer before and after its effect.
    pub slow: Probability,
    /// How much longer a slow call takes at most.
    pub slowness: Duration,
    /// A call fails without effect, saying that the other side cannot be reached.
    pub unavailable: Probability,
    /// A call fails without effect, with an unknown error.
    pub unknown: Probability,
    /// A call takes effect, but no answer comes until its deadline has passed.
    pub silent: Probability,
    /// A call takes no effect, and no answer comes until its deadline has passed.
    pub hang: Probability,
    /// No answer comes until a call's deadline has passed, and it takes effect up to this long after.
    pub late: (Probability, Duration),
    /// A call fails without effect because the server refuses it, as the API server does on a conflict. Only the API server has this fault.
    pub refused: Probability,
    /// A call fails without effect because the server is overloaded, and asks to wait for up to this long. Only the API server has this fault.
    pub busy: (Probability, Duration),
    /// A call that creates something leaves its name reserved and nothing created.
    pub stale_name: Probability,
    /// How long such a name stays reserved.
    pub reserved: NameReservation,
    /// The service restarts, and the call fails.
    pub restart: Probability,
    /// The outage of a restart.
    pub outage: RestartOutage,
    /// The faults of events.
    pub events: EventFaults,
}

/// How long a name stays reserved for which nothing was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameReservation {
    /// The longest time.
    pub longest: Duration,
    /// The probability that it stays until the runtime restarts.
    pub until_restart: Probability,
}

/// The outage of a restart of the runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartOutage {
    /// The longest outage.
    pub longest: Duration,
    /// The probability that the runtime loses track of a container that was created or runs, for each.
    pub forgets: Probability,
}

/// The faults of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventFaults {
    /// An event is lost.
    pub lose: Probability,
    /// An event comes twice.
    pub double: Probability,
    /// An event comes up to [`EventFaults::longest_delay`] late, behind those that came after it.
    pub delay: Probability,
    /// How late an event comes at most.
    pub longest_delay: Duration,
    /// A subscription begins with all events of the last minutes, whether they were read or not.
    pub replay: Probability,
}

/// The delays and the fault of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Wait before the effect.
    pub before: Duration,
    /// Wait between the effect and the answer.
    pub after: Duration,
    /// The fault.
    pub fault_kind: Option<FaultKind>,
}

/// The fault of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// It fails without effect: unavailable.
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
    /// It fails without effect: overloaded, for this long.
    Busy(Duration),
    /// It leaves its name reserved for a time, or until the service restarts; then it fails, or gives no answer.
    StaleName {
        /// How long the name stays reserved after the call.
        reserved: Option<Duration>,
        /// No answer comes.
        silent: bool,
    },
    /// The service restarts.
    Restart {
        /// How long the outage is.
        down: Duration,
        /// The probability that it loses track of each container.
        forgets: Probability,
        /// The call takes effect first.
        after_effect: bool,
    },
}

impl FaultKind {
    /// The name of the fault, for the trace.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Unknown => "unknown",
            Self::Silent => "effect without answer",
            Self::Hang => "hangs",
            Self::Late(_) => "late effect",
            Self::Refused => "refused",
            Self::Busy(_) => "busy",
            Self::StaleName { .. } => "name left reserved",
            Self::Restart { .. } => "restart",
        }
    }

    /// Whether the call has taken effect before the fault.
    pub(crate) fn comes_after_effect(self) -> bool {
        matches!(self, Self::Silent | Self::Restart { after_effect: true, .. })
    }
}

/// What happens to one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants' names say what they are")]
pub enum EventDelivery {
    Delivered,
    Lost,
    /// It is delivered twice.
    Doubled,
    /// It is delivered this much later.
    Late(Duration),
}

impl FaultPlan {
    /// No faults and no latency.
    pub const fn quiet() -> Self {
        Self {
            latency: Duration::ZERO,
            until: None,
            slow: Probability::NEVER,
            slowness: Duration::ZERO,
            unavailable: Probability::NEVER,
            unknown: Probability::NEVER,
            silent: Probability::NEVER,
            hang: Probability::NEVER,
            late: (Probability::NEVER, Duration::ZERO),
            refused: Probability::NEVER,
            busy: (Probability::NEVER, Duration::ZERO),
            stale_name: Probability::NEVER,
            reserved: NameReservation {
                longest: Duration::ZERO,
                until_restart: Probability::NEVER,
            },
            restart: Probability::NEVER,
            outage: RestartOutage { longest: Duration::ZERO, forgets: Probability::NEVER },
            events: EventFaults {
                lose: Probability::NEVER,
                double: Probability::NEVER,
                delay: Probability::NEVER,
                longest_delay: Duration::ZERO,
                replay: Probability::NEVER,
            },
        }
    }

    /// All kinds of faults now and then, up to that virtual time.
    pub const fn rough(until: Duration) -> Self {
        Self {
            latency: Duration::from_millis(20),
            until: Some(until),
            slow: Probability::percent(5),
            slowness: Duration::from_secs(30),
            unavailable: Probability::percent(1),
            unknown: Probability::percent(2),
            silent: Probability::percent(1),
            hang: Probability::percent(1),
            late: (Probability::percent(1), Duration::from_secs(10)),
            refused: Probability::percent(1),
            busy: (Probability::percent(1), Duration::from_secs(10)),
            stale_name: Probability::percent(2),
            reserved: NameReservation {
                longest: Duration::from_secs(60),
                until_restart: Probability::percent(20),
            },
            restart: Probability::in_ten_thousand(50),
            outage: RestartOutage {
                longest: Duration::from_secs(30),
                forgets: Probability::percent(20),
            },
            events: EventFaults {
                lose: Probability::percent(5),
                double: Probability::percent(5),
                delay: Probability::percent(5),
                longest_delay: Duration::from_secs(60),
                replay: Probability::HALF,
            },
        }
    }
}

/// The current plan and its random numbers; clones are the same.
#[derive(Debug, Clone)]
pub struct Faults {
    clock: WorldClock,
    inner: Arc<Mutex<(FaultPlan, Rng)>>,
}

impl Faults {
    /// Faults by that plan.
    pub fn new(clock: WorldClock, plan: FaultPlan, rng: Rng) -> Self {
        Self { clock, inner: Arc::new(Mutex::new((plan, rng))) }
    }

    /// Replaces the plan.
    pub fn change(&self, plan: FaultPlan) {
        lock(&self.inner).0 = plan;
    }

    /// Draws the fault of the next call; `makes` says that it creates something under a name.
    pub fn next_call(&self, makes: bool) -> Fault {
        self.with(|plan, rng, active| {
            let mut wait = plan.latency;
            if active && rng.happens(plan.slow) {
                wait += plan.slowness;
            }
            let (before, after) = (rng.up_to(wait), rng.up_to(wait));
            let fault_kind = if active { draw_fault_kind(plan, rng, makes) } else { None };
            Fault { before, after, fault_kind }
        })
    }

    /// Draws what happens to the next event.
    pub fn next_event(&self) -> EventDelivery {
        self.with(|plan, rng, active| {
            let faults = plan.events;
            let late = EventDelivery::Late(rng.up_to(faults.longest_delay));
            let fates = [
                (faults.lose, EventDelivery::Lost),
                (faults.double, EventDelivery::Doubled),
                (faults.delay, late),
            ];
            rng.one_of(fates).filter(|_| active).unwrap_or(EventDelivery::Delivered)
        })
    }

    /// Whether the next subscription begins with old events.
    pub fn replays_events(&self) -> bool {
        self.with(|plan, rng, active| active && rng.happens(plan.events.replay))
    }

    fn with<T>(&self, draw: impl FnOnce(&FaultPlan, &mut Rng, bool) -> T) -> T {
        let now = self.clock.elapsed();
        let (plan, rng) = &mut *lock(&self.inner);
        let active = plan.until.is_none_or(|end| now < end);
        draw(plan, rng, active)
    }
}

fn draw_fault_kind(plan: &FaultPlan, rng: &mut Rng, makes: bool) -> Option<FaultKind> {
    let kinds = [
        (plan.unavailable, FaultKind::Unavailable),
        (plan.unknown, FaultKind::Unknown),
        (plan.silent, FaultKind::Silent),
        (plan.hang, FaultKind::Hang),
        (plan.late.0, FaultKind::Late(rng.up_to(plan.late.1))),
        (plan.refused, FaultKind::Refused),
        (plan.busy.0, FaultKind::Busy(rng.up_to(plan.busy.1))),
        (plan.restart, restart(plan, rng)),
        (plan.stale_name, stale_name(plan, rng)),
    ];
    rng.one_of(kinds).filter(|kind| makes || !matches!(kind, FaultKind::StaleName { .. }))
}

fn restart(plan: &FaultPlan, rng: &mut Rng) -> FaultKind {
    let RestartOutage { longest, forgets } = plan.outage;
    FaultKind::Restart {
        down: rng.up_to(longest),
        forgets,
        after_effect: rng.happens(Probability::HALF),
    }
}

fn stale_name(plan: &FaultPlan, rng: &mut Rng) -> FaultKind {
    let for_a_while = Some(rng.up_to(plan.reserved.longest));
    let reserved = for_a_while.filter(|_| !rng.happens(plan.reserved.until_restart));
    FaultKind::StaleName { reserved, silent: rng.happens(Probability::HALF) }
}
