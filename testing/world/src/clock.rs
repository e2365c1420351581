//! The world's time: waits run on tokio's paused clock, the wall clock is computed from it and may jump.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::lock;

/// The wall clock at the start of a world: 2027-01-01T00:00:00Z.
const EPOCH: SignedDuration = SignedDuration::from_secs(1_798_761_600);

/// The clock of one world; clones are the same clock.
#[derive(Debug, Clone)]
pub struct WorldClock {
    began: Instant,
    wall: Arc<Mutex<WallClock>>,
}

#[derive(Debug, Default)]
struct WallClock {
    /// The sum of all jumps so far.
    offset: SignedDuration,
    /// The time of the last stamp, and how many were taken at that time before.
    last_stamp: Option<(Duration, i64)>,
}

impl WorldClock {
    /// A clock that starts now. Needs a tokio runtime.
    pub fn start() -> Self {
        Self { began: Instant::now(), wall: Arc::default() }
    }

    /// Virtual time since the world's start. It never jumps.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// The wall clock. It may jump.
    pub fn wall(&self) -> Timestamp {
        let offset = lock(&self.wall).offset;
        let since_1970 =
            EPOCH + offset + SignedDuration::try_from(self.elapsed()).unwrap_or_default();
        Timestamp::from_duration(since_1970).unwrap_or_default()
    }

    /// The wall clock in nanoseconds since 1970, as runtimes stamp things. Stamps at the same virtual time differ by a nanosecond each: virtual
    /// time stands still while tasks run, and on a real machine no two events have the same time.
    pub fn stamp(&self) -> i64 {
        let now = self.elapsed();
        let mut wall = lock(&self.wall);
        let before = wall.last_stamp.filter(|(time, _)| *time == now);
        let count = before.map_or(0, |(_, count)| count + 1);
        wall.last_stamp = Some((now, count));
        drop(wall);
        i64::try_from(self.wall().as_nanosecond()).unwrap_or(i64::MAX).saturating_add(count)
    }

    /// Sets the wall clock forward, or back by a negative distance.
    pub fn jump(&self, distance: SignedDuration) {
        lock(&self.wall).offset += distance;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_wall_clock_follows_virtual_time_and_jumps() {
        let clock = WorldClock::start();
        assert_eq!(clock.wall().to_string(), "2027-01-01T00:00:00Z");
        tokio::time::sleep(Duration::from_secs(90)).await;
        assert_eq!(clock.elapsed(), Duration::from_secs(90));
        assert_eq!(clock.wall().to_string(), "2027-01-01T00:01:30Z");
        clock.jump(SignedDuration::from_hours(-1));
        assert_eq!(clock.wall().to_string(), "2026-12-31T23:01:30Z");
        assert_eq!(clock.elapsed(), Duration::from_secs(90));
    }

    #[tokio::test(start_paused = true)]
    async fn stamps_of_one_moment_are_in_order() {
        let clock = WorldClock::start();
        let first = clock.stamp();
        assert_eq!((clock.stamp(), clock.stamp()), (first + 1, first + 2));
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(clock.stamp(), first + 1_000_000);
    }
}
