//! Back-off of containers that end again and again.
//!
//! The wait is measured from when the runtime says the container ended, on the wall clock, so that the time it took us
//! to notice counts. That clock may jump; the monotonic one, from when we first saw the wait, sets the bound.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};

use super::{Backoff, BackoffDecision, EXPIRY, Failures, MAX};
use crate::hash::fnv64a;
use crate::ids::ContainerId;
use crate::pod::PodExt;
use crate::time::{Mono, Now, wall_between};

/// The end of a container that is to be followed by another one of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    /// What the back-off is kept under: [`container_key`].
    pub key: String,
    /// The container that ended.
    pub container: ContainerId,
    /// When it ended, as the runtime says.
    pub at: Timestamp,
}

/// The back-off of every container that has been restarted recently.
#[derive(Clone, Debug)]
pub struct CrashBackoff {
    backoff: Backoff,
    entries: BTreeMap<String, Entry>,
}

/// What is known of one container.
#[derive(Clone, Debug)]
struct Entry {
    /// Restarts in a row; the next has to wait accordingly.
    restarts: Failures,
    /// The crash whose restart was let through last.
    let_through: ContainerId,
    /// When the back-off was last set.
    updated: Now,
    /// A wait that is going on.
    hold: Option<Hold>,
}

/// A wait for which an event was recorded.
#[derive(Clone, Debug)]
struct Hold {
    container: ContainerId,
    since: Mono,
}

/// The key of one container's back-off. An edit of image or resources makes a new key, and so a new chance.
pub fn container_key(pod: &Pod, spec: &Container) -> String {
    let name = pod.full_name();
    let image = spec.image.as_deref().unwrap_or_default();
    let resources = serde_json::to_string(&spec.resources).unwrap_or_default();
    let text =
        format!("{}/{}/{}/{}/{image}/{resources}", name.name, name.namespace, pod.uid(), spec.name);
    format!("{:x}", fnv64a(text.as_bytes()))
}

impl Default for CrashBackoff {
    fn default() -> Self {
        Self::new(MAX)
    }
}

impl CrashBackoff {
    /// With the configured longest wait, which is held to 1 s at least and 300 s at most.
    pub fn new(max: Duration) -> Self {
        let max = max.clamp(Duration::from_secs(1), MAX);
        Self { backoff: Backoff::up_to(max), entries: BTreeMap::new() }
    }

    /// Whether the container may be started again after this crash.
    pub fn check(&self, crash: &Crash, now: Now) -> BackoffDecision {
        match self.entries.get(&crash.key) {
            Some(entry) if !entry.allows(crash, now) => {
                BackoffDecision::after(entry.restarts.wait(), entry.elapsed(crash, now))
            }
            _ => BackoffDecision::Ready,
        }
    }

    /// Whether the wait after this crash has already begun, so that no second event is recorded.
    pub fn is_held(&self, crash: &Crash) -> bool {
        self.entries.get(&crash.key).is_some_and(|entry| entry.hold_of(crash).is_some())
    }

    /// Notes that the container waits; from here on no jump of the wall clock makes the wait longer.
    pub fn hold(&mut self, crash: &Crash, now: Now) {
        if let Some(entry) = self.entries.get_mut(&crash.key)
            && entry.hold_of(crash).is_none()
        {
            entry.hold = Some(Hold { container: crash.container.clone(), since: now.mono });
        }
    }

    /// Notes that the container is started again: the next wait is longer. Once for each crash, however often the
    /// start itself is tried.
    pub fn advance(&mut self, crash: &Crash, now: Now) {
        let mut restarts = match self.entries.get(&crash.key) {
            Some(entry) if entry.let_through == crash.container => return,
            Some(entry) if !entry.is_expired(crash, now) => entry.restarts,
            _ => Failures::new(self.backoff),
        };
        restarts.next_wait();
        let let_through = crash.container.clone();
        let entry = Entry { restarts, let_through, updated: now, hold: None };
        self.entries.insert(crash.key.clone(), entry);
    }

    /// Forgets containers that have been quiet for long.
    pub fn collect(&mut self, now: Mono) {
        self.entries.retain(|_, entry| now.since(entry.last_use()) <= EXPIRY);
    }

    /// How many containers are remembered.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no container is in back-off.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl Entry {
    /// No wait for a restart that was let through already, nor after a long good time.
    fn allows(&self, crash: &Crash, now: Now) -> bool {
        self.let_through == crash.container || self.is_expired(crash, now)
    }

    /// Whether it ran long enough for its past to be forgotten, by either clock.
    fn is_expired(&self, crash: &Crash, now: Now) -> bool {
        let seen = self.hold_of(crash).unwrap_or(now.mono);
        wall_between(self.updated.wall, crash.at) > EXPIRY || seen.since(self.updated.mono) > EXPIRY
    }

    /// How much of the wait is over. A container that ended before it was started says that the wall clock cannot
    /// be used.
    fn elapsed(&self, crash: &Crash, now: Now) -> Duration {
        let held = self.hold_of(crash).map_or(Duration::ZERO, |since| now.mono.since(since));
        let plausible = crash.at >= self.updated.wall;
        let by_wall = if plausible { wall_between(crash.at, now.wall) } else { Duration::ZERO };
        held.max(by_wall)
    }

    fn hold_of(&self, crash: &Crash) -> Option<Mono> {
        self.hold.as_ref().filter(|hold| hold.container == crash.container).map(|hold| hold.since)
    }

    fn last_use(&self) -> Mono {
        self.hold.as_ref().map_or(self.updated.mono, |hold| hold.since.max(self.updated.mono))
    }
}
