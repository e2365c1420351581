//! Keys that the kernel keeps for a session.

use std::io;

const JOIN_SESSION: libc::c_long = 1;

/// Gives this process a session keyring of its own, which is empty; nothing to do where the kernel has none.
///
/// # Errors
/// When the kernel refuses, such as a user who has too many keys.
pub fn leave() -> io::Result<()> {
    #[expect(unsafe_code, reason = "rustix has no keyctl")]
    // SAFETY: the call takes no memory of ours: a null pointer asks for a keyring without a name.
    let result =
        unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION, std::ptr::null::<libc::c_char>()) };
    if result >= 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        // Not built in, or forbidden where this process itself is contained.
        error
            if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM | libc::EACCES)) =>
        {
            Ok(())
        }
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_session_keyring_can_be_left_again_and_again() {
        // It is one of the thread.
        thread::spawn(|| {
            leave().unwrap();
            leave().unwrap();
        })
        .join()
        .unwrap();
    }
}
