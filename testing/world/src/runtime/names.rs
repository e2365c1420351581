//! Names of sandboxes and containers: each is reserved by one object, or for a while by none.

use std::collections::BTreeMap;
use std::time::Duration;

use oarsman_cri::{CriError, ErrorCode, Result};
use oarsman_cri_types::v1::{ContainerMetadata, PodSandboxMetadata};

/// The reserved names.
#[derive(Default)]
pub(super) struct NameReservations(BTreeMap<String, ReservedNameHolder>);

struct ReservedNameHolder {
    id: String,
    hold: NameHold,
}

enum NameHold {
    /// Until the object of that id is removed.
    Object,
    /// Until then, or until the runtime restarts; no object of that id was made.
    NoObject(Option<Duration>),
}

impl NameReservations {
    /// Reserves a name for a new object.
    pub(super) fn take(
        &mut self,
        call: &'static str,
        name: &str,
        id: &str,
        now: Duration,
    ) -> Result<()> {
        if let Some(holder) = self.holder(name, now) {
            let message = format!("name {name:?} is reserved for {:?}", holder.id);
            // An unknown error: containerd has no code for it.
            return Err(CriError::new(call, ErrorCode::Unknown, message));
        }
        self.0.insert(
            name.to_owned(),
            ReservedNameHolder { id: id.to_owned(), hold: NameHold::Object },
        );
        Ok(())
    }

    /// Reserves a free name without an object.
    pub(super) fn reserve(
        &mut self,
        name: String,
        id: String,
        now: Duration,
        until: Option<Duration>,
    ) {
        if self.holder(&name, now).is_none() {
            self.0.insert(name, ReservedNameHolder { id, hold: NameHold::NoObject(until) });
        }
    }

    pub(super) fn release(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// A restarted runtime knows only the names of existing objects.
    pub(super) fn release_unused(&mut self) {
        self.0.retain(|_, holder| matches!(holder.hold, NameHold::Object));
    }

    fn holder(&self, name: &str, now: Duration) -> Option<&ReservedNameHolder> {
        self.0.get(name).filter(|holder| match holder.hold {
            NameHold::Object | NameHold::NoObject(None) => true,
            NameHold::NoObject(Some(end)) => now < end,
        })
    }
}

/// The name of a sandbox.
pub(super) fn of_sandbox(pod: &PodSandboxMetadata) -> String {
    let PodSandboxMetadata { name, uid, namespace, attempt } = pod;
    format!("{name}_{namespace}_{uid}_{attempt}")
}

/// The name of a container. It does not depend on the pod's sandbox, as in containerd.
pub(super) fn of_container(container: &ContainerMetadata, pod: &PodSandboxMetadata) -> String {
    let ContainerMetadata { name, attempt } = container;
    let PodSandboxMetadata { name: pod, uid, namespace, .. } = pod;
    format!("{name}_{pod}_{namespace}_{uid}_{attempt}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &str = "CreateContainer";

    #[test]
    fn a_name_is_taken_until_it_is_released() {
        let mut names = NameReservations::default();
        let now = Duration::ZERO;
        names.take(CALL, "a", "1", now).unwrap();
        let taken = names.take(CALL, "a", "2", now).unwrap_err();
        assert_eq!(taken.message(), r#"name "a" is reserved for "1""#);
        names.release("a");
        names.take(CALL, "a", "2", now).unwrap();
    }

    #[test]
    fn a_blocked_name_is_free_after_its_time_or_a_restart() {
        let (now, later) = (Duration::ZERO, Duration::from_secs(1));
        let mut names = NameReservations::default();
        names.reserve("a".to_owned(), "1".to_owned(), now, Some(later));
        names.reserve("b".to_owned(), "2".to_owned(), now, None);
        assert!(names.take(CALL, "a", "3", now).is_err());
        names.take(CALL, "a", "3", later).unwrap();
        assert!(names.take(CALL, "b", "4", later).is_err());
        names.release_unused();
        names.take(CALL, "b", "4", later).unwrap();
        assert!(names.take(CALL, "a", "5", later).is_err(), "a thing keeps its name");
    }

    #[test]
    fn a_name_that_is_taken_cannot_be_blocked() {
        let mut names = NameReservations::default();
        names.take(CALL, "a", "1", Duration::ZERO).unwrap();
        names.reserve("a".to_owned(), "2".to_owned(), Duration::ZERO, None);
        names.release_unused();
        assert!(names.take(CALL, "a", "3", Duration::ZERO).is_err());
    }
}
