//! Facts about the limits of open files and of inotify.

use rustix::process::{Resource, getrlimit};

use super::read_number;

/// The limits; none where the kernel does not report one or does not limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LimitFacts {
    pub(crate) open_files: Option<u64>,
    pub(crate) inotify_instances: Option<i64>,
    pub(crate) inotify_watches: Option<i64>,
}

impl LimitFacts {
    pub(super) fn read() -> Self {
        Self {
            open_files: getrlimit(Resource::Nofile).current,
            inotify_instances: read_number("/proc/sys/fs/inotify/max_user_instances"),
            inotify_watches: read_number("/proc/sys/fs/inotify/max_user_watches"),
        }
    }
}
