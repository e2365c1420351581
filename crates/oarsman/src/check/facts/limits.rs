//! How many files and watches one may have.

use rustix::process::{Resource, getrlimit};

use super::number;

/// What the kernel grants; none where it does not tell or does not limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) open_files: Option<u64>,
    pub(crate) inotify_instances: Option<i64>,
    pub(crate) inotify_watches: Option<i64>,
}

impl Limits {
    pub(super) fn look() -> Self {
        Self {
            open_files: getrlimit(Resource::Nofile).current,
            inotify_instances: number("/proc/sys/fs/inotify/max_user_instances"),
            inotify_watches: number("/proc/sys/fs/inotify/max_user_watches"),
        }
    }
}
