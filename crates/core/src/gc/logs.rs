//! Logs whose pods or containers are gone.

use std::collections::BTreeSet;

use crate::ids::{ContainerId, PodUid};

/// Whose logs stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Every pod that a source, a worker or the runtime knows, also those that are not ours. It is to be complete only when every
    /// source has spoken: a pod may only be late.
    pub pods: BTreeSet<PodUid>,
    /// Every container that may still write.
    pub writers: BTreeSet<ContainerId>,
}

impl Known {
    /// Whether a directory `<namespace>_<pod>_<uid>` belongs to a pod that nobody knows. One named otherwise is not ours to
    /// remove.
    pub fn forgot(&self, directory: &str) -> bool {
        pod_of(directory).is_some_and(|uid| !self.pods.contains(&uid))
    }

    /// Whether a symlink `<pod>_<namespace>_<container>-<container id>.log` that points to no file can go. Of a container that
    /// may still write, the log is only being rotated.
    pub fn lets_go(&self, dangling: &str) -> bool {
        container_of(dangling).is_some_and(|id| !self.writers.contains(&ContainerId::from(id)))
    }
}

/// The pod that a log directory belongs to.
pub fn pod_of(directory: &str) -> Option<PodUid> {
    match directory.split('_').collect::<Vec<_>>()[..] {
        [_namespace, _pod, uid] if !uid.is_empty() => Some(PodUid::from(uid)),
        _ => None,
    }
}

fn container_of(symlink: &str) -> Option<&str> {
    let (_, id) = symlink.strip_suffix(".log")?.rsplit_once('-')?;
    Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_directory_goes_when_nobody_knows_its_pod() {
        let known = Known { pods: BTreeSet::from([PodUid::from("u1")]), ..Known::default() };
        let rows = [
            ("default_web_u1", false),
            ("default_web_u2", true),
            ("lost+found", false),
            ("a_b_", false),
            ("a_b_c_u3", false),
        ];
        for (name, goes) in rows {
            assert_eq!(known.forgot(name), goes, "{name}");
        }
    }

    #[test]
    fn a_dangling_symlink_goes_unless_its_container_may_still_write() {
        let known = Known { writers: BTreeSet::from(["c1".into()]), ..Known::default() };
        let rows = [
            ("web_default_main-c1.log", false),
            ("web_default_main-c2.log", true),
            ("web_default_side-car-c1.log", false),
            ("other.txt", false),
            ("nodash.log", false),
        ];
        for (name, goes) in rows {
            assert_eq!(known.lets_go(name), goes, "{name}");
        }
    }
}
