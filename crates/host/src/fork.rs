//! Children that go on in this process's memory. They execute no program, so that what it has loaded and relocated is shared with them for as long as
//! nobody writes to it.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::process::Pid;

use crate::namespaces::require_one_thread;

/// The code of a child whose work has panicked, as that of a program of Rust.
const PANICKED: u8 = 101;

/// Starts a child that does `work` and ends with the code that it gives. The child has all descriptors of this process, also those that are closed when
/// a program is executed.
///
/// # Errors
/// When this process has a second thread, whose locks nothing would ever release in the child, or the kernel refuses.
pub fn fork(work: impl FnOnce() -> u8) -> io::Result<Pid> {
    require_one_thread("be forked")?;
    #[expect(unsafe_code, reason = "rustix has no fork that the C library knows of")]
    // SAFETY: this thread is the only one, so that it goes on in the child with whole data and no lock held by another. It never returns to what has called
    // this function there: it ends the process, also after a panic.
    let forked = unsafe { libc::fork() };
    match forked {
        -1 => Err(io::Error::last_os_error()),
        0 => end_with(catch_unwind(AssertUnwindSafe(work)).unwrap_or(PANICKED)),
        child => Pid::from_raw(child).ok_or_else(|| io::ErrorKind::InvalidData.into()),
    }
}

#[expect(clippy::exit, reason = "the child's work is done, and what called fork is the parent's")]
fn end_with(code: u8) -> ! {
    std::process::exit(code.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_threads_cannot_be_forked() {
        // A test runs beside the main thread of its binary, so there are two at least.
        let error = fork(|| 0).unwrap_err();
        assert!(error.to_string().contains("cannot be forked"), "{error}");
    }
}
