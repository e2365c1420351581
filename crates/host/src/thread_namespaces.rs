//! Work in other namespaces on a thread of its own, while the rest of the process stays where it is.
//!
//! The thread ends with the work, so that no later work finds itself in the wrong place. Threads that the work starts begin in the
//! same namespaces.

use std::io;
use std::os::fd::BorrowedFd;
use std::panic;
use std::thread;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::namespaces::NamespaceKind;

/// Does `work` on a thread in new namespaces of these kinds. They end with it unless the work keeps them, by a process, a descriptor
/// or a mount. A new mount namespace is a copy whose mounts still propagate.
///
/// # Errors
/// When the kernel refuses the namespaces, or no thread can be started.
pub fn in_new<T: Send>(kinds: &[NamespaceKind], work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let flags = kinds.iter().fold(UnshareFlags::empty(), |all, kind| all | kind.flag());
    on_thread(move || {
        #[expect(unsafe_code, reason = "rustix has no safe unshare: it cannot know the flags")]
        // SAFETY: the call is unsafe for its FILES flag, after which a descriptor may be open in one thread and closed in
        // another. No kind of namespace has that flag.
        unsafe {
            unshare_unsafe(flags)?;
        }
        Ok(work())
    })
}

/// Does `work` on a thread in the network, IPC or UTS namespace that a descriptor of `/proc/<pid>/ns` or of a pinned namespace stands for.
///
/// # Errors
/// When it is none of that kind, the kernel refuses, or no thread can be started.
pub fn in_existing<T: Send>(
    namespace: BorrowedFd<'_>,
    kind: NamespaceKind,
    work: impl FnOnce() -> T + Send,
) -> io::Result<T> {
    let kind = match kind {
        NamespaceKind::Network => LinkNameSpaceType::Network,
        NamespaceKind::Ipc => LinkNameSpaceType::InterProcessCommunication,
        NamespaceKind::Uts => LinkNameSpaceType::HostNameAndNISDomainName,
        // These are not of one thread alone: a mount namespace brings a working directory, a pid namespace holds for children, and a process
        // with threads cannot change its user namespace.
        NamespaceKind::Mount | NamespaceKind::Pid | NamespaceKind::User => {
            return Err(io::ErrorKind::Unsupported.into());
        }
    };
    on_thread(move || {
        move_into_link_name_space(namespace, Some(kind))?;
        Ok(work())
    })
}

/// A panic of the work is a panic of the caller, as if there were no thread.
fn on_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread =
            thread::Builder::new().name("namespaces".to_owned()).spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked))
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::fd::AsFd;

    use super::*;

    fn namespace(kind: NamespaceKind) -> String {
        let link = fs::read_link(format!("/proc/thread-self/ns/{}", kind.file_name())).unwrap();
        link.to_string_lossy().into_owned()
    }

    #[test]
    fn only_the_thread_of_the_work_is_in_the_new_namespaces() {
        let kinds = [NamespaceKind::Network, NamespaceKind::Ipc, NamespaceKind::Uts];
        let before = kinds.map(namespace);
        let inside = in_new(&kinds, || kinds.map(namespace)).unwrap();
        for (outside, inside) in before.iter().zip(&inside) {
            assert_ne!(outside, inside);
        }
        assert_eq!(before, kinds.map(namespace));
    }

    #[test]
    fn a_descriptor_leads_back_into_a_namespace_that_nothing_else_holds() {
        let kind = NamespaceKind::Uts;
        let (name, held) =
            in_new(&[kind], || (namespace(kind), File::open("/proc/thread-self/ns/uts").unwrap()))
                .unwrap();
        assert_eq!(in_existing(held.as_fd(), kind, || namespace(kind)).unwrap(), name);
        assert!(in_existing(held.as_fd(), NamespaceKind::Network, || ()).is_err());
        assert!(in_existing(held.as_fd(), NamespaceKind::Mount, || ()).is_err());
    }
}
