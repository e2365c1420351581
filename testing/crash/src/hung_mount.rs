//! A file system that hangs.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// A FUSE file system whose server never answers: calls below it hang until this is dropped.
#[derive(Debug)]
pub struct HungMount {
    server: Option<File>,
    point: PathBuf,
}

/// A mount that another thread ends, also when the test's own thread hangs.
#[derive(Debug)]
pub struct EndingMount {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl HungMount {
    /// Mounts it on a directory; none on a machine without FUSE, which is printed.
    ///
    /// # Panics
    /// When the kernel refuses.
    #[expect(clippy::print_stderr, reason = "a test that does not run says so")]
    pub fn at(point: &Path) -> Option<Self> {
        let Ok(server) = File::options().read(true).write(true).open("/dev/fuse") else {
            eprintln!("this machine has no FUSE");
            return None;
        };
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", server.as_raw_fd());
        let options = CString::new(options).unwrap();
        mount("test", point, "fuse", MountFlags::empty(), options.as_c_str()).unwrap();
        Some(Self { server: Some(server), point: point.to_owned() })
    }

    /// Ends the server: calls that hang fail, and so do those that follow, while the mount stays.
    pub fn end_server(&mut self) {
        self.server = None;
    }

    /// The same mount, which ends after that time, or when what is returned is dropped.
    pub fn end_after(self, time: Duration) -> EndingMount {
        let (end, ended) = channel();
        let thread = thread::spawn(move || {
            // An error of either kind is an end.
            ended.recv_timeout(time).ok();
            drop(self);
        });
        EndingMount { end: Some(end), thread: Some(thread) }
    }
}

impl Drop for HungMount {
    fn drop(&mut self) {
        self.end_server();
        // The test may have unmounted it.
        unmount(&self.point, UnmountFlags::DETACH).ok();
    }
}

impl Drop for EndingMount {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}
