//! Whether an image is pulled, taken as it is, or refused.

use k8s_openapi::api::core::v1::Container;

/// When to pull an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullPolicy {
    /// Every time a container starts.
    Always,
    /// When the node does not have it.
    IfNotPresent,
    /// Never: the node has it, or the container does not start.
    Never,
}

/// What to do about an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullDecision {
    /// Take the one the node has.
    UsePresent,
    /// Pull the image, or let the registry confirm that the one on the node is current.
    Pull,
    /// The node does not have it and may not ask for it.
    Refuse,
}

impl PullPolicy {
    /// The container's policy. Defaulting has filled it in, so the case of none hardly matters.
    pub fn of(container: &Container) -> Self {
        Self::named(container.image_pull_policy.as_deref())
    }

    /// The policy of that name.
    pub fn named(name: Option<&str>) -> Self {
        match name {
            Some("Always") => Self::Always,
            Some("Never") => Self::Never,
            _ => Self::IfNotPresent,
        }
    }

    /// What this policy says, given whether the node has the image.
    pub fn decide(self, present: bool) -> PullDecision {
        match (self, present) {
            (Self::Always, _) | (Self::IfNotPresent, false) => PullDecision::Pull,
            (Self::IfNotPresent | Self::Never, true) => PullDecision::UsePresent,
            (Self::Never, false) => PullDecision::Refuse,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policy_and_presence_decide() {
        let rows = [
            (Some("Always"), true, PullDecision::Pull),
            (Some("Always"), false, PullDecision::Pull),
            (Some("IfNotPresent"), true, PullDecision::UsePresent),
            (Some("IfNotPresent"), false, PullDecision::Pull),
            (Some("Never"), true, PullDecision::UsePresent),
            (Some("Never"), false, PullDecision::Refuse),
            (None, true, PullDecision::UsePresent),
        ];
        for (policy, present, expected) in rows {
            let image_pull_policy = policy.map(ToOwned::to_owned);
            let container = Container { image_pull_policy, ..Container::default() };
            assert_eq!(
                PullPolicy::of(&container).decide(present),
                expected,
                "{policy:?} {present}"
            );
        }
    }
}
