//! The state machine of one probe of one container: when it is due, and how many answers make a result.

use std::time::Duration;

use jiff::Timestamp;

use super::outcome::ProbeOutcome;
use super::schedule::ProbeSchedule;
use crate::probe::{ProbeKind, ProbeResult};
use crate::requeue::{Jitter, jittered_by};
use crate::time::{Mono, Now, wall_between};

/// After a restart of the agent, first probes are spread over this much or one period, whichever is shorter: all are late already, by no
/// more than the restart took and this.
const SPREAD: Duration = Duration::from_millis(500);

/// Probes are at most this much earlier than their period says.
const LARGEST_GRID: Duration = Duration::from_millis(50);
/// Of short periods it is this fraction.
const GRID_POINTS: u32 = 20;

/// What the time of the first probe is made from.
#[derive(Clone, Copy, Debug)]
pub struct ProbeStart {
    /// The time.
    pub now: Now,
    /// When the container was started.
    pub container_started: Timestamp,
    /// When this agent began.
    pub agent_began: Timestamp,
    /// Spreads the first probes after a restart of the agent.
    pub jitter: Jitter,
}

/// One probe of one container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeWorker {
    kind: ProbeKind,
    schedule: ProbeSchedule,
    /// The result that counts.
    result: ProbeResult,
    /// Equal answers in a row: what, and how many.
    run: Option<(ProbeResult, u32)>,
    /// When the next probe is due; none on hold.
    next: Option<Mono>,
}

impl ProbeWorker {
    /// Begins with the result that counts so far.
    pub fn new(
        kind: ProbeKind,
        schedule: ProbeSchedule,
        result: ProbeResult,
        start: &ProbeStart,
    ) -> Self {
        let next = Some(first_probe(&schedule, start));
        Self { kind, schedule, result, run: None, next }
    }

    /// What it asks.
    pub fn kind(&self) -> ProbeKind {
        self.kind
    }

    /// Its numbers.
    pub fn schedule(&self) -> &ProbeSchedule {
        &self.schedule
    }

    /// When the next probe is due. None on hold: the container is about to be replaced, or has started for good.
    pub fn next_probe(&self) -> Option<Mono> {
        self.next
    }

    /// How many equal answers there were in a row.
    pub fn run_length(&self) -> u32 {
        self.run.map_or(0, |(_, length)| length)
    }

    /// Takes in what the probe that began then came to. Returns the result if it is a new one.
    pub fn record(&mut self, outcome: &ProbeOutcome, began: Mono) -> Option<ProbeResult> {
        self.next = Some(aligned(began + self.schedule.period, self.schedule.period));
        let found = outcome.result()?;
        let length = match self.run {
            Some((same, length)) if same == found => length.saturating_add(1),
            Some(_) | None => 1,
        };
        self.run = Some((found, length));
        if length < self.threshold(found) {
            return None;
        }
        if self.is_final(found) {
            self.next = None;
        }
        let is_new = self.result != found;
        self.result = found;
        is_new.then_some(found)
    }

    fn threshold(&self, found: ProbeResult) -> u32 {
        match found {
            ProbeResult::Success => self.schedule.success_threshold,
            ProbeResult::Failure | ProbeResult::Unknown => self.schedule.failure_threshold,
        }
    }

    /// Whether the container has nothing more to be asked.
    fn is_final(&self, found: ProbeResult) -> bool {
        match self.kind {
            ProbeKind::Startup => true,
            ProbeKind::Liveness => found == ProbeResult::Failure,
            ProbeKind::Readiness => false,
        }
    }
}

/// At once, but not before the initial delay is over; spread for a container that is older than the agent.
fn first_probe(schedule: &ProbeSchedule, start: &ProbeStart) -> Mono {
    let ProbeStart { now, container_started, agent_began, jitter } = *start;
    let elapsed = wall_between(container_started, now.wall);
    let due = now.mono + schedule.initial_delay.saturating_sub(elapsed);
    if container_started >= agent_began {
        return due;
    }
    let spread = SPREAD.min(schedule.period);
    due + jittered_by(spread, 1.0, jitter).saturating_sub(spread)
}

/// Probes of all containers fall on common points in time, so that the agent wakes up once for several of them. Earlier, never later: what
/// a probe began too late is not added to its period each time.
fn aligned(due: Mono, period: Duration) -> Mono {
    let grid = LARGEST_GRID.min(period / GRID_POINTS).as_nanos().max(1);
    let late = due.0.as_nanos() % grid;
    Mono(due.0.saturating_sub(Duration::from_nanos(u64::try_from(late).unwrap_or_default())))
}

#[cfg(test)]
mod tests;
