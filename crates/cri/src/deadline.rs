//! The deadlines of runtime calls.

use std::time::Duration;

use crate::seconds;

/// Longer than any node lives; keeps absurd grace periods within what clocks and gRPC can express.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// A runtime that works answers in less.
const SLOW: Duration = Duration::from_secs(10);

/// No pull takes longer. CRI tells nothing of its progress, so that a slow line cannot be told from a registry that trickles on purpose;
/// this is enough for 7 GB at one megabyte a second.
const PULL: Duration = Duration::from_secs(2 * 60 * 60);

/// Limits on runtime calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// For an ordinary call; the kubelet's `runtimeRequestTimeout`.
    pub request: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { request: Duration::from_secs(2 * 60) }
    }
}

/// The kind of a call, by which its deadline is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeadlineClass {
    /// A call that should be fast.
    Ordinary,
    /// Making a sandbox, which sets up a network and may pull an image on the way.
    Sandbox,
    /// A call that waits this long on purpose before it acts.
    Prolonged(Duration),
    /// Getting an image from a registry.
    Pull,
    /// A call of unknown length; only dropping it ends it early.
    Unlimited,
}

impl DeadlineClass {
    /// The class of a command with this timeout on the wire, where 0 means that it may run forever.
    pub(crate) fn of_command(timeout: i64) -> Self {
        if timeout > 0 { Self::Prolonged(seconds::from_wire(timeout)) } else { Self::Unlimited }
    }

    /// After how long it is logged that the runtime has not answered; none for calls of unknown length.
    pub(crate) fn slow_after(self) -> Option<Duration> {
        match self {
            Self::Ordinary | Self::Sandbox => Some(SLOW),
            Self::Prolonged(wait) => Some(SLOW.saturating_add(wait).min(LONGEST)),
            Self::Pull | Self::Unlimited => None,
        }
    }
}

impl Deadlines {
    /// The deadline of a call; none for one without a limit.
    pub(crate) fn limit(self, effort: DeadlineClass) -> Option<Duration> {
        let limit = match effort {
            DeadlineClass::Ordinary => self.request,
            DeadlineClass::Sandbox => self.request.saturating_mul(2),
            DeadlineClass::Prolonged(wait) => self.request.saturating_add(wait),
            DeadlineClass::Pull => self.request.max(PULL),
            DeadlineClass::Unlimited => return None,
        };
        Some(limit.min(LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn each_class_of_calls_has_its_deadline() {
        let deadlines = Deadlines::default();
        for (effort, limit) in [
            (DeadlineClass::Ordinary, Some(secs(120))),
            (DeadlineClass::Sandbox, Some(secs(240))),
            (DeadlineClass::Prolonged(secs(0)), Some(secs(120))),
            (DeadlineClass::Prolonged(secs(30)), Some(secs(150))),
            (DeadlineClass::Prolonged(Duration::MAX), Some(LONGEST)),
            (DeadlineClass::of_command(5), Some(secs(125))),
            (DeadlineClass::of_command(i64::MAX), Some(LONGEST)),
            (DeadlineClass::of_command(0), None),
            (DeadlineClass::of_command(-1), None),
            (DeadlineClass::Pull, Some(secs(7200))),
            (DeadlineClass::Unlimited, None),
        ] {
            assert_eq!(deadlines.limit(effort), limit, "{effort:?}");
        }
    }

    #[test]
    fn all_deadlines_follow_from_the_configured_one() {
        let deadlines = Deadlines { request: secs(10) };
        assert_eq!(deadlines.limit(DeadlineClass::Ordinary), Some(secs(10)));
        assert_eq!(deadlines.limit(DeadlineClass::Sandbox), Some(secs(20)));
        assert_eq!(deadlines.limit(DeadlineClass::Prolonged(secs(3))), Some(secs(13)));
    }
}
