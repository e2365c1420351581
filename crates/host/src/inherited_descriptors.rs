//! Descriptors that a process was started with, and that the programs it executes must not get.

use std::io;

/// The first descriptor behind stdin, stdout and stderr.
const FIRST: libc::c_uint = 3;

/// Has every descriptor but stdin, stdout and stderr closed when this process executes another program. Our own are closed then in any case;
/// this is about those that the program which started us left open, such as the lock file of a shell script.
///
/// # Errors
/// When the kernel is older than 5.11.
pub fn close_on_exec() -> io::Result<()> {
    #[expect(unsafe_code, reason = "rustix has no close_range")]
    // SAFETY: nothing is closed: only the flag is set that says what happens when this process executes another program.
    let result = unsafe {
        libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
